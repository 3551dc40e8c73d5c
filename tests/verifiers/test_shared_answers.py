"""Real solutions with labels: every verdict on them must be the label. Skipped where the data folder is absent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("ADJUDGE_SHARED", Path(__file__).parents[2].parent / "shared"))
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def lines(name: str) -> list[dict[str, Any]]:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path.name} is not there; set ADJUDGE_SHARED to the folder that holds {name}")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("options", [{}, {"conventions": ["anchor"], "anchors": ["A:"]}], ids=["default", "A:"])
def test_gsm8k_solutions_get_their_labels(judge, options: dict[str, Any]) -> None:
    problems = lines("data/gsm8k_model_solutions.jsonl")
    wrong = [
        (problem["ground_truth"][-20:], problem[model]["solution"][-60:])
        for problem in problems
        for model in MODELS
        if judge("numeric", problem[model]["solution"], problem["ground_truth"], options).reward
        != float(problem[model]["is_correct"])
    ]
    assert not wrong


def test_reference_answers_of_math_score_full_marks(judge) -> None:
    golds = [row["answer"] for row in lines("data/math_test_gold.jsonl")][::25]
    failed = [gold for gold in golds if judge("math", f"so $\\boxed{{{gold}}}$", gold).reward != 1.0]
    assert not failed


def test_real_rollouts_agree_with_their_grader_up_to_its_false_negatives(judge) -> None:
    for problem in lines("data/qwen_math_rollouts.jsonl")[::3]:
        for response, label in zip(problem["responses"], problem["qwen_grader"], strict=True):
            verdict = judge("math", response, problem["answer"])
            assert verdict.ok
            assert verdict.reward == float(label) or (problem["idx"] == 72 and verdict.reward == 1.0)


def test_no_clear_case_is_accepted_wrongly_by_math(judge) -> None:
    cases = [case for case in lines("cases/math_answers.jsonl") if not case["equal"] and not case.get("debatable")]
    accepted = [case["id"] for case in cases if judge("math", case["answer"], case["gold"]).reward == 1.0]
    assert not accepted
