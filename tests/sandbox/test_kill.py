"""Killing any part of the sandbox in the middle of its work costs no result and leaves nothing behind."""

import asyncio
import contextlib
import gc
import os
import random
import signal
from pathlib import Path

import pytest

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Examination, FunctionCall, Limits, Outcome, Program, Script
from adjudge_sandbox.errors import SandboxUnavailable

_LIMITS = Limits(cpu_s=5.0, wall_s=60.0)
_AT_ONCE = 6


@pytest.fixture
async def sandbox():
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


def _parents() -> dict[int, int]:
    """Pid to parent, of all processes."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", errors="replace") as stat:
                    found[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return found


def _below(root: int | None) -> list[tuple[int, int]]:
    """Descendants of a process with their depth."""
    parents = _parents()
    found = []
    for pid in parents:
        depth, at = 0, pid
        while at in parents and at != root:
            depth, at = depth + 1, parents[at]
        if at == root and depth:
            found.append((pid, depth))
    return found


def _is_paused(pid: int) -> bool:
    """The first process of a jail does nothing but this system call."""
    try:
        return Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("34", "73")  # pause; ppoll on aarch64
    except OSError:
        return False


def _pids(sandbox, kind: str) -> list[int]:
    """What there is of one kind: the zygotes' children do the work, runners are the nursery's."""
    zygotes = [pid for pid in sandbox.describe()["zygote_pids"].values() if pid]
    if kind == "runner":
        return [pid for pid, depth in _below(sandbox.nursery_pid) if depth == 1]
    if kind == "zygote":
        return [pid for root in zygotes for pid, depth in _below(root) if depth == 1]
    if kind == "keeper":
        return [pid for root in zygotes for pid, depth in _below(root) if depth == 2]
    in_jails = [pid for root in zygotes for pid, depth in _below(root) if depth == 3]
    return [pid for pid in in_jails if _is_paused(pid) == (kind == "first process")]


def _everything(sandbox) -> list[int]:
    roots = [sandbox.nursery_pid, *sandbox.describe()["zygote_pids"].values()]
    return [pid for root in roots if root for pid in (root, *(below for below, _ in _below(root)))]


def _mounts() -> int:
    return Path("/proc/self/mounts").read_text().count("\n")


def _existing(paths) -> list[str]:
    return [path for path in paths if os.path.exists(path)]


async def _many(sandbox, count: int) -> list[str]:
    """Run ``count`` answers, some right and some wrong in each way; what is wrong with the results."""
    slots = asyncio.Semaphore(_AT_ONCE)
    sleep = "import time\ntime.sleep(0.15)\n"

    async def one(number: int) -> str:
        kind = number % 4
        async with slots:
            if kind == 0:
                source, runs = sleep + "print(int(input()) * 2)", [Script(b"%d" % n) for n in range(3)]
                want = [(Outcome.FINISHED, b"%d\n" % (2 * n)) for n in range(3)]
            elif kind == 1:
                source, runs = sleep + "import sys\nsys.exit(4)", [Script()]
                want = [(Outcome.RAISED, b"")]
            elif kind == 2:
                source, runs = sleep + "def f(x): return x + 1", [FunctionCall("f", (number,))]
                want = [(Outcome.FINISHED, b"")]
            else:
                source, runs = (
                    sleep + "def f(x): return x + 1",
                    [Examination("assert f(1) == 2"), Examination("assert f(1) == 3")],
                )
                want = [(Outcome.FINISHED, b""), (Outcome.FAILED_ASSERT, b"")]
            results = await sandbox.run(Program(source), runs, _LIMITS)
        got = [(result.outcome, result.stdout) for result in results]
        if kind == 2 and results[0].value != number + 1:
            return f"{number}: value {results[0].value}"
        return "" if got == want else f"{number}: {results}"

    return [problem for problem in await asyncio.gather(*(one(n) for n in range(count))) if problem]


@pytest.mark.parametrize("kind", ["runner", "keeper", "first process", "run"])
async def test_kill_9_of_some(sandbox, kind):
    """Each answer may lose one of its processes: kill each victim once, and no two of one answer."""
    work = asyncio.ensure_future(_many(sandbox, 48))
    rng, killed = random.Random(kind), 0
    while not work.done() and killed < 5:
        await asyncio.sleep(0.25)
        if victims := _pids(sandbox, kind):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(victims), signal.SIGKILL)
                killed += 1
            await asyncio.sleep(1.0)  # the answer that lost a process has been run again by then
    assert await work == []
    assert killed


async def test_kill_9_of_the_nursery(sandbox):
    work = asyncio.ensure_future(_many(sandbox, 24))
    await asyncio.sleep(0.5)
    first = sandbox.nursery_pid
    os.kill(first, signal.SIGKILL)
    assert await work == []
    assert await _many(sandbox, 4) == []
    assert sandbox.nursery_pid not in (None, first)


async def test_kill_9_of_the_zygotes(sandbox):
    """Both processes of each: the one that waits outside and the one that forks."""
    for number in range(2):
        work = asyncio.ensure_future(_many(sandbox, 24))
        await asyncio.sleep(0.5)
        before = sandbox.describe()["zygote_pids"]
        for pid in list(before.values()) if number else _pids(sandbox, "zygote"):
            os.kill(pid, signal.SIGKILL)
        assert await work == []
        assert set(sandbox.describe()["zygote_pids"].values()).isdisjoint(before.values())


async def test_idle_processes_may_die(sandbox):
    """What waits for the next answer is looked at before it is used."""
    assert await _many(sandbox, 8) == []
    for kind in ("runner", "keeper"):
        for pid in _pids(sandbox, kind):
            os.kill(pid, signal.SIGKILL)
        assert await _many(sandbox, 8) == []


async def test_a_jail_lost_twice_is_not_a_verdict(sandbox):
    work = asyncio.ensure_future(sandbox.run(Program("import time\ntime.sleep(9)"), [Script()], _LIMITS))
    while not work.done():
        await asyncio.sleep(0.1)
        for pid in _pids(sandbox, "first process"):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(SandboxUnavailable, match="lost twice"):
        await work


async def test_cancelling_kills_the_jail(sandbox):
    work = asyncio.ensure_future(sandbox.run(Program("while True: pass"), [Script()], Limits(cpu_s=60)))
    await asyncio.sleep(0.5)
    assert _pids(sandbox, "run")
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    for _ in range(100):
        if not _pids(sandbox, "run"):
            break
        await asyncio.sleep(0.05)
    assert _pids(sandbox, "run") == []
    assert _pids(sandbox, "first process") == []
    assert await _many(sandbox, 4) == []


async def test_cancelling_at_any_moment(sandbox):
    """Wherever the cancellation lands, later answers get their own results."""
    for number in range(15):
        work = asyncio.ensure_future(sandbox.run(Program(f"print({number})"), [Script()], _LIMITS))
        await asyncio.sleep(number * 0.002)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    assert await _many(sandbox, 8) == []


async def test_nothing_grows(sandbox):
    """Descriptors, processes, mounts and control groups are as they were, after failures of all kinds."""

    async def round_(count: int) -> None:
        sources = ["print(1)", "1/0", "def f(:", "import os\nos.kill(os.getpid(), 9)", "import os\nos.fork()\nprint(1)"]
        await asyncio.gather(*(sandbox.run(Program(sources[n % 5]), [Script()] * 2, _LIMITS) for n in range(count)))
        await sandbox.run(Program("def f(): return 1"), [Examination("assert f() == 1")] * 2, _LIMITS)

    def measure() -> tuple[int, ...]:
        gc.collect()
        folders = sandbox._groups.folders.values()
        ours = [pid for kind in ("runner", "zygote", "keeper") for pid in _pids(sandbox, kind)]
        return (
            len(os.listdir("/proc/self/fd")),
            *sorted(len(os.listdir(f"/proc/{pid}/fd")) for pid in ours),
            len(_everything(sandbox)),
            _mounts(),
            sum(len(next(os.walk(folder))[1]) for folder in folders),
        )

    async def settled(want: tuple[int, ...] | None) -> tuple[int, ...]:
        """What is killed is gone a moment later."""
        for _ in range(100):
            await asyncio.sleep(0.05)
            if (found := measure()) == want or (want is None and found == measure()):
                break
        return found

    waits = Program("import time\ntime.sleep(1)")
    await asyncio.gather(
        *(sandbox.run(waits, [Script()], _LIMITS) for _ in range(10))
    )  # as many runners as there will be
    for _ in range(2):
        await round_(10)  # every runner that is kept has got its keepers
    before = await settled(None)
    for _ in range(3):
        await round_(10)
    assert await settled(before) == before


async def test_stop_leaves_nothing():
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    work = asyncio.ensure_future(backend.run(Program("import time\ntime.sleep(99)"), [Script()], _LIMITS))
    await asyncio.sleep(0.4)
    pids = _everything(backend)
    folders = list(backend._groups.folders.values())
    await backend.stop()
    with pytest.raises(SandboxUnavailable):
        await work
    for _ in range(100):
        alive = _existing(f"/proc/{pid}" for pid in pids)
        if not alive:
            break
        await asyncio.sleep(0.05)
    assert alive == []
    assert _existing(folders) == []


async def test_groups_of_dead_servers_are_removed(sandbox):
    if sandbox.describe()["cgroup"] == "rlimits":
        pytest.skip("no control groups here")
    stale = [os.path.join(os.path.dirname(f), "adjudge-4194303-1-0") for f in set(sandbox._groups.folders.values())]
    for folder in stale:
        os.makedirs(os.path.join(folder, "0a"))
    other = ZygoteSandbox()
    await other.start()
    await other.stop()
    assert _existing(stale) == []
    assert await _many(sandbox, 4) == []
