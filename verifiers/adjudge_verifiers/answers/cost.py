"""Does a formula look as if computer algebra might choke on it?

Only the text is looked at and nothing is computed, so the look itself costs nothing. It decides about priority, never
about a verdict: a wrong guess makes an honest answer wait, no more.
"""

from __future__ import annotations

import re

__all__ = ["looks_costly"]

_LONG = 400
_DEEP = 24
_BIG_DIGITS = 5

_NUMBER = rf"\d{{{_BIG_DIGITS},}}"
_TELLTALES = re.compile(
    r"(?:\^|\*\*)\s*\{?\s*[({]*\s*-?[\w.\\]+\s*[)}]*\s*(?:\^|\*\*)"  # a power of a power
    rf"|(?:\^|\*\*)\s*[({{\s-]*{_NUMBER}"  # a huge exponent
    rf"|{_NUMBER}\s*[)}}]*\s*!|!\s*[)}}]*\s*!|\d!\s*[)}}]*\s*(?:\^|\*\*)"  # factorials
    r"|(?:\^|\*\*)\s*\{?[^{}]{0,20}!"
    r"|\\(?:d|t)?binom\s*\{?\s*\d{4,}|\\(?:sum|prod|int|iint|iiint|oint|lim|det)\b"  # things to be summed up
    r"|\\begin\{[vpbBV]?matrix\}"
    r"|\b(?:sum|prod|integrate|integral|factorial|binom|comb)\b"
)
_BRACKETS = {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}


def looks_costly(*formulas: str) -> bool:
    """Is one of ``formulas`` long, deep, or does it hold towers, huge exponents, factorials, sums or integrals?"""
    return any(len(text) > _LONG or _TELLTALES.search(text) or _depth(text) > _DEEP for text in formulas)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        deepest = max(deepest, depth)
    return deepest
