"""Run a program on its checks, in a bounded time whatever it does.

The sandbox compares nothing, so it cannot know when to stop at a wrong output. The tests therefore go out in chunks
that grow while all is well: a wrong answer costs few runs, a right one few jails. A run that does not finish ends its
chunk, and after a few time-outs, or when the budget is spent, the rest counts as ``time_limit`` without being run: that
is the program's doing, and must not become our time-out, which would free the answer of its verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Sandbox

from ..errors import InvalidTask
from .plan import Check
from .scoring import CATEGORY_OF, TestOutcome, early_exit, shown_output

__all__ = ["Budget", "fitted", "run_checks"]

_FIRST_CHUNK = 4
_CHUNK_GROWTH = 4
_MAX_TIME_OUTS = 3


@dataclass(slots=True)
class Budget:
    """What one answer may use in all its runs together."""

    run_s: float
    """Wall seconds of its own runs, waiting not counted."""
    longest_chunk: int
    used_s: float = 0.0
    time_outs: int = 0

    @classmethod
    def of(cls, limits: Limits, timeout_s: float) -> Budget:
        """Half of the verifier's time goes to finished runs; the other half is room for one chunk of the slowest.

        The last run of a chunk may be one that kills itself, and is then run a second time.
        """
        return cls(run_s=timeout_s / 2, longest_chunk=max(1, int(timeout_s / 2 / limits.wall_limit_s) - 1))

    @property
    def spent(self) -> bool:
        return self.used_s >= self.run_s or self.time_outs >= _MAX_TIME_OUTS

    def charge(self, result: RunResult) -> None:
        self.used_s += max(result.wall_ms, result.cpu_ms) / 1000
        self.time_outs += result.outcome is Outcome.TIME_LIMIT


def fitted(limits: Limits, timeout_s: float) -> Limits:
    """``limits`` under which a program that sleeps meets its own limit before it meets the verifier's."""
    return replace(limits, wall_s=min(limits.wall_limit_s, timeout_s / 3))


async def run_checks(
    sandbox: Sandbox,
    program: Program,
    checks: Sequence[Check],
    limits: Limits,
    budget: Budget,
    *,
    stop_at_failure: bool,
) -> list[TestOutcome]:
    """One outcome for each check, in order; with ``stop_at_failure`` the list ends after the first failure.

    Raises :class:`InvalidTask` if a test itself is at fault, and what the sandbox raises.
    """
    outcomes: list[TestOutcome] = []
    broken: dict[str, TestOutcome] = {}  # targets that do not compile
    chunk = _FIRST_CHUNK if stop_at_failure else budget.longest_chunk
    while len(outcomes) < len(checks):
        start = len(outcomes)
        if broken and (target := checks[start].target) in broken:
            outcomes.append(_not_run(start, broken[target]))
            continue
        if budget.spent:
            outcomes += [_out_of_budget(index) for index in range(start, len(checks))]
            break
        batch = checks[start : start + min(chunk, budget.longest_chunk)]
        results = await sandbox.run(program, [check.run for check in batch], limits, stop_at_failure=True)
        if not results:
            raise RuntimeError(f"the sandbox {sandbox.name!r} gave no result for {len(batch)} runs")
        for check, result in zip(batch, results, strict=False):
            budget.charge(result)
            outcome = _judged(len(outcomes), check, result)
            outcomes.append(outcome)
            if outcome.category == "compile_error":
                broken[check.target] = outcome
            if stop_at_failure and not outcome.passed:
                return outcomes
        chunk *= _CHUNK_GROWTH
    return outcomes


def _judged(index: int, check: Check, result: RunResult) -> TestOutcome:
    if result.outcome is Outcome.BAD_TEST:
        raise InvalidTask(f"Test {index + 1} is itself at fault: {result.detail}")
    if result.outcome is Outcome.FINISHED:
        complaint = check.judge(result)
        category = "correct" if complaint is None else "wrong_answer"
    else:
        complaint, category = result.detail, CATEGORY_OF[result.outcome]
    return TestOutcome(
        index,
        category,  # type: ignore[arg-type]
        complaint or "",
        cpu_ms=result.cpu_ms,
        stdout=shown_output(result),
        expected=check.expected,
        flags=("early_exit",) if early_exit(check.run, result) else (),
        trust=check.trust,
    )


def _not_run(index: int, cause: TestOutcome) -> TestOutcome:
    return TestOutcome(index, cause.category, cause.detail, ran=False)


def _out_of_budget(index: int) -> TestOutcome:
    return TestOutcome(index, "time_limit", "Not run: earlier tests used up the program's time.", ran=False)
