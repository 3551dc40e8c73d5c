"""``MicroBatcher``: one request for many callers that each have one answer.

verl, slime, AReaL and others ask for the reward of one sample at a time, from hundreds of coroutines or threads. Calls
that come within ``max_wait_ms`` of each other travel together, at most ``max_batch`` in one request::

    batcher = MicroBatcher(max_wait_ms=10)
    verdict = await batcher.verify(verifier="math", response=text, reference="4")     # on an event loop
    verdict = batcher.verify_blocking(verifier="math", response=text, reference="4")  # in a thread

Each caller gets its own verdict as soon as it is there, and an error only if its own task is without one. A caller
that is cancelled is forgotten; when all callers of a request are, the request is dropped too. Calls are collected for
each event loop by itself; those of threads are collected together.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from ._encode import encode_defaults, task_fields
from ._portal import portal
from .async_client import AsyncClient
from .types import Task, TaskDefaults, Verdict

__all__ = ["MicroBatcher"]

_Waiting = list[tuple[dict[str, Any], "asyncio.Future[Verdict]"]]


@dataclass(slots=True)
class _Gathering:
    """What one event loop has collected."""

    waiting: _Waiting = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None
    requests: set[asyncio.Task[None]] = field(default_factory=set)


class MicroBatcher:
    """Collects calls into requests. Serves any number of event loops and threads, and can be pickled.

    Args:
        client: who sends; by default ``AsyncClient(**client_options)``.
        max_wait_ms: how long the first call of a request waits for others.
        max_batch: a request with this many tasks is sent at once.
        defaults: what every task takes unless it says otherwise.
    """

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        max_wait_ms: float = 10.0,
        max_batch: int = 256,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        **client_options: Any,
    ) -> None:
        if client is not None and client_options:
            raise TypeError(f"give a client or options for one, not both: {', '.join(client_options)}")
        if max_batch < 1 or not max_wait_ms >= 0:
            raise ValueError("max_batch has to be 1 or more, and max_wait_ms 0 or more")
        encode_defaults(defaults)
        self.client = client if client is not None else AsyncClient(**client_options)
        self._max_wait_s = max_wait_ms / 1000.0
        self._max_batch = max_batch
        self._defaults = defaults
        self._gatherings: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Gathering] = weakref.WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_gatherings"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _gatherings=weakref.WeakKeyDictionary())

    async def verify(self, task: Task | Mapping[str, Any] | None = None, /, **fields: Any) -> Verdict:
        """The verdict on one task, see :meth:`AsyncClient.verify`. Its deadline starts when the request is sent."""
        mine = task_fields(task, fields)
        loop = asyncio.get_running_loop()
        gathering = self._gatherings.setdefault(loop, _Gathering())
        future: asyncio.Future[Verdict] = loop.create_future()
        gathering.waiting.append((mine, future))
        if len(gathering.waiting) >= self._max_batch:
            self._send(gathering)
        elif gathering.timer is None:
            gathering.timer = loop.call_later(self._max_wait_s, self._send, gathering)
        return await future

    def verify_blocking(self, task: Task | Mapping[str, Any] | None = None, /, **fields: Any) -> Verdict:
        """As :meth:`verify`, for threads without an event loop."""
        return portal().run(self.verify(task, **fields))

    async def close(self) -> None:
        """Send what waits on the running loop, wait for its verdicts, and close its connections."""
        gathering = self._gatherings.pop(asyncio.get_running_loop(), None)
        if gathering is not None:
            self._send(gathering)
            # Each request has told its own callers what went wrong.
            await asyncio.gather(*gathering.requests, return_exceptions=True)
        await self.client.close()

    def _send(self, gathering: _Gathering) -> None:
        if gathering.timer is not None:
            gathering.timer.cancel()
            gathering.timer = None
        calls = [(task, future) for task, future in gathering.waiting if not future.done()]
        gathering.waiting = []
        if not calls:
            return
        request = asyncio.get_running_loop().create_task(self._serve(calls))
        gathering.requests.add(request)
        request.add_done_callback(gathering.requests.discard)
        _drop_when_unwanted(request, [future for _, future in calls])

    async def _serve(self, calls: _Waiting) -> None:
        """Send one request and hand every caller what is its own."""
        try:
            many = self.client.verify_many([task for task, _ in calls], defaults=self._defaults, batch_size=len(calls))
            async with aclosing(many) as verdicts:
                async for index, verdict in verdicts:
                    if not calls[index][1].done():
                        calls[index][1].set_result(verdict)
        except Exception as error:  # noqa: BLE001 - nothing is lost: every caller without a verdict gets it
            for _, future in calls:
                if not future.done():
                    future.set_exception(error)
        finally:
            for _, future in calls:
                future.cancel()


def _drop_when_unwanted(request: asyncio.Task[None], futures: list[asyncio.Future[Verdict]]) -> None:
    def look(future: asyncio.Future[Verdict]) -> None:
        if future.cancelled() and all(other.done() for other in futures):
            request.cancel()

    for future in futures:
        future.add_done_callback(look)
