"""An event loop in a thread of its own, for callers that have none: ``Client`` is ``AsyncClient``, waited for here.

There is one per process, begun at the first call and stopped at exit. A forked child begins its own. It uses no
signals, and a caller that is interrupted (Ctrl-C) cancels the work that it was waiting for.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

__all__ = ["Portal", "portal"]

T = TypeVar("T")

_portals: dict[int, Portal] = {}


class Portal:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def start(self) -> None:
        """Begin, unless that was done. Returns when coroutines can be run."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=asyncio.run, args=(self._main(),), name="adjudge", daemon=True)
                self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._ready.set()
        await self._stop.wait()

    @property
    def usable(self) -> bool:
        return self._thread is None or self._thread.is_alive()

    def stop(self) -> None:
        """End, closing every connection of this loop."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` and wait for it."""
        self._refuse_own_thread(work)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def iterate(self, source: AsyncGenerator[T, None]) -> Iterator[T]:
        """Read ``source`` over there and yield its items here. Stopping early stops ``source`` too."""
        items: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()

        async def pump() -> None:
            async with aclosing(source):
                async for item in source:
                    items.put((item,))

        work = pump()
        self._refuse_own_thread(work)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.add_done_callback(lambda _: items.put(None))
        try:
            while (item := items.get()) is not None:
                yield item[0]
            future.result()
        finally:
            future.cancel()

    def _refuse_own_thread(self, work: Coroutine[Any, Any, Any]) -> None:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the tasks given to a Client may not call a Client themselves; use AsyncClient")


def portal() -> Portal:
    """The portal of this process. Needs no lock, which a fork could leave locked for ever."""
    pid = os.getpid()
    found = _portals.get(pid)
    if found is None or not found.usable:
        if found is not None:
            _portals.pop(pid, None)
        new = Portal()
        found = _portals.setdefault(pid, new)
        if found is new:
            atexit.register(new.stop)
    found.start()
    return found
