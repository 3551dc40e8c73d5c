"""Just enough of each language's lexis to find braces, parentheses and declarations in linear time.

:func:`mask` blanks comments and the contents of strings, keeping every other character where it was; the rest of this
module looks at masked text only. Nothing is parsed: a text that is no program of its language gives some answer, and
the compiler then has the last word.
"""

from __future__ import annotations

import functools
import re

__all__ = ["arguments", "closing", "innermost_end", "mask", "open_braces", "unopened"]

_PIECES = {
    "slashes": r"//[^\n]*|/\*.*?(?:\*/|\Z)",
    "nested": r"/\+.*?(?:\+/|\Z)",
    "hash": r"(?<![^\s;])#[^\n]*",
    "dashes": r"--\[\[.*?(?:\]\]|\Z)|--[^\n]*|\[\[.*?(?:\]\]|\Z)",
    "cpp_raw": r'\bR"([^()\\\s]{0,16})\(.*?(?:\)\1"|\Z)',
    "rust_raw": r'\br(?P<marks>#{1,5})".*?(?:"(?P=marks)|\Z)',
    "verbatim": r'@"(?:[^"]|"")*"?',
    "block": r'""".*?(?:"""|\Z)',
    "double": r'"(?:[^"\\\n]|\\.)*"?',
    "single": r"'(?:[^'\\\n]|\\.)*'?",
    "char": r"'(?:[^'\\\n]|\\(?:[^ux\n]|[ux][0-9A-Fa-f{}]{1,10}))'",
    "regex": r"(?:(?<=[=(,:;!&|?{}\[+\n])|(?<=\breturn))[ \t]*"
    r"/(?![*/])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.){0,60}+\]){1,200}+/",
    "ticks": r"`(?:[^`\\]|\\.)*`?",
    "raw_ticks": r"`[^`]*`?",
}
_LEXIS = {
    "c": "slashes double char",
    "cpp": "slashes cpp_raw double char",
    "java": "slashes block double char",
    "kotlin": "slashes block double char",
    "scala": "slashes block double char",
    "csharp": "slashes verbatim double char",
    "d": "slashes nested double char raw_ticks",
    "go": "slashes double char raw_ticks",
    "rust": "slashes rust_raw double char",
    "javascript": "slashes regex double single ticks",
    "typescript": "slashes regex double single ticks",
    "php": "slashes hash double single",
    "lua": "dashes double single",
    "julia": "hash block double",
    "ruby": "hash double single",
    "perl": "hash double single",
    "r": "hash double single",
    "bash": "hash double single",
}
_OPENING = {"(": ")", "[": "]", "{": "}"}
_BRACKET = re.compile(r"[(\[{)\]},]")
_BRACE = re.compile(r"[{}]")
_NOT_NEWLINE = re.compile(r"[^\n]")


@functools.cache
def _pattern(language: str) -> re.Pattern[str]:
    return re.compile("|".join(_PIECES[name] for name in _LEXIS[language].split()), re.DOTALL)


def mask(text: str, language: str) -> str:
    """``text``, as long as it was, with comments and strings blanked."""
    return _pattern(language).sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(" ", match[0])


def closing(masked: str, opening: int, limit: int | None = None) -> int | None:
    """Index of the bracket that closes the one at ``opening``, looking at most ``limit`` characters ahead."""
    depth = 0
    end = len(masked) if limit is None else min(len(masked), opening + limit)
    for token in _BRACKET.finditer(masked, opening, end):
        if token[0] in _OPENING:
            depth += 1
        elif token[0] != ",":
            depth -= 1
            if depth <= 0:
                return token.start() if depth == 0 else None
    return None


def arguments(masked: str, opening: int) -> tuple[list[tuple[int, int]], int] | None:
    """The spans of what stands between commas in the parentheses at ``opening``, and the index of their end."""
    depth, start = 0, opening + 1
    spans: list[tuple[int, int]] = []
    for token in _BRACKET.finditer(masked, opening):
        if token[0] in _OPENING:
            depth += 1
        elif token[0] == ",":
            if depth == 1:
                spans.append((start, token.start()))
                start = token.end()
        else:
            depth -= 1
            if depth == 0:
                return [*spans, (start, token.start())], token.start()
    return None


def unopened(masked: str, count: int) -> int | None:
    """Index of the closing brace that closes nothing of this text, the ``count``-th of them."""
    depth = 0
    for token in _BRACE.finditer(masked):
        depth += 1 if token[0] == "{" else -1
        if depth == -count:
            return token.start()
    return None


def open_braces(masked: str) -> list[int]:
    """Indices of the opening braces that are still open at the end, outermost first."""
    stack: list[int] = []
    for token in _BRACE.finditer(masked):
        if token[0] == "{":
            stack.append(token.start())
        elif stack:
            stack.pop()
    return stack


def innermost_end(masked: str, position: int) -> int | None:
    """Index of the brace that closes the innermost block around ``position``; ``None`` if there is none around it."""
    depth = len(open_braces(masked[:position]))
    if depth == 0:
        return None
    inside = 0
    for token in _BRACE.finditer(masked, position):
        inside += 1 if token[0] == "{" else -1
        if inside < 0:
            return token.start()
    return None
