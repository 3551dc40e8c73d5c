"""Thousands of mixed runs against a real server, and kill -9 of everything in it: is anything left behind?

    python benchmarks/soak.py [--runs 10000] [--concurrency 8] [--seed 1]

The runs are right, wrong, crashing, killed by signals, too slow, too large, too loud; they leave daemons, System V
objects and full folders; some clients go away in the middle. Now and then a process of the server other than itself is
killed with signal 9. Every verdict must be the right one or, near a kill, none (`unavailable`): never a false reward.

Before and after, counted from outside: descriptors, processes, threads, zombies, memory, mounts, control groups,
namespaces, temporary files, System V objects. Then the server itself is killed with signal 9 in the middle of a load:
which of its processes, mounts, namespaces and files are there afterwards, and which control groups after the next
start? Ends with status 1 if anything has grown, is left, or was judged wrongly.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _leftovers import Snapshot, alive, bystanders, groups_of, identities, snapshot, tree
from _load import Connection
from _server import RunningServer, running_server

SETTINGS = {"ADJUDGE_CACHE__ENTRIES": "500", "ADJUDGE_SANDBOX__REQUIRE_ISOLATION": "jail"}
SETTLE_S = 20.0
SLACK = {"descriptors": 8, "threads": 4, "most_mounts_of_one": 2, "namespaces": 8, "groups": 24}
"""How much a count may have grown: connections that are not yet closed; numbered control groups, which are kept and
used again, as many as answers were ever held at once."""
MOST_OVERLOADED = 0.02
"""Share of runs for which the host may have been too busy."""
LEVELLING_RUNS = 64
"""Honest runs before each count, so that what is kept warm is there each time."""
MEMORY_SLACK = 1.10, 24.0
"""Factor and MiB."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run: how often, the program, what must come of it."""

    name: str
    weight: float
    code: str
    reward: float = 0.0
    categories: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    reference: str = "stdin"
    leaves_after_s: float | None = None
    """The client goes away after so long."""


_SMALL = (("cpu_s", 0.3), ("wall_s", 3.0), ("memory_mib", 64), ("output_kib", 64))
_SHORT = (("cpu_s", 5.0), ("wall_s", 0.3), ("memory_mib", 64), ("output_kib", 64))
_RIGHT = "print(int(input()) ** 2)"
KINDS = [
    Kind("right", 20, _RIGHT, 1.0, ("correct",)),
    Kind("wrong", 15, "print(int(input()) + 2)", 0.0, ("wrong_answer",)),
    Kind("raises", 8, "print(1 / (int(input()) - int(2)) if 0 else 1 / 0)", 0.0, ("runtime_error",)),
    Kind("signal", 6, "import os\nos.kill(os.getpid(), 11)", 0.0, ("runtime_error",)),
    Kind("killed", 3, "import os\nos.kill(0, 9)", 0.0, ("runtime_error",)),
    Kind("syntax", 4, "print((", 0.0, ("compile_error",)),
    Kind("call", 8, "def f(x):\n    return x ** 2", 1.0, ("correct",), reference="call"),
    Kind(
        "exits in call",
        4,
        "import os\ndef f(x):\n    os._exit(0)",
        0.0,
        ("runtime_error", "tampered"),
        reference="call",
    ),
    Kind("assert", 6, "def f(x):\n    return x ** 2", 1.0, ("correct",), reference="assert"),
    Kind("fails assert", 4, "def f(x):\n    return x", 0.0, ("wrong_answer",), reference="assert"),
    Kind("spins", 2, "while True: pass", 0.0, ("time_limit",), _SMALL),
    Kind("sleeps", 2, "import time\ntime.sleep(9)", 0.0, ("time_limit",), _SHORT),
    Kind("memory", 3, "x = bytearray(1 << 28)", 0.0, ("memory_limit",), _SMALL),
    Kind("grows", 2, "x = []\nwhile True: x.append(bytes(65536))", 0.0, ("memory_limit", "time_limit"), _SMALL),
    Kind("flood", 3, "while True: print('x' * 9999)", 0.0, ("output_limit", "time_limit"), _SMALL),
    Kind(
        "daemon",
        4,
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(99)\n    os._exit(0)\n"
        + _RIGHT,
        1.0,
        ("correct",),
    ),
    Kind(
        "forks",
        2,
        "import os\nfor _ in range(99):\n    try: os.fork()\n    except OSError: pass",
        0.0,
        ("time_limit", "memory_limit", "runtime_error", "wrong_answer"),
        _SMALL,
    ),
    Kind(
        "system v",
        3,
        "import ctypes\nlibc = ctypes.CDLL(None)\nfor n in range(9):\n    libc.shmget(0, 4096, 0o1666)\n"
        "    libc.msgget(0, 0o1666); libc.semget(0, 1, 0o1666)\n" + _RIGHT,
        1.0,
        ("correct",),
    ),
    Kind(
        "files",
        3,
        "import os\nfor n in range(300): os.makedirs(f'd{n}/e', exist_ok=True); open(f'd{n}/f', 'w').write('x' * 99)\n"
        "os.chmod('d1', 0); os.symlink('/', 'l'); os.mkfifo('p')\n" + _RIGHT,
        1.0,
        ("correct",),
    ),
    Kind("gone at once", 2, "import time\ntime.sleep(5)", leaves_after_s=0.002),
    Kind("gone in the middle", 4, "import time\ntime.sleep(5)", leaves_after_s=0.05),
    Kind("gone while it spins", 2, "while True: pass", leaves_after_s=0.15),
]


