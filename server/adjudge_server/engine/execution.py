"""Programs that are run as they are: their results go to whoever sent them, and nothing is judged.

The wire formats of other sandboxes need that. An execution waits in the queue of the ``sandbox`` lane and takes one of
its slots like every other call, so that programs sent this way can neither crowd out judgements nor pass them by.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from adjudge.types import Failure
from adjudge_sandbox.base import Limits, Program, Run, RunResult, Sandbox
from adjudge_verifiers.errors import OutOfTime, Unavailable, boundary
from adjudge_verifiers.sandboxed import sandbox_failures

from ..logs import get_logger

__all__ = ["Execution", "NotExecuted", "run_execution"]

_MARGIN_S = 60.0


class NotExecuted(Exception):
    """The program was not run to a result. ``status`` says whose fault that is, as in a verdict."""

    def __init__(self, status: Failure, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(slots=True, eq=False)
class Execution:
    """One program on its way through the ``sandbox`` lane. ``future`` gets its results, or :class:`NotExecuted`."""

    program: Program
    runs: Sequence[Run]
    limits: Limits
    queue_timeout_s: float
    future: asyncio.Future[list[RunResult]]
    stop_at_failure: bool = False
    queued_at: float = field(default_factory=time.monotonic)

    @property
    def timeout_s(self) -> float:
        """The backstop of the whole. Each run has its own limits, and may be run twice; so may the whole answer."""
        runs_s = 2 * len(self.runs) * self.limits.wall_limit_s
        return 2 * (runs_s + 3 * self.limits.compile_cpu_s) + _MARGIN_S

    def waited_ms(self) -> float:
        return (time.monotonic() - self.queued_at) * 1000

    def expired(self) -> bool:
        return time.monotonic() - self.queued_at > self.queue_timeout_s

    def settle(self, results: list[RunResult]) -> None:
        """Hand over the results, unless nobody waits for them any more."""
        if not self.future.done():
            self.future.set_result(results)

    def fail(self, status: Failure, reason: str) -> None:
        if not self.future.done():
            self.future.set_exception(NotExecuted(status, reason))

    def settle_expired(self) -> None:
        self.fail("overloaded", f"Waited {self.queue_timeout_s:g} s for a free slot of the sandbox.")


async def run_execution(execution: Execution, sandbox: Sandbox | None) -> tuple[str, str]:
    """Run it and settle it. Returns the isolation that was in force and what came out, two words for the metrics."""
    with boundary("Running the program") as outcome:
        results = await _run(execution, sandbox)
        execution.settle(results)
        return (results[-1].isolation, results[-1].outcome.value) if results else ("none", "finished")
    assert outcome.failure is not None
    status = outcome.failure.status
    if status == "verifier_error":
        get_logger().error("execution.bug", error=outcome.failure.reason)
    execution.fail(status, outcome.failure.reason)
    return "none", status


async def _run(execution: Execution, sandbox: Sandbox | None) -> list[RunResult]:
    if sandbox is None:
        raise Unavailable("This server runs no sandbox; `adjudge doctor` says why.")
    try:
        with sandbox_failures():
            async with asyncio.timeout(execution.timeout_s):
                return await sandbox.run(
                    execution.program, execution.runs, execution.limits, stop_at_failure=execution.stop_at_failure
                )
    except TimeoutError:
        raise OutOfTime(f"The sandbox gave no result within {execution.timeout_s:g} s.") from None
