"""Comparing returned values with expected JSON, and showing them."""

from __future__ import annotations

import math
from collections import deque
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge_verifiers.code.values import equal_json, preview

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
SAME: list[tuple[Any, Any]] = [
    ([1, 2], (1, 2)),
    ([[1, "a"], [2, "b"]], [(1, "a"), (2, "b")]),
    (2, 2.0),
    (2.0, 2),
    (0.3, 0.1 + 0.2),
    ({"1": "a"}, {1: "a"}),
    ({"true": 1, "null": 2}, {True: 1, None: 2}),
    ({"1.5": [1]}, {1.5: (1,)}),
    (math.nan, math.nan),
    (10**400, 10**400),
    (None, None),
]
DIFFERENT: list[tuple[Any, Any]] = [
    (1, True),
    (True, 1),
    (0, False),
    (None, 0),
    ("1", 1),
    (1, "1"),
    ([1, 2], {1, 2}),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    ([], {}),
    ([0, 1], range(2)),
    ([0, 1], deque([0, 1])),
    ("ab", ["a", "b"]),
    ("ab", b"ab"),
    (10**20, 10**20 + 1),
    (1.0, 10**400),
    (1.5, Decimal("1.5")),
    (1.0, 1.1),
    (0.0, math.nan),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"1": "a", "2": "b"}, {1: "a", "1": "b"}),
    ({"1": 1}, {(1,): 1}),
    ({"9" * 5000: 1}, {10**5000: 1}),
]


@pytest.mark.parametrize(("expected", "got"), SAME)
def test_same(expected: Any, got: Any) -> None:
    assert equal_json(expected, got)


@pytest.mark.parametrize(("expected", "got"), DIFFERENT)
def test_different(expected: Any, got: Any) -> None:
    assert not equal_json(expected, got)


@given(JSON)
def test_a_value_equals_itself(value: Any) -> None:
    assert equal_json(value, value)


def test_depth_is_no_matter() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert not equal_json([[1]], deep)
    assert equal_json(deep, deep)
    assert len(preview(deep)) <= 200


@given(JSON, st.integers(5, 60))
def test_previews_are_short(value: Any, limit: int) -> None:
    assert len(preview(value, limit)) <= limit


def test_previews_never_raise() -> None:
    assert preview(10**5000) == f"<int of {(10**5000).bit_length()} bits>"
    assert preview(object()) == "<object>"
    assert preview({"a": [1, (2, None)]}) == "{'a': [1, (2, None)]}"
    assert preview("x" * 10_000).endswith("...")
