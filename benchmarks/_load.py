"""A load client that costs little, because it shares the cores with what it measures.

One keep-alive connection per concurrent caller, HTTP/1.1 written and read by hand on asyncio streams. Every answer is
checked; one that is wrong ends the benchmark. Latencies are those of whole requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

__all__ = ["Connection", "Measured", "Reply", "WrongReply", "busy_cpu_s", "fast_loop", "load", "metered", "percentile"]


class WrongReply(Exception):
    """A server said something other than what it must say; the figures would be worth nothing."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


class Connection:
    """One caller. Opens its connection when it is first used, and again if the server has closed it."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._host, self._port, self._prefix = parts.hostname or "127.0.0.1", parts.port or 80, parts.path.rstrip("/")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> Reply:
        """Send ``body`` as JSON. A connection that turns out to be closed is opened again, once."""
        fresh = self._streams is None
        try:
            return await self._post(path, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            if fresh:
                raise
            return await self._post(path, body)

    async def _post(self, path: str, body: bytes) -> Reply:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        reader, writer = self._streams
        head = (
            f"POST {self._prefix}{path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines[1:] if b": " in line)
        if headers.get(b"transfer-encoding") == b"chunked":
            content = b"".join([chunk async for chunk in _chunks(reader)])
        else:
            content = await reader.readexactly(int(headers.get(b"content-length", b"0")))
        if headers.get(b"connection") == b"close":
            self.close()
        return Reply(int(lines[0].split()[1]), content)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunks(reader: asyncio.StreamReader):  # type: ignore[no-untyped-def]
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")


@dataclass(slots=True)
class Measured:
    """What one load did."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    client_cpu_s: float = 0.0
    machine_cpu_s: float = 0.0
    server_cpu_s: float | None = None
    """Of the server's whole process tree, if it can be told."""

    @property
    def per_s(self) -> float:
        return len(self.latencies_ms) / self.seconds if self.seconds else 0.0

    def row(self) -> str:
        """Requests/s, p50, p95, p99, and CPU milliseconds per request of the server's side and of the client."""
        count = max(1, len(self.latencies_ms))
        server_s = self.server_cpu_s if self.server_cpu_s is not None else self.machine_cpu_s - self.client_cpu_s
        mark = " " if self.server_cpu_s is not None else "*"
        p50, p95, p99 = (percentile(self.latencies_ms, share) for share in (0.50, 0.95, 0.99))
        return (
            f"{self.per_s:>8.1f} {p50:>8.1f} {p95:>8.1f} {p99:>8.1f} {1000 * server_s / count:>9.2f}{mark}"
            f"{1000 * self.client_cpu_s / count:>8.2f} {count:>7}"
        )


HEAD = f"{'per s':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8} {'CPU ms':>9} {'client':>8} {'count':>7}"


def percentile(values: list[float], share: float) -> float:
    """The smallest value that is no smaller than ``share`` of all of them; 0 for none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def busy_cpu_s() -> float:
    """CPU seconds that this machine has worked since it was started, on all cores."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = (int(word) for word in stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def metered(measured: Measured, server_cpu_s: Callable[[], float | None]) -> Iterator[None]:
    """Fill in what the block takes: seconds, and CPU seconds of the client, of the machine, of the server."""
    client, machine, server, began = time.process_time(), busy_cpu_s(), server_cpu_s(), time.perf_counter()
    yield
    measured.seconds = time.perf_counter() - began
    measured.client_cpu_s = time.process_time() - client
    measured.machine_cpu_s = busy_cpu_s() - machine
    after = server_cpu_s()
    measured.server_cpu_s = after - server if after is not None and server is not None else None


async def load(
    request: Callable[[int], Awaitable[None]],
    *,
    concurrency: int,
    seconds: float,
    server_cpu_s: Callable[[], float | None] = lambda: None,
) -> Measured:
    """Keep ``concurrency`` callers busy for ``seconds``; ``request(caller)`` makes one request and checks the reply.

    What is on its way when the time is up is awaited and counted.
    """
    measured = Measured()
    stop_at = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        while (began := time.perf_counter()) < stop_at:
            await request(number)
            measured.latencies_ms.append(1000 * (time.perf_counter() - began))

    with metered(measured, server_cpu_s):
        async with asyncio.TaskGroup() as group:
            for number in range(concurrency):
                group.create_task(caller(number))
    return measured


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop where it is installed: a cheaper client."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None
