"""Several batches in flight at a time, their verdicts handed over as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager

from ._batches import Batch, Item
from .errors import AdjudgeError

__all__ = ["InOrder", "run"]

OpenReply = Callable[[Batch], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Sends what :meth:`Batch.body` says and gives the lines of the reply."""


async def run(batches: Iterable[Batch], open_reply: OpenReply, most: int) -> AsyncGenerator[Item, None]:
    """Send ``batches``, ``most`` at a time, and yield every verdict when it is final.

    ``batches`` is read as they go out. When one fails no further one is begun, those in flight are finished, all
    verdicts are yielded, and then the first error is raised.
    """
    source = iter(batches)
    found: asyncio.Queue[list[Item] | None] = asyncio.Queue()
    errors: list[Exception] = []

    async def work() -> None:
        try:
            while not errors and (batch := next(source, None)) is not None:
                await _drive(batch, open_reply, found)
        except Exception as error:  # noqa: BLE001 - nothing is lost: raised below, in the caller's own task
            errors.append(error)
        finally:
            found.put_nowait(None)

    workers = [asyncio.create_task(work()) for _ in range(most)]
    try:
        running = len(workers)
        while running:
            items = await found.get()
            if items is None:
                running -= 1
            for item in items or ():
                yield item
        if errors:
            raise errors[0]
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _drive(batch: Batch, open_reply: OpenReply, found: asyncio.Queue[list[Item] | None]) -> None:
    """Send one batch until it is done. Raises when a task of it stays without a verdict."""
    found.put_nowait(batch.ready())
    while not batch.done:
        error: AdjudgeError | None = None
        try:
            async with open_reply(batch) as lines:
                async for line in lines:
                    batch.take(line)
                    found.put_nowait(batch.ready())
        except AdjudgeError as caught:
            error = caught
        try:
            pause_s = batch.after_reply(error)
        finally:
            found.put_nowait(batch.ready())
        if not batch.done:
            await asyncio.sleep(pause_s)


class InOrder:
    """Holds items back until it is their turn."""

    def __init__(self) -> None:
        self._waiting: dict[int, Item] = {}
        self._next = 0

    def feed(self, item: Item) -> list[Item]:
        """The items whose turn it is now that ``item`` is there."""
        self._waiting[item[0]] = item
        turn: list[Item] = []
        while self._next in self._waiting:
            turn.append(self._waiting.pop(self._next))
            self._next += 1
        return turn
