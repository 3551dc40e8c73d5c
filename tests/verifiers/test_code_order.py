"""Learned order of tests: the reward never depends on it, the cost does."""

from __future__ import annotations

import ast
import random
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.types import Verdict
from adjudge_sandbox.base import Limits, Outcome, Program, Run, RunResult, Script
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.order import TestOrder
from adjudge_verifiers.code.reference import CodeReference, normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import InvalidTask

KEY = b"k"


class Scripted:
    """A sandbox in which the program's source names the tests that it fails, and how."""

    name = "scripted"

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.sessions = 0

    def languages(self) -> tuple[str, ...]:
        return ("python",)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        self.sessions += 1
        failures: dict[int, str] = ast.literal_eval(program.source.strip())
        results = []
        for run in runs:
            assert isinstance(run, Script)
            index = int(run.stdin)
            self.seen.append(index)
            match failures.get(index):
                case "wrong":
                    results.append(RunResult(Outcome.FINISHED, stdout=b"no", cpu_ms=2))
                case "slow":
                    results.append(RunResult(Outcome.TIME_LIMIT, "too slow", cpu_ms=5000))
                case "bad":
                    results.append(RunResult(Outcome.BAD_TEST, "no such name"))
                case "compile":
                    results.append(RunResult(Outcome.COMPILE_ERROR, "line 1"))
                case _:
                    results.append(RunResult(Outcome.FINISHED, stdout=run.stdin, cpu_ms=2))
            if stop_at_failure and results[-1].outcome is not Outcome.FINISHED:
                break
        return results


def suite(total: int) -> CodeReference:
    return normalise({"inputs": [str(i) for i in range(total)], "outputs": [str(i) for i in range(total)]})


async def judge(
    code: Code, reference: CodeReference, fails: dict[int, str], **options: Any
) -> tuple[Verdict, Scripted]:
    sandbox = Scripted()
    call = Call(f"```python\n{fails!r}\n```", reference, CodeOptions.model_validate(options))
    return await code.verify(call, Context(sandbox)), sandbox


async def test_the_test_that_kills_runs_first() -> None:
    code, reference = Code(), suite(40)
    first, sandbox = await judge(code, reference, {33: "wrong"})
    assert len(sandbox.seen) >= 34
    second, sandbox = await judge(code, reference, {33: "wrong"})
    assert sandbox.seen == [33]
    for verdict in (first, second):
        assert (verdict.reward, verdict.category) == (0.0, "wrong_answer")
        assert verdict.reason.startswith("Test 34 ")
        assert [each["index"] for each in verdict.evidence["tests"] if each["category"] != "correct"] == [33]
    right, sandbox = await judge(code, reference, {})
    assert right.reward == 1.0
    assert sorted(sandbox.seen) == list(range(40))
    assert sandbox.sessions <= 4


async def test_without_learning_the_order_is_the_data_sets() -> None:
    code, reference = Code(), suite(40)
    for _ in range(3):
        _, sandbox = await judge(code, reference, {33: "wrong"}, learn_order=False)
        assert sandbox.seen[:34] == list(range(34))
    assert len(code.order) == 0


@pytest.mark.parametrize("scoring", ["fraction", "first_n"])
async def test_other_scorings_keep_the_order(scoring: str) -> None:
    code, reference = Code(), suite(8)
    await judge(code, reference, {5: "wrong"})
    _, sandbox = await judge(code, reference, {5: "wrong"}, scoring=scoring)
    assert sandbox.seen == list(range(8))


async def test_problems_are_told_apart_by_their_tests() -> None:
    code = Code()
    await judge(code, suite(20), {15: "wrong"})
    _, sandbox = await judge(code, suite(20), {15: "wrong"})
    assert sandbox.seen[0] == 15
    _, sandbox = await judge(code, suite(21), {15: "wrong"})
    assert sandbox.seen[0] == 0


async def test_a_failure_without_a_run_is_no_kill() -> None:
    code, reference = Code(), suite(20)
    await judge(code, reference, {0: "compile"})
    assert len(code.order) == 0


async def test_a_bad_test_stays_the_data_sets_fault() -> None:
    code, reference = Code(), suite(20)
    await judge(code, reference, {9: "wrong"})
    with pytest.raises(InvalidTask, match="Test 4 "):
        await judge(code, reference, {3: "bad"})
    with pytest.raises(InvalidTask, match="Test 4 "):
        await judge(code, reference, {3: "bad", 9: "wrong"})
    assert list(code.order.course(reference.fingerprint, 20).indexes) == list(range(20))


ANSWERS = st.lists(
    st.dictionaries(st.integers(0, 11), st.sampled_from(["wrong", "slow"]), max_size=4), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(ANSWERS)
async def test_rewards_are_the_same_in_every_order(answers: list[dict[int, str]]) -> None:
    learning, plain, reference = Code(), Code(), suite(12)
    for fails in answers:
        one, _ = await judge(learning, reference, fails)
        other, _ = await judge(plain, reference, fails, learn_order=False)
        assert one.reward == other.reward == float(not fails)
        assert one.parts["accuracy"] == other.parts["accuracy"]
        assert one.category == "correct" or one.category in {"wrong_answer", "time_limit"}


def test_kills_per_second_decide() -> None:
    order = TestOrder()
    for _ in range(10):
        order.killed(KEY, 7, 5.0)
    for _ in range(2):
        order.killed(KEY, 3, 0.002)
    assert list(order.course(KEY, 10).indexes) == [3, 7, 0, 1, 2, 4, 5, 6, 8, 9]
    assert order.course(KEY, 10).first == 2
    assert list(order.course(KEY, 5).indexes) == [3, 0, 1, 2, 4]
    assert list(order.course(b"other", 3).indexes) == [0, 1, 2]
    assert order.course(b"other", 3).first == 0


def test_counts_follow_a_policy_that_changes() -> None:
    order = TestOrder()
    for _ in range(500):
        order.killed(KEY, 1, 0.01)
    for _ in range(200):
        order.killed(KEY, 2, 0.01)
    assert order.course(KEY, 3).indexes[0] == 2


def test_memory_is_bounded() -> None:
    order = TestOrder(max_problems=10)
    for number in range(100):
        order.killed(str(number).encode(), 1, 0.01)
    assert len(order) == 10
    assert order.course(b"99", 2).indexes[0] == 1
    for index in range(5000):
        order.killed(KEY, index, 0.01)
    course = order.course(KEY, 5000)
    assert course.first <= 4
    assert sorted(course.indexes) == list(range(5000))
    assert set(course.indexes[:64]) == set(range(5000 - 64, 5000))
    for _ in range(3):
        order.killed(KEY, 17, 0.01)
    assert order.course(KEY, 5000).indexes[0] == 17


def test_threads() -> None:
    order, problems = TestOrder(max_problems=5), [bytes([number]) for number in range(8)]
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        source = random.Random(seed)
        try:
            for _ in range(2000):
                key = source.choice(problems)
                course = order.course(key, 30)
                assert sorted(course.indexes) == list(range(30))
                order.killed(key, source.randrange(30), source.random())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(order) == 5
