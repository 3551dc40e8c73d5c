"""Thinking blocks: what a model writes for itself and does not hand in.

An answer that stands only inside a thinking block was not given, so the blocks go before anything else is looked for.
Three shapes occur: ``<think> ... </think>``; the same without its opening tag, because the chat template wrote that
into the prompt; and a block that is never closed, because the token limit came first. In the last case nothing after
the opening tag was handed in, and the response counts as truncated.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["THINKING_TAGS", "strip_thinking"]

THINKING_TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|think|>", "<|/think|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""Opening and closing tags that are known, compared without regard to case."""


def strip_thinking(text: str, tags: tuple[tuple[str, str], ...] = THINKING_TAGS) -> tuple[str, bool]:
    """``text`` without its thinking blocks, and whether one of them was left open.

    Everything before a closing tag that has no opening tag is thinking too, once, at the start of the text. An opening
    tag inside a block of its own kind is a part of that block: a model that writes about ``<think>`` does not nest.
    """
    kept: list[str] = []
    position = 0  # where the text that may be kept starts
    closer: str | None = None  # what ends the block that we are in
    seen_block = False
    for match in _pattern(tags).finditer(text):
        tag = match.group().lower()
        if closer is not None:
            if tag == closer:
                closer, position = None, match.end()
            continue
        closing = _closers(tags).get(tag)
        if closing is not None:
            kept.append(text[position : match.start()])
            closer, seen_block = closing, True
        elif not seen_block:
            kept, position, seen_block = [], match.end(), True
        else:  # a stray closing tag further on says nothing
            kept.append(text[position : match.start()])
            position = match.end()
    if closer is None:
        kept.append(text[position:])
    return "".join(kept), closer is not None


@lru_cache(maxsize=64)
def _pattern(tags: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(tag) for pair in tags for tag in pair), re.IGNORECASE)


@lru_cache(maxsize=64)
def _closers(tags: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {opening.lower(): closing.lower() for opening, closing in tags}
