"""Test files for pytest or ``unittest``, as KodCode ships them: ``from solution import f`` and test functions.

The file is run by pytest in the examiner's jail; the answer is in another one, and what the file imports from it are
stand-ins whose calls go there (:class:`adjudge_sandbox.base.Examination`). Each test of the file is a test of its own.
Only what pytest reports as passed has passed: a test that is skipped, expected to fail, not collected, or not reached
because the program ended the session, has not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from adjudge.types import Category
from adjudge_sandbox.base import Examination, Limits, Outcome, RunResult

from .parts import PytestTest, contents
from .scoring import CATEGORY_OF, Found

__all__ = ["examination", "judge_session", "session_limits", "size_of"]

_CATEGORIES: dict[str, Category] = {
    "passed": "correct",
    "failed": "wrong_answer",
    "skipped": "wrong_answer",
    "raised": "runtime_error",
    "memory": "memory_limit",
    "missing": "compile_error",
}
_TEST = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+test", re.MULTILINE)
_MOST_SHARES = 6


def size_of(test: PytestTest) -> int:
    """How many tests the file holds, as far as can be told without running it."""
    return len(test.expected) if test.expected else max(1, len(_TEST.findall(test.code)))


def session_limits(limits: Limits, tests: list[PytestTest]) -> Limits:
    """All tests of a file run in one process, so that the process gets the time of several."""
    shares = min(_MOST_SHARES, max((size_of(test) for test in tests), default=1))
    wall_s = limits.wall_s * shares if limits.wall_s is not None else None
    return replace(limits, cpu_s=limits.cpu_s * shares, wall_s=wall_s)


def examination(test: PytestTest, modules: tuple[str, ...]) -> Examination:
    return Examination(test.code, session=test.name, files=contents(test.files), modules=modules)


def judge_session(test: PytestTest) -> Callable[[RunResult], list[Found]]:
    """One finding for each test of the file that ran, or that was to run."""

    def judge(result: RunResult) -> list[Found]:
        ran = dict(map(_found, result.value or ()))
        ended = result.outcome not in (Outcome.FINISHED, Outcome.FAILED_ASSERT)
        if test.expected:
            return [_expected(name, ran, result if ended else None) for name in test.expected]
        found = list(ran.values())
        if ended:
            found.append(Found(CATEGORY_OF[result.outcome], result.detail, name="the rest of the file" if ran else ""))
        return found or [Found("wrong_answer", result.detail or "No test was collected from the file.")]

    return judge


def _found(row: Any) -> tuple[str, Found]:
    name, outcome, detail = row
    return name, Found(_CATEGORIES[outcome], detail, float(outcome == "passed"), name)


def _expected(name: str, ran: dict[str, Found], ended: RunResult | None) -> Found:
    """What became of an expected test. A name without parameters stands for all that it was run with."""
    wanted = name.rpartition(".py::")[2] or name
    matching = [found for key, found in ran.items() if key == wanted or key.startswith(f"{wanted}[")]
    failed = next((found for found in matching if found.credit < 1), None)
    if failed is not None or matching:
        return replace(failed or matching[0], name=name)
    if ended is not None:
        return Found(CATEGORY_OF[ended.outcome], ended.detail, name=name)
    return Found("wrong_answer", "It was not run.", name=name)
