"""Verdicts that are known already, or on their way.

Eight rollouts of one prompt often end in the same answer, and an epoch later they do so again. The key is the verifier
with its version, options and reference, and the *extracted* answer where the verifier has an extraction step. Only
``ok`` verdicts are kept: a failure of ours must not outlive its cause.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from adjudge.types import Verdict

from .job import Job

__all__ = ["Flights", "VerdictCache", "again", "cache_key", "copied", "fresh"]


def cache_key(job: Job) -> bytes:
    """16 bytes that stand for everything that the verdict may depend on."""
    extraction = job.call.extraction
    answer: object = job.call.response if extraction is None else [extraction.outcome, extraction.text]
    metadata = job.call.metadata if job.verifier.reads_metadata else None
    allowed_s = job.timeout_s if job.lane == "sandbox" else None  # a program's own limits are cut to fit into it
    material = to_json(
        [job.verifier.name, job.verifier.version, job.call.options, job.reference, answer, metadata, allowed_s],
        inf_nan_mode="strings",
        fallback=repr,
    )
    return hashlib.blake2b(material, digest_size=16).digest()


class VerdictCache:
    """The ``capacity`` verdicts used last, in memory."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: bytes) -> Verdict | None:
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def put(self, key: bytes, verdict: Verdict) -> None:
        """Keep ``verdict`` if it is a judgement."""
        if self._capacity <= 0 or not verdict.ok:
            return
        self._verdicts[key] = verdict
        self._verdicts.move_to_end(key)
        if len(self._verdicts) > self._capacity:
            self._verdicts.popitem(last=False)


@dataclass(slots=True, eq=False)
class _Flight:
    job: Job
    waiters: list[asyncio.Future[Verdict]]


class Flights:
    """Jobs under way, joined: equal calls wait for one job, which is cancelled once nobody waits for it."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}

    def join(self, key: Hashable) -> asyncio.Future[Verdict] | None:
        """A future for the verdict of the running job of this key, if there is one."""
        flight = self._flights.get(key)
        return None if flight is None else self._add_waiter(key, flight)

    def open(self, key: Hashable, job: Job, landed: Callable[[Verdict], None]) -> asyncio.Future[Verdict]:
        """A future for the verdict of ``job``, which later calls may join; ``landed`` is told first."""
        flight = self._flights[key] = _Flight(job, [])

        def done(future: asyncio.Future[Verdict]) -> None:
            if self._flights.get(key) is flight:
                del self._flights[key]
            if future.cancelled():
                return
            landed(future.result())
            for waiter in flight.waiters:
                if not waiter.done():
                    waiter.set_result(future.result())

        job.future.add_done_callback(done)
        return self._add_waiter(key, flight)

    def _add_waiter(self, key: Hashable, flight: _Flight) -> asyncio.Future[Verdict]:
        waiter: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        flight.waiters.append(waiter)

        def gone(future: asyncio.Future[Verdict]) -> None:
            if future.cancelled() and all(other.cancelled() for other in flight.waiters):
                if self._flights.get(key) is flight:
                    del self._flights[key]
                flight.job.future.cancel()

        waiter.add_done_callback(gone)
        return waiter


M = TypeVar("M", bound=BaseModel)


def fresh(model: M) -> M:
    """A copy that shares nothing that could be changed. Several times as fast as a deep copy of the general kind."""
    copy = model.model_copy()
    values = vars(copy)
    for name, value in values.items():
        values[name] = _fresh(value)
    return copy


def _fresh(value: Any) -> Any:
    """Verdicts are made of JSON values and models of them."""
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return fresh(value) if isinstance(value, BaseModel) else value


def again(verdict: Verdict) -> Verdict:
    """A copy of a verdict that is known: nothing ran, nothing waited."""
    copy = fresh(verdict)
    copy.cached = copy.ok
    copy.timing.queue_ms = copy.timing.run_ms = 0.0
    return copy


def copied(shared: asyncio.Future[Verdict]) -> asyncio.Future[Verdict]:
    """A future for a copy of what ``shared`` will bring; cancelling it cancels the wait."""
    copy: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()

    def done(future: asyncio.Future[Verdict]) -> None:
        if future.cancelled():
            copy.cancel()
        elif not copy.done():
            copy.set_result(again(future.result()))

    shared.add_done_callback(done)
    copy.add_done_callback(lambda future: shared.cancel() if future.cancelled() else None)
    return copy
