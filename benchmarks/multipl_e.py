"""Test code in the answer's own language: right, wrong and cheating answers to MultiPL-E's problems, by language.

    python benchmarks/multipl_e.py [--url URL] [--language cpp ...]

Six HumanEval problems in sixteen languages, as MultiPL-E publishes them, and answers that were written for this suite
(``tests/verifiers/cases/multipl_e_solutions.toml``): completions of the prompt, whole functions and programs, answers
that fail exactly one assertion, and cheats that end the process early, replace the assertion or return what equals
everything. Printed: a row for each language that the server can run, and every answer that did not get its reward.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ANSWERS", "Case", "read_cases"]

ANSWERS = Path(__file__).resolve().parents[1] / "tests" / "verifiers" / "cases" / "multipl_e_solutions.toml"
_RIGHT = ("completion", "whole")


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to one problem in one language."""

    language: str
    name: str
    kind: str
    code: str
    row: dict[str, Any]

    @property
    def reward(self) -> float:
        return 1.0 if self.kind in _RIGHT else 0.0

    @property
    def response(self) -> str:
        return f"```{self.language}\n{self.code}```"

    def task(self) -> dict[str, Any]:
        options = {"cpu_s": 20}
        return {"verifier": "code", "response": self.response, "reference": self.row, "options": options}


def read_cases(data: Path) -> list[Case]:
    """``data`` is the data set's ``multipl_e_sample.jsonl``."""
    lines = data.read_text("utf-8").splitlines()
    rows = {(row["name"], row["language"].partition("_")[0]): row for row in map(json.loads, lines)}
    answers = tomllib.loads(ANSWERS.read_text("utf-8"))["answer"]
    return [Case(**answer, row=rows[answer["name"], answer["language"]]) for answer in answers]


def _judge(base_url: str, cases: list[Case]) -> list[Any]:
    from adjudge import Client

    verdicts: list[Any] = [None] * len(cases)
    with Client(base_url=base_url, timeout_s=3600) as client:
        for index, verdict in client.verify_many([case.task() for case in cases], batch_size=64):
            verdicts[index] = verdict
    return verdicts


def _share(chosen: Iterable[tuple[Case, Any]]) -> str:
    rewarded = [verdict.reward == case.reward for case, verdict in chosen]
    return f"{sum(rewarded)}/{len(rewarded)}"


def _report(cases: list[Case], verdicts: list[Any], elapsed_s: float) -> int:
    pairs = list(zip(cases, verdicts, strict=True))
    bad = 0
    print(
        f"{'language':10} {'right accepted':>14} {'wrong refused':>14} {'cheats refused':>14} {'called tampered':>15}"
    )
    for language in dict.fromkeys(case.language for case in cases):
        own = [(case, verdict) for case, verdict in pairs if case.language == language]
        if all(verdict.status == "invalid_task" for _, verdict in own):
            print(f"{language:10} not here: {own[0][1].reason[:90]}")
            continue
        kinds = [[pair for pair in own if pair[0].kind in kind] for kind in (_RIGHT, ("wrong",), ("cheat",))]
        tampered = sum(verdict.category == "tampered" for _, verdict in kinds[2])
        shares = " ".join(f"{_share(chosen):>14}" for chosen in kinds)
        print(f"{language:10} {shares} {f'{tampered}/{len(kinds[2])}':>15}")
        for case, verdict in own:
            if verdict.reward != case.reward:
                bad += 1
                print(
                    f"  EXCEPTION {case.name} ({case.kind}): {verdict.status} {verdict.reward}: {verdict.reason[:300]}"
                )
    print(f"{len(cases)} answers in {elapsed_s:.0f} s, {bad} exceptions")
    return 1 if bad else 0


def main() -> int:
    from _server import needs_data, running_server

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="use this server instead of starting one")
    parser.add_argument("--language", action="append", help="only this one, as the data set names it; may be repeated")
    arguments = parser.parse_args()
    cases = read_cases(needs_data("multipl_e_sample.jsonl"))
    cases = [case for case in cases if not arguments.language or case.language in arguments.language]
    if arguments.url:
        began = time.perf_counter()
        return _report(cases, _judge(arguments.url, cases), time.perf_counter() - began)
    with running_server() as server:
        began = time.perf_counter()
        return _report(cases, _judge(server.base_url, cases), time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
