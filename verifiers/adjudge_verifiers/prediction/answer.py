"""Find what a response predicts: the text of a value, of a call, or of ``assert f(x) == y``.

A *convention* is a way of marking the answer. They are tried in order, and the first that occurs in the text decides;
of several marks of one kind the last counts. Thinking blocks are removed before.

================ ======================================================================================
``bracket``      ``[ANSWER] .. [/ANSWER]`` (CRUXEval); the opening one may stand in the prompt
``answer_tag``   ``<answer> .. </answer>``; a fenced block inside it is opened
``fence``        the last fenced block, whatever it names (Absolute Zero's ```` ```output ````)
``json``         a JSON object with one of the keys ``json_fields`` (CodeI/O, SYNTHETIC)
``assert``       the last line that begins with ``assert``
``last_line``    the last line that is not empty
================ ======================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ..base import Extraction
from ..extract.code import blocks
from ..extract.tags import find_tags
from ..extract.thinking import strip_thinking

__all__ = ["Convention", "find_prediction", "json_field"]

Convention = Literal["bracket", "answer_tag", "fence", "json", "assert", "last_line"]

_MAX_JSON_CHARS = 100_000
_BRACKET = re.compile(r"\[(/?)ANSWER\]", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:the[ \t]+)?(?:final[ \t]+)?(?:answer|output|input|result)(?:[ \t]+is)?[ \t]*[:=][ \t]*", re.IGNORECASE
)
_MARKS = "`*"


def find_prediction(
    response: str, conventions: Sequence[Convention], fields: Sequence[str], *, allow_unclosed: bool = False
) -> Extraction:
    """The text of the answer, and in ``method`` the convention that found it. Linear in ``response``."""
    text, open_thinking = strip_thinking(response)
    if open_thinking:
        return Extraction("truncated", method="thinking")
    finders: dict[Convention, Callable[[], Extraction | None]] = {
        "bracket": lambda: _bracket(text, allow_unclosed),
        "answer_tag": lambda: _tagged(text, allow_unclosed),
        "fence": lambda: _fenced(text, allow_unclosed),
        "json": lambda: _json(text, fields),
        "assert": lambda: _asserted(text),
        "last_line": lambda: _last_line(text),
    }
    for convention in conventions:
        found = finders[convention]()
        if found is not None:
            return found
    return Extraction("none")


def _answered(text: str, method: str) -> Extraction:
    """``text``, or the fenced block in it."""
    inner = blocks(text) if "```" in text or "~~~" in text else []
    if inner and inner[-1].closed:
        text = inner[-1].code
    text = text.strip()
    if text[:1] == "`" and text.count("`") == 2 and text[-1:] == "`":
        text = text.strip("`").strip()
    return Extraction("answered", text, method) if text else Extraction("none", method=method)


def _bracket(text: str, allow_unclosed: bool) -> Extraction | None:
    start, content = None, None
    for mark in _BRACKET.finditer(text):
        if not mark.group(1):
            start, content = mark.end(), None
        elif start is not None or content is None:
            content, start = text[start or 0 : mark.start()], None
    if start is not None:
        return _answered(text[start:], "bracket") if allow_unclosed else Extraction("truncated", method="bracket")
    return None if content is None else _answered(content, "bracket")


def _tagged(text: str, allow_unclosed: bool) -> Extraction | None:
    found = find_tags(text, ("answer",))
    if not found:
        return None
    last = found[-1]
    if last.closed:
        return _answered(last.content, "answer_tag")
    opened = text[last.start :].partition(">")[2]
    return _answered(opened, "answer_tag") if allow_unclosed else Extraction("truncated", method="answer_tag")


def _fenced(text: str, allow_unclosed: bool) -> Extraction | None:
    found = blocks(text)
    if not found:
        return None
    last = found[-1]
    if not last.closed and not allow_unclosed:
        return Extraction("truncated", method="fence")
    return (
        Extraction("answered", last.code.strip(), "fence") if last.code.strip() else Extraction("none", method="fence")
    )


def _json(text: str, fields: Sequence[str]) -> Extraction | None:
    """The last ``{`` at which a JSON object with such a key begins. Each start is tried once, the last ones first."""
    window = text[-_MAX_JSON_CHARS:]
    keys = [f'"{field}"' for field in fields]
    at = max((window.rfind(key) for key in keys), default=-1)
    if at < 0:
        return None
    decoder, tried = json.JSONDecoder(), 0
    start = window.rfind("{", 0, at)
    while start >= 0 and tried < 8:
        try:
            value, end = decoder.raw_decode(window, start)
        except (ValueError, RecursionError):
            value, end = None, start
        if isinstance(value, dict) and any(field in value for field in fields) and end > at:
            return Extraction("answered", window[start:end], "json")
        start, tried = window.rfind("{", 0, start), tried + 1
    return None


def json_field(text: str, fields: Sequence[str]) -> Any:
    """The value of the field in what ``json`` found. Raises ``KeyError`` or ``ValueError``."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    for field in fields:
        if field in value:
            return value[field]
    raise KeyError(fields[0])


def _asserted(text: str) -> Extraction | None:
    at = max(text.rfind("\nassert "), text.rfind("\n    assert "))
    if at < 0 and not text.startswith("assert "):
        return None
    line = text[at + 1 :].split("\n", 1)[0].strip()
    return Extraction("answered", line, "assert")


def _last_line(text: str) -> Extraction | None:
    line = text.rstrip().rpartition("\n")[2].strip()
    label = _LABEL.match(line.lstrip(_MARKS))
    if label is not None:
        line = line.lstrip(_MARKS)[label.end() :]
    line = line.strip()
    for mark in ("**", "`"):
        line = line.removeprefix(mark).removesuffix(mark) if line.endswith(mark) else line
    return Extraction("answered", line.strip(), "last_line") if line.strip() else None
