"""What every answer verifier says when a response hands in no single answer."""

from __future__ import annotations

from adjudge.types import Category, Verdict

from ..base import Extraction

__all__ = ["shown", "unanswered"]

_CATEGORIES: dict[str, tuple[Category, str]] = {
    "none": ("no_answer", "The response states no final answer."),
    "truncated": ("truncated", "The response ends before its final answer is complete."),
    "ambiguous": ("ambiguous", "The response states different final answers."),
    "hedged": ("hedged", "The response offers several answers at once."),
}


def unanswered(extraction: Extraction, *, reward: float = 0.0, parts: dict[str, float | None] | None = None) -> Verdict:
    """The verdict on a response whose extraction has any outcome but ``answered``."""
    category, reason = _CATEGORIES[extraction.outcome]
    evidence = {"candidates": list(extraction.candidates)} if extraction.candidates else {}
    if extraction.outcome == "truncated" and extraction.method == "thinking":
        reason = "The response ends inside its thinking block."
    return Verdict.scored(reward, category, reason, parts=parts, evidence={"method": extraction.method, **evidence})


def shown(text: str, limit: int = 80) -> str:
    """``text`` for a sentence: quoted, and cut where it is long."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
