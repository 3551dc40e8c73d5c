"""The embedded dispatcher: every lane in this process and its children, nothing to install."""

from __future__ import annotations

import asyncio
from typing import Any

from adjudge.types import Verdict
from adjudge_verifiers import registry

from ..metrics import Metrics
from ..settings import Settings
from .execution import Execution
from .executors import Executors
from .job import Job, LaneExecutor
from .lanes.cpu import CpuLane
from .lanes.sandbox import SandboxLane

__all__ = ["LocalDispatcher"]


class LocalDispatcher:
    """Starts the lanes' executors and hands them their jobs."""

    def __init__(self, settings: Settings, metrics: Metrics, executors: Executors) -> None:
        lanes = settings.lanes
        preload = (
            *settings.plugins,
            *(
                module
                for name in registry.names()
                if (verifier := registry.get(name)).lane == "cpu"
                for module in verifier.preload
            ),
        )
        self._metrics = metrics
        self._cpu = CpuLane(
            workers=lanes.cpu_workers,
            memory_mib=lanes.cpu_memory_mib,
            chunk=lanes.cpu_chunk,
            queue_limit=lanes.cpu_queue,
            slice_s=lanes.cpu_slice_s,
            preload=preload,
            metrics=metrics,
        )
        self._programs = SandboxLane(
            executors, slots=lanes.sandbox_slots, queue_limit=lanes.sandbox_queue, metrics=metrics
        )
        self._executors: dict[str, LaneExecutor] = {"cpu": self._cpu, "sandbox": self._programs}
        for lane, executor in self._executors.items():
            metrics.queue_depth.labels(lane).set_function(executor.depth)

    async def start(self) -> None:
        for executor in self._executors.values():
            await executor.start()

    async def stop(self) -> None:
        for executor in self._executors.values():
            await executor.stop()

    def submit(self, job: Job) -> bool:
        executor = self._executors.get(job.lane)
        if executor is None:
            job.settle(Verdict.failed("unavailable", f"This server has no workers for lane {job.lane!r}."))
            return True
        if not executor.submit(job):
            return False
        self._watch(job.lane, job.future)
        return True

    def execute(self, execution: Execution) -> bool:
        if not self._programs.submit(execution):
            return False
        self._watch("sandbox", execution.future)
        return True

    def _watch(self, lane: str, future: asyncio.Future[Any]) -> None:
        gauge = self._metrics.inflight.labels(lane)
        gauge.inc()
        future.add_done_callback(lambda _: gauge.dec())

    def children(self) -> list[dict[str, Any]]:
        return self._cpu.children()

    def describe(self) -> dict[str, Any]:
        return {lane: {"waiting": executor.depth()} for lane, executor in self._executors.items()}
