"""ROLL's rows: ``domain`` with ``ground_truth``, or with ``case_type`` and ``test_cases`` for code."""

from __future__ import annotations

from typing import Any

from .base import Layout, Reading, Row, RowError, Target
from .fields import as_object, first_name, pick

__all__ = ["ROLL"]


def _matches(row: Row) -> bool:
    return "case_type" in row or "reward_info" in row or ("domain" in row and "ground_truth" in row)


def _read(row: Row) -> Reading:
    info = as_object(row["reward_info"], "reward_info", "roll") if row.get("reward_info") else {}
    merged = {**row, **info}
    truth: Any
    if "test_cases" in merged:
        kind = "roll/code"
        truth = {key: merged[key] for key in ("case_type", "test_cases", "language") if key in merged}
    else:
        kind, truth = None, merged.get("ground_truth")
    names = first_name(row.get("domain"), row.get("tag"), kind)
    if truth is None or truth == "":
        raise RowError("Read as layout 'roll': neither `ground_truth` nor `test_cases` says what is right.")
    if not names:
        raise RowError("Read as layout 'roll': `domain` is missing, so nothing says how to judge the ground truth.")
    return Reading(
        (Target(names, truth),),
        response=None,
        prompt=pick(row, ("messages", "prompt")),
        identity=row.get("id"),
        unknown_as="domain",
    )


ROLL = Layout("roll", _matches, _read, "domain, ground_truth or case_type and test_cases")
