"""The record of verdicts: written in the background, in batches, and never in the way of a reward.

One table in SQLite (by default) or in any database that SQLAlchemy reaches by URL. A full queue, a full disk or a lost
database costs records and is counted; the verdicts themselves have long been sent.
"""

from __future__ import annotations

import datetime as dt
import queue
import threading
import time
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
_QUEUE = 50_000
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
        self._queue: queue.Queue[tuple[dt.datetime, str, Task | None, Verdict] | None] = queue.Queue(_QUEUE)
        self._thread: threading.Thread | None = None
        self._problem = ""

    def start(self) -> None:
        if self._url and self._thread is None:
            self._thread = threading.Thread(target=self._work, name="adjudge-store", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Write what is queued, for at most a few seconds."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=10)
            self._thread = None

    def record(self, task: Task | None, verdict: Verdict, request_id: str) -> None:
        """Queue one verdict. Never blocks and never raises."""
        if self._thread is None:
            return
        try:
            self._queue.put_nowait((dt.datetime.now(dt.UTC), request_id, task, verdict))
        except queue.Full:
            self._metrics.store_dropped.inc()

    def describe(self) -> str:
        """``off``, ``ok``, or what is wrong."""
        return "off" if not self._url else self._problem or "ok"

    def _work(self) -> None:
        engine: sa.Engine | None = None
        cleaned = 0.0
        more = True
        while more:
            rows, more = self._gather()
            try:
                engine = engine or _connect(self._url)
                if time.monotonic() - cleaned > _RETENTION_EVERY_S or not cleaned:
                    self._forget(engine)
                    cleaned = time.monotonic()
                if rows:
                    with engine.begin() as connection:
                        connection.execute(verdicts_table.insert(), rows)
                self._problem = ""
            except (SQLAlchemyError, OSError) as error:
                self._metrics.store_dropped.inc(len(rows))
                if not self._problem:
                    get_logger().error("store.failed", error=str(error)[:500], consequence="verdicts are not recorded")
                self._problem = str(error)[:200]
        if engine is not None:
            engine.dispose()

    def _gather(self) -> tuple[list[dict[str, Any]], bool]:
        """Rows of the next batch, and whether there may be more after it."""
        rows: list[dict[str, Any]] = []
        until = time.monotonic() + _FLUSH_S
        while len(rows) < _BATCH:
            try:
                item = self._queue.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                return rows, True
            if item is None:
                return rows, False
            rows.append(self._row(*item))
        return rows, True

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
            "task": task.model_dump_json() if self._responses and task is not None else None,
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
