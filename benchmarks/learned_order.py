"""What does a learned order of tests save, on answers that fail one late test of forty?

    python benchmarks/learned_order.py [--url URL] [--answers N] [--late K]

The problem adds numbers; every wrong answer is right but for the K-th test. The answers differ by a comment, so that
none is known from the cache. Three passes: the order of the data set (`learn_order` off), the learned one, and right
answers under both, of which every test runs either way. Ends with status 1 if a reward depends on the order.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import uuid
from typing import Any

__all__ = ["problem", "right_answer", "tasks", "wrong_answer"]

TESTS = 40


def problem(salt: str) -> dict[str, Any]:
    """Forty tests; ``salt`` keeps the server from knowing them."""
    inputs = [f"{number} {number * number + 3}\n{salt}\n" for number in range(TESTS)]
    return {"inputs": inputs, "outputs": [f"{number + number * number + 3}\n" for number in range(TESTS)]}


def right_answer(number: int) -> str:
    return f"```python\n# answer {number}\na, b = map(int, input().split())\nprint(a + b)\n```"


def wrong_answer(number: int, late: int) -> str:
    """Fails the test ``late`` (from 1) and no other one."""
    return f"```python\n# answer {number}\na, b = map(int, input().split())\nprint(a + b + (a == {late - 1}))\n```"


def tasks(reference: dict[str, Any], responses: list[str], *, learn_order: bool) -> list[dict[str, Any]]:
    shared = {"verifier": "code", "reference": reference, "options": {"learn_order": learn_order}}
    return [{"id": str(number), "response": response, **shared} for number, response in enumerate(responses)]


def _timed(base_url: str, batch: list[dict[str, Any]]) -> tuple[float, list[Any]]:
    from adjudge import Client

    began = time.perf_counter()
    with Client(base_url=base_url, timeout_s=3600) as client:
        verdicts = dict(client.verify_many(batch, batch_size=16))
    return len(batch) / (time.perf_counter() - began), [verdicts[index] for index in range(len(batch))]


def _measure(base_url: str, answers: int, late: int) -> int:
    wrong = [wrong_answer(number, late) for number in range(answers)]
    right = [right_answer(number) for number in range(answers)]
    faults = 0
    rates: dict[tuple[bool, bool], float] = {}
    _timed(base_url, tasks(problem(uuid.uuid4().hex), right[:4], learn_order=False))  # so that all is warm
    for learn_order in (False, True):
        reference = problem(uuid.uuid4().hex)
        for is_right, responses, reward in ((False, wrong, 0.0), (True, right, 1.0)):
            rate, verdicts = _timed(base_url, tasks(reference, responses, learn_order=learn_order))
            rates[learn_order, is_right] = rate
            odd = [verdict for verdict in verdicts if verdict.reward != reward]
            faults += len(odd)
            ran = sum(verdict.evidence.get("run", 0) for verdict in verdicts) / len(verdicts)
            what = f"right answers, all {TESTS} tests" if is_right else f"wrong answers, failing test {late} of {TESTS}"
            order = "learned order" if learn_order else "data set's order"
            print(f"{order:17} {what:38} {rate:8.1f} answers/s  {ran:5.1f} tests run each")
            for verdict in odd[:3]:
                print(f"EXCEPTION: reward {verdict.reward}, not {reward}: {verdict.status}: {verdict.reason[:200]}")
    print(f"wrong answers: {rates[True, False] / rates[False, False]:.1f} times as fast in the learned order")
    return 1 if faults else 0


def main() -> int:
    from _server import running_server

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="use this server instead of starting one")
    parser.add_argument("--answers", type=int, default=200, help="answers of each kind (default: 200)")
    parser.add_argument("--late", type=int, default=38, help="the test that wrong answers fail (default: 38)")
    arguments = parser.parse_args()
    if not 1 <= arguments.late <= TESTS:
        parser.error(f"--late is between 1 and {TESTS}")
    with contextlib.ExitStack() as stack:
        url = arguments.url or stack.enter_context(running_server()).base_url
        return _measure(url, arguments.answers, arguments.late)


if __name__ == "__main__":
    sys.exit(main())
