"""How fast is one server process where judging itself costs nothing? Batches of 1,000 `exact_match` tasks.

    python benchmarks/inline_throughput.py

Printed: tasks per second of a batch as the server answers it (bytes in, bytes out), the same through the SDK (which
shares the machine and checks every verdict), and the median of single calls on one connection. All answers differ, so
that no verdict comes from the cache.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import count
from urllib.parse import urlsplit

from _server import running_server

from adjudge import Client

BATCH = 1000
HEADERS = {"Content-Type": "application/json"}

_numbers = count()


def fresh_tasks(how_many: int) -> list[dict[str, object]]:
    """Tasks never sent before; every second answer is wrong."""
    return [
        {
            "id": number,
            "verifier": "exact_match",
            "response": f"After some thought: <answer>word {number}</answer>",
            "reference": f"word {number + number % 2}",
        }
        for number in (next(_numbers) for _ in range(how_many))
    ]


def check(verdicts: list[dict[str, object]], sent: list[dict[str, object]]) -> None:
    """A benchmark of wrong verdicts is worth nothing: half are right, in order, none from the cache."""
    rewards = [verdict["reward"] for verdict in verdicts]
    if rewards != [float(task["id"] % 2 == 0) for task in sent]:  # type: ignore[operator]
        sys.exit(f"wrong verdicts, first: {verdicts[0]}")


def bare_batches_s(base_url: str, rounds: int) -> Iterator[float]:
    """Seconds for each batch, from the first byte sent to the last byte received."""
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=60)
    for _ in range(rounds):
        tasks = fresh_tasks(BATCH)
        body = json.dumps({"tasks": tasks})
        began = time.perf_counter()
        connection.request("POST", "/v1/verify/batch", body, HEADERS)
        reply = connection.getresponse().read()
        yield time.perf_counter() - began
        check(json.loads(reply)["verdicts"], tasks)


def sdk_batches_s(base_url: str, rounds: int) -> Iterator[float]:
    with Client(base_url=base_url) as client:
        for _ in range(rounds):
            tasks = fresh_tasks(BATCH)
            began = time.perf_counter()
            rewards = [verdict.reward for _, verdict in client.verify_many(tasks, batch_size=BATCH, ordered=True)]
            yield time.perf_counter() - began
            check([{"reward": reward} for reward in rewards], tasks)


def single_calls_s(base_url: str, calls: int) -> Iterator[float]:
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=60)
    for task in fresh_tasks(calls):
        body = json.dumps(task)
        began = time.perf_counter()
        connection.request("POST", "/v1/verify", body, HEADERS)
        reply = connection.getresponse().read()
        yield time.perf_counter() - began
        check([json.loads(reply)], [task])


def rate(times_s: list[float]) -> str:
    return f"{BATCH / statistics.median(times_s):>9,.0f} tasks/s   (best {BATCH / min(times_s):,.0f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="batches of each kind")
    parser.add_argument("--calls", type=int, default=500, help="single calls")
    arguments = parser.parse_args()
    with running_server() as server:
        list(bare_batches_s(server.base_url, 2))  # the first requests import and build what later ones reuse
        bare = list(bare_batches_s(server.base_url, arguments.rounds))
        sdk = list(sdk_batches_s(server.base_url, arguments.rounds))
        single_ms = sorted(1000 * call_s for call_s in single_calls_s(server.base_url, arguments.calls))
    print(f"batch of {BATCH}, server alone  {rate(bare)}")
    print(f"batch of {BATCH}, through SDK   {rate(sdk)}")
    p50, p99 = single_ms[len(single_ms) // 2], single_ms[int(len(single_ms) * 0.99)]
    print(f"single call                p50 {p50:.2f} ms   p99 {p99:.2f} ms")
    print(f"start to ready             {server.start_s:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
