"""Find the program in a response.

The text is read once, line by line, as Markdown with the liberties that models take: a fence may open behind other text
on its line if a language follows it, may close behind the last line of code, and a fence that names a language inside
an open block starts a new block. Nothing of the answer is parsed or compiled here; whether it is a program is for the
sandbox to find out.

Thinking blocks are removed first. A block that is still open at the end of the text was cut off, and an answer that was
cut off is ``truncated``; no earlier block stands in for it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from adjudge_sandbox.languages import table

from ..base import Extraction
from .tags import find_tags
from .thinking import strip_thinking

__all__ = ["Block", "Pick", "blocks", "canonical_language", "find_program", "looks_like_python", "spoken_language"]

Pick = Literal["last_tagged", "last", "first", "join"]
"""Which fenced block is the program: the last one in the right language, else the last one; the last one whatever it
names; the first one; or all in the right language (else all), one after the other."""

_ONLY_TAGS = {
    **dict.fromkeys(("python2", "py2", "ipython", "ipython3", "sage", "sagemath"), "python"),
    **dict.fromkeys(("mysql", "postgresql", "postgres", "psql", "tsql", "plsql", "duckdb"), "sql"),
    **dict.fromkeys(("c18", "c23", "h"), "c"),
    **dict.fromkeys(("c++98", "c++03", "hpp", "c++2a", "c++2b"), "cpp"),
    **dict.fromkeys(("jsx", "cjs", "es6"), "javascript"),
    **dict.fromkeys(("kts",), "kotlin"),
    **dict.fromkeys(("ksh", "dash"), "bash"),
}
"""What stands behind fences and names no language to run a program in."""


@functools.cache
def _by_tag() -> dict[str, str]:
    """Languages by the words that stand behind fences: the names and aliases of the sandbox's table, and a few more."""
    known = {
        name: language.name
        for language in table.languages()
        for name in (language.name, *language.aliases, *language.standards)
    }
    return {**_ONLY_TAGS, **known}


_NOT_PROGRAMS = frozenset(
    {"text", "txt", "output", "stdout", "stdin", "input", "console", "plaintext", "json", "markdown", "md"}
)

_FENCE = re.compile(r"([ \t]{0,40})(`{3,}|~{3,})(.*)", re.DOTALL)
_TAG = re.compile(r"\{?\.?([A-Za-z][A-Za-z0-9+#_.-]{0,20})")
_CODE_LINE = re.compile(
    r"[ \t]*(?:(?:async[ \t]+)?(?:def|class|for|while|if|with)[ \t].*|try[ \t]*:|return\b|raise\b|yield\b"
    r"|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|@\w|[A-Za-z_][\w.]*\("
    r"|[A-Za-z_][\w.,\[\]]*[ \t]*[-+*/%&|^:]?=(?!=))"
)
_LINE_PREFIX = 300  # what of a line is looked at to tell code from prose


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: the first word behind its fence, lower-cased, and the lines up to the closing fence."""

    tag: str
    code: str
    closed: bool
    info: str = ""
    """All that stands behind its fence, at most 300 characters."""
    above: str = ""
    """The last line before it with something on it, outside of blocks; likewise."""

    @property
    def language(self) -> str | None:
        """The language that the tag names, if it is one."""
        return _by_tag().get(self.tag)


def canonical_language(name: str) -> str:
    """``Python3`` -> ``python``; a name that is not known is lower-cased."""
    lowered = name.strip().lower()
    return _by_tag().get(lowered, lowered)


def spoken_language(name: str) -> str:
    """As :func:`canonical_language`, but a name that chooses a standard (``c++17``) is kept: the compiler is told."""
    known = table.find(name)
    return name.strip().lower() if known is not None and known[1] else canonical_language(name)


@dataclass(slots=True)
class _Open:
    tag: str
    indent: int
    fence: str
    lines: list[str]
    info: str = ""
    above: str = ""

    def closed_by(self, line: str) -> bool:
        """A closing fence: the opener's character, as often or more, alone on its line, not indented further."""
        stripped = line.strip()
        if not stripped.startswith(self.fence) or stripped.strip(self.fence[0]):
            return False
        return len(line) - len(line.lstrip()) <= self.indent + 3

    def block(self, *, closed: bool) -> Block:
        return Block(self.tag, "\n".join(self.lines), closed, self.info, self.above)


def blocks(text: str) -> list[Block]:
    """All fenced blocks of ``text`` in order; only the last one can be not closed."""
    found: list[Block] = []
    current: _Open | None = None
    above = ""
    for line in text.split("\n"):
        if current is None:
            current = _opened(line, found)
            if current is not None:
                current.above, above = above, ""
            elif line.strip():
                above = line[:_LINE_PREFIX]
        elif current.closed_by(line):
            found.append(current.block(closed=True))
            current = None
        elif (again := _reopened(line, current)) is not None:
            current = again
        else:
            current.lines.append(_dedent(line, current.indent))
    if current is not None:
        found.append(_finish(current))
    return found


