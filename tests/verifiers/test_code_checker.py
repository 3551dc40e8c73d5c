"""Checker programs: what their ending says, and whose fault it is when they do not decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from adjudge.types import Verdict
from adjudge_sandbox.base import Limits, Outcome, Program, Run, RunResult, Script
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.checker import Fault, decide
from adjudge_verifiers.code.interactive import Interactor
from adjudge_verifiers.code.parts import Helper
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import InvalidTask, boundary

TESTLIB, SCORE = Helper(source="pass"), Helper(source="pass", protocol="score")


def ended(status: int, stderr: bytes = b"", stdout: bytes = b"") -> RunResult:
    outcome = Outcome.FINISHED if status == 0 else Outcome.RAISED
    return RunResult(outcome, f"exit status {status}", exit_status=status, stdout=stdout, stderr=stderr)


@pytest.mark.parametrize(
    ("result", "category", "credit"),
    [
        (ended(0), "correct", 1.0),
        (ended(1, b"expected 3"), "wrong_answer", 0.0),
        (ended(2), "wrong_answer", 0.0),
        (ended(4), "wrong_answer", 0.0),
        (ended(8), "wrong_answer", 0.0),
        (ended(7, b"points 0.25 so so"), "partial", 0.25),
        (ended(7, b"0.25"), "partial", 0.25),
        (ended(7, b"", b"points 60"), "partial", 0.6),
        (ended(7, b"points 1"), "correct", 1.0),
        (ended(7, b"points 0"), "wrong_answer", 0.0),
    ],
)
def test_exit_statuses_of_testlib(result: RunResult, category: str, credit: float) -> None:
    found = decide(TESTLIB, result)
    assert not isinstance(found, Fault)
    assert (found.category, found.credit) == (category, pytest.approx(credit))


@pytest.mark.parametrize(
    ("result", "certain"),
    [
        (ended(3, b"FAIL jury has no answer"), True),
        (ended(5), False),
        (ended(7, b"points many"), False),
        (ended(7, b"points 1_0"), False),
        (ended(1, b"Traceback (most recent call last):\n  ...\nValueError: x"), False),
        (RunResult(Outcome.SIGNALLED, "killed by SIGSEGV", signal=11), False),
        (RunResult(Outcome.TIME_LIMIT, "10 s"), False),
        (RunResult(Outcome.COMPILE_ERROR, "line 1"), True),
    ],
)
def test_no_decision(result: RunResult, certain: bool) -> None:
    found = decide(TESTLIB, result)
    assert isinstance(found, Fault)
    assert found.certain == certain


def test_a_traceback_of_another_language_is_just_text() -> None:
    result = ended(1, b"Traceback (most recent call last):")
    assert not isinstance(decide(Helper(source="int main() {}", language="cpp"), result), Fault)


@pytest.mark.parametrize(
    ("stdout", "credit"),
    [(b"1\n", 1.0), (b"0", 0.0), (b"0.5 half\n", 0.5), (b"50", 0.5), (b"100", 1.0), (b"True", 1.0), (b"WA", 0.0)],
)
def test_printed_scores(stdout: bytes, credit: float) -> None:
    found = decide(SCORE, ended(0, stdout=stdout))
    assert not isinstance(found, Fault)
    assert found.credit == pytest.approx(credit)


@pytest.mark.parametrize(
    "result", [ended(0), ended(0, stdout=b"perhaps"), ended(0, stdout=b"nan"), ended(1, stdout=b"1")]
)
def test_no_score(result: RunResult) -> None:
    assert isinstance(decide(SCORE, result), Fault)


class TwoPrograms:
    """A sandbox in which the answer prints ``output`` and the checker ends as ``act`` says of its files."""

    name = "two-programs"

    def __init__(self, act: Any, output: bytes = b"ANSWER OUTPUT") -> None:
        self.act = act
        self.output = output
        self.answers: list[Script] = []
        self.questions: list[Script] = []

    def languages(self) -> tuple[str, ...]:
        return ("python",)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        results = []
        for run in runs:
            assert isinstance(run, Script)
            if program.source == "checker = 1":
                self.questions.append(run)
                results.append(self.act(run))
            else:
                self.answers.append(run)
                results.append(RunResult(Outcome.FINISHED, stdout=self.output, isolation="zygote"))
        return results


async def judge(sandbox: TwoPrograms, tests: int = 1, **more: Any) -> Verdict:
    raw = {"checker": "checker = 1", "tests": [{"stdin": "GIVEN", "stdout": "SECRET"}] * tests}
    with boundary("the verifier") as outcome:
        call = Call("```python\nprint(1)\n```", normalise(raw), CodeOptions.model_validate(more))
        return await Code().verify(call, Context(sandbox))
    assert outcome.failure is not None
    return outcome.failure


async def test_the_checker_sees_all_and_the_answer_only_its_input() -> None:
    sandbox = TwoPrograms(lambda run: ended(0))
    verdict = await judge(sandbox, 3)
    assert (verdict.reward, verdict.category, verdict.trust) == (1.0, "correct", "rules")
    assert len(sandbox.questions) == len(sandbox.answers) == 3
    assert sandbox.questions[0].args == ("input.txt", "output.txt", "answer.txt")
    assert dict(sandbox.questions[0].files) == {
        "input.txt": b"GIVEN",
        "output.txt": b"ANSWER OUTPUT",
        "answer.txt": b"SECRET",
    }
    assert not any("SECRET" in repr(run) for run in sandbox.answers)


async def test_points_are_partial_credit() -> None:
    sandbox = TwoPrograms(lambda run: ended(7, b"points 0.5"))
    verdict = await judge(sandbox, 2, scoring="fraction")
    assert (verdict.reward, verdict.category, verdict.correct) == (0.5, "partial", False)
    verdict = await judge(sandbox, 2)
    assert (verdict.reward, verdict.parts["accuracy"]) == (0.0, 0.0)
    assert verdict.category == "wrong_answer"


async def test_a_crash_on_the_answers_output_only_is_the_answers_fault() -> None:
    def act(run: Script) -> RunResult:
        return ended(0) if run.files["output.txt"] == b"SECRET" else RunResult(Outcome.SIGNALLED, "SIGSEGV", signal=11)

    verdict = await judge(TwoPrograms(act))
    assert (verdict.status, verdict.reward, verdict.category) == ("ok", 0.0, "wrong_answer")


@pytest.mark.parametrize(
    "result", [ended(3, b"no"), ended(9), RunResult(Outcome.TIME_LIMIT, "slow"), RunResult(Outcome.COMPILE_ERROR, "x")]
)
async def test_a_broken_checker_is_the_data_sets_fault(result: RunResult) -> None:
    verdict = await judge(TwoPrograms(lambda run: result))
    assert (verdict.status, verdict.reward) == ("invalid_task", None)
    assert "Test 1 cannot be judged: the checker failed" in verdict.reason


async def test_an_answer_that_fails_is_not_checked() -> None:
    class Failing(TwoPrograms):
        async def run(self, *args: Any, **more: Any) -> list[RunResult]:
            return [RunResult(Outcome.TIME_LIMIT, "slow", isolation="zygote")]

    sandbox = Failing(lambda run: ended(0))
    verdict = await judge(sandbox)
    assert (verdict.category, sandbox.questions) == ("time_limit", [])


async def test_other_languages_have_streams_only() -> None:
    for raw, says in (
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": "f", "language": "cpp"}, "calls a function"),
        ({"tests": [{"assert": "assert f(1)"}], "language": "go"}, "is Python assert code"),
        ({"tests": [{"pytest": "from solution import f"}], "language": "rust"}, "is a Python test file"),
    ):
        call = Call("```\nx\n```", normalise(raw), CodeOptions())
        with pytest.raises(InvalidTask, match=says):
            await Code().verify(call, Context(TwoPrograms(lambda run: ended(0))))


@pytest.mark.parametrize(
    ("own_ms", "partner_ms", "expected"),
    [(20, 20, "time_limit"), (20, 900, None), (900, 20, "time_limit")],
    ids=["both-wait", "the-interactor-is-busy", "the-answer-is-busy"],
)
def test_who_kept_the_other_waiting(own_ms: float, partner_ms: float, expected: str | None) -> None:
    partner = RunResult(Outcome.TIME_LIMIT, "8 s of wall time", cpu_ms=partner_ms)
    result = RunResult(Outcome.TIME_LIMIT, "8 s of wall time", cpu_ms=own_ms, partner=partner)
    found = Interactor(TESTLIB, Limits(cpu_s=1)).judge(result)
    assert (None if isinstance(found, Fault) else found.category) == expected
