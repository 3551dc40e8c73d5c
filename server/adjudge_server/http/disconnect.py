"""Work stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adjudge.types import Verdict

from ..wire import verdict_json

__all__ = ["ClientGone", "NdjsonResponse", "while_connected"]

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed the connection; there is nobody to answer."""


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which is cancelled when the client goes. The body must have been read.

    Raises:
        ClientGone: the client went first.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        for future in (task, watch):
            if not future.done():
                future.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


class NdjsonResponse(Response):
    """Streams ``{"index", "verdict"}`` lines as verdicts come; closing the connection closes the iterator."""

    media_type = "application/x-ndjson"

    def __init__(self, verdicts: AsyncGenerator[tuple[int, Verdict], None]) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self._verdicts = verdicts
        self.init_headers()
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = asyncio.ensure_future(self._stream(send))
        watch = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({stream, watch}, return_when=asyncio.FIRST_COMPLETED)
            if stream.done():
                stream.result()
        finally:
            for future in (stream, watch):
                if not future.done():
                    future.cancel()
            await asyncio.gather(stream, watch, return_exceptions=True)

    async def _stream(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        lines: list[bytes] = []
        news = asyncio.Event()
        producer = asyncio.ensure_future(self._produce(lines, news))
        try:
            while not producer.done() or lines:
                await news.wait()
                news.clear()
                chunk = b"".join(lines)
                lines.clear()
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            producer.result()
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _produce(self, lines: list[bytes], news: asyncio.Event) -> None:
        """Fill ``lines``; what gathers while a chunk is being sent goes out with the next one."""
        async with contextlib.aclosing(self._verdicts) as verdicts:
            try:
                async for index, verdict in verdicts:
                    lines.append(b'{"index":%d,"verdict":%b}\n' % (index, verdict_json(verdict)))
                    news.set()
            finally:
                news.set()
