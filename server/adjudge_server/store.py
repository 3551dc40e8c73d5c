"""The record of verdicts: written in the background, in batches, and never in the way of a reward.

One table in SQLite (by default) or in any database that SQLAlchemy reaches by URL. A full queue, a full disk or a lost
database costs records and is counted; the verdicts themselves have long been sent.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.event import listens_for
from sqlalchemy.exc import SQLAlchemyError

from adjudge.types import Task, Verdict

from .logs import get_logger
from .metrics import Metrics
from .settings import StoreSettings
from .wire import verdict_json

__all__ = ["Store", "open_store", "verdicts_table"]

_BATCH = 2000
_FLUSH_S = 0.5
_MOST_PENDING = 50_000
_RETENTION_EVERY_S = 3600.0

_metadata = sa.MetaData()
verdicts_table = sa.Table(
    "verdicts",
    _metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.DateTime(timezone=True), index=True, nullable=False),
    sa.Column("request_id", sa.String(128), index=True),
    sa.Column("task_id", sa.Text),
    sa.Column("verifier", sa.String(200), index=True),
    sa.Column("version", sa.String(64)),
    sa.Column("status", sa.String(32), index=True, nullable=False),
    sa.Column("category", sa.String(32)),
    sa.Column("reward", sa.Float),
    sa.Column("cached", sa.Boolean, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("task", sa.Text),
)
"""``verdict`` is the whole verdict as JSON; ``task`` the whole task, only with ``store.responses``."""


class Store:
    """Takes verdicts from the event loop and writes them from a thread of its own."""

    def __init__(self, url: str, *, retention_days: float, responses: bool, metrics: Metrics) -> None:
        self._url = url
        self._retention = dt.timedelta(days=retention_days)
        self._responses = responses
        self._metrics = metrics
        self._pending: deque[tuple[dt.datetime, str, Task | None, Verdict]] = deque()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = ""

    def start(self) -> None:
        if self._url and self._thread is None:
            self._thread = threading.Thread(target=self._work, name="adjudge-store", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Write what is pending, for at most a few seconds."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join(timeout=10)
            self._thread = None

    def record(self, task: Task | None, verdict: Verdict, request_id: str) -> None:
        """Leave one verdict to the thread, which comes by twice a second. Never blocks and never raises."""
        if self._thread is None:
            return
        if len(self._pending) >= _MOST_PENDING:
            self._metrics.store_dropped.inc()
            return
        self._pending.append((dt.datetime.now(dt.UTC), request_id, task if self._responses else None, verdict))

    def describe(self) -> str:
        """``off``, ``ok``, or what is wrong."""
        return "off" if not self._url else self._problem or "ok"

    def _work(self) -> None:
        engine: sa.Engine | None = None
        cleaned: float | None = None
        while True:
            last = self._stopping.wait(_FLUSH_S)
            try:
                engine = engine or _connect(self._url)
                if cleaned is None or time.monotonic() - cleaned > _RETENTION_EVERY_S:
                    self._forget(engine)
                    cleaned = time.monotonic()
                while rows := self._take():
                    self._write(engine, rows)
                self._problem = ""
            except (SQLAlchemyError, OSError) as error:
                self._failed(error)
            if last:
                break
        if engine is not None:
            engine.dispose()

    def _take(self) -> list[dict[str, Any]]:
        """Up to a batch of rows; the only place that removes from the pending ones."""
        count = min(_BATCH, len(self._pending))
        return [self._row(*self._pending.popleft()) for _ in range(count)]

    def _write(self, engine: sa.Engine, rows: list[dict[str, Any]]) -> None:
        try:
            with engine.begin() as connection:
                connection.execute(verdicts_table.insert(), rows)
        except (SQLAlchemyError, OSError):
            self._metrics.store_dropped.inc(len(rows))
            raise

    def _failed(self, error: Exception) -> None:
        if not self._problem:
            get_logger().error("store.failed", error=str(error)[:500], consequence="verdicts are not recorded")
        self._problem = str(error)[:200]

    def _row(self, created_at: dt.datetime, request_id: str, task: Task | None, verdict: Verdict) -> dict[str, Any]:
        return {
            "created_at": created_at,
            "request_id": request_id or None,
            "task_id": None if verdict.id is None else str(verdict.id),
            "verifier": verdict.verifier,
            "version": verdict.version,
            "status": verdict.status,
            "category": verdict.category,
            "reward": verdict.reward,
            "cached": verdict.cached,
            "verdict": verdict_json(verdict).decode(),
            "task": None if task is None else task.model_dump_json(),
        }

    def _forget(self, engine: sa.Engine) -> None:
        oldest = dt.datetime.now(dt.UTC) - self._retention
        with engine.begin() as connection:
            connection.execute(verdicts_table.delete().where(verdicts_table.c.created_at < oldest))


def _connect(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url)
    if parsed.get_backend_name() == "sqlite":

        @listens_for(engine, "connect")
        def _pragmas(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")

    _metadata.create_all(engine)
    return engine


def open_store(settings: StoreSettings, metrics: Metrics) -> Store:
    """The store that ``settings`` ask for; one that records nothing if it is switched off."""
    url = settings.resolved_url() if settings.enabled else ""
    return Store(url, retention_days=settings.retention_days, responses=settings.responses, metrics=metrics)
