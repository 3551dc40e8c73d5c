"""Who judges the lines of a file: an engine in this process, or a server at a URL.

Both take a window of items and give verdicts as they are ready. Windows bound what is in memory and what waits in the
queues, so that a file of a million lines is never ``overloaded`` by its own length.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from adjudge.types import Task, TaskDefaults, Verdict

from .lines import Item
from .problems import CommandFailed

if TYPE_CHECKING:
    from adjudge import AsyncClient

    from ..engine import Engine, Submission
    from ..settings import Settings

__all__ = ["Judge", "LocalJudge", "local_judge", "remote_judge", "run_windows", "sdk_client"]

_WINDOW = 1000
_WINDOWS_AT_ONCE = 2
_TIMEOUT_S = 86_400.0
"""Of one call of the client, that is of a window: a person who waits can press Ctrl-C."""


class Judge(Protocol):
    """Judges items that have no ``problem``."""

    def judge(self, items: Sequence[Item]) -> AsyncIterator[tuple[int, Verdict]]:
        """``(index, verdict)`` for each of ``items``, in any order, each index once."""
        ...


class LocalJudge:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def judge(self, items: Sequence[Item]) -> AsyncIterator[tuple[int, Verdict]]:
        return self.engine.submit([self.read(item) for item in items])

    def read(self, item: Item) -> Task | Submission | Verdict:
        """The task of a line, read as the server reads it; a verdict if there is none to be had."""
        from ..http.routes.rows import read_row
        from ..http.tasks import read_task

        if item.row is not None:
            return read_row(self.engine, item.row, "auto", TaskDefaults())
        return read_task(item.task, TaskDefaults())


class _RemoteJudge:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def judge(self, items: Sequence[Item]) -> AsyncIterator[tuple[int, Verdict]]:
        tasks = [(index, item.task) for index, item in enumerate(items) if item.task is not None]
        async with aclosing(self._client.verify_many([task for _, task in tasks])) as verdicts:
            async for position, verdict in verdicts:
                yield tasks[position][0], verdict
        rows = [(index, item.row) for index, item in enumerate(items) if item.row is not None]
        async with aclosing(self._client.verify_rows([row for _, row in rows])) as verdicts:
            async for position, verdict in verdicts:
                yield rows[position][0], verdict


@asynccontextmanager
async def local_judge(settings: Settings) -> AsyncIterator[LocalJudge]:
    """An engine of our own, for as long as the context lasts. Nothing is recorded in the store."""
    from adjudge_sandbox.errors import SandboxError

    from ..engine import Engine

    quiet = settings.model_copy(update={"store": settings.store.model_copy(update={"enabled": False})})
    try:
        engine = Engine(quiet)
        await engine.start()
    except (ValueError, SandboxError) as error:
        raise CommandFailed(f"the engine does not start: {error}") from error
    try:
        yield LocalJudge(engine)
    finally:
        await engine.stop()


@asynccontextmanager
async def remote_judge(url: str, api_key: str | None) -> AsyncIterator[Judge]:
    """The server at ``url``."""
    async with sdk_client(url, api_key) as client:
        yield _RemoteJudge(client)


@asynccontextmanager
async def sdk_client(url: str, api_key: str | None) -> AsyncIterator[AsyncClient]:
    """A client for ``url``; without ``api_key`` it takes ``ADJUDGE_API_KEY``. Its errors become one line."""
    from adjudge import AsyncClient
    from adjudge.errors import AdjudgeError

    timeout_s = None if os.environ.get("ADJUDGE_TIMEOUT_S") else _TIMEOUT_S
    try:
        async with AsyncClient(base_url=url, api_key=api_key, timeout_s=timeout_s) as client:
            yield client
    except AdjudgeError as error:
        raise CommandFailed(f"{url}: {error}") from error


async def run_windows(
    judge: Judge, items: Iterator[Item], tick: Callable[[Verdict], None]
) -> AsyncIterator[tuple[Item, Verdict | None]]:
    """Every item with its verdict, in the order of the file; ``None`` for a line that has a ``problem``.

    ``tick`` is called with each verdict as it comes.
    """
    running: list[asyncio.Task[list[Verdict | None]]] = []
    windows: list[list[Item]] = []
    try:
        while True:
            while len(running) < _WINDOWS_AT_ONCE and (window := await asyncio.to_thread(_take, items)):
                windows.append(window)
                running.append(asyncio.create_task(_judge_window(judge, window, tick)))
            if not running:
                return
            verdicts = await running[0]
            running.pop(0)
            for pair in zip(windows.pop(0), verdicts, strict=True):
                yield pair
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _take(items: Iterator[Item]) -> list[Item]:
    return list(islice(items, _WINDOW))


async def _judge_window(judge: Judge, window: Sequence[Item], tick: Callable[[Verdict], None]) -> list[Verdict | None]:
    verdicts: list[Verdict | None] = [None] * len(window)
    readable = [index for index, item in enumerate(window) if not item.problem]
    async for position, verdict in judge.judge([window[index] for index in readable]):
        verdicts[readable[position]] = verdict
        tick(verdict)
    return verdicts
