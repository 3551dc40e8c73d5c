"""PrimeIntellect's SYNTHETIC-1 and SYNTHETIC-2, and Open-R1's verifiable-coding-problems.

``task_type`` names the kind; ``verification_info`` holds the right answer, as an object or as JSON text of one. Open-R1
rows have no ``task_type``; a language and test cases say that they are code. Rows that ask for no verification are
refused as such: scoring them 0 would train against them.
"""

from __future__ import annotations

from typing import Any

from .base import Layout, Reading, Row, RowError, Target
from .fields import as_object, first_name, pick

__all__ = ["SYNTHETIC"]

_CODE_KEYS = ("test_cases", "inputs", "tests")


def _matches(row: Row) -> bool:
    return "verification_info" in row or "task_type" in row


def _read(row: Row) -> Reading:
    kind = row.get("task_type")
    if kind == "no_verification":
        raise RowError("Read as layout 'synthetic': the row asks for no verification (task_type `no_verification`).")
    raw = row.get("verification_info")
    info = as_object(raw, "verification_info", "synthetic") if raw not in (None, "", {}) else {}
    if not isinstance(kind, str):
        kind = "verifiable_code" if any(key in info for key in _CODE_KEYS) else None
    if kind is None and "ground_truth" in info:
        raise RowError(
            "Read as layout 'synthetic': `task_type` is missing, so nothing says how to judge the ground truth."
        )
    if kind is None:
        raise RowError("Read as layout 'synthetic': `task_type` is missing.")
    extra: dict[str, Any] = {"language": info.get("language"), "solution": row.get("gold_standard_solution")}
    return Reading(
        (Target(first_name(kind), _truth(row, info)),),
        response=row.get("llm_response"),
        prompt=row.get("prompt"),
        extra=extra,
        identity=pick(row, ("problem_id", "id")),
        unknown_as="task_type",
    )


def _truth(row: Row, info: Row) -> Any:
    """Test cases go as they stand; anything else is the ``ground_truth``."""
    if any(key in info for key in _CODE_KEYS):
        return info
    truth = pick(info, ("ground_truth", "answer"))
    if truth is None:
        truth = pick(row, ("ground_truth", "gold_standard_solution"))
    if truth is None and info:
        return info
    if truth is None:
        raise RowError("Read as layout 'synthetic': `verification_info` holds no ground_truth and no test_cases.")
    return truth


SYNTHETIC = Layout("synthetic", _matches, _read, "task_type, verification_info")
