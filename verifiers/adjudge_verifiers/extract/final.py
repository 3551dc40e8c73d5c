"""``final_answer``: the one answer that a response hands in, and how it was found.

A *convention* is a way of marking the final answer. The conventions that are asked for are tried in their order, and
the first that occurs in the text decides, even if what it marks is empty or cut off: an answer that was begun and not
finished is never replaced by something found elsewhere. Thinking blocks are removed before, and comments too, except
for ``whole``.

=============== ========================================================================================
``answer_tag``  ``<answer>..</answer>`` (``answer_tags`` names others); a box inside it is opened
``boxed``       ``\\boxed{..}``, ``\\fbox{..}``; boxes joined by commas or "and" are one answer
``json_field``  the value of ``json_field`` in a JSON object
``anchor``      ``Answer: ..``, ``The final answer is ..`` (``anchors`` replaces the phrases)
``hash``        ``#### ..``
``whole``       the whole text
``short``       the whole text, if it is a single line of at most 200 characters
``bare``        the whole text, if it is a single line of at most 200 characters without prose
``last_math``   the last formula of the last sentence, else its last number
``last_number`` the last number of the last sentence
=============== ========================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from ..base import Extraction, Options
from .anchors import DEFAULT_ANCHORS, Anchored, find_anchors, find_hashes, find_json_field
from .boxed import find_boxes
from .claims import Claim, decide
from .hidden import without_comments
from .last import last_math, last_number
from .tags import find_tags
from .text import plain_latex, unwrap
from .thinking import strip_thinking

__all__ = ["Convention", "ExtractionOptions", "final_answer"]

Convention = Literal[
    "answer_tag", "boxed", "json_field", "anchor", "hash", "whole", "short", "bare", "last_math", "last_number"
]

_SHORT = 200
_MOST = 1_000  # claims to be looked at, from the end
_PROSE_WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,}(?![A-Za-z({])")


class ExtractionOptions(Options):
    """How the final answer is found; the base of the options of every verifier that looks for one."""

    conventions: tuple[Convention, ...] = Field(
        default=("answer_tag", "boxed", "anchor", "hash"),
        min_length=1,
        description="Ways of marking the final answer, tried in this order; the first that occurs decides.",
    )
    answer_tags: tuple[str, ...] = Field(default=("answer",), min_length=1, description="Names for `answer_tag`.")
    anchors: tuple[str, ...] = Field(
        default=(), description="Phrases for `anchor`, such as `A:`, in place of the built-in ones."
    )
    json_field: str = Field(default="answer", min_length=1, description="Key for `json_field`.")
    thinking: Literal["strip", "keep"] = Field(
        default="strip", description="`strip` removes thinking blocks; an answer that stands only there is none."
    )

    def final_answer(self, response: str) -> Extraction:
        """:func:`final_answer` with these options."""
        return final_answer(
            response,
            self.conventions,
            answer_tags=self.answer_tags,
            anchors=self.anchors or DEFAULT_ANCHORS,
            json_field=self.json_field,
            keep_thinking=self.thinking == "keep",
        )

    def as_response(self, answer: str) -> str:
        """A response that hands in ``answer`` under the first convention; used to try references out."""
        form = {
            "answer_tag": f"<{self.answer_tags[0]}>{answer}</{self.answer_tags[0]}>",
            "boxed": f"\\boxed{{{answer}}}",
            "json_field": json.dumps({self.json_field: answer}, ensure_ascii=False),
            "anchor": f"{(self.anchors or DEFAULT_ANCHORS)[0]} {answer}",
            "hash": f"#### {answer}",
        }
        return form.get(self.conventions[0], answer)


def final_answer(
    text: str,
    conventions: Sequence[Convention],
    *,
    answer_tags: tuple[str, ...] = ("answer",),
    anchors: tuple[str, ...] = DEFAULT_ANCHORS,
    json_field: str = "answer",
    keep_thinking: bool = False,
) -> Extraction:
    """The final answer of ``text`` under the first of ``conventions`` that occurs in it, in linear time."""
    if not keep_thinking:
        text, left_open = strip_thinking(text)
        if left_open:
            return Extraction("truncated", method="thinking")
    whole, text = text, without_comments(text)
    if not whole.strip():
        return Extraction("none", method="empty")
    finders: dict[Convention, Callable[[], Extraction | None]] = {
        "answer_tag": lambda: _tagged(text, answer_tags),
        "boxed": lambda: _boxed(text),
        "json_field": lambda: _announced(text, find_json_field(text, json_field), "json_field"),
        "anchor": lambda: _announced(text, find_anchors(text, anchors), "anchor"),
        "hash": lambda: _announced(text, find_hashes(text), "hash"),
        "whole": lambda: Extraction("answered", whole, "whole"),
        "short": lambda: _short(text),
        "bare": lambda: _bare(text),
        "last_math": lambda: last_math(text),
        "last_number": lambda: last_number(text),
    }
    for convention in conventions:
        extraction = finders[convention]()
        if extraction is not None:
            return extraction
    return Extraction("none", method="no_convention")


def _tagged(text: str, names: tuple[str, ...]) -> Extraction | None:
    blocks = find_tags(text, names)
    if not blocks:
        return None
    claims = [Claim(block.start, block.end, block.content, block.closed) for block in blocks[-_MOST:]]
    extraction = decide(text, claims, "answer_tag")
    inner = _boxed(extraction.text) if extraction.outcome == "answered" else None
    return extraction if inner is None else inner


def _boxed(text: str) -> Extraction | None:
    boxes = find_boxes(text)
    if not boxes:
        return None
    return decide(
        text, [Claim(box.start, box.end, box.content, box.closed) for box in boxes[-_MOST:]], "boxed", join=True
    )


def _announced(text: str, found: Sequence[Anchored], method: str) -> Extraction | None:
    if not found:
        return None
    return decide(text, [Claim(one.start, one.end, one.content) for one in found], method)


def _short(text: str) -> Extraction | None:
    text = text.strip()
    return Extraction("answered", text, "short") if text and len(text) <= _SHORT and "\n" not in text else None


def _bare(text: str) -> Extraction | None:
    short = _short(text)
    if short is None:
        return None
    words = _PROSE_WORD.findall(plain_latex(short.text))
    if len(words) > 1 or (words and not short.text[0].isdigit() and unwrap(short.text) != words[0]):
        return None
    return Extraction("answered", short.text, "bare")