def task(kind: Kind, number: int) -> dict[str, Any]:
    """An answer that nobody has sent before."""
    n = number % 1000 + 2
    if kind.reference == "stdin":
        tests: list[dict[str, Any]] = [{"stdin": f"{n}\n", "stdout": f"{n * n}\n"}, {"stdin": "5\n", "stdout": "25\n"}]
    elif kind.reference == "call":
        tests = [{"call": {"function": "f", "args": [n]}, "expect": n * n}]
    else:
        tests = [{"assert": f"values = [f(x) for x in (2, {n})]\nassert values == [4, {n * n}]"}]
    options = {"cpu_s": 5.0, "wall_s": 60.0, **dict(kind.options)}
    response = f"```python\n{kind.code}  # {number}\n```"
    return {"verifier": "code", "response": response, "reference": {"tests": tests}, "options": options}


_numbers = itertools.count()


class Soak:
    """One load: callers, a killer, and what came of it."""

    def __init__(self, server: RunningServer, runs: int, seed: int, kinds: list[Kind] | None = None) -> None:
        self._server = server
        self._kinds = kinds or KINDS
        self._runs = runs
        self._random = random.Random(seed)
        self._next = 0
        self.came: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.unavailable = 0
        self.overloaded = 0
        self.killed: Counter[str] = Counter()

    async def run(self, concurrency: int, *, kill_every: int | None) -> None:
        callers = [asyncio.ensure_future(self._caller()) for _ in range(concurrency)]
        killer = asyncio.ensure_future(self._kill(kill_every)) if kill_every else None
        try:
            await asyncio.gather(*callers)
        finally:
            for work in (*callers, *([killer] if killer else [])):
                work.cancel()
            await asyncio.gather(*callers, *([killer] if killer else []), return_exceptions=True)

    async def _caller(self) -> None:
        connection = Connection(self._server.base_url)
        while self._next < self._runs:
            number, self._next = next(_numbers), self._next + 1
            kind = self._random.choices(self._kinds, [kind.weight for kind in self._kinds])[0]
            body = json.dumps(task(kind, number)).encode()
            if kind.leaves_after_s is None:
                reply = await connection.post("/v1/verify", body)
                self._judge(kind, reply.status, reply.body)
            else:
                await self._leave(body, kind.leaves_after_s)
            self.came[kind.name] += 1
        connection.close()

    async def _leave(self, body: bytes, after_s: float) -> None:
        """A client that does not wait for its reply."""
        connection = Connection(self._server.base_url)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(after_s):
                await connection.post("/v1/verify", body)
        connection.close()

    def _judge(self, kind: Kind, status: int, body: bytes) -> None:
        verdict = json.loads(body)
        if status == 200 and verdict["status"] == "unavailable":
            self.unavailable += 1
        elif status == 429:
            self.overloaded += 1
        elif status != 200 or verdict["status"] != "ok":
            self.wrong.append(f"{kind.name}: {status} {body[:600]!r}")
        elif verdict["reward"] != kind.reward or (kind.categories and verdict["category"] not in kind.categories):
            self.wrong.append(f"{kind.name}: {body[:600]!r}")

    async def _kill(self, every: int) -> None:
        """Signal 9 to some process of the server that is not the server."""
        due = every
        while True:
            await asyncio.sleep(0.01)
            if self._next < due:
                continue
            due += every
            below = {pid: depth for pid, depth in tree(self._server.pid).items() if depth}
            depth = self._random.choice(sorted(set(below.values()))) if below else 0
            victims = [pid for pid, at in below.items() if at == depth]
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(self._random.choice(victims), signal.SIGKILL)
                self.killed[f"depth {depth}"] += 1


def settled(look: Callable[[], Snapshot], before: Snapshot | None = None) -> Snapshot:
    """A snapshot when nothing runs any more: when two in a row are alike, or all is as it was ``before``."""
    last, deadline = look(), time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        time.sleep(0.5)
        now = look()
        quiet = now.rows() == last.rows() if before is None else not grown(before, now)
        last = now
        if quiet:
            break
    return last


def grown(before: Snapshot, after: Snapshot) -> list[str]:
    """What there is more of than chance allows."""
    factor, extra = MEMORY_SLACK
    found = []
    for name, value in after.rows().items():
        was = before.rows()[name]
        allowed = was * factor + extra if name == "resident_mib" else was + SLACK.get(name, 0)
        if value > allowed:
            found.append(f"{name}: {was:g} -> {value:g}")
    return found


