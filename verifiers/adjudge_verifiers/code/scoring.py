"""From the results of single tests to one verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.types import Category, Trust, Verdict
from adjudge_sandbox.base import Examination, FunctionCall, Outcome, Run, RunResult

__all__ = ["CATEGORY_OF", "Scoring", "TestOutcome", "early_exit", "score"]

Scoring = Literal["all", "fraction", "first_n"]
"""``all``: 1 if every test passes, else 0. ``fraction``: the share of tests that pass. ``first_n``: the share of the
first ``first_n`` tests that pass, as verl's ``continuous`` mode does with ten."""

CATEGORY_OF: dict[Outcome, Category] = {
    Outcome.FAILED_ASSERT: "wrong_answer",
    Outcome.BAD_VALUE: "wrong_answer",
    Outcome.RAISED: "runtime_error",
    Outcome.SIGNALLED: "runtime_error",
    Outcome.COMPILE_ERROR: "compile_error",
    Outcome.TIME_LIMIT: "time_limit",
    Outcome.MEMORY_LIMIT: "memory_limit",
    Outcome.OUTPUT_LIMIT: "output_limit",
}
_ENDED_EARLY = ("SystemExit", "the program ended", "the process ended")
_MAX_SHOWN_TESTS = 20
_MAX_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """What became of one test. ``category`` is ``correct`` if it passed."""

    __test__ = False  # its name is no test class's

    index: int
    category: Category
    detail: str = ""
    ran: bool = True
    cpu_ms: float = 0.0
    stdout: str = ""
    expected: str = ""
    flags: tuple[str, ...] = field(default=())
    trust: Trust = "rules"

    @property
    def passed(self) -> bool:
        return self.category == "correct"

    def shown(self) -> dict[str, Any]:
        """What the verdict's evidence says of it. An expected value is shown only if it is short."""
        line: dict[str, Any] = {"index": self.index, "category": self.category, "cpu_ms": round(self.cpu_ms, 1)}
        if not self.passed:
            line |= {"detail": self.detail[:500], "ran": self.ran}
            if self.stdout:
                line["stdout"] = self.stdout
            if self.expected and len(self.expected) <= _MAX_SHOWN_CHARS:
                line["expected"] = self.expected
        return line


def early_exit(run: Run, result: RunResult) -> bool:
    """Did the program end its process inside a call, where returning is the only honest way out?"""
    if not isinstance(run, FunctionCall | Examination) or result.outcome is not Outcome.RAISED:
        return False
    return result.exit_status == 0 or any(phrase in result.detail for phrase in _ENDED_EARLY)


def shown_output(result: RunResult) -> str:
    """The start of what a program wrote, as text."""
    text = result.stdout[: 2 * _MAX_SHOWN_CHARS].decode("utf-8", "backslashreplace")
    return text[:_MAX_SHOWN_CHARS] + ("..." if len(text) > _MAX_SHOWN_CHARS else "")


def score(
    outcomes: list[TestOutcome], total: int, scoring: Scoring, *, extracted: str, isolation: str, flags: list[str]
) -> Verdict:
    """The verdict over the tests. ``outcomes`` may stop early if ``scoring`` is ``all`` and the last one failed."""
    passed = sum(outcome.passed for outcome in outcomes)
    failure = next((outcome for outcome in outcomes if not outcome.passed), None)
    known = len(outcomes) == total
    share = passed / total
    accuracy = 1.0 if failure is None and known else 0.0
    reward = accuracy if scoring == "all" else share
    category: Category = "correct" if accuracy else ("partial" if reward > 0 else (failure or outcomes[-1]).category)
    found = sorted({*flags, *(flag for outcome in outcomes for flag in outcome.flags)})
    trust: Trust = "in_process" if any(outcome.trust == "in_process" for outcome in outcomes) else "rules"
    evidence: dict[str, Any] = {
        "passed": passed,
        "run": sum(outcome.ran for outcome in outcomes),
        "total": total,
        "tests": [outcome.shown() for outcome in _most_telling(outcomes)],
    }
    return Verdict.scored(
        reward,
        category,
        _reason(failure, passed, total, known),
        parts={"accuracy": accuracy, "pass_rate": share if known else None},
        flags=found,
        extracted=extracted,
        evidence=evidence,
        isolation=isolation,
        trust=trust,
    )


def _most_telling(outcomes: list[TestOutcome]) -> list[TestOutcome]:
    """At most twenty, failures first, in the order of the tests."""
    ranked = sorted(outcomes, key=lambda outcome: (outcome.passed, outcome.index))[:_MAX_SHOWN_TESTS]
    return sorted(ranked, key=lambda outcome: outcome.index)


def _reason(failure: TestOutcome | None, passed: int, total: int, known: bool) -> str:
    if failure is None:
        return f"All {total} tests passed."
    count = f"{passed} of {total} tests passed" if known else f"stopped at the first failure of {total} tests"
    detail = f": {failure.detail}" if failure.detail else ""
    return f"Test {failure.index + 1} ended as {failure.category}{detail} ({count})"[:1000]
