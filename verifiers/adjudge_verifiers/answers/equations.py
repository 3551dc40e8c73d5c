"""What an equation says the answer is: ``x = 5``, ``the total is 2 + 3 = 5`` and ``f(2) = 5`` say 5.

The left side must be a name, words, or a calculation. Where it holds the unknown together with anything else (``2x``,
``x^2``, ``-x``, ``|x|``) the equation is not solved, and its right side is not the answer; nor is it after ``<=`` and
``!=``, or where several equations stand side by side.
"""

from __future__ import annotations

import re

from ..extract.prose import one_line
from ..extract.surroundings import alters_before
from ..extract.text import plain_latex, unwrap
from .arithmetic import evaluate

__all__ = ["stated_side"]

_MAX_CHARS = 2_000
_RELATION = re.compile(r"(?:[<>≤≥≠~]|(?<![\d)}\s])\s?!)\s?=|=\s?[<>]|\\(?:neq?|leq?|geq?|not)(?![A-Za-z])|≤|≥|≠")
_NAME = re.compile(
    r"(?P<word>[A-Za-z]|[A-Z]{2,4}|[A-Za-z]{3,20}|\\[A-Za-z]{2,10})'?(?:_\{?\w{1,8}\}?)?\s?(?:\([^()]{0,40}\))?"
    r"|\\(?:angle|triangle|overline|vec|hat|bar|mathbb|mathcal)\s?\{?\s?[A-Za-z]{1,4}\}?\s?(?:\([^()]{0,40}\))?"
    r"|\(?[A-Za-z](?:\s?,\s?[A-Za-z])+\)?"
)
"""``x``, ``a_n``, ``AB``, ``total``, ``\\theta``, ``f(3)``, ``\\angle ABC``, ``(x, y)``."""
_FUNCTIONS = frozenset("sin cos tan sec csc cot arcsin arccos arctan log ln lg exp sqrt abs max min frac".split())  # noqa: SIM905
_FUNCTION_OF = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(_FUNCTIONS)}|square|squared|root|half|twice|cube)(?![A-Za-z])")
_WORDS_BEFORE = re.compile(r"^.*[A-Za-z]{2,}[\s:]+(?=\S)", re.DOTALL)
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_LIST = re.compile(r",(?!\d{3})|;|\\l?or\b|\bor\b|\band\b")
_TEXT = re.compile(r"\\(?:text|mathrm|mbox)\s?\{[^{}]*\}")


def stated_side(text: str) -> str | None:
    """The right side of a solved equation or chain of equations; ``text`` itself if it holds no equation.

    ``None`` where no single right side is what the text says the answer is.
    """
    if "=" not in text:
        return text
    if len(text) > _MAX_CHARS or _RELATION.search(text):
        return None
    first, *middle, last = (side.strip(" :") for side in re.split(r"={1,2}", unwrap(plain_latex(text))))
    if not _leads(first) or not all(_is_name(side) or _is_calculation(side) for side in middle):
        return None
    return last


def _leads(side: str) -> bool:
    """May an answer follow ``side`` and an equals sign?"""
    side = one_line(side)
    if alters_before(side + " ="):
        return False
    if not side or _is_name(side) or _is_calculation(side):
        return True
    tail = _WORDS_BEFORE.sub("", side)
    if _LIST.search(side) or (_FUNCTION_OF.search(side.lower()) and _LETTER.search(tail)):
        return False
    return _is_name(tail) or _is_calculation(tail)


def _is_name(side: str) -> bool:
    match = _NAME.fullmatch(side.strip(" ${}"))
    return match is not None and (match["word"] or "").lstrip("\\") not in _FUNCTIONS


def _is_calculation(side: str) -> bool:
    """A calculation without unknowns; one that is beyond exact arithmetic is taken as it is."""
    if evaluate(side) is not None:
        return True
    bare = _TEXT.sub("", side)
    return any(char.isdigit() for char in bare) and not _LETTER.search(bare) and not _LIST.search(bare)
