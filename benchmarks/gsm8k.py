"""Do we agree with 5,276 human-checked labels? Every GSM8K solution of the shared data through `/v1/verify/batch`.

    python benchmarks/gsm8k.py

The data set has four model solutions for each of 1,319 problems and says of each whether its final answer is right.
Printed: agreement, every disagreement, tasks without a verdict, and tasks per second of one server.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from _server import needs_data, running_server

from adjudge import Client, Task, Verdict

NUMERIC = {"verifier": "numeric", "options": {"conventions": ["anchor"], "anchors": ["A:"]}}
"""The solutions end in a line ``A: 26``: only that line is the answer, whatever numbers come before it."""


def load() -> tuple[list[Task], list[bool]]:
    """One task and one label for each solution."""
    tasks: list[Task] = []
    labels: list[bool] = []
    with open(needs_data("gsm8k_model_solutions.jsonl"), encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            problem: dict[str, Any] = json.loads(line)
            gold = problem["ground_truth"].rsplit("A:", 1)[1].strip()
            for model, solution in problem.items():
                if isinstance(solution, dict):
                    task_id = f"{number}/{model}"
                    tasks.append(Task(id=task_id, response=solution["solution"], reference=gold, **NUMERIC))
                    labels.append(solution["is_correct"])
    return tasks, labels


def judge(base_url: str, tasks: list[Task]) -> tuple[list[Verdict], float]:
    """All verdicts in the order of the tasks, and the seconds that they took."""
    verdicts: list[Verdict | None] = [None] * len(tasks)
    with Client(base_url=base_url, timeout_s=600) as client:
        began = time.perf_counter()
        for index, verdict in client.verify_many(tasks, batch_size=1000):
            verdicts[index] = verdict
        elapsed_s = time.perf_counter() - began
    return [verdict for verdict in verdicts if verdict is not None], elapsed_s


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="use this server instead of starting one")
    url: str | None = parser.parse_args().url
    tasks, labels = load()
    if url:
        verdicts, elapsed_s = judge(url, tasks)
    else:
        with running_server() as server:
            verdicts, elapsed_s = judge(server.base_url, tasks)

    unjudged = [verdict for verdict in verdicts if verdict.status != "ok"]
    wrong = [
        (task, label, verdict)
        for task, label, verdict in zip(tasks, labels, verdicts, strict=True)
        if verdict.status == "ok" and (verdict.reward == 1.0) != label
    ]
    for verdict in unjudged:
        print(f"no verdict    {verdict.id}: {verdict.status}: {verdict.reason}")
    for task, label, verdict in wrong:
        print(f"disagreement  {task.id}: label {label}, reward {verdict.reward} ({verdict.category})")
        print(f"              gold {task.reference!r}, extracted {verdict.extracted!r}, ends {task.text[-60:]!r}")
    agreed = len(tasks) - len(wrong) - len(unjudged)
    print(f"{agreed} of {len(tasks)} agree with the label ({agreed / len(tasks):.2%}), {len(unjudged)} without verdict")
    print(f"{len(tasks) / elapsed_s:,.0f} tasks/s through the SDK ({elapsed_s:.2f} s)")
    return 1 if wrong or unjudged else 0


if __name__ == "__main__":
    sys.exit(main())
