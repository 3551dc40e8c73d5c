"""Every metric, declared once.

Each server has a registry of its own, so that several can live in one process. No label ever carries user text:
verifier names are checked against the registry before they get here, and anything unknown is counted as ``unknown``.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from adjudge.types import Verdict

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

_SECONDS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_REWARDS = (-1, -0.5, -0.25, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)


class Metrics:
    """The metrics of one server; ``GET /metrics`` renders them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[Any, tuple[str, ...]], Any] = {}
        r = self.registry
        self.requests = Counter(
            "adjudge_requests", "Tasks judged, by what came out.", ["verifier", "outcome"], registry=r
        )
        self.duration = Histogram(
            "adjudge_request_duration_seconds", "Judging one task, waiting excluded.", ["verifier"], buckets=_SECONDS,
            registry=r,
        )  # fmt: skip
        self.queue_wait = Histogram(
            "adjudge_queue_wait_seconds", "Waiting for a worker.", ["verifier"], buckets=_SECONDS, registry=r
        )
        self.reward = Histogram("adjudge_reward", "Rewards given.", ["verifier"], buckets=_REWARDS, registry=r)
        self.failures = Counter(
            "adjudge_failures", "Tasks that got no reward, by kind.", ["verifier", "kind"], registry=r
        )
        self.queue_depth = Gauge("adjudge_queue_depth", "Calls waiting for a worker.", ["lane"], registry=r)
        self.inflight = Gauge("adjudge_inflight", "Calls being judged now.", ["lane"], registry=r)
        self.cache_hits = Counter(
            "adjudge_cache_hits", "Calls answered by an earlier or a running one.", ["kind"], registry=r
        )
        self.cache_misses = Counter("adjudge_cache_misses", "Calls that had to be judged.", registry=r)
        self.workers_replaced = Counter(
            "adjudge_workers_replaced", "Worker processes replaced, by why.", ["lane", "cause"], registry=r
        )
        self.sandbox_runs = Counter(
            "adjudge_sandbox_runs", "Calls that ran a program.", ["backend", "language", "status"], registry=r
        )
        self.sandbox_pool = Gauge("adjudge_sandbox_pool", "Sandbox slots.", ["state"], registry=r)
        self.store_dropped = Counter("adjudge_store_dropped", "Verdicts that could not be recorded.", registry=r)
        self.http_requests = Counter("adjudge_http_requests", "HTTP requests.", ["route", "code"], registry=r)
        self.http_duration = Histogram(
            "adjudge_http_request_duration_seconds", "HTTP requests, whole.", ["route"], buckets=_SECONDS, registry=r
        )

    def judged(self, verdict: Verdict) -> None:
        """Count one verdict that leaves the engine."""
        name = verdict.verifier or "unknown"
        self._child(self.requests, name, verdict.category or verdict.status).inc()
        if verdict.reward is None:
            self._child(self.failures, name, verdict.status).inc()
            return
        self._child(self.reward, name).observe(verdict.reward)
        if verdict.cached:
            return
        self._child(self.duration, name).observe(verdict.timing.run_ms / 1000)
        if verdict.timing.queue_ms:
            self._child(self.queue_wait, name).observe(verdict.timing.queue_ms / 1000)

    def _child(self, metric: Any, *labels: str) -> Any:
        """``metric.labels(*labels)``, which takes a lock and builds strings each time; ten thousand times a second."""
        key = (metric, labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def render(self) -> bytes:
        """The OpenMetrics text of all metrics."""
        text: bytes = generate_openmetrics(self.registry)  # type: ignore[no-untyped-call]
        return text
