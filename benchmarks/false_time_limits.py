"""Is a program that keeps to its limit ever called too slow, because the machine is busy?

    python benchmarks/false_time_limits.py [--clients 8] [--answers 120] [--hogs 4]

Four times as many clients as cores send programs that each use half of their CPU limit (one second), measured by their
own CPU clock: in one process, in a child that they wait for, in two threads, in system calls. Every one is right, so
each verdict `time_limit` is false, and there must be none. The load is sent twice: on the machine as it is, and beside
processes that do nothing but take CPU time (``--hogs``, by default twice as many as cores).

Verdicts `overloaded` or `unavailable` are reported beside: they cost a retry, but nobody a reward. Ends with status 1
if a verdict is false.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from _load import Connection, fast_loop, percentile
from _server import running_server

CPU_LIMIT_S = 1.0
_BURN = """
import os, threading, time
def burn(seconds=SECONDS, clock=time.process_time):
    end = clock() + seconds
    while clock() < end:
        WORK
"""
_HALF = str(CPU_LIMIT_S / 2)
_PLAIN = _BURN.replace("SECONDS", _HALF).replace("WORK", "sum(range(1000))")
PROGRAMS = {
    "one process": f"{_PLAIN}burn()\n",
    "a child": f"{_PLAIN}if os.fork() == 0:\n    burn()\n    os._exit(0)\nos.wait()\n",
    "two threads": f"{_PLAIN}threads = [threading.Thread(target=burn) for _ in range(2)]\n"
    "[thread.start() for thread in threads]\n[thread.join() for thread in threads]\n",
    "system calls": _BURN.replace("SECONDS", _HALF).replace("WORK", "os.stat('/'), os.getppid()") + "burn()\n",
    "with pauses": f"{_PLAIN}for _ in range(5):\n    burn({CPU_LIMIT_S / 10})\n    time.sleep(0.05)\n",
}


_numbers = itertools.count(1)


def task(number: int, code: str) -> dict[str, Any]:
    tests = [{"stdin": f"{number}\n", "stdout": f"{number + 1}\n"}]
    response = f"```python\n{code}print(int(input()) + 1)  # {number}\n```"
    options = {"cpu_s": CPU_LIMIT_S}
    return {"verifier": "code", "response": response, "reference": {"tests": tests}, "options": options}


async def send(base_url: str, clients: int, answers: int) -> tuple[Counter[str], list[float], list[str]]:
    """All answers; counts of what came, latencies in seconds, and the verdicts that are false."""
    numbers = iter([next(_numbers) for _ in range(answers)])  # no answer twice: none comes from the cache
    kinds = itertools.cycle(PROGRAMS.items())
    came: Counter[str] = Counter()
    took_s: list[float] = []
    false: list[str] = []

    async def client() -> None:
        connection = Connection(base_url)
        for number in numbers:
            name, code = next(kinds)
            began = time.perf_counter()
            reply = await connection.post("/v1/verify", json.dumps(task(number, code)).encode())
            took_s.append(time.perf_counter() - began)
            verdict = json.loads(reply.body)
            status = verdict.get("status")
            what = verdict.get("category") if status == "ok" else str(status)
            came[str(what)] += 1
            if what != "correct" and status not in ("overloaded", "unavailable") and reply.status != 429:
                false.append(f"{name}: {reply.body[:700]!r}")
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return came, took_s, false


def measure(base_url: str, arguments: argparse.Namespace, hogs: int) -> int:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(hogs)]
    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            began = time.perf_counter()
            came, took_s, false = runner.run(send(base_url, arguments.clients, arguments.answers))
            elapsed_s = time.perf_counter() - began
    finally:
        for hog in spinning:
            hog.kill()
            hog.wait()
    late = sum(came[name] for name in ("overloaded", "unavailable", "429"))
    print(
        f"{arguments.clients} clients, {hogs} hogs: {arguments.answers} answers in {elapsed_s:.0f} s, "
        f"p50 {percentile(took_s, 0.5):.1f} s, p99 {percentile(took_s, 0.99):.1f} s; false time limits "
        f"{came['time_limit']} ({100 * came['time_limit'] / arguments.answers:.1f} %), overloaded {late}, "
        f"{dict(sorted(came.items()))}",
        flush=True,
    )
    for text in false[:10]:
        print(f"FALSE  {text}")
    return len(false)


def main() -> int:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=4 * cores)
    parser.add_argument("--answers", type=int, default=60 * cores)
    parser.add_argument("--hogs", type=int, default=2 * cores)
    arguments = parser.parse_args()
    with running_server() as server:
        false = sum(measure(server.base_url, arguments, hogs) for hogs in dict.fromkeys((0, arguments.hogs)))
    print("no verdict is false" if not false else f"{false} verdicts are false")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
