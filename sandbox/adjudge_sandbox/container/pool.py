"""The pool of boxes: some stand ready, each serves one answer, none is used for two.

A box takes about half a second to make and a tenth to use; for each image and shape that was asked for lately, some are
made ahead. At start, boxes that a dead server left on the engine are removed; at stop, all of ours are; and if this
process is killed, the engine removes them (:mod:`.box`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from ..errors import SandboxError, SandboxOverloaded, SandboxUnavailable
from . import archives
from .base import Command, CommandResult, ContainerConfig, Shape
from .box import Box, LostBox
from .engine import Engine
from .ownership import OWNER, is_orphan, labels_of

__all__ = ["ContainerPool"]

_log = logging.getLogger(__name__)

_MAX_KINDS = 4
_LIFE_MARGIN_S = 120.0
_Kind = tuple[str, Shape]


class ContainerPool:
    """See the module; implements :class:`~adjudge_sandbox.container.base.Boxes`."""

    name = "container"

    def __init__(self, config: ContainerConfig) -> None:
        self.config = config
        self._engine = Engine(config)
        self._labels: dict[str, str] = {}
        self._shelves: OrderedDict[_Kind, list[Box]] = OrderedDict()
        self._making: dict[_Kind, int] = {}
        self._slots = asyncio.Semaphore(config.max_boxes)
        self._background: set[asyncio.Task[Any]] = set()
        self._running = False

    async def start(self) -> None:
        """Connect to the engine and remove what dead servers left. Does nothing if it has been started.

        Raises :class:`SandboxUnavailable`: no SDK, no engine, or no such runtime.
        """
        if self._running:
            return
        await self._engine.start()
        self._labels = labels_of(self.config.time_to_live_s)
        self._running = True
        removed = await self.remove_orphans()
        if removed:
            _log.warning("removed %d containers that an earlier server left", removed)

    async def stop(self) -> None:
        """Destroy every box."""
        if not self._running:
            return
        self._running = False
        boxes = [box for shelf in self._shelves.values() for box in shelf]
        self._shelves.clear()
        for box in boxes:
            self._in_background(box.destroy())
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)
        self._engine.close()

    def describe(self) -> dict[str, Any]:
        """What is in force, for `adjudge doctor`."""
        info = self._engine.info
        return {
            "engine": info.get("ServerVersion"),
            "runtime": self.config.runtime or info.get("DefaultRuntime"),
            "cgroup": info.get("CgroupVersion"),
            "seccomp": any("seccomp" in option for option in info.get("SecurityOptions") or ()),
            "warm": sum(len(shelf) for shelf in self._shelves.values()),
        }

    async def remove_orphans(self) -> int:
        """Remove the containers of servers that are dead, and say how many there were."""

        def sweep(client: Any) -> int:
            removed = 0
            for found in client.containers(all=True, filters={"label": OWNER}):
                if is_orphan(found.get("Labels") or {}):
                    with contextlib.suppress(Exception):  # somebody else may be removing it
                        client.remove_container(found["Id"], force=True, v=True)
                        removed += 1
            return removed

        return await self._engine.call(sweep)

    async def run(self, image: str, shape: Shape, command: Command) -> CommandResult:
        """See :meth:`adjudge_sandbox.container.base.Boxes.run`."""
        async with self.answer(image, shape) as answer:
            return await answer.run(command)

    @contextlib.asynccontextmanager
    async def answer(self, image: str, shape: Shape) -> AsyncIterator[Answer]:
        """Room for the commands of one answer; its boxes are destroyed at the end."""
        if not self._running:
            raise SandboxUnavailable("the container pool has not been started")
        async with self._slots:
            answer = Answer(self, image or self.config.image, shape)
            try:
                yield answer
            finally:
                answer.close()

    async def folder_of(self, image: str, folder: str, *, max_mib: int = 512) -> bytes:
        """See :meth:`adjudge_sandbox.container.base.Boxes.folder_of`."""
        from .images import read_folder

        image = image or self.config.image
        await self._ensure_image(image)
        return await self._engine.call(lambda client: read_folder(client, image, folder, self._labels, max_mib))

    async def _ensure_image(self, image: str) -> None:
        from .images import ensure

        await self._engine.call(lambda client: ensure(client, image, pull=self.config.pull))

    async def take(self, image: str, shape: Shape, needed_s: float) -> Box:
        """A box that nothing has used and that lives long enough; the next one is already being made."""
        kind = (image, shape)
        shelf = self._shelf(kind)
        box = None
        while shelf and box is None:
            box = shelf.pop(0)
            if time.monotonic() - box.made > self.config.time_to_live_s - needed_s - _LIFE_MARGIN_S:
                self.discard(box)
                box = None
        if box is None:
            box = await self._make(kind)
        self._refill(kind)
        return box

    def discard(self, box: Box) -> None:
        """Destroy ``box`` in the background."""
        self._in_background(box.destroy())

    def _shelf(self, kind: _Kind) -> list[Box]:
        """The shelf of this kind; the one that was longest not asked for is cleared if there are too many."""
        shelf = self._shelves.setdefault(kind, [])
        self._shelves.move_to_end(kind)
        while len(self._shelves) > _MAX_KINDS:
            _, old = self._shelves.popitem(last=False)
            for box in old:
                self.discard(box)
        return shelf

    async def _make(self, kind: _Kind) -> Box:
        """Make a box. If the caller is cancelled meanwhile, the box goes to the shelf."""
        image, shape = kind

        async def make() -> Box:
            await self._ensure_image(image)
            return await Box.make(self._engine, self.config, image, shape, self._labels)

        task = self._in_background(make())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(lambda done: self._keep(kind, done))
            raise

    def _refill(self, kind: _Kind) -> None:
        missing = self.config.warm - len(self._shelves.get(kind, ())) - self._making.get(kind, 0)
        for _ in range(missing if self._running else 0):
            self._making[kind] = self._making.get(kind, 0) + 1
            task = self._in_background(Box.make(self._engine, self.config, *kind, self._labels))
            task.add_done_callback(lambda done: self._made(kind, done))

    def _made(self, kind: _Kind, task: asyncio.Task[Box]) -> None:
        self._making[kind] -= 1
        if not self._making[kind]:
            del self._making[kind]
        self._keep(kind, task)

    def _keep(self, kind: _Kind, task: asyncio.Task[Box]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            level = logging.WARNING if isinstance(error, SandboxError) else logging.ERROR
            _log.log(level, "no container could be made ahead: %s", error)
            return
        box, shelf = task.result(), self._shelves.get(kind)
        if shelf is None or not self._running or len(shelf) >= self.config.warm:
            self.discard(box)
        else:
            shelf.append(box)

    def _in_background(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


class Answer:
    """The boxes of one answer: one, as long as its commands end well; a new one after a limit or a loss."""

    def __init__(self, pool: ContainerPool, image: str, shape: Shape) -> None:
        self._pool = pool
        self._image = image
        self._shape = shape
        self._box: Box | None = None

    async def run(self, command: Command) -> CommandResult:
        """Run one command. Raises :class:`SandboxUnavailable` if its box was lost, or starved, twice."""
        for name in command.fetch:
            archives.check_name(name)
        losses: list[str] = []
        starved = False
        while len(losses) < 2:
            box = self._box
            if box is None or not box.clean:
                self.close()
                box = self._box = await self._pool.take(self._image, self._shape, command.wall_s)
            reused = box.used
            try:
                result = await box.run(command)
                if not result.starved:
                    return result
                if starved:
                    raise SandboxOverloaded("a command waited for a processor until its wall clock ran out, twice")
                starved = True
            except LostBox as error:
                self.close()
                if not reused:  # what an earlier run left in a box is no fault of the host
                    losses.append(str(error))
                    _log.warning("a container was lost: %s", error)
        raise SandboxUnavailable(f"the container of this answer was lost twice: {'; '.join(losses)}"[:500])

    def close(self) -> None:
        """Destroy what there is."""
        box, self._box = self._box, None
        if box is not None:
            self._pool.discard(box)
