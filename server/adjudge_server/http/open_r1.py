"""Open-R1's ``code_reward``: the script that it sends, recognised, and judged instead of run.

The script holds an answer and its tests with the expected outputs, runs the one on the other and ends in the share that
passed. Run as it is, the answer lives beside the outputs that it should give and the number that is its reward. So a
script that is Open-R1's, to the letter but for these two, is taken apart (nothing of it is evaluated) and its answer is
judged by our ``code`` verifier. Every other script is run as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from adjudge.types import Task

from .sandboxfusion_rows import fenced

__all__ = ["CodeReward", "recognise"]

_TEMPLATES = frozenset(
    {
        "8e8a2e2a83fa17ffb43f1809dbc6a41784c31bbf65f02e7c2c03d9e6010b0570",
        "9520bbd9625138ede461ea0817cbc6c897c949297fe12afd680574ec26a41820",
    }
)
"""SHA-256 of the script's text in Open-R1's releases, without the answer, the tests and the indentation."""
_CODE = re.compile(r'^([ ]*code_snippet = )(".*")$', re.MULTILINE)
_TESTS = re.compile(r'^([ ]*test_cases = json\.loads\()(".*")\)$', re.MULTILINE)
_CPU_S = 5.0
"""Seconds that the script gives each test."""


@dataclass(frozen=True, slots=True)
class CodeReward:
    """An answer and its tests."""

    code: str
    tests: list[Any]

    def task(self, queue_timeout_s: float | None) -> Task:
        """The share of tests that pass, as the script counts it."""
        tests: list[Any] = [{"input": test["input"], "output": test["output"]} for test in self.tests]
        options: dict[str, Any] = {"scoring": "fraction", "comparison": "lcb", "cpu_s": _CPU_S, "memory_mib": 1024}
        return Task(
            verifier="code",
            response=fenced(self.code, "python"),
            reference={"tests": tests},
            options=options,
            queue_timeout_s=queue_timeout_s,
        )


def recognise(script: str) -> CodeReward | None:
    """What is in it, if this is Open-R1's script with tests of input and output."""
    code, tests = _CODE.search(script), _TESTS.search(script)
    if code is None or tests is None or code.end() > tests.start():
        return None
    bare = (
        f"{script[: code.start()]}{code[1]}{{code}}{script[code.end() : tests.start()]}"
        f"{tests[1]}{{test_cases}}){script[tests.end() :]}"
    )
    if len(bare) > 5000 or _digest(bare) not in _TEMPLATES:
        return None
    try:
        answer, cases = json.loads(code[2]), json.loads(json.loads(tests[2]))
    except (ValueError, TypeError, RecursionError):
        return None
    good = isinstance(answer, str) and isinstance(cases, list) and bool(cases)
    return CodeReward(answer, cases) if good and all(map(_is_io, cases)) else None


def _digest(text: str) -> str:
    return hashlib.sha256(textwrap.dedent(text).strip().encode()).hexdigest()


def _is_io(case: Any) -> bool:
    return isinstance(case, dict) and isinstance(case.get("input"), str) and isinstance(case.get("output"), str)
