"""From the results of single tests to one verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.types import Category, Trust, Verdict
from adjudge_sandbox.base import Outcome, RunResult

from .rewards import Rules

__all__ = ["CATEGORY_OF", "Found", "Suite", "TestOutcome", "score", "shown_output"]

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
_MAX_SHOWN_TESTS = 20
_MAX_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Found:
    """What a judge says of one run. ``credit`` lies between 0 and 1 only if a checker gave points."""

    category: Category
    detail: str = ""
    credit: float = 0.0
    name: str = ""
    """Of a test in a test file."""
    flags: tuple[str, ...] = ()

    @classmethod
    def of(cls, complaint: str | None) -> Found:
        """Right if there is no complaint."""
        return cls("correct", credit=1.0) if complaint is None else cls("wrong_answer", complaint)

    @classmethod
    def unfinished(cls, result: RunResult) -> Found:
        """A run that did not finish."""
        return cls(CATEGORY_OF[result.outcome], result.detail)


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """What became of one test. ``category`` is ``correct`` if it passed."""

    __test__ = False  # its name is no test class's

    index: int
    category: Category
    detail: str = ""
    ran: bool = True
    credit: float = 0.0
    name: str = ""
    cpu_ms: float = 0.0
    stdout: str = ""
    expected: str = ""
    flags: tuple[str, ...] = field(default=())
    trust: Trust = "rules"
    isolation: str | None = None

    @property
    def passed(self) -> bool:
        return self.category == "correct"

    def shown(self) -> dict[str, Any]:
        """What the verdict's evidence says of it. An expected value is shown only if it is short."""
        line: dict[str, Any] = {"index": self.index, "category": self.category, "cpu_ms": round(self.cpu_ms, 1)}
        if self.name:
            line["name"] = self.name[:_MAX_SHOWN_CHARS]
        if 0 < self.credit < 1:
            line["credit"] = round(self.credit, 6)
        if not self.passed:
            line |= {"detail": self.detail[:500], "ran": self.ran}
            if self.stdout:
                line["stdout"] = self.stdout
            if self.expected and len(self.expected) <= _MAX_SHOWN_CHARS:
                line["expected"] = self.expected
        return line


def shown_output(result: RunResult) -> str:
    """The start of what a program wrote, as text."""
    text = result.stdout[: 2 * _MAX_SHOWN_CHARS].decode("utf-8", "backslashreplace")
    return text[:_MAX_SHOWN_CHARS] + ("..." if len(text) > _MAX_SHOWN_CHARS else "")


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests as they are scored."""

    rules: Rules
    sizes: Mapping[int, int]
    """How many tests an entry of the reference holds, where it is not one."""

    def size(self, index: int) -> int:
        return self.sizes.get(index, 1)


def score(suite: Suite, outcomes: list[TestOutcome], *, extracted: str, flags: list[str]) -> Verdict:
    """The verdict over the tests. ``outcomes`` may leave out those that the reward cannot depend on."""
    by_index: dict[int, list[TestOutcome]] = {}
    for outcome in outcomes:
        by_index.setdefault(outcome.index, []).append(outcome)
    credits = {
        index: (sum(each.credit for each in group) / len(group), len(group)) for index, group in by_index.items()
    }
    count = len(suite.rules.weights)
    total = sum(credits[index][1] if index in credits else suite.size(index) for index in range(count))
    passed = sum(outcome.passed for outcome in outcomes)
    failure = next((outcome for outcome in outcomes if not outcome.passed), None)
    known = len(credits) == count
    accuracy = 1.0 if failure is None and known else 0.0
    reward, category = suite.rules.reward(credits), _category(suite, accuracy, failure, outcomes)
    if category == "tampered":
        reward = 0.0
    elif not accuracy and reward > 0:
        category = "partial"
    return Verdict.scored(
        reward,
        category,
        _reason(failure, passed, total, known),
        parts={"accuracy": accuracy, "pass_rate": passed / total if known else None},
        flags=sorted({*flags, *(flag for outcome in outcomes for flag in outcome.flags)}),
        extracted=extracted,
        evidence={
            "passed": passed,
            "run": sum(outcome.ran for outcome in outcomes),
            "total": total,
            **suite.rules.details(credits),
            "tests": [outcome.shown() for outcome in _most_telling(outcomes)],
        },
        isolation=_weakest({outcome.isolation for outcome in outcomes if outcome.isolation is not None}),
        trust="in_process" if any(outcome.trust == "in_process" for outcome in outcomes) else "rules",
    )


def _category(suite: Suite, accuracy: float, failure: TestOutcome | None, outcomes: list[TestOutcome]) -> Category:
    if any(outcome.category == "tampered" for outcome in outcomes):
        return "tampered"
    if accuracy:
        return "correct"
    category = (failure or outcomes[-1]).category
    return "wrong_answer" if category in ("correct", "partial") else category


_STRENGTH = ("none", "landlock", "container", "jail", "zygote")


def _weakest(isolations: set[str]) -> str | None:
    """What can be said of all runs; a name that is not known here counts as the weakest but for ``none``."""
    return min(isolations, key=lambda name: (_STRENGTH.index(name) if name in _STRENGTH else 0.5, name), default=None)


def _most_telling(outcomes: list[TestOutcome]) -> list[TestOutcome]:
    """At most twenty, failures first, in the order of the tests."""
    ranked = sorted(outcomes, key=lambda outcome: (outcome.passed, outcome.index))[:_MAX_SHOWN_TESTS]
    return sorted(ranked, key=lambda outcome: outcome.index)


def _reason(failure: TestOutcome | None, passed: int, total: int, known: bool) -> str:
    if failure is None:
        return f"All {total} tests passed."
    count = f"{passed} of {total} tests passed" if known else f"stopped at the first failure of {total} tests"
    detail = f": {failure.detail}" if failure.detail else ""
    name = f" ({failure.name})" if failure.name else ""
    return f"Test {failure.index + 1}{name} ended as {failure.category}{detail} ({count})"[:1000]
