"""A cache of what was built: bounded by bytes, least recently used first out, and one build for all who ask at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

__all__ = ["BuildCache", "Built"]


@dataclass(frozen=True, slots=True)
class Built:
    """What a build left: an archive, or why there is none."""

    archive: bytes
    error: str | None = None
    """What was wrong with the source."""
    stderr: bytes = b""
    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    lasting: bool = True
    """Would it be the same if it were built again?"""

    @property
    def size(self) -> int:
        return len(self.archive) + len(self.stderr) + 1024


class BuildCache:
    """For one event loop."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._kept: OrderedDict[str, Built] = OrderedDict()
        self._building: dict[str, asyncio.Task[Built]] = {}
        self._waiting: dict[str, int] = {}

    async def get(self, key: str, build: Callable[[], Awaitable[Built]]) -> Built:
        """What is kept under ``key``, else what ``build()`` gives. An exception of it is kept for nobody.

        A build goes on as long as one of those who wait for it has not been cancelled.
        """
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        task = self._building.get(key)
        if task is None:
            task = self._building[key] = asyncio.ensure_future(build())
            task.add_done_callback(lambda done: self._finish(key, done))
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._waiting[key] == 1 and not task.done():
                self._building.pop(key, None)  # whoever asks from now on starts anew
                task.cancel()
            raise
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    def _finish(self, key: str, task: asyncio.Task[Built]) -> None:
        if self._building.get(key) is task:
            del self._building[key]
        if task.cancelled() or task.exception() is not None:
            return
        built = task.result()
        if built.size > self._max_bytes or not built.lasting:
            return
        if (old := self._kept.pop(key, None)) is not None:
            self._size -= old.size
        self._kept[key] = built
        self._size += built.size
        while self._size > self._max_bytes:
            self._size -= self._kept.popitem(last=False)[1].size
