"""What a line says its verdict must be, and how a verdict differs from it.

Numbers are compared as numbers; objects (``parts``, ``evidence``) by the keys that are given; ``flags`` as sets;
``reason`` by containing the given text; everything else by equality. A line that states no ``status`` expects ``ok``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from adjudge.types import Verdict
from adjudge_verifiers.errors import nearest

__all__ = ["Mismatch", "check_expectation", "mismatches"]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One key of a verdict that is not what its line expects."""

    where: str
    key: str
    expected: Any
    got: Any
    reason: str


def check_expectation(expectation: dict[str, Any]) -> None:
    """Raises ``ValueError`` for a key that no verdict has: such an expectation would never be checked."""
    for key in expectation:
        if key not in Verdict.model_fields:
            raise ValueError(f"'expect' has a key {key!r} that no verdict has.{nearest(key, Verdict.model_fields)}")


def mismatches(where: str, expectation: dict[str, Any], verdict: Verdict) -> Iterable[Mismatch]:
    """Every key in which ``verdict`` differs. Without an expectation: its status, if that is not ``ok``."""
    values = verdict.model_dump(mode="json")
    for key, expected in {"status": "ok", **expectation}.items():
        if not _agrees(key, expected, values[key]):
            yield Mismatch(where, key, expected, values[key], verdict.reason)


def _agrees(key: str, expected: Any, got: Any) -> bool:
    if key == "flags" and isinstance(expected, list):
        return sorted(map(str, expected)) == sorted(got)
    if key == "reason" and isinstance(expected, str):
        return expected in got
    return _equal(expected, got)


def _equal(expected: Any, got: Any) -> bool:
    if isinstance(expected, dict) and isinstance(got, dict):
        return all(key in got and _equal(value, got[key]) for key, value in expected.items())
    first, second = _number(expected), _number(got)
    if first is not None and second is not None:
        return bool(expected == got) or math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return type(expected) is type(got) and bool(expected == got)


def _number(value: Any) -> float | None:
    """``value`` as a float if it is a number; booleans are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of floats
        return math.nan
