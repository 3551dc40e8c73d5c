"""What stands right beside a claim and undoes it: a denial, or another answer after an "or".

``not \\boxed{5}`` and ``\\boxed{5} is wrong`` claim nothing. ``\\boxed{5} or 6`` hedges as much as two boxes do, while
``\\boxed{1/2} or 0.5`` says one thing twice. Only a few dozen characters on either side are looked at.
"""

from __future__ import annotations

import re

from ..answers.numbers import parse_quantity
from .prose import NUMBER, one_line
from .text import key

__all__ = ["denied", "other_answer"]

_BESIDE = 60  # characters
_DENIES_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor)|n['’]t)(?:\s(?:be|the|a|an|equal|to|answer|is|simply|just|really|actually))*"
    r"[\s:$*(\\\[{]*$",
    re.IGNORECASE,
)
_DENIES_AFTER = re.compile(
    r"[\s$*)\]}\\.,]{0,8}(?:(?:which|that|this|it)\s?)?(?:(?:is|was|would be|'s|’s)\s(?:all\s)?"
    r"(?:wrong|incorrect|false|not\s(?:the|my|right|correct|true|it)\b)|(?:isn|wasn)['’]t\b|can(?:no|['’])t be\b)",
    re.IGNORECASE,
)
_DOUBTS = r"(?:(?:maybe|perhaps|possibly|probably|even|also|just|it(?:'s| is| could be| might be)|the answer is)\s+)*"
_OR_BEFORE = re.compile(rf"(\S{{1,30}}?)[$*),.]*\s+(?:and/)?or\s+{_DOUBTS}[\s$*(\\\[{{]*$", re.IGNORECASE)
_OR_AFTER = re.compile(
    rf"[\s$*)\]}}\\.,;:!?—(]{{0,10}}(?:or|alternatively|maybe|perhaps|possibly)\b[,\s]+{_DOUBTS}[$*(\\\[]{{0,4}}(.+)",
    re.IGNORECASE | re.DOTALL,
)
_LETTER = re.compile(r"[A-Z](?![\w'])")


def denied(text: str, start: int, end: int) -> bool:
    """Does the text beside ``text[start:end]`` say that this is not the answer?"""
    before, after = text[max(0, start - _BESIDE) : start], text[end : end + _BESIDE]
    return _DENIES_BEFORE.search(before) is not None or _DENIES_AFTER.match(after) is not None


def other_answer(text: str, start: int, end: int, content: str) -> str:
    """A number or letter that the text beside ``text[start:end]`` offers in place of ``content``; else empty."""
    before = _OR_BEFORE.search(text[max(0, start - _BESIDE) : start])
    after = _OR_AFTER.match(text[end : end + _BESIDE])
    for match in (before, after):
        other = _answer_in(match[1], content) if match else ""
        if other:
            return other
    return ""


def _answer_in(offered: str, content: str) -> str:
    if len(content) > _BESIDE:
        return ""
    if len(key(content).strip("()")) == 1 and key(content).strip("()").isalpha():
        letter = _LETTER.match(offered.lstrip("( "))
        return letter.group() if letter and letter.group() != key(content, keep_case=True).strip("()").upper() else ""
    claimed, number = parse_quantity(content), NUMBER.match(one_line(offered))
    other = parse_quantity(number.group().strip()) if number else None
    if claimed is None or other is None or other.ratio in (claimed.ratio, claimed.value):
        return ""
    return number.group().strip() if number else ""
