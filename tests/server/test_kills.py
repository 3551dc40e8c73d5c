"""kill -9 of every kind of process behind the engine, in the middle of a batch: nobody gets a false reward."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter, defaultdict
from pathlib import Path

from adjudge.types import Task
from adjudge_server.engine import Engine

TASKS = 500
KILLS = 4
"""Of each kind."""

SCRIPT = "import sys, time\ntime.sleep(0.03)\nn = int(sys.stdin.read())\nprint(sum(i * i for i in range(n)))"
TESTS = {"tests": [{"stdin": str(n), "stdout": str(sum(i * i for i in range(n)))} for n in (3, 20_000, 5)]}


def task(index: int) -> tuple[Task, float]:
    """One of five kinds of task, right or wrong, and no two alike."""
    right = index % 2 == 0
    if index % 5 == 0:
        code = SCRIPT if right else SCRIPT.replace("i * i", "i + i")
        fields = {"verifier": "code", "response": f"```python\n# {index}\n{code}\n```", "reference": TESTS}
    elif index % 5 == 1:
        body = "sorted(x)" if right else "x"
        checks = {"tests": [{"assert": "assert f([3, 1, 2]) == [1, 2, 3]"}, {"assert": "assert list(f(x=[2])) == [2]"}]}
        fields = {
            "verifier": "code",
            "response": f"```python\ndef f(x):\n    return {body}  # {index}\n```",
            "reference": checks,
        }
    else:
        answer = f"(x+{index})^2" if right else f"(x-{index})^2"
        fields = {
            "verifier": "math",
            "response": f"\\boxed{{{answer}}}",
            "reference": f"x^2+{2 * index}x+{index * index}",
        }
    return Task.model_validate({**fields, "id": index}), float(right)


def descendants() -> dict[int, list[int]]:
    """Pids below this process, by depth."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                children[int((entry / "stat").read_text().rpartition(")")[2].split()[1])].append(int(entry.name))
    levels: dict[int, list[int]] = {}
    level = [os.getpid()]
    for depth in range(1, 8):
        level = [child for parent in level for child in children[parent]]
        levels[depth] = level
    return levels


KINDS = ("cpu worker", "jail", "keeper", "runner", "zygote", "nursery")


def victims(kind: str) -> list[int]:
    """What there is to kill of ``kind``. Nurseries and zygotes are our children; the others descend from them."""
    levels = descendants()
    if kind == "nursery":
        return [pid for pid in levels[1] if b"adjudge_sandbox.supervisor.zygote" not in cmdline(pid)]
    if kind == "zygote":
        return [pid for pid in levels[1] if b"adjudge_sandbox.supervisor.zygote" in cmdline(pid)]
    if kind == "cpu worker":
        return [pid for pid in levels[2] if b"cpu_worker" in cmdline(pid)]
    if kind == "runner":
        return [pid for pid in levels[2] if b"adjudge_sandbox.supervisor.runner" in cmdline(pid)]
    if kind == "keeper":
        return [pid for pid in levels[3] if b"adjudge_sandbox.supervisor.zygote" in cmdline(pid)]
    return levels[4]


def cmdline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


async def kill_around(done: asyncio.Event, killed: Counter[str]) -> None:
    choose = random.Random(7)
    while not done.is_set():
        for kind in KINDS:
            if killed[kind] < KILLS and (pids := victims(kind)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(choose.choice(pids), signal.SIGKILL)
                    killed[kind] += 1
            await asyncio.sleep(0.15)


async def test_kills_in_the_middle_of_a_batch(engine: Engine) -> None:
    tasks, expected = zip(*(task(index) for index in range(TASKS)), strict=True)
    done = asyncio.Event()
    killed: Counter[str] = Counter()
    killer = asyncio.ensure_future(kill_around(done, killed))
    verdicts = await engine.judge_all(tasks)
    done.set()
    await killer
    assert set(killed) == set(KINDS), killed
    assert len(verdicts) == TASKS
    for verdict, reward in zip(verdicts, expected, strict=True):
        assert verdict.status in ("ok", "unavailable"), verdict
        assert not verdict.ok or verdict.reward == reward, verdict
    assert sum(verdict.ok for verdict in verdicts) >= TASKS - 5, "a second try is enough for nearly all"
