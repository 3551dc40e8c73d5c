"""What the two verifiers of predictions share: options, and verdicts."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from adjudge.types import Category, Verdict
from adjudge_sandbox.base import Limits, Outcome, RunResult

from ..base import Extraction, Options
from .answer import Convention
from .equality import Equality

__all__ = ["CATEGORY_OF", "PredictionOptions", "judged", "not_answered"]

CATEGORY_OF: dict[Outcome, Category] = {
    Outcome.BAD_VALUE: "wrong_answer",
    Outcome.RAISED: "runtime_error",
    Outcome.SIGNALLED: "runtime_error",
    Outcome.TIME_LIMIT: "time_limit",
    Outcome.MEMORY_LIMIT: "memory_limit",
    Outcome.OUTPUT_LIMIT: "output_limit",
}
_NO_ANSWER: dict[str, tuple[Category, str]] = {
    "none": ("no_answer", "The response states nothing."),
    "truncated": ("truncated", "The response was cut off before its answer ended."),
}


class PredictionOptions(Options):
    """How the answer is found, read and compared."""

    conventions: tuple[Convention, ...] = Field(
        default=("bracket", "answer_tag", "fence", "json", "assert", "last_line"),
        min_length=1,
        description="Ways of marking the answer, tried in this order; the first that occurs decides.",
    )
    json_fields: tuple[str, ...] = Field(default=(), description="Keys for `json`, in place of the usual ones.")
    allow_unclosed: bool = Field(
        default=False, description="Take a mark that is not closed for whole (a stop string may have eaten its end)."
    )
    equality: Equality | None = Field(
        default=None,
        description="`python`: Python's ==; `strict`: the types must agree too; `json`: what JSON tells apart. "
        "Default: `python` if the reference has code, else `json`.",
    )
    tolerance: float = Field(default=0.0, ge=0, le=1, description="Relative and absolute, where a float is expected.")
    cpu_s: float = Field(default=5.0, gt=0, le=120, description="CPU seconds of each run.")
    memory_mib: int = Field(default=512, ge=16, le=16_384)

    def limits(self, timeout_s: float) -> Limits:
        """Of each run; there are at most four in a row, which leave a verifier's time-out to the machine."""
        usual = Limits(self.cpu_s, memory_mib=self.memory_mib)
        return Limits(self.cpu_s, min(usual.wall_limit_s, timeout_s / 5), self.memory_mib)


def not_answered(extraction: Extraction) -> Verdict:
    category, reason = _NO_ANSWER.get(extraction.outcome, _NO_ANSWER["none"])
    return judged(category, reason, extraction)


def judged(
    category: Category, reason: str, extraction: Extraction, result: RunResult | None = None, **evidence: Any
) -> Verdict:
    """1 if the category is ``correct``, else 0."""
    reward = 1.0 if category == "correct" else 0.0
    return Verdict.scored(
        reward,
        category,
        reason[:1000],
        parts={"accuracy": reward},
        extracted=extraction.text,
        evidence={"found_by": extraction.method, **evidence},
        isolation=result.isolation if result is not None else None,
    )
