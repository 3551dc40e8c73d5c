"""The wire: the only file that knows the HTTP library, and it imports it at the first request.

A :class:`Transport` may be used from many event loops. Connections belong to the loop that opened them, so it keeps
one pool for each running loop, weakly, and three events end a pool:

* its loop is shut down, as ``asyncio.run`` and ``asyncio.Runner`` do: an async generator that the loop knows of closes
  the pool (a loop that is merely closed leaves its sockets to the garbage collector);
* the transport is no longer used: the same generator is then finalised, on its own loop;
* the process is forked: the child opens its own connections and never touches those of its parent.

Waiting for a free connection counts towards the deadline of the call, as everything does.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._batches import Lines
from ._policy import Deadline, Reply, error_from_reply, headers_for
from .errors import ConfigurationError, ConnectionFailed, ProtocolError

if TYPE_CHECKING:
    import httpx2

    from .settings import Settings

__all__ = ["Transport"]

CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE_S = 30.0

_abandoned: list[Any] = []
"""Pools that a forked child has inherited. Closing them would disturb the parent, so they are kept for ever."""


@dataclass(slots=True)
class _Pool:
    http: httpx2.AsyncClient
    slots: asyncio.Semaphore
    guard: AsyncGenerator[None, None]


_Pools = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool]


class Transport:
    """Sends requests for one server.

    ``inner`` replaces the network: any ``httpx2.AsyncBaseTransport``, such as ``httpx2.ASGITransport(app)``.
    """

    def __init__(self, settings: Settings, inner: Any = None) -> None:
        self.inner = inner
        self._is_loopback = settings.is_loopback
        self._max_concurrency = settings.max_concurrency
        self._pools: _Pools = weakref.WeakKeyDictionary()
        self._pid = os.getpid()

    async def request(
        self, settings: Settings, method: str, path: str, body: bytes | None, deadline: Deadline, request_id: str
    ) -> Reply:
        """One request, one whole reply of any status. Raises :class:`ConnectionFailed` or :class:`DeadlineExceeded`."""
        async with self._open(settings, method, path, body, deadline, request_id, "application/json") as response:
            return Reply(response.status_code, _lower(response), await response.aread())

    @asynccontextmanager
    async def lines(
        self, settings: Settings, method: str, path: str, body: bytes, deadline: Deadline, request_id: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """One request whose reply is NDJSON, read as it comes. Raises what the status says, too."""
        async with self._open(settings, method, path, body, deadline, request_id, "application/x-ndjson") as response:
            headers = _lower(response)
            if response.status_code != 200 or "ndjson" not in headers.get("content-type", ""):
                raise error_from_reply(Reply(response.status_code, headers, await response.aread()))
            yield _lines(response)

    @asynccontextmanager
    async def _open(
        self,
        settings: Settings,
        method: str,
        path: str,
        body: bytes | None,
        deadline: Deadline,
        request_id: str,
        accept: str,
    ) -> AsyncIterator[httpx2.Response]:
        import httpx2

        clock = asyncio.timeout(deadline.left_s())
        try:
            async with clock:
                pool = await self._pool()
                async with pool.slots:
                    headers = headers_for(settings, request_id, deadline.left_s(), accept=accept)
                    url = settings.base_url + path
                    async with pool.http.stream(method, url, content=body, headers=headers) as response:
                        yield response
        except TimeoutError:
            if not clock.expired():
                raise
            raise deadline.exceeded() from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
            raise ConfigurationError(f"{settings.base_url} cannot be asked: {error}") from error
        except httpx2.DecodingError as error:
            raise ProtocolError(f"The reply of {settings.base_url} cannot be decoded: {error}") from error
        except httpx2.HTTPError as error:
            what = str(error) or type(error).__name__
            raise ConnectionFailed(
                f"No whole reply from {settings.base_url}: {what}. Does the server run there? (`adjudge serve`)",
                request_id=request_id,
            ) from error

    async def close(self) -> None:
        """Close the connections of the running loop. They are opened again when they are needed."""
        pool = self._own_pools().get(asyncio.get_running_loop())
        if pool is not None:
            await pool.guard.aclose()

    def _own_pools(self) -> _Pools:
        if self._pid != os.getpid():
            _abandoned.append(list(self._pools.values()))
            self._pools, self._pid = weakref.WeakKeyDictionary(), os.getpid()
        return self._pools

    async def _pool(self) -> _Pool:
        pools = self._own_pools()
        loop = asyncio.get_running_loop()
        pool = pools.get(loop)
        if pool is None:
            _drop_closed(pools)
            http = self._new_client()
            pool = _Pool(http, asyncio.Semaphore(self._max_concurrency), _guard(http, weakref.ref(pools), loop))
            pools[loop] = pool
            await anext(pool.guard)
        return pool

    def _new_client(self) -> httpx2.AsyncClient:
        import httpx2

        most = self._max_concurrency
        return httpx2.AsyncClient(
            transport=self.inner,
            # The deadline of the call limits everything but the first step, so that a dead host is noticed early.
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=KEEP_ALIVE_S),
            # A proxy from the environment is for the world outside, never for a server on this machine.
            trust_env=not self._is_loopback,
        )


async def _guard(
    http: httpx2.AsyncClient, pools: weakref.ref[_Pools], loop: asyncio.AbstractEventLoop
) -> AsyncGenerator[None, None]:
    """Lives as long as the pool may. See the module docstring."""
    try:
        yield
    finally:
        left = pools()
        if left is not None:
            left.pop(loop, None)
        await http.aclose()


def _drop_closed(pools: _Pools) -> None:
    """Forget loops that were closed without being shut down; nothing can be sent on them, not even a farewell."""
    for known in pools.keyrefs():
        loop = known()
        if loop is not None and loop.is_closed():
            pools.pop(loop, None)


def _lower(response: httpx2.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    lines = Lines()
    async for chunk in response.aiter_bytes():
        for line in lines.feed(chunk):
            yield line
