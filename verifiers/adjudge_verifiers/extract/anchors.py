"""Phrases that announce the answer: ``Answer: 12``, ``The final answer is 12``, ``#### 12``, ``A: 12``, a JSON field.

An anchor is a phrase and what follows it. After a colon (or ``####``) the rest of the line is the answer; after a verb
it is the rest of the sentence. When nothing but decoration stands there, the next line that holds something is meant.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["DEFAULT_ANCHORS", "Anchored", "find_anchors", "find_hashes", "find_json_field"]

DEFAULT_ANCHORS: tuple[str, ...] = (
    "answer:",
    "answers:",
    "answer is",
    "answers are",
    "answer would be",
    "answer should be",
    "answer =",
    "option is",
    "choice is",
    "respuesta:",
    "respuesta es",
    "resposta:",
    "resposta é",
    "réponse:",
    "réponse est",
    "antwort:",
    "antwort ist",
    "antwort lautet",
    "risposta:",
    "risposta è",
    "ответ:",
    "答案:",
    "答案是",
    "答案为",
    "答案為",
    "答えは",
    "答え:",
    "정답은",
    "정답:",
    "답은",
)
"""Compared without regard to case; a colon also stands for the wide one, and may be followed by ``**``."""

_MOST = 1_000  # anchors to be looked at, from the end; what comes before so many is no final answer
_DECORATION = " \t*_`$:：>"
_BLANK_LINES = frozenset({"", "\\[", "\\(", "\\begin{aligned}", "```"})
_SENTENCE_END = re.compile(r"[.?](?=[\s*_$\"')\]]|$)|(?<![\d)}\]$])!(?=\s+[A-Z])|[。！？]")
_SIGN_OFF = re.compile(r"[.!]?\s{0,8}\bI hope\b", re.IGNORECASE)
_JSON_SCALAR = re.compile(r'\s{0,64}("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false)', re.DOTALL)
_HASHES = re.compile(r"(?:(?<=\s)|\A)####(?!#)")
_NUMBER_LIKE = re.compile(r"(?!\d{1,3}[.)]\s)[-+(]?[$€£¥]?[-+(]?(?:\d|\.\d|\\frac)")
_LEAD_IN = frozenset(
    ("so", "thus", "hence", "therefore", "and", "the", "my", "our", "final", "correct", "that", ",", ";")
)


@dataclass(frozen=True, slots=True)
class Anchored:
    """``text[start:end]`` is an anchor and the ``content`` that it announces."""

    start: int
    end: int
    content: str


def find_anchors(text: str, anchors: tuple[str, ...] = DEFAULT_ANCHORS) -> list[Anchored]:
    """What the anchors announce, in order of appearance; the content is empty where nothing follows.

    An anchor of a single letter (``A:``) must begin a line, any other must begin a word. What an anchor denies ("the
    answer is not 5") is left out.
    """
    lowered = text.replace("İ", "I").lower()  # the one letter whose lower case is longer
    matches = list(_pattern(anchors).finditer(lowered))[-_MOST:]
    found: list[Anchored] = []
    for index, match in enumerate(matches):
        limit = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        alone = text.find("\n", match.end(), limit) >= 0 or limit == len(text)
        anchored = _announced(text, match, limit, whole_line=alone and match.group()[-1] in ":：")
        if not anchored.content and limit < len(text) and not text[match.end() : limit].strip(_DECORATION + "\n"):
            continue  # "The answer is:\nAnswer: 5" is one anchor
        if not anchored.content.lower().startswith(("not ", "not:")):
            found.append(anchored)
    return found


def find_hashes(text: str) -> list[Anchored]:
    """What stands behind ``####``, the mark of GSM8K, to the end of its line; headings in Markdown are left out.

    That is an answer if it is on the last line, or if it begins like a number and not like a numbered heading.
    """
    last = len(text.rstrip())
    matches = list(_HASHES.finditer(text))[-_MOST:]
    found: list[Anchored] = []
    for index, match in enumerate(matches):
        limit = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        anchored = _announced(text, match, limit, whole_line=True)
        if anchored.end >= last or _NUMBER_LIKE.match(anchored.content):
            found.append(anchored)
    return found


def find_json_field(text: str, field: str) -> list[Anchored]:
    """The scalar values that JSON objects in ``text`` give to ``field``, wherever such an object stands."""
    found: list[Anchored] = []
    position = 0
    for match in re.finditer(re.escape(json.dumps(field)) + r"\s{0,64}:", text):
        if match.start() < position:
            continue
        scalar = _JSON_SCALAR.match(text, match.end())
        if scalar is None:
            continue
        raw = scalar.group(1)
        content = _string(raw) if raw.startswith('"') else raw
        if content is not None:
            found.append(Anchored(match.start(), scalar.end(), content))
            position = scalar.end()
    return found


def _string(raw: str) -> str | None:
    try:
        return str(json.loads(raw, strict=False))
    except ValueError:
        return None


def _announced(text: str, match: re.Match[str], limit: int, *, whole_line: bool) -> Anchored:
    """Read on from an anchor: the rest of its line, or the next line but one at most that holds something."""
    position = match.end()
    for lines_on in range(3):
        newline = text.find("\n", position, limit)
        end = limit if newline < 0 else newline
        line = text[position:end]
        if end == limit and limit < len(text):
            line = _without_lead_in(line)
        if line.strip(_DECORATION) not in _BLANK_LINES:
            start, content = _bounded(line, whole_line=whole_line, quoted=lines_on > 0)
            return Anchored(match.start(), position + start + len(content), content.strip())
        if newline < 0:
            break
        position = newline + 1
    return Anchored(match.start(), match.end(), "")


def _without_lead_in(line: str) -> str:
    """Drop "so the final", which belongs to the anchor that follows."""
    words = line.rsplit(None, 8)
    while len(words) > 1 and words[-1].lower() in _LEAD_IN:
        words.pop()
    kept = line[: line.rfind(words[-1]) + len(words[-1])] if words else ""
    return "" if kept.lower() in _LEAD_IN else kept.rstrip(" ,;")


def _bounded(line: str, *, whole_line: bool, quoted: bool) -> tuple[int, str]:
    """The answer in what follows an anchor, and where it starts there.

    It goes without the colon before it, the rest of the sentence after it, and "I hope it is correct"; at the start
    of a line also without the mark of a quotation, which anywhere else means "greater than".
    """
    start = len(line) - len(line.lstrip(" \t\r:：>" if quoted else " \t\r:："))
    if line.startswith("**", start) and line.count("**") % 2 == 1:  # the end of a bold "**Answer:**"
        start += 2
    content = line[start:]
    stops = [_SIGN_OFF.search(content), None if whole_line else _SENTENCE_END.search(content)]
    return start, content[: min((stop.start() for stop in stops if stop), default=len(content))]


@lru_cache(maxsize=256)
def _pattern(anchors: tuple[str, ...]) -> re.Pattern[str]:
    inner = "|".join(_phrase(anchor.lower()) for anchor in sorted(anchors, key=len, reverse=True)) or r"(?!)"
    return re.compile(inner, re.MULTILINE)


def _phrase(anchor: str) -> str:
    words = anchor.strip().rstrip(":").split()
    body = r"\s{1,8}".join(re.escape(word) for word in words)
    if len(words) == 2 and words[1] in ("is", "are") and words[0].startswith("answer"):
        body = rf"{re.escape(words[0])}(?:\s(?:to|for|of)\s[^.\n:]{{1,60}}?)?\s{{1,8}}{words[1]}"
    ending = r"(?![a-z])" if anchor[-1:].isascii() else ""  # Chinese puts no space before a letter
    ending = r"[ \t]{0,2}[*_]{0,3}[:：]" if anchor.rstrip().endswith(":") else ending
    if len(anchor.strip()) == 2:
        return rf"^[ \t*_]{{0,8}}{body}{ending}"
    return rf"{body[:1]}(?<![a-z]{body[:1]}){body[1:]}{ending}" if body[:1].isalpha() else body + ending
