"""The invariants of a verdict: a number if and only if it was judged."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adjudge.types import CATEGORIES, FAILURES, Failure, Message, Status, Task, Verdict, text_of


@given(reward=st.floats(), category=st.sampled_from(sorted(CATEGORIES)))
def test_scored_takes_finite_numbers_only(reward: float, category: Any) -> None:
    if math.isfinite(reward):
        verdict = Verdict.scored(reward, category)
        assert (verdict.status, verdict.reward, verdict.correct) == ("ok", reward, category == "correct")
    else:
        with pytest.raises(ValidationError):
            Verdict.scored(reward, category)


@pytest.mark.parametrize("status", sorted(FAILURES))
def test_failed_has_no_reward(status: Any) -> None:
    verdict = Verdict.failed(status, "because")
    assert (verdict.status, verdict.reward, verdict.correct, verdict.category) == (status, None, None, None)
    with pytest.raises(ValidationError, match="has no reward"):
        Verdict(status=status, reward=0.0)


def test_ok_needs_a_reward() -> None:
    with pytest.raises(ValidationError, match="finite reward"):
        Verdict(status="ok", reward=None)


def test_statuses_are_ok_and_the_failures() -> None:
    assert set(get_args(Status)) == {"ok", *get_args(Failure)} == FAILURES | {"ok"}


def test_verdicts_always_have_the_same_keys() -> None:
    assert Verdict.scored(1.0, "correct").model_dump().keys() == Verdict.failed("overloaded", "x").model_dump().keys()


def test_text_of_a_conversation_is_its_last_assistant_message() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "output_text", "text": "b"}]
    conversation = [
        Message(role="assistant", content="first"),
        Message.model_validate({"role": "assistant", "content": parts}),
        Message(role="user", content="thanks"),
    ]
    assert text_of(conversation) == "ab"
    assert text_of([Message(role="user", content="hello")]) == ""
    assert text_of("plain") == "plain"


def test_unknown_fields_of_a_task_are_refused() -> None:
    with pytest.raises(ValidationError, match="verifer"):
        Task.model_validate({"response": "x", "verifer": "math"})
