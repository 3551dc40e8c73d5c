"""Scoring modes: worked numbers, and what may be left out once it is settled."""

from __future__ import annotations

import pytest

from adjudge_sandbox.base import FunctionCall, Limits, Outcome, Program, Run, RunResult
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.rewards import Progress, Rules, Scoring, TestWeight
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import InvalidTask

LEVELS = [TestWeight(level=1)] * 2 + [TestWeight(level=2)] * 3 + [TestWeight(level=3)] * 5


@pytest.mark.parametrize(
    ("easy", "medium", "hard", "strict", "soft"),
    [(2, 3, 3, 0.5, 0.8), (2, 2, 5, 0.2, 0.9), (1, 3, 5, 0.0, 0.9), (0, 0, 0, 0.0, 0.0), (2, 3, 5, 1.0, 1.0)],
)
def test_levels_of_mimo(easy: int, medium: int, hard: int, strict: float, soft: float) -> None:
    """methods 51: Easy 2 tests (20 points), Medium 3 (30), Hard 5 (50)."""
    passed = [i < easy for i in range(2)] + [i < medium for i in range(3)] + [i < hard for i in range(5)]
    credits = {index: (float(each), 1) for index, each in enumerate(passed)}
    assert Rules("tddr_strict", LEVELS, {}, [20, 30, 50]).reward(credits) == pytest.approx(strict)
    assert Rules("tddr_soft", LEVELS, {}, [20, 30, 50]).reward(credits) == pytest.approx(soft)


def test_levels_score_1_2_3_by_default() -> None:
    credits = {index: (float(index < 5), 1) for index in range(10)}
    assert Rules("tddr_strict", LEVELS).reward(credits) == pytest.approx(3 / 6)


SUBTASKS = [TestWeight(("a",)), TestWeight(("a", "b")), TestWeight(("b",)), TestWeight(("c",))]


@pytest.mark.parametrize(
    ("credits", "points", "reward"),
    [
        ([1, 1, 1, 1], {}, 1.0),
        ([1, 1, 0, 1], {}, 2 / 3),
        ([1, 0, 1, 1], {"a": 30, "b": 20, "c": 50}, 0.5),
        ([1, 0.5, 1, 1], {"a": 30, "b": 20, "c": 50}, 0.75),
        ([0, 0, 0, 0], {}, 0.0),
    ],
)
def test_a_subtask_earns_its_least(credits: list[float], points: dict[str, float], reward: float) -> None:
    rules = Rules("subtasks", SUBTASKS, points)
    assert rules.reward({i: (credit, 1) for i, credit in enumerate(credits)}) == pytest.approx(reward)


def test_fractions_go_by_points_or_by_the_tests_in_a_file() -> None:
    pointed = Rules("fraction", [TestWeight(points=3), TestWeight(points=1)])
    assert pointed.reward({0: (1.0, 1), 1: (0.0, 1)}) == 0.75
    files = Rules("fraction", [TestWeight(), TestWeight()])
    assert files.reward({0: (0.5, 4), 1: (1.0, 1)}) == pytest.approx(3 / 5)


@pytest.mark.parametrize(
    ("mode", "weights", "failed", "left_out"),
    [
        ("all", [TestWeight()] * 3, 0, [True, True, True]),
        ("fraction", [TestWeight()] * 3, 0, [False, False, False]),
        ("subtasks", SUBTASKS, 0, [True, False, False, False]),
        ("subtasks", SUBTASKS, 1, [True, True, True, False]),
        ("tddr_strict", [TestWeight(level=n) for n in (1, 2, 3, 2)], 1, [False, True, True, True]),
        ("tddr_soft", [TestWeight(level=n) for n in (1, 2, 3, 2)], 1, [False] * 4),
    ],
)
def test_what_is_settled_is_left_out(
    mode: Scoring, weights: list[TestWeight], failed: int, left_out: list[bool]
) -> None:
    progress = Progress(Rules(mode, weights))
    assert not any(map(progress.leaves_out, range(len(weights))))
    progress.note(failed, 0.0)
    assert list(map(progress.leaves_out, range(len(weights)))) == left_out


class Counting:
    """A sandbox in which ``f`` is right on the arguments of ``right``."""

    name = "counting"

    def __init__(self, right: set[int]) -> None:
        self.right = right
        self.ran: list[int] = []

    def languages(self) -> tuple[str, ...]:
        return ("python",)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def run(
        self, program: Program, runs: list[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        results = []
        for run in runs:
            assert isinstance(run, FunctionCall)
            self.ran.append(run.args[0])
            results.append(RunResult(Outcome.FINISHED, value=run.args[0] in self.right, isolation="zygote"))
        return results


def reference(**weights: list[object]) -> dict[str, object]:
    count = max(map(len, weights.values()))
    return {
        "tests": [
            {"call": {"function": "f", "args": [i]}, "expect": True, **{key: weights[key][i] for key in weights}}
            for i in range(count)
        ]
    }


async def test_levels_end_to_end_with_early_stop() -> None:
    raw = reference(level=[1] * 4 + [2] * 16 + [3] * 16)
    call = Call("```python\ndef f(x): ...\n```", normalise(raw), CodeOptions(scoring="tddr_strict"))
    sandbox = Counting(set(range(36)) - {4})
    verdict = await Code().verify(call, Context(sandbox))  # type: ignore[arg-type]
    assert (verdict.reward, verdict.category, verdict.parts["pass_rate"]) == (pytest.approx(1 / 6), "partial", None)
    assert max(sandbox.ran) < 20
    assert verdict.evidence["levels"]["1"] == {"passed": 4, "total": 4}
    everything = Call(call.response, call.reference, CodeOptions(scoring="tddr_soft"))
    verdict = await Code().verify(everything, Context(Counting(sandbox.right)))  # type: ignore[arg-type]
    assert verdict.reward == pytest.approx((1 + 2 * 15 / 16 + 3) / 6)
    assert verdict.parts["pass_rate"] == pytest.approx(35 / 36)


async def test_subtasks_end_to_end() -> None:
    raw = {**reference(group=[1, 1, [1, 2], 2]), "groups": {"1": 40, "2": 60}}
    call = Call("```python\ndef f(x): ...\n```", normalise(raw), CodeOptions(scoring="subtasks"))
    verdict = await Code().verify(call, Context(Counting({1, 2, 3})))  # type: ignore[arg-type]
    assert (verdict.reward, verdict.category) == (0.6, "partial")
    assert verdict.evidence["groups"]["2"] == {"points": 60.0, "credit": 1.0, "passed": 2, "total": 2}


@pytest.mark.parametrize(
    ("raw", "scoring", "says"),
    [
        (reference(points=[1, 1]), "subtasks", "`group` of every test; test 1"),
        (reference(level=[1, None]), "tddr_soft", "`level` of every test; test 2"),
        ({**reference(level=[1, 2]), "level_scores": [1]}, "tddr_strict", "2 levels"),
    ],
)
async def test_a_mode_needs_what_it_goes_by(raw: object, scoring: Scoring, says: str) -> None:
    call = Call("```python\ndef f(x): ...\n```", normalise(raw), CodeOptions(scoring=scoring))
    with pytest.raises(InvalidTask, match=says):
        await Code().verify(call, Context(Counting(set())))  # type: ignore[arg-type]
