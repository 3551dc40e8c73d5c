"""Where a Java or Scala program begins: the name of the class with ``main``, and of the file that must hold it.

One pass over the text, linear in it: an answer may be a megabyte of anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Entry", "entry_of"]

_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:\\[^\n]{1,5}?|[^'\\\n])'", re.DOTALL
)  # what is not closed goes on to the end, so that no start is tried twice
_TOKEN = re.compile(
    r"(?P<brace>[{}])|(?P<end>;)|\b(?P<public>public)\b|(?<![.\w])(?:class|interface|enum|record|object)\s+(?P<type>\w+)"
    r"|(?P<main>\bvoid\s+main\s*\(|\bdef\s+main\s*[(\[])|(?P<app>\bextends\s+App\b)"
)
_MAX_MAINS = 100  # each costs the depth of its nesting
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+([\w.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """How to name the source file, and what to run."""

    file: str
    """Without its ending: a public class must lie in a file of its own name."""
    main: str
    """With its package: ``org.example.Main``."""


def entry_of(source: str) -> Entry:
    """The first ``main`` that lies in a public class, else the first of all; ``Main`` if there is none."""
    code = _NOT_CODE.sub(" ", source)
    mains: list[tuple[bool, str]] = []
    public_type, stack = "", list[tuple[str, bool]]()
    pending, public = "", False
    for token in _TOKEN.finditer(code):
        if token["public"]:
            public = True
        elif token["type"]:
            pending = token["type"]
            if public and not stack and not public_type:
                public_type = pending
        elif token["brace"] == "{":
            stack.append((pending, public and bool(pending)))
            pending, public = "", False
        elif token["brace"] == "}":
            if stack:
                stack.pop()
            pending, public = "", False
        elif token["end"]:
            pending, public = "", False
        elif len(mains) < _MAX_MAINS:
            names = [name for name, _ in stack if name] + ([pending] if token["app"] and pending else [])
            mains.append((bool(stack) and stack[0][1], "$".join(names)))
    chosen = next((name for is_public, name in mains if is_public and name), "")
    chosen = chosen or next((name for _, name in mains if name), "") or public_type or "Main"
    package = _PACKAGE.search(code)
    return Entry(public_type or chosen.partition("$")[0], f"{package[1]}.{chosen}" if package else chosen)
