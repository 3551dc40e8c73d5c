"""What an equation says the answer is: ``x = 5``, ``the total is 2 + 3 = 5`` and ``f(2) = 5`` say 5.

The left side must be a name, words, or a calculation. Where it holds the unknown together with anything else (``2x``,
``x^2``, ``-x``, ``|x|``), the equation is not solved, and its right side is not the answer; nor is it after ``<=``,
``>=`` and ``!=``, or where several equations stand side by side.
"""

from __future__ import annotations

import re

from .arithmetic import evaluate

__all__ = ["stated_side"]

_MAX_CHARS = 2_000
_NAME = re.compile(
    r"\\?[A-Za-z]+'?(?:_\{?\w{1,8}\}?)?\s*(?:\(\s*[^()]{0,40}\s*\))?"  # x, a_n, f(3), \theta, P(A)
    r"|\\(?:angle|overline|vec|triangle|widehat|hat|bar|operatorname|mathbb|mathcal)\s*\{?\s*[A-Za-z ]{1,12}\}?(?:\([^()]{0,40}\))?"
    r"|\(?[A-Za-z](?:\s*,\s*[A-Za-z])+\)?"  # (x, y)
)
_WORDS_BEFORE = re.compile(r"^.*[A-Za-z]{2,}[\s:]+(?=\S)", re.DOTALL)
_UNSOLVED = re.compile(r"(?:^|[^A-Za-z\\])(?:sin|cos|tan|sec|csc|cot|log|ln|lg|exp|sqrt|square|squared|root|half|twice)\b")
_LETTER = re.compile(r"(?<!\\)(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")


def stated_side(text: str) -> str | None:
    """The right side of a solved equation or chain of equations; ``text`` itself if it holds no equation.

    ``None`` where the last right side is not what the text says that the answer is.
    """
    if "=" not in text:
        return text
    if len(text) > _MAX_CHARS or re.search(r"[<>!≤≥≠~]\s*=|=\s*[<>]|\\(?:neq?|leq?|geq?|not)\b", text):
        return None
    first, *middle, last = [side.strip().rstrip(":").strip() for side in re.split(r"={1,2}", text)]
    if not _leads(first) or not all(_is_name(side) or _is_number_like(side) for side in middle):
        return None
    return last


def _leads(side: str) -> bool:
    """May an answer follow ``side`` and an equals sign?"""
    if not side or _is_name(side) or _is_number_like(side):
        return True
    tail = _WORDS_BEFORE.sub("", side)
    if _UNSOLVED.search(side.lower()) and _LETTER.search(tail):
        return False
    return not re.search(r",|;|\bor\b|\band\b", side) and (_is_name(tail) or _is_number_like(tail))


def _is_name(side: str) -> bool:
    return _NAME.fullmatch(side.strip(" ${}")) is not None


def _is_number_like(side: str) -> bool:
    """A calculation without unknowns; those that are beyond exact arithmetic here are taken as they are."""
    if evaluate(side) is not None:
        return True
    bare = re.sub(r"\\(?:text|mathrm)\s*\{[^{}]*\}", "", side)
    return bool(re.search(r"\d", bare)) and not _LETTER.search(bare) and not re.search(r",(?!\d{3})|;|\\l?or\b|\bor\b|\band\b", bare)
