"""The ``cpu`` lane: killable worker processes where only the guilty call pays.

Workers are forked from a nursery that has imported the heavy libraries. Each takes a small chunk of calls and answers
them in order, so that the parent always knows which call is running and how much CPU time it has used.

A call that uses more than a *slice* is a suspect. Its worker takes nothing more and goes on with that one call, at idle
priority, until the call's own limit, while a fresh worker takes the rest of the chunk and the queue. A call whose text
already looks costly (:meth:`Verifier.costly`) starts as a suspect. So an honest slow call loses nothing but priority,
and bombs cost their neighbours almost nothing. Only ``max_suspects`` of them run at a time; a further one is stopped
and started over when there is room.

Limits are CPU time, so a loaded machine turns no answer into a time-out; the wall clock is a backstop far behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from adjudge.types import Verdict
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.nursery import Child, Nursery

from ...metrics import Metrics
from ..job import Job
from .cpu_worker import encode_call

__all__ = ["CpuLane"]

_WALL_FACTOR = 20
_WALL_FLOOR_S = 60.0
_ATTEMPTS = 3
"""How often a call is tried whose worker died without our doing."""
_PATIENCE = 10
"""Failed starts in a row of each worker after which what waits is told that the lane is down."""


class _Spent(Exception):
    """The running call has used ``cpu_s``."""


class CpuLane:
    """See the module docstring. All times in seconds."""

    def __init__(
        self,
        *,
        workers: int,
        memory_mib: int,
        chunk: int,
        queue_limit: int,
        slice_s: float,
        preload: tuple[str, ...],
        metrics: Metrics,
        max_suspects: int = 4,
    ) -> None:
        self._size = workers
        self._chunk = chunk
        self._limit = queue_limit
        self._slice_s = slice_s
        self._metrics = metrics
        self._queue: deque[Job] = deque()
        self._slow: deque[Job] = deque()
        self._wakeup = asyncio.Event()
        self._suspects = asyncio.Semaphore(max_suspects)
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: set[Job] = set()
        self._alive: set[_Worker] = set()
        self._failed_starts = 0
        self._stopping = False
        self._nursery = Nursery(
            "adjudge_server.engine.lanes.cpu_worker:main",
            preload=preload,
            warm="adjudge_server.engine.lanes.cpu_worker:warm",
            config={"memory_mib": memory_mib},
            name="The nursery of the cpu lane",
        )

    async def start(self) -> None:
        await self._nursery.start()
        for _ in range(self._size):
            self._spawn(self._serve())
        self._spawn(self._sweep())

    async def stop(self) -> None:
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._nursery.stop()
        for job in [*self._queue, *self._slow, *self._held]:
            job.settle(Verdict.failed("unavailable", "The server is shutting down."))

    def submit(self, job: Job) -> bool:
        if self._stopping or self.depth() >= self._limit:
            return False
        if job.verifier.costly(job.call):
            self._slow.append(job)
            self._drain_slow()
        else:
            self._queue.append(job)
            self._wakeup.set()
        return True

    def depth(self) -> int:
        return len(self._queue) + len(self._slow)

    def children(self) -> list[dict[str, Any]]:
        """Nursery and workers, each ``{"lane", "pid", "kill"}``."""
        found = [
            {"lane": "cpu", "pid": worker.child.pid, "kill": worker.child.kill}
            for worker in self._alive
            if not worker.closed
        ]
        if (pid := self._nursery.pid) is not None:
            found.append({"lane": "cpu-nursery", "pid": pid, "kill": lambda: os.kill(pid, signal.SIGKILL)})
        return found

    async def _open(self, child: Child) -> _Worker:
        worker = await _Worker.open(child)
        self._alive = {other for other in self._alive if not other.closed} | {worker}
        return worker

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- one worker -------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Keep one worker at work; start another whenever it is lost or has become a suspect's."""
        while not self._stopping:
            try:
                child = await self._nursery.spawn()
            except SandboxUnavailable as error:
                self._failed_starts += 1
                if self._failed_starts > _PATIENCE * self._size:
                    self._fail_queue(str(error))
                await asyncio.sleep(0.3)
                continue
            self._failed_starts = 0
            if self._stopping:
                child.close()
                return
            worker = await self._open(child)
            try:
                cause = await self._work(worker)
            except BaseException:
                worker.close()
                raise
            self._metrics.workers_replaced.labels("cpu", cause).inc()

    async def _work(self, worker: _Worker) -> str:
        """Feed ``worker`` until it must be replaced; the return value says why. Closes it or passes it on."""
        while True:
            jobs = await self._take()
            self._held.update(jobs)
            try:
                await worker.send(jobs)
                while jobs:
                    job = jobs[0]
                    try:
                        verdict, spent = await worker.answer(job, min(self._slice_s, job.timeout_s))
                    except _Spent:
                        self._suspect(worker, jobs.popleft())
                        return "suspect"
                    jobs.popleft()
                    self._settle(job, verdict)
                    if spent:
                        worker.close()
                        return "recycled"
            except (EOFError, OSError):
                worker.close()
                if jobs:
                    self._lost(jobs.popleft())
                return "died"
            finally:
                self._held.difference_update(jobs)
                if jobs:
                    self._queue.extendleft(reversed(jobs))
                    self._wakeup.set()

    async def _take(self) -> deque[Job]:
        """The next chunk: no larger than a fair share of the queue, so that few calls spread over all workers."""
        while True:
            jobs: deque[Job] = deque()
            share = min(self._chunk, -(-len(self._queue) // self._size))
            while self._queue and len(jobs) < share:
                job = self._queue.popleft()
                if job.future.done():
                    continue
                if job.expired():
                    job.settle_expired()
                    continue
                jobs.append(job)
            if jobs:
                return jobs
            self._wakeup.clear()
            if not self._queue:
                await self._wakeup.wait()

    def _settle(self, job: Job, verdict: Verdict) -> None:
        self._held.discard(job)
        job.settle(verdict)

    def _lost(self, job: Job) -> None:
        """The worker died under ``job`` and we did not kill it: try once more, then give up on the call, not on 0."""
        self._held.discard(job)
        job.attempts += 1
        if job.attempts < _ATTEMPTS:
            self._queue.appendleft(job)
            self._wakeup.set()
        else:
            job.settle(
                Verdict.failed("verifier_error", "Three workers died while judging this answer (out of memory?).")
            )

    # --- suspects ---------------------------------------------------------------------------------------------------

    def _suspect(self, worker: _Worker, job: Job) -> None:
        """Let ``worker`` finish ``job`` out of everybody's way, now or when there is room."""
        self._held.discard(job)
        if job.future.done():
            worker.close()
        elif job.timeout_s <= self._slice_s:
            worker.close()
            self._settle(job, _out_of_time(job))
        elif self._suspects.locked():
            worker.close()
            self._slow.append(job)  # whoever finishes next among the suspects takes it
        else:
            self._spawn(self._finish(worker, job))

    async def _finish(self, worker: _Worker | None, job: Job) -> None:
        """Run a suspect to its own limit, then see to those that wait."""
        async with self._suspects:
            await self._finish_one(worker, job)
        self._drain_slow()

    def _drain_slow(self) -> None:
        """Start the calls that wait for room among the suspects, as far as there is room."""
        if self._slow and not self._suspects.locked() and not self._stopping:
            self._spawn(self._finish(None, self._slow.popleft()))

    async def _finish_one(self, worker: _Worker | None, job: Job) -> None:
        if job.expired() and worker is None:
            job.settle_expired()
        if job.future.done():
            if worker is not None:
                worker.close()
            return
        self._held.add(job)
        try:
            if worker is None:
                worker = await self._open(await self._nursery.spawn())
                worker.lower_priority()
                await worker.send([job])
            else:
                worker.lower_priority()
            verdict, _ = await worker.answer(job, job.timeout_s)
        except _Spent:
            self._settle(job, _out_of_time(job))
        except SandboxUnavailable:
            self._held.discard(job)
            self._slow.append(job)
            await asyncio.sleep(0.3)
            if self._failed_starts > _PATIENCE * self._size:
                self._fail_queue("No worker can be started.")
        except (EOFError, OSError):
            self._lost(job)
        else:
            self._settle(job, verdict)
        finally:
            if worker is not None:
                worker.close()

    # --- the queue --------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Give up on calls that wait for too long, even when no worker comes to look at them."""
        while True:
            await asyncio.sleep(1.0)
            for job in [*self._queue, *self._slow]:
                if not job.future.done() and job.expired():
                    job.settle_expired()
            if all(job.future.done() for job in self._queue):
                self._queue.clear()

    def _fail_queue(self, reason: str) -> None:
        for queue in (self._queue, self._slow):
            while queue:
                queue.popleft().settle(Verdict.failed("unavailable", reason))


def _out_of_time(job: Job) -> Verdict:
    return Verdict.failed(
        "verifier_timeout",
        f"Verifier {job.verifier.name!r} used up its {job.timeout_s:g} s of CPU time on this answer. "
        "Allow more with timeout_s if the answer deserves it.",
    )


class _Worker:
    """The parent's side of one child."""

    def __init__(self, child: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.child = child
        self._reader = reader
        self._writer = writer
        self._cpu_at_start = child.cpu_s() or 0.0
        self._started = time.monotonic()
        self._reply: asyncio.Task[bytes] | None = None
        self.closed = False

    @classmethod
    async def open(cls, child: Child) -> _Worker:
        child.sock.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=child.sock, limit=1 << 24)
        return cls(child, reader, writer)

    async def send(self, jobs: deque[Job] | list[Job]) -> None:
        """Hand over a chunk. Small enough for the socket's buffer, or the worker reads on while it is written."""
        self._started = time.monotonic()
        self._cpu_at_start = self.child.cpu_s() or 0.0
        for job in jobs:
            self._writer.write(encode_call(job.verifier.name, job.call, job.reference, job.options))

    async def answer(self, job: Job, cpu_s: float) -> tuple[Verdict, bool]:
        """The verdict on ``job``, and whether the worker is spent. Raises :class:`_Spent` after ``cpu_s`` of CPU time.

        May be called again for the same job with a larger limit.
        """
        started = self._started
        if self._reply is None:
            self._reply = asyncio.ensure_future(self._read())
        wall_s = max(_WALL_FLOOR_S, _WALL_FACTOR * job.timeout_s)
        while True:
            used = (self.child.cpu_s() or 0.0) - self._cpu_at_start
            left = max(0.01, cpu_s - used)
            done, _ = await asyncio.wait({self._reply}, timeout=left)
            if done:
                break
            if job.future.done() and cpu_s > used:
                raise _Spent  # nobody waits for it any more
            used = (self.child.cpu_s() or 0.0) - self._cpu_at_start
            if used >= cpu_s or time.monotonic() - started > wall_s:
                raise _Spent
        body = self._reply.result()
        self._reply = None
        now = time.monotonic()
        verdict = Verdict.model_validate_json(body[1:])
        verdict.timing.queue_ms = round((started - job.queued_at) * 1000, 3)
        verdict.timing.run_ms = round((now - started) * 1000, 3)
        self._started = now
        self._cpu_at_start = self.child.cpu_s() or 0.0
        return verdict, body[:1] == b"1"

    async def _read(self) -> bytes:
        try:
            (size,) = struct.unpack(">I", await self._reader.readexactly(4))
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise EOFError from error

    def lower_priority(self) -> None:
        """Let it run only when nobody else wants to."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.sched_setscheduler(self.child.pid, os.SCHED_IDLE, os.sched_param(0))

    def close(self) -> None:
        """Kill the worker. Safe to call twice."""
        self.closed = True
        if self._reply is not None:
            self._reply.cancel()
            self._reply = None
        self._writer.transport.abort()
        self.child.close()
