"""Loops, threads, forks and pickles: one client object serves them all, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from adjudge import AsyncClient, Client, Task, Verdict, errors
from adjudge.testing import FakeServer, compare_text


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def tasks(number: int) -> list[dict[str, Any]]:
    return [{"id": i, "response": "1", "reference": "1"} for i in range(number)]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_new_loop_every_step(server: FakeServer) -> None:
    client = AsyncClient(base_url=server.base_url)
    loops = []

    async def step() -> list[float | None]:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        return await client.rewards(tasks(8), batch_size=2)

    asyncio.run(step())
    before = open_files()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            assert asyncio.run(step()) == [1.0] * 8
    gc.collect()
    assert [loop() for loop in loops] == [None] * 6, "no loop is kept alive"
    assert open_files() <= before


def test_connections_are_reused_within_a_loop(server: FakeServer) -> None:
    async def steps() -> None:
        async with AsyncClient(base_url=server.base_url) as client:
            for _ in range(5):
                await client.verify(response="1")

    asyncio.run(steps())
    assert server.connections == 1


def test_two_loops_at_a_time(server: FakeServer) -> None:
    client = AsyncClient(base_url=server.base_url)

    def run(_: int) -> list[float | None]:
        return asyncio.run(client.rewards(tasks(20), batch_size=5))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(8))) == [[1.0] * 20] * 8


def test_a_client_that_is_forgotten_closes_its_connections(server: FakeServer) -> None:
    async def main() -> None:
        client = AsyncClient(base_url=server.base_url)
        await client.verify(response="1")
        before = open_files()
        del client
        gc.collect()
        for _ in range(100):
            await asyncio.sleep(0.01)
            if open_files() < before:
                return
        pytest.fail("the connection is still open")

    asyncio.run(main())


def test_a_client_can_be_used_after_close(server: FakeServer) -> None:
    client = Client(base_url=server.base_url)
    for _ in range(2):
        assert client.verify(response="1", reference="1").reward == 1.0
        client.close()


def test_requests_in_flight_are_limited(server: FakeServer) -> None:
    at_a_time, most, lock = 0, 0, threading.Lock()

    def judge(task: Task) -> Verdict:
        nonlocal at_a_time, most
        with lock:
            at_a_time += 1
            most = max(most, at_a_time)
        server.closing.wait(0.02)
        with lock:
            at_a_time -= 1
        return compare_text(task)

    server.judge = judge

    async def main() -> None:
        async with AsyncClient(base_url=server.base_url, max_concurrency=3) as client:
            await asyncio.gather(*(client.verify(response="1") for _ in range(20)))
            await client.rewards(tasks(10), batch_size=1)

    asyncio.run(main())
    assert most <= 3
    assert server.connections <= 3


def test_cancelling_and_stopping_early(server: FakeServer) -> None:
    def judge(task: Task) -> Verdict:
        if task.id != 0:
            server.closing.wait(30)
        return compare_text(task)

    server.judge = judge

    async def main() -> None:
        async with AsyncClient(base_url=server.base_url) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.rewards(tasks(3)), 0.2)
            async for index, _ in client.verify_many(tasks(3)):
                assert index == 0
                break

    asyncio.run(main())
    with Client(base_url=server.base_url) as client:
        many = client.verify_many(tasks(3))
        assert next(many)[0] == 0
        many.close()


def test_a_blocking_client_in_many_threads_and_inside_a_loop(server: FakeServer) -> None:
    client = Client(base_url=server.base_url)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: client.rewards(tasks(10), batch_size=3), range(24)))
    assert found == [[1.0] * 10] * 24

    async def main() -> float | None:
        return client.verify(response="1", reference="1").reward

    assert asyncio.run(main()) == 1.0
    client.close()


def test_a_client_inside_its_own_tasks_is_refused(server: FakeServer) -> None:
    client = Client(base_url=server.base_url)

    def recursive() -> Iterator[dict[str, Any]]:
        client.verify(response="1")
        yield {}

    with pytest.raises(RuntimeError, match="AsyncClient"):
        list(client.verify_many(recursive()))
    client.close()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_pickling(server: FakeServer, kind: type) -> None:
    client = kind(base_url=server.base_url, api_key="k", timeout_s=7, max_retries=1)
    if kind is Client:
        client.verify(response="1")
    copy = pickle.loads(pickle.dumps(client))  # noqa: S301
    assert copy.settings == client.settings
    assert "k" not in repr(copy).removeprefix(kind.__name__).replace(server.base_url, "")
    if kind is Client:
        assert copy.verify(response="1", reference="1").reward == 1.0
        copy.close()
        client.close()


def test_with_options(server: FakeServer) -> None:
    client = Client(base_url=server.base_url)
    patient = client.with_options(timeout_s=9, api_key="x")
    assert patient.settings.timeout_s == 9
    assert client.settings.api_key is None
    assert patient.verify(response="1", reference="1").reward == 1.0
    assert client.verify(response="1", reference="1").reward == 1.0
    assert server.connections == 1, "both share their connections"
    assert client.with_options(base_url="http://elsewhere").settings.base_url == "http://elsewhere"
    with pytest.raises(errors.ConfigurationError, match="timeout"):
        client.with_options(timeout=3)
    client.close()


SCRIPT = """
import asyncio, os, sys, warnings
warnings.simplefilter("error")
from adjudge import AsyncClient, Client

url, how = sys.argv[1:]
blocking, asynchronous = Client(base_url=url), AsyncClient(base_url=url)

def both():
    assert blocking.verify(response="1", reference="1").reward == 1.0
    assert asyncio.run(asynchronous.rewards([{"response": "1", "reference": "1"}])) == [1.0]

async def fork_inside():
    assert (await asynchronous.verify(response="1", reference="1")).reward == 1.0
    if os.fork() == 0:
        both()
        os._exit(7)
    code = os.waitstatus_to_exitcode(os.wait()[1])
    assert (await asynchronous.verify(response="1", reference="1")).reward == 1.0
    return code

both()
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
if how == "plain":
    if os.fork() == 0:
        both()
        os._exit(7)
    code = os.waitstatus_to_exitcode(os.wait()[1])
else:
    code = asyncio.run(fork_inside())
both()
print("child", code)
"""


@pytest.mark.parametrize("how", ["plain", "inside a loop"])
def test_forked_children_use_their_own_connections(server: FakeServer, how: str) -> None:
    command = [sys.executable, "-c", SCRIPT, server.base_url, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("child 7", "")


EXIT = """
import sys
from adjudge import Client
client = Client(base_url=sys.argv[1])
print(client.verify(response="1", reference="1").reward)
for _ in client.verify_many([{"response": "1"}] * 3):
    break
"""


def test_the_interpreter_ends_without_a_word(server: FakeServer) -> None:
    command = [sys.executable, "-W", "error", "-c", EXIT, server.base_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "1.0", "")


def test_a_proxy_is_not_for_this_machine(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Client(base_url=server.base_url, max_retries=0) as client:
        assert client.verify(response="1", reference="1").reward == 1.0
