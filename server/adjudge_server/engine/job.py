"""What travels inside the engine."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from adjudge.types import Failure, Task, Verdict
from adjudge_verifiers.base import Call, Lane, Verifier
from adjudge_verifiers.compose import Recipe

from .execution import Execution

__all__ = ["Dispatcher", "Job", "LaneExecutor", "Submission"]


@dataclass(frozen=True, slots=True)
class Submission:
    """A task together with a recipe that is not in the configuration (a data set's row may bring one)."""

    task: Task
    recipe: Recipe | None = None


@dataclass(slots=True, eq=False)
class Job:
    """One verifier call on its way through a lane. ``future`` gets its verdict, without the task's id."""

    verifier: Verifier[Any, Any]
    lane: Lane
    call: Call[Any, Any]
    reference: Any
    """As the task gave it: plain JSON, for a worker in another process."""
    options: dict[str, Any]
    timeout_s: float
    queue_timeout_s: float
    future: asyncio.Future[Verdict]
    queued_at: float = field(default_factory=time.monotonic)
    attempts: int = 0

    def waited_ms(self) -> float:
        return (time.monotonic() - self.queued_at) * 1000

    def expired(self) -> bool:
        """Has it waited for longer than its task allows?"""
        return time.monotonic() - self.queued_at > self.queue_timeout_s

    def settle(self, verdict: Verdict) -> None:
        """Hand over the verdict, unless nobody waits for it any more."""
        if not self.future.done():
            self.future.set_result(verdict)

    def fail(self, status: Failure, reason: str) -> None:
        self.settle(Verdict.failed(status, reason))

    def settle_expired(self) -> None:
        self.fail(
            "overloaded",
            f"Waited {self.queue_timeout_s:g} s for a free worker of lane {self.lane!r}. Send less at once, or "
            "allow more time with queue_timeout_s.",
        )


class LaneExecutor(Protocol):
    """Runs the jobs of one lane."""

    async def start(self) -> None: ...

    async def stop(self) -> None:
        """Kill what runs. Jobs without a verdict become ``unavailable``."""
        ...

    def submit(self, job: Job) -> bool:
        """Take the job in; ``False`` at once if the queue is full. Never blocks."""
        ...

    def depth(self) -> int:
        """Jobs that wait."""
        ...


class Dispatcher(Protocol):
    """Brings jobs to the lanes, in this process or elsewhere, and their verdicts back into ``job.future``."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def submit(self, job: Job) -> bool: ...

    def execute(self, execution: Execution) -> bool:
        """Take a program in that is to be run and not judged; ``False`` at once if the queue is full."""
        ...

    def children(self) -> list[dict[str, Any]]:
        """The processes of the lanes, each ``{"lane", "pid", "kill"}``."""
        ...

    def describe(self) -> dict[str, Any]:
        """Lanes with their sizes and depths, for ``/readyz``."""
        ...
