"""``adjudge bench``: how fast is this host, in a few seconds?

Absolute figures of a shared machine say little. Each line is therefore also given as a ratio to the first, which is
the plainest thing that can be measured in the same run: the verifier called as a function, or one request at a time.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, ConfigFile, Setting, Url, load
from .problems import CommandFailed, UsageProblem

if TYPE_CHECKING:
    from adjudge.types import Task, Verdict

    from ..settings import Settings

__all__ = ["bench"]

_SINGLE = 100
"""Calls that are timed one by one."""


@dataclass(slots=True)
class Measurement:
    """Tasks per second and, where each call was timed, its latency."""

    what: str
    tasks: int
    seconds: float
    shared: int
    """Verdicts that came from an earlier or a running call."""
    latencies_ms: Sequence[float] = ()

    @property
    def rate(self) -> float:
        return self.tasks / max(self.seconds, 1e-9)

    def percentile(self, share: float) -> float | None:
        if len(self.latencies_ms) < 2:
            return None
        return statistics.quantiles(self.latencies_ms, n=100, method="inclusive")[round(share * 100) - 1]


def bench(
    url: Url = None,
    api_key: Annotated[str | None, typer.Option(help="Key for --url. Default: $ADJUDGE_API_KEY.")] = None,
    tasks: Annotated[int, typer.Option(min=1, max=1_000_000, help="Tasks of the batch.")] = 1000,
    verifier: Annotated[
        str, typer.Option(help="Verifier to measure, on its own first worked example.")
    ] = "exact_match",
    config: ConfigFile = None,
    set_: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Measure throughput and latency of one verifier, in this process or at a server.

    All responses differ. A verifier that extracts the final answer finds the same one in all of them and judges it
    once, as with rollouts that end alike; column `shared` counts the tasks that were answered so. The last line sends
    the batch again, to show what the cache of verdicts does.
    """
    settings = load(config, set_)
    made = _tasks(verifier, tasks)
    measurements = asyncio.run(_remote(url, api_key, made) if url else _local(settings, made))
    _show(measurements, as_json)


def _tasks(name: str, count: int) -> list[Task]:
    """``count`` tasks with different responses that all hold the verifier's first example."""
    from adjudge.types import Task
    from adjudge_verifiers import registry
    from adjudge_verifiers.errors import UnknownVerifier

    try:
        verifier = registry.get(name)
    except UnknownVerifier as error:
        raise UsageProblem(str(error)) from error
    example = next((one for one in verifier.examples if one.status == "ok"), None)
    if example is None:
        raise UsageProblem(f"verifier {name!r} has no worked example to measure")
    return [
        Task(
            id=number,
            verifier=name,
            response=f"Attempt {number}.\n\n{example.response}",
            reference=example.reference,
            options=example.options,
        )
        for number in range(count)
    ]


async def _local(settings: Settings, tasks: list[Task]) -> list[Measurement]:
    from .judges import local_judge

    uncached = settings.model_copy(update={"cache": settings.cache.model_copy(update={"entries": 0})})
    async with local_judge(uncached) as judge:
        engine = judge.engine
        found = [await _one_by_one("engine, one task at a time", tasks, lambda task: engine.judge_all([task]))]
        found.append(await _batch(f"engine, batch of {len(tasks)}", tasks, engine.judge_all))
    async with local_judge(settings) as judge:
        await judge.engine.judge_all(tasks)
        found.append(await _batch("engine, the same batch again", tasks, judge.engine.judge_all))
    return found


async def _remote(url: str, api_key: str | None, tasks: list[Task]) -> list[Measurement]:
    from .judges import sdk_client

    async with sdk_client(url, api_key) as client:

        async def batch(some: Sequence[Task]) -> list[Verdict]:
            return [verdict async for _, verdict in client.verify_many(some)]

        async def single(task: Task) -> list[Verdict]:
            return [await client.verify(task)]

        fresh = [task.model_copy(update={"response": f"One. {task.response}"}) for task in tasks[:_SINGLE]]
        return [
            await _one_by_one("HTTP, one task at a time", fresh, single),
            await _batch(f"HTTP, batch of {len(tasks)}", tasks, batch),
            await _batch("HTTP, the same batch again", tasks, batch),
        ]


async def _one_by_one(
    what: str, tasks: Sequence[Task], judge: Callable[[Task], Awaitable[list[Verdict]]]
) -> Measurement:
    latencies, shared = [], 0
    _check(await judge(tasks[0]))
    some = tasks[:_SINGLE]
    for task in some:
        started = time.perf_counter()
        verdicts = await judge(task)
        latencies.append((time.perf_counter() - started) * 1000)
        shared += _check(verdicts)
    return Measurement(what, len(some), sum(latencies) / 1000, shared, latencies)


async def _batch(
    what: str, tasks: Sequence[Task], judge: Callable[[Sequence[Task]], Awaitable[list[Verdict]]]
) -> Measurement:
    started = time.perf_counter()
    verdicts = await judge(tasks)
    seconds = time.perf_counter() - started
    return Measurement(what, len(tasks), seconds, _check(verdicts))


def _check(verdicts: Sequence[Verdict]) -> int:
    """How many of ``verdicts`` were shared. A figure for verdicts that failed would be a figure for nothing."""
    failed = next((verdict for verdict in verdicts if not verdict.ok), None)
    if failed is not None:
        raise CommandFailed(f"a task of the measurement was not judged: {failed.status}: {failed.reason}")
    return sum(verdict.cached for verdict in verdicts)


def _show(measurements: list[Measurement], as_json: bool) -> None:
    from .console import console, print_json, table

    base = measurements[0].rate
    if as_json:
        print_json([_plain(one, base) for one in measurements])
        return
    columns = ("tasks", "shared", "seconds", "tasks/s", "p50 ms", "p99 ms", "ratio")
    made = table("", "what", *columns, right=columns)
    for one in measurements:
        p50, p99 = one.percentile(0.5), one.percentile(0.99)
        made.add_row(
            one.what,
            f"{one.tasks:,}",
            f"{one.shared:,}",
            f"{one.seconds:.3f}",
            f"{one.rate:,.0f}",
            "-" if p50 is None else f"{p50:.2f}",
            "-" if p99 is None else f"{p99:.2f}",
            f"{one.rate / base:.1f}",
        )
    console().print(made)


def _plain(one: Measurement, base: float) -> dict[str, Any]:
    plain = asdict(one)
    del plain["latencies_ms"]
    p50, p99 = one.percentile(0.5), one.percentile(0.99)
    return {**plain, "tasks_per_s": one.rate, "p50_ms": p50, "p99_ms": p99, "ratio": one.rate / base}
