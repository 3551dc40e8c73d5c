"""What stands in place of a reward that is not there, under each policy."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge import AsyncClient, Task, Verdict, VerdictFailed, errors
from adjudge.testing import FakeServer, compare_text
from adjudge_trainer.policy import check_on_error, collect, metrics_of, rewards_of, warn_about

LOST = Verdict.failed("unavailable", "gone")
BROKEN = Verdict.failed("invalid_task", "no reference")


def right(reward: float) -> Verdict:
    return Verdict.scored(reward, "correct" if reward == 1 else "wrong_answer")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


VERDICTS = [right(1), LOST, right(0), right(0.5), BROKEN, LOST]
GROUPS = ["a", "a", "a", "b", "b", "c"]


def test_mask() -> None:
    assert rewards_of(VERDICTS, "mask") == [1, None, 0, 0.5, None, None]


def test_zero() -> None:
    assert rewards_of(VERDICTS, "zero") == [1, 0, 0, 0.5, 0, 0]


def test_mean_is_that_of_the_group_else_of_the_batch() -> None:
    assert rewards_of(VERDICTS, "mean", groups=GROUPS) == [1, 0.5, 0, 0.5, 0.5, 0.5]
    assert rewards_of([right(1), LOST, right(0), right(0), right(0), LOST], "mean", groups=GROUPS)[5] == 0.25
    assert rewards_of([right(1), LOST], "mean") == [1, 1]


def test_mean_of_nothing_is_no_zero() -> None:
    assert rewards_of([LOST, LOST], "mean") == [None, None]
    with pytest.raises(VerdictFailed):
        rewards_of([LOST, LOST], "mean", can_mask=False)


@pytest.mark.parametrize("policy", ["raise", "mask"])
def test_raise_and_a_mask_that_the_trainer_does_not_know(policy: Any) -> None:
    with pytest.raises(VerdictFailed, match="no reference") as caught:
        rewards_of([right(1), BROKEN, LOST], policy, can_mask=False)
    assert caught.value.verdict is BROKEN
    assert rewards_of([right(1), right(0)], policy, can_mask=False) == [1, 0]


@pytest.mark.parametrize("policy", ["raise", "mask", "zero", "mean"])
def test_judged_answers_keep_their_rewards(policy: Any) -> None:
    verdicts = [right(1), right(-2.5), right(0)]
    assert rewards_of(verdicts, policy) == [1, -2.5, 0]
    assert rewards_of([], policy) == []


def test_a_policy_that_is_none() -> None:
    with pytest.raises(ValueError, match="raise, mask, zero, mean"):
        check_on_error("ignore")


def test_metrics_have_the_same_keys_whatever_came() -> None:
    batches = [[], [LOST], [right(1)], VERDICTS]
    assert len({tuple(metrics_of(batch)) for batch in batches}) == 1
    assert all(math.isfinite(value) for batch in batches for value in metrics_of(batch).values())
    assert metrics_of(VERDICTS)["failed_share"] == 0.5
    assert metrics_of(VERDICTS)["invalid_task_share"] == pytest.approx(1 / 6)
    assert metrics_of(VERDICTS)["correct_share"] == pytest.approx(1 / 3)


def test_failures_are_never_silent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_about([right(1), right(0)], "zero")
        assert caplog.records == []
        warn_about(VERDICTS, "zero")
    assert "3 of 6 answers have no reward (2 unavailable, 1 invalid_task); on_error=zero" in caplog.text


def tasks(number: int) -> list[dict[str, Any]]:
    return [{"id": i, "response": "1", "reference": "1"} for i in range(number)]


async def test_collect_gives_a_verdict_for_every_task(server: FakeServer) -> None:
    async with AsyncClient(base_url=server.base_url, max_retries=0) as client:
        assert [verdict.ok for verdict in await collect(client, tasks(3), 3)] == [True] * 3
        server.break_next(2)
        verdicts = await collect(client, tasks(4), 4)
        assert [verdict.status for verdict in verdicts] == ["ok", "ok", "unavailable", "unavailable"]
        assert "ConnectionFailed" in verdicts[3].reason
        server.fail_next(500)
        assert [verdict.status for verdict in await collect(client, tasks(2), 2)] == ["unavailable"] * 2


async def test_collect_survives_a_deadline_with_what_it_has(server: FakeServer) -> None:
    def judge(task: Task) -> Verdict:
        if task.id == 1:
            server.closing.wait(30)
        return compare_text(task)

    server.judge = judge
    async with AsyncClient(base_url=server.base_url, timeout_s=0.5) as client:
        verdicts = await collect(client, tasks(2), 2)
    assert [verdict.status for verdict in verdicts] == ["ok", "unavailable"]
    assert "deadline" in verdicts[1].reason


@pytest.mark.parametrize(
    ("status_code", "kind"),
    [(401, errors.AuthenticationFailed), (404, errors.InvalidRequest), (422, errors.InvalidRequest)],
)
async def test_mistakes_that_would_repeat_are_raised(server: FakeServer, status_code: int, kind: type) -> None:
    server.fail_next(status_code)
    async with AsyncClient(base_url=server.base_url) as client:
        with pytest.raises(kind):
            await collect(client, tasks(2), 2)
