"""From the answer's code to the program that is run: what goes before it, and how its functions are called.

The answer is looked at by patterns that are anchored to line starts and take linear time; it is not parsed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from .asserts import functions_of
from .reference import CodeReference

__all__ = ["Assembled", "assemble", "callable_name", "defines"]

LEETCODE_PRELUDE = """\
import bisect, collections, copy, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from functools import cache, cmp_to_key, lru_cache, partial, reduce
from heapq import heapify, heappop, heappush, heappushpop, heapreplace, nlargest, nsmallest
from itertools import accumulate, chain, combinations, count, groupby, pairwise, permutations, product, zip_longest
from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, log, log2, sqrt
from typing import *
"""
"""What LeetCode's judge imports before a ``Solution``. The only star is ``typing``'s: ``math``'s would hide ``pow``."""

_FUTURE = re.compile(r"^[ \t]*from[ \t]+__future__[ \t]+import\b", re.MULTILINE)
_SOLUTION = re.compile(r"^class[ \t]+Solution\b", re.MULTILINE)
_DEFINITION = re.compile(
    r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
    r"|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)"
    r"|^(?:from|import)[ \t]([^\n]*)"
    r"|^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)",
    re.MULTILINE,
)
_IMPORTED = re.compile(r"\b(\w+)\b[ \t]*(?=$|[,#)])")
_METHOD = re.compile(r"([A-Za-z_]\w{0,200})(?:\(\))?\.([A-Za-z_]\w{0,200})")


@dataclass(frozen=True, slots=True)
class Assembled:
    """The program as it is run, and which function of it is meant."""

    source: str
    function: str | None
    """The reference's function as :class:`FunctionCall` names it: ``f`` or ``Solution().f``."""
    redefined: frozenset[str] = frozenset()
    """Helper functions of the data set's prelude that the answer defines anew."""


def defines(source: str, name: str) -> bool:
    """Does ``source`` define ``name`` at its top level, as a function, a class, a variable or an import?"""
    return name in _names_of(source)[0]


@functools.lru_cache(maxsize=8)
def _names_of(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names defined at the top level, and those of indented functions: one pass, however many names are asked for."""
    top, methods = set(), set()
    for match in _DEFINITION.finditer(source):
        defined, assigned, imported, method = match.groups()
        if imported is not None:
            top.update(_IMPORTED.findall(imported))
        elif method is not None:
            methods.add(method)
        else:
            top.add(defined or assigned)
    return frozenset(top), frozenset(methods)


def callable_name(source: str, name: str) -> str:
    """How to call ``name``: a method of ``Solution`` needs a fresh instance unless a function of that name exists."""
    match = _METHOD.fullmatch(name)
    owner, method = match.groups() if match else ("Solution", name)
    if match is None and defines(source, name):
        return name
    if defines(source, owner) and (match is not None or _has_method(source, method)):
        return f"{owner}().{method}"
    return method if defines(source, method) or match is None else f"{owner}().{method}"


def _has_method(source: str, name: str) -> bool:
    return name in _names_of(source)[1]


def assemble(answer: str, reference: CodeReference) -> Assembled:
    """Put the data set's code before the answer's, and settle which function is called."""
    answer = answer.replace("\r\n", "\n")
    entry_point = reference.fn_name or reference.entry_point
    if reference.prompt and entry_point and not defines(answer, entry_point):
        prompt = reference.prompt.rstrip()
        indent = _indent(prompt.rpartition("\n")[2]) or "    "
        return Assembled(f"{prompt}\n{_as_body(answer, indent)}", entry_point)
    parts = [reference.prelude]
    if reference.prompt:
        parts.append(reference.setup)  # the prompt's imports and helpers
    function = callable_name(answer, entry_point) if entry_point else None
    if _SOLUTION.search(answer) and (reference.language or "python") == "python":
        parts.insert(0, LEETCODE_PRELUDE)
    helpers, code = functions_of(reference.prelude) if reference.prelude else (set(), "")
    redefined = frozenset(name for name in helpers if name != function and defines(answer, name))
    before = "\n".join(part for part in parts if part.strip())
    if not before or _FUTURE.search(answer):
        return Assembled(answer, function)
    # The data set's helpers stand once more behind the answer, so that it cannot replace what compares its result.
    return Assembled(f"{before}\n\n{answer}\n\n{code if redefined else ''}", function, redefined)


def _as_body(answer: str, indent: str) -> str:
    """The answer as the body of the prompt's function, at the prompt's depth, whatever its extraction lost."""
    lines = answer.rstrip().split("\n")
    while len(lines) > 1 and not lines[0].strip():
        del lines[0]
    own = _indent(lines[0])
    if own:
        return "\n".join(indent + line[len(own) :] if line.startswith(own) else line for line in lines)
    others = [line for line in lines[1:] if line.strip()]
    if others and all(_indent(line) for line in others):
        # Only the first line lost its indentation, unless the next line is what that line's own block would be.
        opens_block = lines[0].rstrip().endswith(":")
        if not opens_block or len(_indent(others[0])) > 4:
            return "\n".join([indent + lines[0], *lines[1:]])
    return "\n".join(indent + line if line.strip() else line for line in lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
