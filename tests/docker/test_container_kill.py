"""A server that is killed leaves no containers: not when it dies, and not when the next one starts."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

from adjudge_sandbox.container.base import ContainerConfig
from adjudge_sandbox.container.ownership import OWNER, labels_of
from adjudge_sandbox.container.pool import ContainerPool

SERVER = """
import asyncio, sys
from adjudge_sandbox.backends.container import ContainerSandbox
from adjudge_sandbox.base import Limits, Program, Script
from adjudge_sandbox.container.base import ContainerConfig

async def main():
    sandbox = ContainerSandbox(ContainerConfig(image=sys.argv[1], engine_url=sys.argv[2], warm=2))
    await sandbox.start()
    source = "import time, os\\nos.fork()\\nwhile True: time.sleep(0.01)"
    runs = [sandbox.run(Program(source), [Script()], Limits(wall_s=300, cpu_s=100)) for _ in range(2)]
    await asyncio.sleep(0)
    gathered = asyncio.gather(*runs)
    await asyncio.sleep(3)
    print("ready", flush=True)
    await gathered

asyncio.run(main())
"""


async def _ours(pool: ContainerPool, pid: int) -> list[str]:
    def find(client) -> list[str]:
        found = client.containers(all=True, filters={"label": f"adjudge.pid={pid}"})
        return [container["Id"] for container in found]

    return await pool._engine.call(find)


async def _gone(pool: ContainerPool, pid: int, within_s: float) -> float:
    began = time.monotonic()
    while await _ours(pool, pid):
        assert time.monotonic() - began < within_s, await _ours(pool, pid)
        await asyncio.sleep(0.1)
    return time.monotonic() - began


async def test_killed_server(engine):
    """The lifeline: without the server the containers end by themselves, with all that runs in them."""
    pool = ContainerPool(ContainerConfig(image=engine.image, engine_url=engine.url, warm=0))
    await pool.start()
    server = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", SERVER, engine.image, engine.url], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert server.stdout is not None
        line = await asyncio.to_thread(server.stdout.readline)
        assert line == b"ready\n"
        assert len(await _ours(pool, server.pid)) >= 3
        server.kill()
        server.wait()
        took_s = await _gone(pool, server.pid, 30)
        print(f"containers of the killed server were gone after {took_s:.1f} s")
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
        server.stdout.close()
        await pool.stop()


async def test_orphans_are_removed_at_the_next_start(engine):
    """What has no lifeline (killed between making and starting it) goes when the next server starts."""
    pool = ContainerPool(ContainerConfig(image=engine.image, engine_url=engine.url, warm=0))
    await pool.start()
    dead = subprocess.Popen([sys.executable, "-c", ""])  # noqa: ASYNC220
    dead.wait()
    alive = labels_of(600)
    orphan = {**alive, "adjudge.pid": str(dead.pid), "adjudge.started": "1"}
    expired = {**alive, "adjudge.expires": "1"}
    elsewhere = {**orphan, "adjudge.place": "another host"}

    def make(client) -> list[str]:
        made = []
        for labels in (orphan, expired, elsewhere, alive, {OWNER + "x": "not ours"}):
            identity = client.create_container(engine.image, ["sleep", "600"], labels=labels, network_disabled=True)[
                "Id"
            ]
            made.append(identity)
        client.start(made[0])
        return made

    made = await pool._engine.call(make)
    try:
        assert await pool.remove_orphans() == 2
        left = await pool._engine.call(lambda client: [one["Id"] for one in client.containers(all=True)])
        assert [identity in left for identity in made] == [False, False, True, True, True]
    finally:
        for identity in made[2:]:
            await pool._engine.call(lambda client, identity=identity: client.remove_container(identity, force=True))
        await pool.stop()


async def test_a_stopped_pool_leaves_nothing(engine):
    from adjudge_sandbox.container.base import Command, Shape

    pool = ContainerPool(ContainerConfig(image=engine.image, engine_url=engine.url, warm=2))
    await pool.start()
    await asyncio.gather(*(pool.run("", Shape(), Command(["true"])) for _ in range(3)))
    await pool.stop()
    looking = ContainerPool(ContainerConfig(image=engine.image, engine_url=engine.url))
    await looking.start()
    assert await _ours(looking, os.getpid()) == []
    await looking.stop()


async def test_a_server_that_is_told_to_end(engine):
    pool = ContainerPool(ContainerConfig(image=engine.image, engine_url=engine.url, warm=0))
    await pool.start()
    server = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", SERVER, engine.image, engine.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert server.stdout is not None
    await asyncio.to_thread(server.stdout.readline)
    server.send_signal(signal.SIGTERM)
    await asyncio.to_thread(server.wait, 60)
    server.stdout.close()
    await _gone(pool, server.pid, 30)
    await pool.stop()
