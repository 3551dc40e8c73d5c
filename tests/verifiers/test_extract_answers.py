"""Finding the final answer: kinds of responses in ``cases/extraction.jsonl``, and what must hold for every text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge_verifiers.extract.boxed import find_boxes
from adjudge_verifiers.extract.final import ExtractionOptions
from adjudge_verifiers.extract.text import fold, key, unwrap
from adjudge_verifiers.extract.thinking import strip_thinking

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases" / "extraction.jsonl").read_text().splitlines()]
EVERY = ("answer_tag", "boxed", "json_field", "anchor", "hash", "bare", "last_math")
BITS = ["<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "{", "\\", "$", "12", "13", "Answer: ", "####"]
BITS += ["the answer is ", " or ", ", ", ". ", "\n", "\n\n", '"answer": ', "½", "٣", "**", " "]
TEXTS = st.lists(st.one_of(st.sampled_from(BITS), st.text(max_size=5)), max_size=25).map("".join)


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['text'][:30]!r}" for i, case in enumerate(CASES)])
def test_case(case: dict[str, Any]) -> None:
    found = ExtractionOptions.model_validate(case.get("options", {})).final_answer(case["text"])
    assert found.outcome == case["outcome"], found
    if "method" in case:
        assert found.method == case["method"]
    if found.outcome == "answered":
        assert unwrap(found.text) == unwrap(case["answer"])


@given(TEXTS)
def test_text_is_given_exactly_when_answered(text: str) -> None:
    found = ExtractionOptions(conventions=EVERY).final_answer(text)
    assert (found.outcome == "answered") == bool(found.text)


@given(TEXTS)
def test_thinking_never_decides(text: str) -> None:
    options = ExtractionOptions(conventions=EVERY)
    clean, left_open = strip_thinking(text)
    if not left_open and "think" not in clean:
        assert options.final_answer(text) == options.final_answer(clean)
    assert options.final_answer("<think>" + text.replace("</think>", "")).outcome == "truncated"


@given(TEXTS)
def test_boxes_lie_in_the_text_in_order(text: str) -> None:
    boxes = find_boxes(text)
    assert all(box.content in text for box in boxes)
    assert [box.start for box in boxes] == sorted(box.start for box in boxes)


@given(st.text(max_size=60))
def test_folding_and_keys_settle(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert key(f"  ${text}$ ") == key(f"${text}$")


def test_deeply_nested_boxes() -> None:
    depth = 15_000
    assert find_boxes("\\boxed{" * depth + "7" + "}" * depth)[0].content == "7"
    assert not find_boxes("\\boxed{" * depth)[0].closed


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{" * 140_000,
        "\\boxed{1}" * 100_000,
        "{" * 300_000 + "\\boxed{}" * 50_000,
        "\\boxed{a" * 90_000 + "}" * 90_000,
        "the answer is " * 70_000,
        "the answer is not 5. " * 47_000,
        "not \\boxed{1} " * 70_000,
        "Answer: 5 " * 100_000,
        "or 5 " * 200_000,
        "<!--" * 250_000,
        "%\n" * 500_000,
        "answer to " * 100_000,
        "Answer: 5\n" * 100_000,
        "<answer>" * 120_000,
        "<think>" * 140_000,
        "</think>" * 120_000,
        "####\n" * 200_000,
        '"answer": "\\' * 80_000,
        "$" * 1_000_000,
        "\\(" * 500_000,
        "1," * 500_000,
        "1" * 1_000_000,
        "½" * 1_000_000,
        "²" * 1_000_000,
        "** " * 330_000,
        "\\boxed{" + "\\text{" * 140_000 + "}" * 140_001,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_megabyte_of_anything_is_read(judge, text: str) -> None:
    """Linear time: a quadratic step would take minutes on any of these and the suite would stand still."""
    for name, reference in (("numeric", "12"), ("exact_match", "12"), ("multiple_choice", "C")):
        options = {"conventions": ["answer_tag", "boxed", "json_field", "anchor", "hash", "short", "last_math"]}
        verdict = judge(name, text, reference, options)
        assert verdict.status == "ok"
        assert verdict.reward == 0.0
    assert judge("format", text, None, {"require": ["think", "answer"], "boxed": "once"}).reward == 0.0
