"""The last resort: a number or a formula in the last sentence, for responses that announce nothing.

Only the last sentence counts. A text that was cut off in the middle of its reasoning mentions many numbers, and the
last of them is no answer.
"""

from __future__ import annotations

import re

from ..answers.units import unit_of
from ..base import Extraction
from .text import fold

__all__ = ["NUMBER", "last_math", "last_number", "last_sentence"]

_MAX_SENTENCE = 2_000
_SENTENCE_BREAK = re.compile(r"[.?!]\s+(?=\S)|[。！？]")
NUMBER = re.compile(
    r"(?<![\w.])(?:[-+](?!\d*[-+]))?[$€£¥]?"
    r"(?:\\[dtc]?frac\{-?\d+\}\{-?\d+\}"
    r"|(?:\d{1,3}(?:\.\d{3})+,\d+|(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:e[-+]?\d+)?(?: \d+/\d+|/\d+)?|\.\d+)(?:\s?%|\s(?:thousand|million|billion|trillion|percent)\b)?",
    re.IGNORECASE,
)
"""A number in prose, for short texts (a long one would take quadratic time)."""
_NEXT_WORD = re.compile(r"\s?([A-Za-z°¢€]+)")
_LIST_GAP = re.compile(r"\s*(?:,|;|/|\||,?\s*(?:and|or|to)\b)\s*[$(]?\s*")
_FORMULA = re.compile(
    r"\$\$([^$]+)\$\$|\$(?!\s)([^$\n]+)(?<!\s)\$(?!\d)|\\\(((?:[^\\]|\\(?!\)))+)\\\)|\\\[((?:[^\\]|\\(?!\]))+)\\\]"
)


def last_sentence(text: str) -> str:
    """The last sentence of the last line that holds more than marks; its last 2,000 characters at most."""
    for line in reversed(text[-4 * _MAX_SENTENCE :].splitlines()):
        line = line.strip()
        if line.strip("-*_`#=~ $\\[]()"):
            line = line[-_MAX_SENTENCE:]
            breaks = [match.end() for match in _SENTENCE_BREAK.finditer(line) if match.end() < len(line)]
            return line[breaks[-1] :] if breaks else line
    return ""


def last_number(text: str) -> Extraction:
    """The last number of the last sentence, with its unit; hedged if it is one of a list of different numbers."""
    sentence = " ".join(fold(last_sentence(text)).replace("\\%", "%").replace("\\$", "$").split())
    found = list(NUMBER.finditer(sentence))
    if not found:
        return Extraction("none", method="last_number")
    listed = [found[-1]]
    for earlier in reversed(found[:-1]):
        if not _LIST_GAP.fullmatch(sentence, earlier.end(), listed[-1].start()):
            break
        listed.append(earlier)
    texts = tuple(match.group().strip() for match in reversed(listed))
    if len(set(texts)) > 1:
        return Extraction("hedged", method="last_number", candidates=texts[-8:])
    return Extraction("answered", texts[-1] + _unit_after(sentence, found[-1].end()), "last_number")


def _unit_after(sentence: str, position: int) -> str:
    """The word after a number if it is a unit: "20 cents" must not become 20 dollars."""
    word = _NEXT_WORD.match(sentence, position)
    return f" {word[1]}" if word and len(word[1]) > 1 and unit_of(word[1]) else ""


def last_math(text: str) -> Extraction:
    """The last formula in dollar signs, ``\\(..\\)`` or ``\\[..\\]`` of the last sentence, else its last number."""
    formulas = _FORMULA.findall(last_sentence(text))
    if formulas:
        return Extraction("answered", next(part for part in formulas[-1] if part).strip(), "last_math")
    return last_number(text)