def show(before: Snapshot, after: Snapshot) -> None:
    print(f"{'':<22} {'before':>10} {'after':>10}")
    for name, was in before.rows().items():
        print(f"{name.replace('_', ' '):<22} {was:>10g} {after.rows()[name]:>10g}")
    print("\nprocesses, their descriptors, resident MiB")
    for name in dict.fromkeys([*before.by_process, *after.by_process]):
        shown = []
        for each in (before, after):
            count, fds, mib = each.by_process.get(name, (0, 0, 0.0))
            shown.append(f"{count:>4} {fds:>5} {mib:>7.1f}")
        print(f"{name[:60]:<60} {shown[0]}   {shown[1]}")


def soak(arguments: argparse.Namespace) -> list[str]:
    """The mixed load. Returns what is wrong."""
    others = bystanders()
    with tempfile.TemporaryDirectory() as scratch, running_server(**SETTINGS, TMPDIR=scratch) as server:

        def look() -> Snapshot:
            return snapshot(server.pid, others, scratch)

        def level() -> None:
            honest = [kind for kind in KINDS if kind.name in ("right", "call", "assert")]
            asyncio.run(
                Soak(server, LEVELLING_RUNS, arguments.seed, honest).run(arguments.concurrency, kill_every=None)
            )

        warm = Soak(server, max(100, min(1000, arguments.runs // 5)), arguments.seed)
        asyncio.run(warm.run(arguments.concurrency, kill_every=20))
        level()
        before = settled(look)
        load = Soak(server, arguments.runs, arguments.seed + 1)
        began = time.monotonic()
        asyncio.run(load.run(arguments.concurrency, kill_every=arguments.kill_every))
        took_s = time.monotonic() - began
        level()
        after = settled(look, before)
    print(f"{arguments.runs} runs in {took_s:.0f} s ({arguments.runs / took_s:.0f}/s), {arguments.concurrency} at once")
    print("kinds: " + ", ".join(f"{count} {name}" for name, count in sorted(load.came.items())))
    print(
        f"killed with signal 9: {dict(sorted(load.killed.items()))}; {load.unavailable} verdicts `unavailable`, "
        f"{load.overloaded} `overloaded`\n"
    )
    show(before, after)
    wrong = warm.wrong + load.wrong
    problems = [f"judged wrongly ({len(wrong)} in all): {text}" for text in wrong[:5]]
    problems += [f"grown: {text}" for text in grown(before, after)]
    kills = sum(load.killed.values())
    if load.overloaded > MOST_OVERLOADED * arguments.runs:
        problems.append(f"{load.overloaded} verdicts were `overloaded`")
    if load.unavailable > 2 * kills * arguments.concurrency:
        problems.append(f"{load.unavailable} verdicts were lost to {kills} kills")
    return problems


def kill_the_server(arguments: argparse.Namespace) -> list[str]:
    """Signal 9 to the server itself in the middle of a load. Returns what it left behind."""
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        others = bystanders()
        idle = snapshot(os.getpid(), others, scratch)
        with running_server(**SETTINGS, TMPDIR=scratch) as server:
            groups, known = asyncio.run(_killed_in_the_middle(server, arguments))
            began = time.monotonic()
            while (left := alive(known)) and time.monotonic() < began + SETTLE_S:
                time.sleep(0.02)
            gone_s = time.monotonic() - began
        after = snapshot(os.getpid(), others, scratch)
        print(f"\nserver killed with signal 9: {len(known)} processes had been seen, {len(left)} left", end=" ")
        print(f"after {gone_s:.1f} s")
        problems += [f"left by the killed server: process {_words(pid)}" for pid, _ in left]
        remaining = groups_of(server.pid)
        with running_server(**SETTINGS, TMPDIR=scratch):
            still = groups_of(server.pid)
        print(f"control groups: {len(groups)} before, {len(remaining)} after, {len(still)} after the next start")
        problems += [f"a control group outlives the next start: {group}" for group in sorted(still)[:5]]
        for name in ("mounts", "namespaces", "temporary_files", "system_v"):
            was, now = getattr(idle, name), getattr(after, name)
            print(f"{name.replace('_', ' ')}: {was} -> {now}")
            if now > was + SLACK.get(name, 0):
                problems.append(f"left by the killed server: {name} {was} -> {now}")
    return problems


async def _killed_in_the_middle(
    server: RunningServer, arguments: argparse.Namespace
) -> tuple[set[str], set[tuple[int, bytes]]]:
    load = Soak(server, 10**9, arguments.seed + 2)
    running = asyncio.ensure_future(load.run(arguments.concurrency, kill_every=None))
    known: set[tuple[int, bytes]] = set()
    for _ in range(40):
        await asyncio.sleep(0.05)
        known |= identities(tree(server.pid))
    os.kill(server.pid, signal.SIGSTOP)  # so that what is seen next is all there is
    known |= identities(tree(server.pid))
    groups = groups_of(server.pid)
    os.kill(server.pid, signal.SIGKILL)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return groups, known


def _words(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return f"{pid} {file.read().replace(bytes(1), b' ').decode(errors='replace')[:100]}"
    return str(pid)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--kill-every", type=int, default=100, help="runs between two kills")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    problems = soak(arguments) + kill_the_server(arguments)
    for problem in problems:
        print(f"NOT AS IT SHOULD BE  {problem}")
    print("flat, and nothing left behind" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
