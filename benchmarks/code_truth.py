"""Is every canonical HumanEval and MBPP solution rewarded, and none that returns nothing?

    python benchmarks/code_truth.py [--url URL] [--only humaneval|mbpp]

Every problem goes through the verifier `code` in its own layout, several ways: HumanEval's solution as a whole function
and as the bare completion of its prompt, MBPP's as it is; and the same with the body of the tested functions replaced
by `return None`. The first must get 1, the last 0. Printed: every exception by name.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["KNOWN_NONE", "Case", "humaneval_cases", "mbpp_cases"]

KNOWN_NONE: dict[str, str] = {}
"""Problems whose tests accept a function that returns nothing, and why."""


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to one problem, and the reward that it must get."""

    name: str
    response: str
    reference: dict[str, Any]
    reward: float

    def task(self) -> dict[str, Any]:
        return {"id": self.name, "verifier": "code", "response": self.response, "reference": self.reference}


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def humaneval_cases(path: Path) -> Iterator[Case]:
    """Four answers to each problem of ``HumanEval.jsonl.gz``."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            reference = {key: row[key] for key in ("prompt", "entry_point", "test")}
            name, prompt, solution = row["task_id"], row["prompt"], row["canonical_solution"]
            yield Case(f"{name}/whole", _fenced(prompt + solution), reference, 1.0)
            yield Case(f"{name}/completion", _fenced(solution), reference, 1.0)
            yield Case(f"{name}/none", _fenced(prompt + "    return None\n"), reference, 0.0)
            yield Case(f"{name}/none-completion", _fenced("    return None"), reference, 0.0)


def mbpp_cases(path: Path) -> Iterator[Case]:
    """Two answers to each problem of ``mbpp.jsonl``."""
    with open(path, encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            name = f"MBPP/{row['task_id']}"
            yield Case(f"{name}/code", _fenced(row["code"]), row, 1.0)
            yield Case(f"{name}/none", _fenced(_returning_none(row["code"], row["test_list"])), row, 0.0)


def _returning_none(code: str, tests: list[str]) -> str:
    """``code`` with the body of every function that the tests call replaced by ``return None``."""
    called = {
        node.func.id
        for node in ast.walk(ast.parse("\n".join(tests)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some solutions hold "\\w" in plain strings
        tree = ast.parse(code)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in called:
            node.body = [ast.Return(ast.Constant(None))]
    return ast.unparse(ast.fix_missing_locations(tree))


def _judge(base_url: str, cases: list[Case]) -> list[Any]:
    from adjudge import Client

    verdicts: list[Any] = [None] * len(cases)
    with Client(base_url=base_url, timeout_s=3600) as client:
        for index, verdict in client.verify_many([case.task() for case in cases], batch_size=64):
            verdicts[index] = verdict
    return verdicts


def _report(cases: list[Case], verdicts: list[Any], elapsed_s: float) -> int:
    unexplained = 0
    for case, verdict in zip(cases, verdicts, strict=True):
        if verdict.reward == case.reward:
            continue
        reason = KNOWN_NONE.get(case.name)
        unexplained += reason is None
        got = verdict.category if verdict.status == "ok" else verdict.status
        print(f"{'known' if reason else 'EXCEPTION'}  {case.name}: reward {verdict.reward} ({got}), not {case.reward}")
        print(f"           {reason or verdict.reason[:300]}")
    for wanted, what in ((1.0, "canonical solutions"), (0.0, "answers that return nothing")):
        chosen = [(case, verdict) for case, verdict in zip(cases, verdicts, strict=True) if case.reward == wanted]
        right = sum(verdict.reward == case.reward for case, verdict in chosen)
        print(f"{right} of {len(chosen)} {what} get {wanted:g}")
    print(f"{len(cases) / elapsed_s:,.1f} answers/s ({elapsed_s:.1f} s), {unexplained} unexplained")
    return 1 if unexplained else 0


def main() -> int:
    from _server import needs_data, running_server

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="use this server instead of starting one")
    parser.add_argument("--only", choices=["humaneval", "mbpp"])
    arguments = parser.parse_args()
    cases: list[Case] = []
    if arguments.only != "mbpp":
        cases += humaneval_cases(needs_data("HumanEval.jsonl.gz"))
    if arguments.only != "humaneval":
        cases += mbpp_cases(needs_data("mbpp.jsonl"))
    if arguments.url:
        began = time.perf_counter()
        return _report(cases, _judge(arguments.url, cases), time.perf_counter() - began)
    with running_server() as server:
        began = time.perf_counter()
        return _report(cases, _judge(server.base_url, cases), time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
