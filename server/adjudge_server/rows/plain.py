"""Rows without a trainer's frame: raw data sets, and tables with a column for the answer.

The name is what ``data_source``, ``dataset``, ``source``, ``task_type`` or ``task`` says, or the verifier's own name in
``verifier``; without any, the shape of the row tells code (its tests), multiple choice (its options) and GSM8K (its
``#### 18``). rLLM keeps the same columns in ``task_info``.
"""

from __future__ import annotations

import re
from typing import Any

from .base import Layout, Reading, Row, RowError, Target
from .fields import as_object, first_name, pick

__all__ = ["ANSWER_KEYS", "PLAIN"]

ANSWER_KEYS = ("ground_truth", "answer", "expected_answer", "gold_answer", "label", "solution", "target")
_NAME_KEYS = ("data_source", "dataset", "task_type", "task", "source")
_CODE_KEYS = (
    *("test_list", "input_output", "tests", "test_cases", "assert_case", "public_tests", "official_tests"),
    *("public_test_cases", "private_test_cases", "functional", "test_info", "grader_files"),
)
_HASHES = re.compile(r"####[ \t]*[-+$]?\d")


def _matches(row: Row) -> bool:
    return "task_info" in row or _is_code(row) or any(key in row for key in ANSWER_KEYS)


def _is_code(row: Row) -> bool:
    if any(key in row for key in _CODE_KEYS):
        return True
    return ("inputs" in row and "outputs" in row) or ("test" in row and "entry_point" in row)


def _read(row: Row) -> Reading:
    if "task_info" in row:
        row = {**row, **as_object(row["task_info"], "task_info", "plain")}
    names = first_name(*(row.get(key) for key in _NAME_KEYS))
    kind, truth = _kind(row)
    return Reading(
        (Target(first_name(row.get("verifier"), *names, kind if not names or kind == "plain/code" else None), truth),),
        prompt=pick(row, ("messages", "prompt", "question", "problem")),
        extra={"options": pick(row, ("options", "choices")), "prefix": row.get("prefix")},
        identity=pick(row, ("task_id", "problem_id", "id")),
        unknown_as="data_source",
    )


def _kind(row: Row) -> tuple[str | None, Any]:
    if _is_code(row):
        return "plain/code", {key: value for key, value in row.items() if key not in ("response", "completion")}
    truth: Any = pick(row, ANSWER_KEYS)
    if truth is None:
        raise RowError(
            f"Read as layout 'plain': none of {', '.join(ANSWER_KEYS)} is there, so nothing says what is right."
        )
    if pick(row, ("options", "choices")) is not None:
        return "plain/multiple_choice", truth
    if isinstance(truth, str) and _HASHES.search(truth[-200:]):
        return "plain/gsm8k", truth
    return None, truth


PLAIN = Layout("plain", _matches, _read, ", ".join(ANSWER_KEYS))
