"""Verdicts of the answer and instruction verifiers on the kinds of answers in ``cases/<verifier>.jsonl``."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge_verifiers.answers.arithmetic import contradicts_itself, evaluate
from adjudge_verifiers.answers.numbers import parse_quantity
from adjudge_verifiers.instructions.length import soft_overlong

FOLDER = Path(__file__).parent / "cases"
NAMES = ("exact_match", "numeric", "multiple_choice", "math", "format", "length")
CASES = [(name, json.loads(line)) for name in NAMES for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("name", "case"), CASES, ids=[f"{name}-{i}-{case['response'][:30]!r}" for i, (name, case) in enumerate(CASES)]
)
def test_case(judge, name: str, case: dict[str, Any]) -> None:
    verdict = judge(name, case["response"], case["reference"], case.get("options"), case.get("metadata"))
    assert verdict.status == case.get("status", "ok"), verdict.reason
    assert verdict.reward == pytest.approx(case["reward"]), verdict.reason
    assert verdict.category == case.get("category"), verdict.reason
    assert verdict.reason


def _beside() -> list[tuple[str, dict[str, Any]]]:
    """What stands beside a number or a label: rows for every verifier that reads such answers."""
    readers = {"beside_numbers": ["numeric", "math"], "beside_labels": ["multiple_choice"]}
    rows: list[tuple[str, dict[str, Any]]] = []
    for file, names in readers.items():
        for case in map(json.loads, (FOLDER / f"{file}.jsonl").read_text().splitlines()):
            rows += [(name, case) for name in case.get("verifiers", names)]
    return rows


@pytest.mark.parametrize("name", ["numeric", "math", "multiple_choice"])
def test_words_and_signs_beside_an_answer_count(judge, name: str) -> None:
    """``less than 5``, ``5!`` and ``not C`` are wrong; ``She has 5 eggs left`` and ``C, because ..`` are right."""
    cases = [case for reader, case in _beside() if reader == name]
    verdicts = [(case, judge(name, case["response"], case["reference"])) for case in cases]
    wrong = [(case, verdict.reward, verdict.reason) for case, verdict in verdicts if verdict.reward != case["reward"]]
    assert cases
    assert not wrong


@given(st.integers(), st.integers(min_value=1))
def test_fractions_are_read_exactly(numerator: int, denominator: int) -> None:
    for text in (f"{numerator}/{denominator}", f"\\frac{{{numerator}}}{{{denominator}}}"):
        quantity = parse_quantity(text)
        assert quantity is not None
        assert quantity.value == Fraction(numerator, denominator)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4))
def test_every_spelling_of_a_decimal_is_the_same_number(number: Any) -> None:
    texts = (f"{number}", f"{number:,}", f"${number:,}$", f"**{number}**", f"{number} apples", f"\\text{{{number}}}")
    assert {quantity.value if (quantity := parse_quantity(text)) else None for text in texts} == {Fraction(number)}


@given(st.text(alphabet="0123456789.,/ +-*()e^{}\\$%x", max_size=40))
def test_number_readers_never_raise(text: str) -> None:
    parse_quantity(text)
    parse_quantity(text, decimal_comma=True)
    evaluate(text)
    contradicts_itself(text)


@given(
    st.recursive(
        st.integers(0, 99).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        max_leaves=8,
    )
)
def test_sums_have_the_value_that_python_gives_them(text: str) -> None:
    assert evaluate(text) == eval(text)  # noqa: S307 - our own text of digits and signs


@given(st.integers(0, 3_000), st.integers(1, 2_000), st.integers(0, 2_000))
def test_soft_overlong_falls_from_0_to_the_penalty(length: int, limit: int, buffer: int) -> None:
    buffer = min(buffer, limit)
    value = soft_overlong(length, limit, buffer)
    assert -1.0 <= soft_overlong(length + 1, limit, buffer) <= value <= 0.0


def test_the_reference_is_never_repeated_by_an_extraction(judge) -> None:
    """What a verdict calls extracted is the response's own text."""
    assert judge("numeric", "The answer is 19.", "18").extracted == "19"
    assert judge("multiple_choice", "It is (B)", "C").extracted == "It is (B)"


@pytest.mark.parametrize("name", ["numeric", "multiple_choice", "math", "exact_match"])
def test_an_integer_too_long_to_print_is_an_unusable_reference(judge, name: str) -> None:
    """The interpreter refuses ``str`` of it, which must not surface as a crash of ours."""
    assert judge(name, "\\boxed{12}", 10**5_000).status == "invalid_task"
