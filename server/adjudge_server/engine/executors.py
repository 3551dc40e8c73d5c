"""What runs programs for this server: the sandbox, and the containers of repository tests, as the settings ask."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_verifiers.base import Context

from ..settings import SandboxSettings

if TYPE_CHECKING:
    from adjudge_sandbox.container.base import ContainerConfig
    from adjudge_sandbox.container.pool import ContainerPool

__all__ = ["Executors", "open_wanted"]

_log = logging.getLogger(__name__)


class Executors:
    """Started and stopped with the engine. What could not be started is ``None``, and ``problem`` says why."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self.sandbox: Sandbox | None = None
        self.boxes: ContainerPool | None = None
        self.problem = ""

    async def start(self) -> None:
        """Raises :class:`SandboxUnavailable` if this host cannot isolate as well as ``require_isolation`` asks."""
        wanted = self._settings
        if not wanted.enabled:
            self.problem = "switched off by sandbox.enabled"
            return
        if wanted.container_image or wanted.container_engine or os.environ.get("DOCKER_HOST"):
            await self._start_boxes()
        try:
            self.sandbox = await open_wanted(wanted, self.boxes)
        except SandboxUnavailable as error:
            if wanted.require_isolation:
                await self.stop()
                raise
            self.problem = str(error)

    async def stop(self) -> None:
        for executor in (self.sandbox, self.boxes):
            if executor is not None:
                await executor.stop()
        self.sandbox = self.boxes = None

    def context(self) -> Context:
        """The handles that a verifier of the ``sandbox`` lane is given."""
        return Context(self.sandbox, self.boxes)

    def describe(self) -> dict[str, object]:
        """For ``/readyz``."""
        found: dict[str, object] = {"sandbox": self.sandbox.name if self.sandbox else f"none: {self.problem}"}
        return found | ({"containers": self.boxes.describe()} if self.boxes is not None else {})

    async def _start_boxes(self) -> None:
        from adjudge_sandbox.container.pool import ContainerPool

        pool = ContainerPool(container_config(self._settings))
        try:
            await pool.start()
        except SandboxUnavailable as error:
            _log.warning("repository tests are unavailable: %s", error)
            return
        self.boxes = pool


async def open_wanted(wanted: SandboxSettings, boxes: ContainerPool | None = None) -> Sandbox:
    """The sandbox that the settings ask for, started. Raises :class:`SandboxUnavailable`."""
    from adjudge_sandbox.registry import open_sandbox

    return await open_sandbox(
        wanted.backend,
        require=wanted.require_isolation or "none",
        allow_none=wanted.allow_none,
        container=container_config(wanted) if wanted.backend == "container" else None,
        boxes=boxes,
    )


def container_config(settings: SandboxSettings) -> ContainerConfig:
    """What the settings say about containers."""
    from adjudge_sandbox.container.base import ContainerConfig

    return ContainerConfig(
        image=settings.container_image,
        engine_url=settings.container_engine or None,
        runtime=settings.container_runtime or None,
        warm=settings.container_warm,
        max_boxes=settings.container_boxes,
        cpus=settings.container_cpus,
    )
