"""Which number a sentence states, if it states one.

``She has 18 eggs left`` states 18. A sentence with several numbers may still state one of them: a marked answer the
first, if the rest explains it (``12 and not 13``, ``18 dollars because 9*2=18``), and a last sentence the last, if
the others lead to it. In doubt it states none. For texts of at most a few thousand characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..answers.units import unit_of
from .surroundings import alters_after, alters_before
from .text import fold, plain_latex

__all__ = ["NUMBER", "Stated", "first_stated", "last_stated", "one_line"]

NUMBER = re.compile(
    r"(?<![\w.])(?:[-+](?!\d*[-+]))?(?:[$€£¥]-?)?"
    r"(?:\\[dtc]?frac\{-?\d+\}\{-?\d+\}"
    r"|(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?: \d{3})+(?![\d,./])"
    r"|(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:e[-+]?\d+| ?(?:\\times|\\cdot|[×*x]) ?10 ?\^ ?\{?[-+]?\d+\}?)?(?: \d+/\d+|/\d+)?|\.\d+)"
    r"(?:\s?%|\s(?:thousand|million|billion|trillion|percent)\b)?",
    re.IGNORECASE,
)
"""A number in prose, for short texts (a long one would take quadratic time)."""
_NEXT_WORD = re.compile(r"\s?([A-Za-z°¢€]+)")
_LISTED = re.compile(
    r"[\s$]*(?:[a-z$]{1,12}\s?)?[\s$]*(?:[,;|/]|(?:,\s?)?(?:\bor\b|\band\b(?!\s+not\b)|\bto\b|\bvs\b|\\lor|\\vee))[\s$(]*",
    re.IGNORECASE,
)
"""What stands between two numbers of a list."""
_EXPLAINS = re.compile(
    r"\b(?:because|since|as|from|given|when|where|which|with|not|rather|instead|for|of|in|on|at|per|each|that|if|after)\b"
)
_TIED_TO_THE_NEXT = re.compile(r"\s*(?:of|in|on|per|by|to|than|at|for|out)\b", re.IGNORECASE)
_OFFERED = re.compile(r"\b(?:or|either|alternatively|maybe|perhaps|possibly|otherwise)\b|\\lor|\\vee", re.IGNORECASE)
_DENIES_THE_NEXT = re.compile(r"(?:,?\s*and)?\s*\bnot\s*$")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Stated:
    """The number that was stated, with its unit; or what stands in the way of one."""

    text: str = ""
    problem: Literal["", "nothing", "altered", "several", "listed"] = ""
    numbers: tuple[str, ...] = ()
    """What there was to choose from, if there were several."""


def one_line(text: str) -> str:
    """``text`` as the readers here want it: look-alikes in ASCII, no fonts, single spaces."""
    return " ".join(plain_latex(fold(text)).replace("\\%", "%").replace("\\$", "$").split())


def first_stated(prose: str) -> Stated:
    """The number that a marked answer states: its only one, or its first if the rest explains that."""
    numbers = list(NUMBER.finditer(prose))
    if not numbers:
        return Stated(problem="nothing")
    first = numbers[0]
    if len(numbers) == 1:
        return _stated(prose, first, prose[: first.start()], prose[first.end() :])
    shown = tuple(number.group().strip() for number in numbers[:_SHOWN])
    between = prose[first.end() : numbers[1].start()]
    if _LISTED.fullmatch(between):
        return Stated(problem="listed", numbers=shown)
    explained = _EXPLAINS.search(between) and not _TIED_TO_THE_NEXT.match(between)
    if prose[: first.start()].strip(" $*_(") or not explained or _OFFERED.search(prose, first.end()):
        return Stated(problem="several", numbers=shown)
    return _stated(prose, first, "", _DENIES_THE_NEXT.sub("", between))


def last_stated(sentence: str) -> Stated:
    """The last number of a sentence; the numbers before it may lead to it, but not be listed with it."""
    numbers = list(NUMBER.finditer(sentence))
    if not numbers:
        return Stated(problem="nothing")
    last = numbers[-1]
    listed = [last]
    for earlier in reversed(numbers[:-1]):
        if not _LISTED.fullmatch(sentence, earlier.end(), listed[-1].start()):
            break
        listed.append(earlier)
    texts = tuple(match.group().strip() for match in reversed(listed))
    if len(set(texts)) > 1:
        return Stated(problem="listed", numbers=texts[-_SHOWN:])
    if "?" in sentence[last.end() :]:
        return Stated(problem="altered")
    before = sentence[numbers[-2].end() if len(numbers) > 1 else 0 : last.start()]
    return _stated(sentence, last, before, sentence[last.end() :], follows_number=len(numbers) > 1)


def _stated(prose: str, number: re.Match[str], before: str, after: str, *, follows_number: bool = False) -> Stated:
    if alters_before(before, follows_number=follows_number) or alters_after(after):
        return Stated(problem="altered")
    return Stated(number.group().strip() + _unit_after(prose, number.end()))


def _unit_after(sentence: str, position: int) -> str:
    """The word after a number if it is a unit: "20 cents" must not become 20 dollars."""
    word = _NEXT_WORD.match(sentence, position)
    return f" {word[1]}" if word and unit_of(word[1]) else ""
