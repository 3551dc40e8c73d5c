"""Callers with one answer each travel together; each gets what is its own."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from adjudge import AsyncClient, MicroBatcher, Task, Verdict, errors
from adjudge.testing import Failed, FakeServer, compare_text


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def sizes(server: FakeServer) -> list[int]:
    return [len(request.tasks) for request in server.requests]


async def ask_all(batcher: MicroBatcher, number: int) -> list[Verdict]:
    calls = (batcher.verify(id=i, response=str(i), reference="3") for i in range(number))
    return await asyncio.gather(*calls)


async def test_calls_travel_together(server: FakeServer) -> None:
    batcher = MicroBatcher(base_url=server.base_url, max_wait_ms=50, defaults={"verifier": "fake"})
    verdicts = await ask_all(batcher, 10)
    assert [verdict.id for verdict in verdicts] == list(range(10))
    assert [verdict.reward for verdict in verdicts] == [float(i == 3) for i in range(10)]
    assert {verdict.verifier for verdict in verdicts} == {"fake"}
    assert sizes(server) == [10]
    await batcher.close()


async def test_a_full_batch_does_not_wait(server: FakeServer) -> None:
    batcher = MicroBatcher(base_url=server.base_url, max_wait_ms=60_000, max_batch=4)
    await ask_all(batcher, 8)
    assert sizes(server) == [4, 4]
    last = asyncio.ensure_future(batcher.verify(response="3", reference="3"))
    await asyncio.sleep(0)
    await batcher.close()
    assert (await last).reward == 1.0, "closing sends what waits"


async def test_errors_reach_the_callers_concerned(server: FakeServer) -> None:
    batcher = MicroBatcher(base_url=server.base_url, max_wait_ms=50, max_retries=0)
    server.break_next(2)
    found = await asyncio.gather(*(batcher.verify(id=i, response="1") for i in range(4)), return_exceptions=True)
    assert [type(one) for one in found] == [Verdict, Verdict, errors.ConnectionFailed, errors.ConnectionFailed]
    found = await asyncio.gather(
        batcher.verify(response="1", reference="1"),
        batcher.verify(3),  # type: ignore[arg-type]
        batcher.verify(response="1", reference=float("nan")),
        return_exceptions=True,
    )
    assert [type(one) for one in found] == [Verdict, TypeError, Verdict]
    assert [one.status for one in found if isinstance(one, Verdict)] == ["ok", "invalid_task"]
    await batcher.close()


async def test_each_caller_gets_its_verdict_when_it_is_there(server: FakeServer) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def judge(task: Task) -> Verdict:
        if task.id == 1:
            loop.call_soon_threadsafe(asked.set)
            server.closing.wait(30)
            raise Failed("verifier_timeout")
        return compare_text(task)

    server.judge = judge
    batcher = MicroBatcher(base_url=server.base_url, max_wait_ms=20)
    first, second = (asyncio.ensure_future(batcher.verify(id=i, response="1")) for i in range(2))
    assert (await first).id == 0
    await asked.wait()
    assert not second.done()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await asyncio.wait_for(batcher.close(), 20)


async def test_callers_that_went_away_are_not_asked_for(server: FakeServer) -> None:
    batcher = MicroBatcher(base_url=server.base_url, max_wait_ms=50)
    gone = asyncio.ensure_future(batcher.verify(id=0, response="1"))
    await asyncio.sleep(0)
    gone.cancel()
    await batcher.verify(id=1, response="1")
    assert [task["id"] for task in server.judged] == [1]
    await batcher.close()


def test_threads_are_collected_together(server: FakeServer) -> None:
    batcher = MicroBatcher(base_url=server.base_url, max_wait_ms=300)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda i: batcher.verify_blocking(id=i, response="1", reference="1"), range(16)))
    assert [verdict.id for verdict in found] == list(range(16))
    assert len(server.requests) < 16


def test_a_new_loop_every_step_and_a_pickled_copy(server: FakeServer) -> None:
    batcher = MicroBatcher(AsyncClient(base_url=server.base_url), max_wait_ms=5)
    for one in (batcher, batcher, pickle.loads(pickle.dumps(batcher))):  # noqa: S301
        assert [verdict.ok for verdict in asyncio.run(ask_all(one, 5))] == [True] * 5


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="not both"):
        MicroBatcher(AsyncClient(), base_url="http://x")
    with pytest.raises(ValueError, match="max_batch"):
        MicroBatcher(max_batch=0)
    with pytest.raises(ValueError, match="max_wait_ms"):
        MicroBatcher(max_wait_ms=float("nan"))
    with pytest.raises(errors.ConfigurationError, match="defaults"):
        MicroBatcher(defaults={"options": object()})
