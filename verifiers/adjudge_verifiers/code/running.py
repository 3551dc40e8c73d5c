"""Run a program on its checks, in a bounded time whatever it does.

The sandbox compares nothing, so it cannot know when to stop at a wrong output. The tests therefore go out in chunks
that grow while all is well: a wrong answer costs few runs, a right one few jails. A run that does not finish ends its
chunk, and after a few time-outs, or when the budget is spent, the rest counts as ``time_limit`` without being run: that
is the program's doing, and must not become our time-out, which would free the answer of its verdict.

What a program of the data set decides about (a checker) is asked after each chunk, in one jail for all its runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from adjudge_sandbox.base import Interaction, Limits, Outcome, Program, RunResult, Sandbox, Script

from ..errors import InvalidTask
from .checker import Fault
from .plan import Check, Deciders
from .rewards import Progress
from .scoring import Found, Suite, TestOutcome, shown_output
from .trust import flags_of, is_tampering

__all__ = ["Budget", "fitted", "run_checks"]

_FIRST_CHUNK = 4
_CHUNK_GROWTH = 4
_WITH_THE_REST = 1.5
"""A chunk of its own for the last one or two costs more than they might be run in vain."""
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
    suite: Suite,
    *,
    deciders: Deciders | None = None,
    order: Sequence[int] | None = None,
    first: int = 0,
) -> list[TestOutcome]:
    """The outcomes of the checks, by index; those that the reward cannot depend on any more are left out.

    ``order``: numbers of the checks in the order in which to run them; the ``first`` so many make a chunk of their own.

    Raises :class:`InvalidTask` if a test itself is at fault, and what the sandbox raises.
    """
    session = _Session(sandbox, program, limits, deciders or Deciders())
    progress = Progress(suite.rules)
    outcomes: list[TestOutcome] = []
    broken: dict[str, TestOutcome] = {}  # targets that do not compile
    chunk = (first or _FIRST_CHUNK) if suite.rules.stops_early else budget.longest_chunk
    waiting = list(reversed(order if order is not None else range(len(checks))))
    tampered = False
    while waiting and not tampered:
        batch: list[int] = []
        size = len(waiting) if chunk >= _FIRST_CHUNK and len(waiting) <= chunk * _WITH_THE_REST else chunk
        while waiting and len(batch) < min(size, budget.longest_chunk):
            index = waiting.pop()
            if progress.leaves_out(index):
                continue
            if budget.spent:
                found = [_out_of_budget(index)]
            elif broken and (target := checks[index].target) in broken:
                found = [_not_run(index, broken[target])]
            else:
                batch.append(index)
                continue
            outcomes += found
            progress.note(index, 0.0)
        if not batch:
            continue
        ran = await session.run([(index, checks[index]) for index in batch], budget)
        for index in reversed(batch[len(ran) :]):
            waiting.append(index)
        for index, found in zip(batch, ran, strict=False):
            outcomes += found
            progress.note(index, min(each.credit for each in found))
            if found[0].category == "compile_error":
                broken[checks[index].target] = found[0]
            tampered = tampered or any(each.category == "tampered" for each in found)
        chunk = max(chunk, _FIRST_CHUNK) * _CHUNK_GROWTH
    return sorted(outcomes, key=lambda outcome: outcome.index)


class _Session:
    """One answer in the sandbox."""

    def __init__(self, sandbox: Sandbox, program: Program, limits: Limits, deciders: Deciders) -> None:
        self._sandbox = sandbox
        self._program = program
        self._limits = limits
        self._deciders = deciders

    async def run(self, batch: list[tuple[int, Check]], budget: Budget) -> list[list[TestOutcome]]:
        """The outcomes of the first checks of ``batch``, up to the first run that does not finish."""
        runs = [check.run for _, check in batch]
        results = await self._sandbox.run(self._program, runs, self._limits, stop_at_failure=True)
        if not results:
            raise RuntimeError(f"the sandbox {self._sandbox.name!r} gave no result for {len(batch)} runs")
        judged: list[list[Found]] = []
        asked: list[tuple[int, Script]] = []
        for number, ((index, check), result) in enumerate(zip(batch, results, strict=False)):
            budget.charge(result)
            with _naming(index):
                found = await self._judged(check, result)
            if isinstance(found, Script):
                asked.append((number, found))
            judged.append([] if isinstance(found, Script) else found)
        if asked and self._deciders.checker is not None:
            with _naming(batch[asked[0][0]][0]):
                answers = await self._deciders.checker.ask(self._sandbox, [question for _, question in asked])
            for (number, _), answer in zip(asked, answers, strict=True):
                judged[number] = [answer]
        return [
            [_outcome(index, check, result, one) for one in found]
            for (index, check), result, found in zip(batch, results, judged, strict=False)
        ]

    async def _judged(self, check: Check, result: RunResult) -> list[Found] | Script:
        if result.outcome is Outcome.BAD_TEST:
            raise InvalidTask(f"is itself at fault: {result.detail}")
        found = check.judge(result)
        if isinstance(found, Fault):
            interactor = self._deciders.interactor
            assert interactor is not None
            assert isinstance(check.run, Interaction)
            found = await interactor.blame(self._sandbox, check.run, found)
        if check.confirm is not None and isinstance(found, Found) and found.credit >= 1:
            found = await check.confirm(self._sandbox, self._limits)
        return [found] if isinstance(found, Found) else found


@contextlib.contextmanager
def _naming(index: int) -> Iterator[None]:
    """Say which test it is that cannot be used."""
    try:
        yield
    except InvalidTask as error:
        raise InvalidTask(f"Test {index + 1} {error}") from error


def _outcome(index: int, check: Check, result: RunResult, found: Found) -> TestOutcome:
    flags = (*flags_of(check.run, result), *found.flags)
    category, credit = ("tampered", 0.0) if is_tampering(flags) else (found.category, found.credit)
    return TestOutcome(
        index,
        category,  # type: ignore[arg-type]
        found.detail,
        credit=credit,
        name=found.name,
        cpu_ms=result.cpu_ms,
        stdout=shown_output(result),
        expected=check.expected,
        flags=flags,
        trust=check.trust,
        isolation=result.isolation,
    )


def _not_run(index: int, cause: TestOutcome) -> TestOutcome:
    return TestOutcome(index, cause.category, cause.detail, ran=False)


def _out_of_budget(index: int) -> TestOutcome:
    return TestOutcome(index, "time_limit", "Not run: earlier tests used up the program's time.", ran=False)