def _opened(line: str, found: list[Block]) -> _Open | None:
    """The block that this line opens; a block that begins and ends on this line goes to ``found`` at once."""
    match = _FENCE.match(line)
    if match is None:
        return _opened_behind_text(line)
    indent, fence, info = match.groups()
    if fence[0] == "`" and "`" in info:
        code, closing, _ = info.partition(fence)
        if closing:
            tag = _tag(code)
            code = code.lstrip()[len(tag) :] if tag in _by_tag() else code
            found.append(Block(tag if tag in _by_tag() else "", code.strip(), True))
        return None
    return _Open(_tag(info), len(indent.expandtabs(4)), fence, [], info.strip()[:_LINE_PREFIX])


def _opened_behind_text(line: str) -> _Open | None:
    """``Here it is: ```python`` opens a block if what follows the fence is the name of a language."""
    head, fence, info = line.rpartition("```")
    if fence and "```" not in head and len(info) < 40 and info.strip().lower() in _by_tag():
        return _Open(info.strip().lower(), 0, "```", [])
    return None


def _reopened(line: str, current: _Open) -> _Open | None:
    """A fence with a language inside an open block, at the block's own depth: the model began again."""
    match = _FENCE.match(line) if "```" in line or "~~~" in line else None
    if match is None or len(match.group(1)) > current.indent or match.group(2)[0] != current.fence[0]:
        return None
    tag = match.group(3).strip().lower()
    return _Open(tag, current.indent, match.group(2), []) if tag in _by_tag() else None


def _finish(current: _Open) -> Block:
    """The last block: cut off, unless its fence stands behind a line of code."""
    for index, line in enumerate(current.lines):
        stripped = line.rstrip()
        if stripped.endswith(current.fence) and stripped.strip(current.fence[0]):
            current.lines[index:] = [stripped.rstrip(current.fence[0])]
            return current.block(closed=True)
    return current.block(closed=False)


def _tag(info: str) -> str:
    match = _TAG.match(info.strip()[:64])
    return match.group(1).lower() if match else ""


def _dedent(line: str, indent: int) -> str:
    removable = min(indent, len(line) - len(line.lstrip(" ")))
    return line[removable:]


def find_program(
    response: str,
    *,
    language: str = "python",
    pick: Pick = "last_tagged",
    bare: bool = True,
    allow_unclosed: bool = False,
) -> Extraction:
    """The program of ``response``.

    Args:
        response: The whole text, at most about a million characters.
        language: Which blocks are in the right language.
        pick: Which block to take.
        bare: Without any fence, take the whole text if it looks like code.
        allow_unclosed: Take a block that was never closed for whole (a stop string may have eaten its fence).
    """
    text, open_thinking = strip_thinking(response)
    if open_thinking:
        return Extraction("truncated", method="thinking")
    found = blocks(text)
    if not found:
        return _whole(text, language) if bare else Extraction("none")
    chosen, method = _choose(found, canonical_language(language), pick)
    if not allow_unclosed and any(not block.closed for block in chosen):
        return Extraction("truncated", method=method)
    code = "\n\n".join(block.code for block in chosen)
    return Extraction("answered", code, method) if code.strip() else Extraction("none", method=method)


def _choose(found: list[Block], language: str, pick: Pick) -> tuple[list[Block], str]:
    tagged = [block for block in found if block.language == language]
    if pick == "first":
        return found[:1], "first_fence"
    if pick == "last":
        return found[-1:], "last_fence"
    if pick == "join":
        return tagged or found, "joined_fences"
    if tagged:
        return tagged[-1:], "last_tagged_fence"
    programs = [block for block in found if block.tag not in _NOT_PROGRAMS]
    return (programs or found)[-1:], "last_fence"


def _whole(text: str, language: str) -> Extraction:
    """A response without a fence: what stands in ``<answer>``, else all of it, if it looks like code."""
    tagged = find_tags(text, ("answer",))
    if tagged and not tagged[-1].closed:
        return Extraction("truncated", method="answer_tag")
    code = (tagged[-1].content if tagged else text).strip("\r\n")
    if code.strip() and (canonical_language(language) != "python" or looks_like_python(code.split("\n"))):
        return Extraction("answered", code, "answer_tag" if tagged else "whole")
    return Extraction("none")


def looks_like_python(lines: Iterable[str]) -> bool:
    """Does a line begin as code does? Prose that does is told apart by the compiler, and counts as an error of it."""
    return any(_CODE_LINE.match(line[:_LINE_PREFIX]) for line in lines)
