"""The ``sandbox`` lane: as many answers in jails at a time as there are slots, the rest in a bounded queue.

Slots are cores: more would turn waiting into time limits. The limits of the programs themselves are the sandbox's
business; here is only the limit of a call as a whole, which is ours and ends in ``verifier_timeout``.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from adjudge.types import Verdict
from adjudge_sandbox.languages import table

from ...metrics import Metrics
from ..execution import Execution, run_execution
from ..executors import Executors
from ..job import Job
from ..run import judge_async

__all__ = ["SandboxLane"]


class SandboxLane:
    """See the module docstring. Where there is no sandbox calls are ``unavailable``."""

    def __init__(self, executors: Executors, *, slots: int, queue_limit: int, metrics: Metrics) -> None:
        self._executors = executors
        self._slots = slots
        self._limit = queue_limit
        self._metrics = metrics
        self._queue: deque[Job | Execution] = deque()
        self._running: dict[Job | Execution, asyncio.Task[None]] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        self._sweeper = asyncio.ensure_future(self._sweep())

    async def stop(self) -> None:
        self._stopping = True
        tasks = [*self._running.values(), *([self._sweeper] if self._sweeper else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in self._queue:
            job.fail("unavailable", "The server is shutting down.")

    def submit(self, job: Job | Execution) -> bool:
        if self._stopping or len(self._queue) >= self._limit:
            return False
        self._queue.append(job)
        self._fill()
        return True

    def depth(self) -> int:
        return len(self._queue)

    def running(self) -> int:
        return len(self._running)

    def _fill(self) -> None:
        """Start what fits into the free slots."""
        while self._queue and len(self._running) < self._slots and not self._stopping:
            job = self._queue.popleft()
            if job.future.done():
                continue
            if job.expired():
                job.settle_expired()
                continue
            task = asyncio.ensure_future(self._run(job) if isinstance(job, Job) else self._execute(job))
            self._running[job] = task
            task.add_done_callback(lambda _, job=job: self._finished(job))  # type: ignore[misc]
            job.future.add_done_callback(lambda future, task=task: task.cancel() if future.cancelled() else None)  # type: ignore[misc]
        self._metrics.sandbox_pool.labels("busy").set(len(self._running))
        self._metrics.sandbox_pool.labels("free").set(self._slots - len(self._running))

    def _finished(self, job: Job | Execution) -> None:
        self._running.pop(job, None)
        job.fail("unavailable", "The server is shutting down.")  # no-op unless it was stopped
        self._fill()

    async def _run(self, job: Job) -> None:
        queue_ms = job.waited_ms()
        started = time.monotonic()
        try:
            async with asyncio.timeout(job.timeout_s):
                verdict = await judge_async(job.verifier, job.call, self._executors.context())
        except TimeoutError:
            verdict = Verdict.failed(
                "verifier_timeout",
                f"Verifier {job.verifier.name!r} did not finish within {job.timeout_s:g} s. "
                "Allow more with timeout_s, or give it fewer tests.",
            )
        verdict.timing.queue_ms = round(queue_ms, 3)
        verdict.timing.run_ms = round((time.monotonic() - started) * 1000, 3)
        language = str(getattr(job.call.options, "language", None) or "python")
        self._count(verdict.isolation or "none", language, verdict.category or verdict.status)
        job.settle(verdict)

    async def _execute(self, execution: Execution) -> None:
        isolation, outcome = await run_execution(execution, self._executors.sandbox)
        self._count(isolation, execution.program.language, outcome)

    def _count(self, isolation: str, language: str, outcome: str) -> None:
        """One call that ran a program. A label is never the text of a user."""
        known = table.find(language[:100])
        self._metrics.sandbox_runs.labels(isolation, known[0].name if known else "other", outcome).inc()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for job in self._queue:
                if not job.future.done() and job.expired():
                    job.settle_expired()
            if all(job.future.done() for job in self._queue):
                self._queue.clear()
