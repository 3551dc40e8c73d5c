"""How runs are sent out and how results become a verdict, against a sandbox that follows a script.

The real sandbox stands in ``test_code_verifier.py``; here the point is what a program's behaviour may cost, which would
take minutes to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from adjudge.types import Verdict
from adjudge_sandbox.base import FunctionCall, Limits, Outcome, Program, Run, RunResult, Script
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import InvalidTask, Unavailable


class Scripted:
    """A sandbox whose n-th run ends as told."""

    name = "scripted"

    def __init__(self, act: Callable[[int, Run], RunResult]) -> None:
        self.act = act
        self.calls: list[int] = []
        self.seen = 0

    def languages(self) -> tuple[str, ...]:
        return ("python",)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        self.calls.append(len(runs))
        results: list[RunResult] = []
        for run in runs:
            results.append(self.act(self.seen, run))
            self.seen += 1
            if stop_at_failure and results[-1].outcome is not Outcome.FINISHED:
                break
        return results


def echo(index: int, run: Run) -> RunResult:
    assert isinstance(run, Script)
    return RunResult(Outcome.FINISHED, stdout=run.stdin, wall_ms=5, isolation="jail" if index % 2 else "zygote")


async def judge(act: Callable[[int, Run], RunResult], total: int, **options: Any) -> tuple[Verdict, Scripted]:
    sandbox = Scripted(act)
    reference = normalise({"inputs": [str(i) for i in range(total)], "outputs": [str(i) for i in range(total)]})
    call = Call("```python\npass\n```", reference, CodeOptions.model_validate(options))
    return await Code().verify(call, Context(sandbox)), sandbox


async def test_all_pass_in_growing_chunks() -> None:
    verdict, sandbox = await judge(echo, 100)
    assert (verdict.reward, verdict.category, verdict.parts) == (1.0, "correct", {"accuracy": 1.0, "pass_rate": 1.0})
    assert sum(sandbox.calls) == 100
    assert sandbox.calls[0] <= 4
    assert len(sandbox.calls) < 12
    assert verdict.isolation == "jail"  # the weakest of all runs


async def test_a_wrong_answer_stops_the_rest() -> None:
    verdict, sandbox = await judge(lambda i, run: RunResult(Outcome.FINISHED, stdout=b"no"), 100)
    assert (verdict.reward, verdict.category) == (0.0, "wrong_answer")
    assert verdict.parts == {"accuracy": 0.0, "pass_rate": None}
    assert sandbox.seen <= 4
    assert verdict.evidence["total"] == 100


async def test_fraction_runs_everything() -> None:
    def odd_fail(index: int, run: Run) -> RunResult:
        return echo(index, run) if index % 2 else RunResult(Outcome.RAISED, "ValueError")

    verdict, sandbox = await judge(odd_fail, 20, scoring="fraction")
    assert (verdict.reward, verdict.category, verdict.correct) == (0.5, "partial", False)
    assert verdict.parts == {"accuracy": 0.0, "pass_rate": 0.5}
    assert sandbox.seen == 20


async def test_first_n() -> None:
    verdict, sandbox = await judge(
        lambda i, run: echo(i, run) if i < 10 else RunResult(Outcome.RAISED), 50, scoring="first_n"
    )
    assert (verdict.reward, verdict.category, sandbox.seen) == (1.0, "correct", 10)
    verdict, _ = await judge(echo, 50, scoring="first_n", max_tests=3)
    assert verdict.evidence["total"] == 3


async def test_time_outs_are_the_answers_fault_and_bounded() -> None:
    slow = RunResult(Outcome.TIME_LIMIT, "5 s of CPU time", cpu_ms=5000, wall_ms=5100)
    verdict, sandbox = await judge(lambda i, run: slow, 100, scoring="fraction")
    assert (verdict.reward, verdict.category) == (0.0, "time_limit")
    assert sandbox.seen == 3
    assert (verdict.evidence["run"], verdict.evidence["total"]) == (3, 100)


async def test_a_sleeper_cannot_sleep_its_way_to_our_time_out() -> None:
    def sleep(index: int, run: Run) -> RunResult:
        assert isinstance(run, Script)
        return RunResult(Outcome.FINISHED, stdout=run.stdin, wall_ms=19_900)

    for scoring in ("all", "fraction"):
        verdict, sandbox = await judge(sleep, 1000, scoring=scoring)
        assert verdict.category in ("time_limit", "partial")
        assert sandbox.seen * 19.9 <= Code.timeout_s
        assert verdict.parts["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("outcome", "category"),
    [
        (Outcome.RAISED, "runtime_error"),
        (Outcome.SIGNALLED, "runtime_error"),
        (Outcome.COMPILE_ERROR, "compile_error"),
        (Outcome.TIME_LIMIT, "time_limit"),
        (Outcome.MEMORY_LIMIT, "memory_limit"),
        (Outcome.OUTPUT_LIMIT, "output_limit"),
        (Outcome.FAILED_ASSERT, "wrong_answer"),
        (Outcome.BAD_VALUE, "wrong_answer"),
    ],
)
@pytest.mark.parametrize("scoring", ["all", "fraction"])
async def test_categories(outcome: Outcome, category: str, scoring: str) -> None:
    verdict, _ = await judge(lambda i, run: RunResult(outcome, "why"), 5, scoring=scoring)
    assert (verdict.status, verdict.reward, verdict.category) == ("ok", 0.0, category)
    assert "why" in verdict.reason


async def test_what_does_not_compile_is_compiled_once() -> None:
    verdict, sandbox = await judge(lambda i, run: RunResult(Outcome.COMPILE_ERROR, "line 1"), 50, scoring="fraction")
    assert (verdict.category, sandbox.seen) == ("compile_error", 1)
    assert verdict.parts == {"accuracy": 0.0, "pass_rate": 0.0}


async def test_a_bad_test_is_the_data_sets_fault() -> None:
    with pytest.raises(InvalidTask, match="Test 1 is itself at fault: no name x"):
        await judge(lambda i, run: RunResult(Outcome.BAD_TEST, "no name x"), 2)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (SandboxUnavailable("lost"), Unavailable),
        (UnsupportedLanguage("no cobol"), InvalidTask),
        (InvalidProgram("NUL"), InvalidTask),
    ],
)
async def test_failures_of_ours_are_no_rewards(raised: Exception, expected: type[Exception]) -> None:
    def fail(index: int, run: Run) -> RunResult:
        raise raised

    with pytest.raises(expected, match=str(raised)):
        await judge(fail, 2)


async def test_without_a_sandbox() -> None:
    call = Call("```python\npass\n```", normalise({"inputs": ["1"], "outputs": ["1"]}), CodeOptions())
    with pytest.raises(Unavailable):
        await Code().verify(call, Context())


async def test_early_exit_is_flagged() -> None:
    reference = normalise({"inputs": ["1"], "outputs": ["1"], "fn_name": "f"})
    for result, category, flags in (
        (RunResult(Outcome.RAISED, "it is over", ended_early=True), "tampered", ["early_exit"]),
        (RunResult(Outcome.RAISED, "the process ended before the function returned", exit_status=0), "tampered", None),
        (RunResult(Outcome.RAISED, "SystemExit: 0 (line 2)"), "tampered", ["early_exit"]),
        (RunResult(Outcome.RAISED, "SystemExit: 2"), "runtime_error", []),
        (RunResult(Outcome.RAISED, "ValueError: SystemExit"), "runtime_error", []),
        (RunResult(Outcome.RAISED, "exit status 1", exit_status=1), "runtime_error", []),
        (RunResult(Outcome.FINISHED, value=1, tampering="always_equal"), "tampered", ["always_equal"]),
    ):
        sandbox = Scripted(lambda i, run, result=result: result)
        verdict = await Code().verify(Call("```python\npass\n```", reference, CodeOptions()), Context(sandbox))
        assert (verdict.category, verdict.reward) == (category, 0.0), result
        assert verdict.flags == (["early_exit"] if flags is None else flags)


async def test_expected_outputs_never_enter_a_run() -> None:
    seen: list[str] = []

    def look(index: int, run: Run) -> RunResult:
        seen.append(repr(run))
        return RunResult(Outcome.FINISHED, value="x")

    for raw in (
        {"inputs": ["in"], "outputs": ["SECRET"]},
        {"inputs": ['"in"'], "outputs": ['"SECRET"'], "fn_name": "f"},
        ["assert f('in') == 'SECRET'"],
    ):
        call = Call("```python\ndef f(x): pass\n```", normalise(raw), CodeOptions())
        await Code().verify(call, Context(Scripted(look)))
    assert len(seen) == 3
    assert not any("SECRET" in run for run in seen)


async def test_evidence_is_short() -> None:
    sandbox = Scripted(lambda i, run: RunResult(Outcome.FINISHED, stdout=b"x" * 100_000, detail="d" * 2000))
    reference = normalise({"inputs": ["1"] * 300, "outputs": ["y" * 5000] * 300})
    call = Call("```python\npass\n```", reference, CodeOptions(scoring="fraction"))
    verdict = await Code().verify(call, Context(sandbox))
    assert len(verdict.model_dump_json()) < 20_000
    assert len(verdict.evidence["tests"]) <= 20


def test_functions_are_called_by_the_name_that_the_program_gives_them() -> None:
    from adjudge_verifiers.code.plan import Comparison, plan
    from adjudge_verifiers.code.program import assemble

    reference = normalise({"inputs": ["1"], "outputs": ["1"], "fn_name": "f"})
    for answer, name in (("def f(x): pass", "f"), ("class Solution:\n  def f(self, x): pass", "Solution().f")):
        (check,) = plan(reference, assemble(answer, reference), Comparison())
        assert check.run == FunctionCall(name, (1,))


@pytest.mark.parametrize(
    "options", [{"rel_tol": 0.1, "comparison": "lcb"}, {"cpu_s": 0}, {"scoring": "best"}, {"x": 1}]
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        CodeOptions.model_validate(options)
