"""What do hanging answers cost their neighbours? One maths batch with and without 2 % of `9^{9^{9^9}}`.

    python benchmarks/bombs.py

The golds are those of the MATH test set. Half of the answers are the gold, the other half the gold of another problem,
so that the whole comparison is done. The same batch is then sent with every fiftieth answer replaced by an expression
that nobody can evaluate. The cache is off; the two kinds of batch alternate, because machines are noisy.

Printed for the healthy tasks: how long after the start of the batch their verdicts came (p50, p99), the run time that
the server reports (p99), and their throughput; and the ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass

from _server import needs_data, running_server

from adjudge import Client, Task

BOMBS = (
    r"\boxed{9^{9^{9^9}}}",
    r"\boxed{2^{3^{4^{5^6}}}}",
    r"\boxed{(9^{9^9})!}",
    r"\boxed{10^{10^{10^{10}}} - 10^{10^{10^{10}}}}",
)
EVERY = 50


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch: figures of its healthy tasks in milliseconds and tasks per second, and what became of the bombs."""

    p50_ms: float
    p99_ms: float
    run_p99_ms: float
    healthy_per_s: float
    whole_s: float
    statuses: dict[str, int]


def tasks(how_many: int, *, bombs: bool) -> list[Task]:
    """The batch. A task is a bomb if and only if its id starts with ``bomb``."""
    with open(needs_data("math_test_gold.jsonl"), encoding="utf-8") as lines:
        golds = [json.loads(line)["answer"] for line in lines][: how_many + 1]
    batch = []
    for number in range(how_many):
        answer = golds[number + number % 2]
        if bombs and number % EVERY == EVERY // 2:
            batch.append(Task(id=f"bomb {number}", verifier="math", response=BOMBS[number // EVERY % 4], reference="5"))
        else:
            response = f"The answer is $\\boxed{{{answer}}}$."
            batch.append(Task(id=f"healthy {number}", verifier="math", response=response, reference=golds[number]))
    return batch


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(base_url: str, batch: list[Task]) -> Measured:
    came_ms: list[float] = []
    run_ms: list[float] = []
    statuses: dict[str, int] = {}
    with Client(base_url=base_url, timeout_s=900, retry_failed=False) as client:
        began = time.perf_counter()
        for index, verdict in client.verify_many(batch, batch_size=len(batch)):
            bomb = str(batch[index].id).startswith("bomb")
            kind = f"{'bomb' if bomb else 'healthy'} {verdict.status} {verdict.category or ''}".strip()
            statuses[kind] = statuses.get(kind, 0) + 1
            if bomb and verdict.reward:
                sys.exit(f"a bomb was rewarded: {verdict}")
            if not bomb:
                came_ms.append(1000 * (time.perf_counter() - began))
                run_ms.append(verdict.timing.run_ms)
        whole_s = time.perf_counter() - began
    return Measured(
        p50_ms=percentile(came_ms, 0.5),
        p99_ms=percentile(came_ms, 0.99),
        run_p99_ms=percentile(run_ms, 0.99),
        healthy_per_s=1000 * len(came_ms) / max(came_ms),
        whole_s=whole_s,
        statuses=statuses,
    )


def show(name: str, rounds: list[Measured]) -> Measured:
    """Print and return the medians."""
    middle = Measured(
        *(statistics.median(getattr(each, key) for each in rounds) for key in Measured.__slots__[:-1]),
        rounds[-1].statuses,
    )
    print(
        f"{name:<14} came p50 {middle.p50_ms:.0f} ms, p99 {middle.p99_ms:.0f} ms; run p99 {middle.run_p99_ms:.1f} ms; "
        f"{middle.healthy_per_s:.0f} healthy tasks/s; whole batch {middle.whole_s:.1f} s"
    )
    print(f"{'':<14} {middle.statuses}")
    return middle


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    clean, bombed = tasks(arguments.tasks, bombs=False), tasks(arguments.tasks, bombs=True)
    without: list[Measured] = []
    with_bombs: list[Measured] = []
    with running_server(ADJUDGE_CACHE__ENTRIES="0") as server:
        measure(server.base_url, clean[:100])  # the workers' first tasks are slower
        for _ in range(arguments.rounds):
            without.append(measure(server.base_url, clean))
            with_bombs.append(measure(server.base_url, bombed))
    plain, hit = show("without bombs", without), show("with 2 % bombs", with_bombs)
    throughput = hit.healthy_per_s / plain.healthy_per_s
    print(f"p99 of the healthy x {hit.p99_ms / plain.p99_ms:.2f}, their throughput x {throughput:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
