"""``AsyncClient``: rewards from an adjudge server, for programs that run an event loop.

::

    async with AsyncClient() as client:                       # ADJUDGE_BASE_URL, ADJUDGE_API_KEY
        verdict = await client.verify(verifier="math", response="so \\\\boxed{4}", reference="4")
        async for index, verdict in client.verify_many(tasks): ...

One object serves any number of tasks, event loops (a new one every step, too) and forked children, and it can be
pickled: what travels is its settings. ``timeout_s`` is the deadline of one *call*, tries and waiting included, and is
told to the server; it is not the ``timeout_s`` of a task, which limits the judging of that task.

What a call raises is in :mod:`adjudge.errors`. A verdict without a reward is not raised: look at ``verdict.status``.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Any, Self, TypeVar

from ._batches import Batch, Envelope, Item, batches_of
from ._encode import as_list, as_object, decode, decode_verdict, encode_defaults, encode_object, encode_task
from ._fleet import InOrder, run
from ._policy import Deadline, Reply, Retry, error_from_reply
from ._rows import Row, encode_row
from ._transport import Transport
from .errors import AdjudgeError, ConfigurationError, ConnectionFailed, DeadlineExceeded, ServerError, StatusError
from .settings import Settings
from .types import Task, TaskDefaults, Verdict

__all__ = ["AsyncClient"]

T = TypeVar("T")

READY_PAUSE_S = 0.1


class AsyncClient:
    """Asks an adjudge server for verdicts. Settings that are not given come from the environment, see ``Settings``."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float | None = None,
        max_retries: int | None = None,
        max_concurrency: int | None = None,
        retry_failed: bool = True,
        transport: Any = None,
    ) -> None:
        self.settings = Settings.resolve(
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            max_retries=max_retries,
            max_concurrency=max_concurrency,
            retry_failed=retry_failed,
        )
        self._transport = Transport(self.settings, transport)

    def with_options(self, **changes: Any) -> Self:
        """A client with some settings changed (see ``Settings``). It shares the connections of this one if it can."""
        other = type(self).__new__(type(self))
        other.settings = self.settings.changed(**changes)
        same = all(getattr(other.settings, k) == getattr(self.settings, k) for k in ("base_url", "max_concurrency"))
        other._transport = self._transport if same else Transport(other.settings, self._transport.inner)
        return other

    async def close(self) -> None:
        """Close the connections of the running event loop. A later call opens new ones."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "inner": self._transport.inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.settings = state["settings"]
        self._transport = Transport(self.settings, state["inner"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.base_url!r})"

    async def verify(self, task: Task | Mapping[str, Any] | None = None, /, **fields: Any) -> Verdict:
        """The verdict on one task, given as a :class:`Task`, as a mapping, by its fields, or by both (fields win)."""
        encoded = encode_task(task, fields)
        if isinstance(encoded, Verdict):
            return encoded

        async def once(deadline: Deadline, request_id: str) -> Verdict:
            verdict = decode_verdict((await self._request("POST", "/v1/verify", encoded, deadline, request_id)).body)
            if verdict.retryable and self.settings.retry_failed:
                raise _MayBecomeBetter(verdict)
            return verdict

        try:
            return await self._retrying(once)
        except (_MayBecomeBetter, DeadlineExceeded) as error:
            last = error.__cause__ if isinstance(error, DeadlineExceeded) else error
            if isinstance(last, _MayBecomeBetter):
                return last.verdict
            raise

    def verify_many(
        self,
        tasks: Iterable[Task | Mapping[str, Any]],
        *,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
        ordered: bool = False,
    ) -> AsyncGenerator[Item, None]:
        """Yield ``(index, verdict)`` for every task as soon as it is there, or in order if ``ordered``.

        Tasks travel in batches, ``max_concurrency`` of them at a time; ``tasks`` may be a generator and is read as
        they go out. A broken connection costs only the tasks that had no verdict yet; they are sent again.
        """
        tail = encode_defaults(defaults)
        envelope = Envelope("/v1/verify/batch", "tasks", (("defaults", tail),) if tail else ())
        return self._stream(envelope, (encode_task(task) for task in tasks), batch_size, ordered)

    def verify_rows(
        self,
        rows: Iterable[Row],
        *,
        format: str = "auto",
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
        ordered: bool = False,
    ) -> AsyncGenerator[Item, None]:
        """As :meth:`verify_many`, for rows of data sets as they are: pairs of ``(row, response)``.

        ``format`` names the layout of the rows; ``auto`` lets the server find it for each.
        """
        fields = [("format", encode_object(format))]
        if (tail := encode_defaults(defaults)) is not None:
            fields.append(("defaults", tail))
        envelope = Envelope("/v1/rows", "rows", tuple(fields))
        return self._stream(envelope, (encode_row(row) for row in rows), batch_size, ordered)

    async def verdicts(
        self,
        tasks: Iterable[Task | Mapping[str, Any]],
        *,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
    ) -> list[Verdict]:
        """The verdicts on all tasks, in their order."""
        many = self.verify_many(tasks, defaults=defaults, batch_size=batch_size, ordered=True)
        return [verdict async for _, verdict in many]

    async def rewards(
        self,
        tasks: Iterable[Task | Mapping[str, Any]],
        *,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
    ) -> list[float | None]:
        """The rewards of all tasks, in their order; ``None`` where there is no judgement. Never a 0 in its place."""
        return [v.reward for v in await self.verdicts(tasks, defaults=defaults, batch_size=batch_size)]

    async def preflight(
        self,
        tasks: Iterable[Task | Mapping[str, Any]] = (),
        *,
        rows: Iterable[Row] = (),
        format: str = "auto",
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Check a data set: does each reference parse, does each gold answer score 1? In one request.

        Returns ``summary``, how many there are of each problem (``fine`` for none), and ``items``, one for each task
        and row. Raises :class:`ConfigurationError` for what cannot be sent.
        """
        body = b'{"tasks":[%b],"rows":[%b],"format":%b,"defaults":%b}' % (
            b",".join(_sendable(encode_task(task)) for task in tasks),
            b",".join(_sendable(encode_row(row)) for row in rows),
            encode_object(format),
            encode_defaults(defaults) or b"{}",
        )
        return as_object(await self._ask("POST", "/v1/preflight", body))

    async def verifiers(self) -> list[dict[str, Any]]:
        """The catalogue: name, lane, description and schemas of every verifier."""
        return as_list(await self._ask("GET", "/v1/verifiers"))

    async def verifier(self, name: str) -> dict[str, Any]:
        """One entry of the catalogue. Raises :class:`InvalidRequest` (404) naming near matches."""
        return as_object(await self._ask("GET", f"/v1/verifiers/{_segment(name)}"))

    async def recipes(self) -> dict[str, dict[str, Any]]:
        """The recipes that the server was configured with, by name."""
        return as_object(await self._ask("GET", "/v1/recipes"))

    async def ready(self, *, wait_s: float = 0.0) -> bool:
        """Does the server take work? With ``wait_s``, ask again for that long until it does."""
        until = time.monotonic() + wait_s
        while not await self._is_ready():
            if time.monotonic() + READY_PAUSE_S > until:
                return False
            await asyncio.sleep(READY_PAUSE_S)
        return True

    async def _is_ready(self) -> bool:
        try:
            await self._request("GET", "/readyz", None, Deadline(min(self.settings.timeout_s, 5.0)), _new_id())
        except (ConnectionFailed, DeadlineExceeded, ServerError):
            return False
        return True

    async def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        async def once(deadline: Deadline, request_id: str) -> Any:
            return decode((await self._request(method, path, body, deadline, request_id)).body)

        return await self._retrying(once)

    async def _request(self, method: str, path: str, body: bytes | None, deadline: Deadline, request_id: str) -> Reply:
        reply = await self._transport.request(self.settings, method, path, body, deadline, request_id)
        if reply.status_code != 200:
            raise error_from_reply(reply)
        return reply

    async def _retrying(self, once: Callable[[Deadline, str], Awaitable[T]]) -> T:
        deadline, request_id = Deadline(self.settings.timeout_s), _new_id()
        retry = Retry(self.settings.max_retries, deadline)
        while True:
            try:
                return await once(deadline, request_id)
            except AdjudgeError as error:
                pause_s = retry.pause_s(error)
            await asyncio.sleep(pause_s)

    async def _stream(
        self, envelope: Envelope, encoded: Iterable[bytes | Verdict], size: int, ordered: bool
    ) -> AsyncGenerator[Item, None]:
        settings, deadline = self.settings, Deadline(self.settings.timeout_s)

        def open_reply(batch: Batch) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
            return self._transport.lines(settings, "POST", envelope.path, batch.body(), deadline, _new_id())

        batches = (
            Batch(envelope, cut, Retry(settings.max_retries, deadline), retry_failed=settings.retry_failed)
            for cut in batches_of(encoded, size)
        )
        order = InOrder() if ordered else None
        async with aclosing(run(batches, open_reply, settings.max_concurrency)) as items:
            async for item in items:
                for following in order.feed(item) if order else (item,):
                    yield following


class _MayBecomeBetter(StatusError):
    """Carries a verdict worth another try through the retry loop."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.status}: {verdict.reason}", status_code=503)
        self.verdict = verdict


def _new_id() -> str:
    return uuid.uuid4().hex


def _segment(name: str) -> str:
    if not name or not name.isascii() or not name.replace("_", "").replace("-", "").replace(".", "").isalnum():
        raise ConfigurationError(f"{name[:100]!r} cannot be the name of a verifier.")
    return name


def _sendable(encoded: bytes | Verdict) -> bytes:
    if isinstance(encoded, Verdict):
        raise ConfigurationError(encoded.reason)
    return encoded
