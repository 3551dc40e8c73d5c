"""The last resort: a number or a formula in the last sentence, for responses that announce nothing.

Only the last sentence counts. A text that was cut off in the middle of its reasoning mentions many numbers, and the
last of them is no answer.
"""

from __future__ import annotations

import re

from ..base import Extraction
from .prose import last_stated, one_line
from .surroundings import alters_after, alters_before

__all__ = ["last_math", "last_number", "last_sentence"]

_MAX_SENTENCE = 2_000
_SENTENCE_BREAK = re.compile(r"[.?!]\s+(?=\S)|[。！？]")
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
    """The last number that the last sentence states, with its unit; hedged if it is one of a list of numbers."""
    stated = last_stated(one_line(last_sentence(text)))
    if stated.problem == "listed":
        return Extraction("hedged", method="last_number", candidates=stated.numbers)
    return Extraction("answered" if stated.text else "none", stated.text, "last_number")


def last_math(text: str) -> Extraction:
    """The last formula in dollar signs, ``\\(..\\)`` or ``\\[..\\]`` of the last sentence, else its last number."""
    sentence = last_sentence(text)
    formulas = list(_FORMULA.finditer(sentence))
    if not formulas:
        return last_number(text)
    last = formulas[-1]
    before, after = one_line(sentence[: last.start()]), one_line(sentence[last.end() :])
    if alters_before(before) or alters_after(after, formula=True):
        return Extraction("none", method="last_math")
    return Extraction("answered", next(part for part in last.groups() if part).strip(), "last_math")
