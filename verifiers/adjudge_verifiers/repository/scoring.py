"""From the report of the tests to a verdict: positive evidence for each listed test, or no point for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.types import Category, Trust, Verdict
from adjudge_sandbox.container.base import Ended

from .junit import Reported, find
from .reference import RepositoryReference
from .running import TestRun

__all__ = ["Scoring", "Standing", "refused", "score", "stand", "unfinished"]

Scoring = Literal["resolved", "fraction"]

_MAX_SHOWN = 20
_ENDINGS: dict[Ended, tuple[Category, str]] = {
    Ended.WALL: ("time_limit", "The tests did not end in time."),
    Ended.CPU: ("time_limit", "The tests used up their CPU time."),
    Ended.MEMORY: ("memory_limit", "The tests needed too much memory."),
    Ended.OUTPUT: ("output_limit", "The tests printed too much."),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """What one run says about the listed tests."""

    run: TestRun
    reported: dict[str, Reported]
    tripped: tuple[str, ...]
    """Tests that must fail and were reported to pass, or not at all."""

    def passed(self, name: str) -> bool:
        """Reported, and as passed: skipped, expected to fail, and missing are none of it."""
        return name in self.reported and self.reported[name].status == "passed"


def stand(run: TestRun, listed: Sequence[str], must_fail: Sequence[str], *, strict: bool = False) -> Standing:
    """Look up the listed tests and the trip-wires in the report.

    A trip-wire that was not reported does not count if nothing of its file passed: the answer's code may not even be
    importable. ``strict``: it counts all the same.
    """
    if run.cases is None:
        return Standing(run, {}, ())
    reported = find(run.cases, listed)
    passed = [name for name, case in reported.items() if case.status == "passed"]
    wires = find(run.cases, must_fail)
    tripped = []
    for name in must_fail:
        status = wires[name].status if name in wires else "missing"
        beside = strict or any(other.startswith(_file_of(name)) for other in passed)
        if status == "passed" or (status in ("missing", "skipped") and beside):
            tripped.append(name)
    if must_fail and passed and run.result.exit_status == 0:
        tripped = list(must_fail)  # a runner whose tests have failed does not say that all is well
    return Standing(run, reported, tuple(tripped))


def _file_of(test: str) -> str:
    """What the names of all tests of this one's file begin with."""
    if "::" in test:
        return test.partition("::")[0] + "::"
    return test.rpartition(".")[0].rpartition(".")[0] + "."


def refused(
    category: Category,
    reason: str,
    *,
    extracted: str | None = None,
    flags: Sequence[str] = (),
    isolation: str | None = None,
    trust: Trust = "rules",
    **evidence: Any,
) -> Verdict:
    """Reward 0 without a run of the tests, or with one that left no evidence."""
    return Verdict.scored(
        0.0,
        category,
        reason[:1000],
        parts={"resolved": 0.0, "fail_to_pass": 0.0, "pass_to_pass": 0.0},
        flags=sorted(flags),
        extracted=extracted,
        evidence=evidence,
        isolation=isolation,
        trust=trust,
    )


def unfinished(run: TestRun) -> tuple[Category, str]:
    """Why there is no report."""
    if run.result.ended in _ENDINGS:
        return _ENDINGS[run.result.ended]
    return "runtime_error", f"The test run ended with exit status {run.result.exit_status}, and {run.problem}."


def score(standing: Standing, reference: RepositoryReference, scoring: Scoring, **rest: Any) -> Verdict:
    """All listed tests passed, or which did not. ``rest`` goes to the verdict."""
    to_pass = [name for name in reference.fail_to_pass if standing.passed(name)]
    to_keep = [name for name in reference.pass_to_pass if standing.passed(name)]
    listed = reference.listed
    missed = [name for name in listed if not standing.passed(name)]
    share = 1 - len(missed) / len(listed)
    resolved = not missed
    reward = share if scoring == "fraction" else float(resolved)
    evidence = {
        "fail_to_pass": f"{len(to_pass)} of {len(reference.fail_to_pass)}",
        "pass_to_pass": f"{len(to_keep)} of {len(reference.pass_to_pass)}",
        "not_passed": [_shown(name, standing) for name in missed[:_MAX_SHOWN]],
        "wall_s": round(standing.run.result.wall_s, 3),
        "cpu_s": round(standing.run.result.cpu_s, 3),
        **rest.pop("evidence", {}),
    }
    if missed:
        evidence["output"] = standing.run.output
    return Verdict.scored(
        reward,
        "correct" if resolved else "partial" if reward > 0 else "wrong_answer",
        _reason(missed, listed, standing),
        parts={
            "resolved": float(resolved),
            "fail_to_pass": len(to_pass) / len(reference.fail_to_pass),
            "pass_to_pass": len(to_keep) / len(reference.pass_to_pass) if reference.pass_to_pass else 1.0,
        },
        evidence=evidence,
        trust="in_process",
        **rest,
    )


def _shown(name: str, standing: Standing) -> dict[str, str]:
    case = standing.reported.get(name)
    return {
        "test": name[:300],
        "status": case.status if case else "missing",
        "message": case.message[:300] if case else "",
    }


def _reason(missed: list[str], listed: list[str], standing: Standing) -> str:
    if not missed:
        return f"All {len(listed)} listed tests passed."
    case = standing.reported.get(missed[0])
    status = case.status if case else "was not run"
    return f"{len(missed)} of {len(listed)} listed tests did not pass; first {missed[0][:200]}: {status}."
