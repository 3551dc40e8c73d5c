"""``Client``: rewards from an adjudge server, for programs without an event loop.

::

    with Client() as client:                                  # ADJUDGE_BASE_URL, ADJUDGE_API_KEY
        verdict = client.verify(verifier="math", response="so \\\\boxed{4}", reference="4")
        for index, verdict in client.verify_many(tasks): ...

It is :class:`AsyncClient`, waited for: the same methods with the same arguments, settings and errors. The work is done
in one background thread per process (see ``_portal.py``), so that a call may come from any thread, from inside a
running event loop (a notebook), and from a forked child.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from ._batches import Item
from ._portal import portal
from ._rows import Row
from .async_client import AsyncClient
from .settings import Settings
from .types import Task, TaskDefaults, Verdict

__all__ = ["Client"]


class Client:
    """Asks an adjudge server for verdicts. Settings that are not given come from the environment, see ``Settings``.

    ``transport`` replaces the network in tests: an ``httpx2.AsyncBaseTransport``, as for ``AsyncClient``.
    """

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
        self._asks = AsyncClient(
            base_url=base_url,
            api_key=api_key,
            timeout_s=timeout_s,
            max_retries=max_retries,
            max_concurrency=max_concurrency,
            retry_failed=retry_failed,
            transport=transport,
        )

    @property
    def settings(self) -> Settings:
        return self._asks.settings

    def with_options(self, **changes: Any) -> Self:
        """A client with some settings changed (see ``Settings``). It shares the connections of this one if it can."""
        other = type(self).__new__(type(self))
        other._asks = self._asks.with_options(**changes)
        return other

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        portal().run(self._asks.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.base_url!r})"

    def verify(self, task: Task | Mapping[str, Any] | None = None, /, **fields: Any) -> Verdict:
        """The verdict on one task, given as a :class:`Task`, as a mapping, by its fields, or by both (fields win)."""
        return portal().run(self._asks.verify(task, **fields))

    def verify_many(
        self,
        tasks: Iterable[Task | Mapping[str, Any]],
        *,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
        ordered: bool = False,
    ) -> Iterator[Item]:
        """Yield ``(index, verdict)`` for every task as soon as it is there, or in order if ``ordered``.

        Tasks travel in batches, ``max_concurrency`` of them at a time; ``tasks`` may be a generator and is read, in
        the background thread, as they go out. A broken connection costs only the tasks that had no verdict yet; they
        are sent again.
        """
        many = self._asks.verify_many(tasks, defaults=defaults, batch_size=batch_size, ordered=ordered)
        return portal().iterate(many)

    def verify_rows(
        self,
        rows: Iterable[Row],
        *,
        format: str = "auto",
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
        ordered: bool = False,
    ) -> Iterator[Item]:
        """As :meth:`verify_many`, for rows of data sets as they are: pairs of ``(row, response)``.

        ``format`` names the layout of the rows; ``auto`` lets the server find it for each.
        """
        many = self._asks.verify_rows(rows, format=format, defaults=defaults, batch_size=batch_size, ordered=ordered)
        return portal().iterate(many)

    def verdicts(
        self,
        tasks: Iterable[Task | Mapping[str, Any]],
        *,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
    ) -> list[Verdict]:
        """The verdicts on all tasks, in their order."""
        return portal().run(self._asks.verdicts(tasks, defaults=defaults, batch_size=batch_size))

    def rewards(
        self,
        tasks: Iterable[Task | Mapping[str, Any]],
        *,
        defaults: TaskDefaults | Mapping[str, Any] | None = None,
        batch_size: int = 256,
    ) -> list[float | None]:
        """The rewards of all tasks, in their order; ``None`` where there is no judgement. Never a 0 in its place."""
        return portal().run(self._asks.rewards(tasks, defaults=defaults, batch_size=batch_size))

    def preflight(
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
        return portal().run(self._asks.preflight(tasks, rows=rows, format=format, defaults=defaults))

    def verifiers(self) -> list[dict[str, Any]]:
        """The catalogue: name, lane, description and schemas of every verifier."""
        return portal().run(self._asks.verifiers())

    def verifier(self, name: str) -> dict[str, Any]:
        """One entry of the catalogue. Raises :class:`InvalidRequest` (404) naming near matches."""
        return portal().run(self._asks.verifier(name))

    def recipes(self) -> dict[str, dict[str, Any]]:
        """The recipes that the server was configured with, by name."""
        return portal().run(self._asks.recipes())

    def ready(self, *, wait_s: float = 0.0) -> bool:
        """Does the server take work? With ``wait_s``, ask again for that long until it does."""
        return portal().run(self._asks.ready(wait_s=wait_s))
