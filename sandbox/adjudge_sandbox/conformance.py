"""What every backend must do: a list of checks that any of them can be given.

Each check is one program, one run and what must come back; they are in ``conformance.toml``. The test-suite runs them
on every backend that the host has, and so can whoever writes another one::

    problems = [problem for check in load_checks() if (problem := await find_problem(sandbox, check))]

Programs that are right and unusual are here as much as those that break a limit: a sandbox that fails a correct program
is as wrong as one that lets a wrong one pass.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from .base import Examination, FunctionCall, Limits, Outcome, Program, Run, RunResult, Sandbox, Script

__all__ = ["Check", "find_problem", "load_checks", "run_of", "text_of"]

_UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class Check:
    """One program and what must come back."""

    name: str
    source: str
    run: Run
    outcome: Outcome
    stdout: bytes | None
    """Exact, if given."""
    value: Any
    detail: str
    """Must be part of the detail."""
    limits: Limits
    walls: bool
    """Needs isolation: not for the backend ``none``."""
    unmet: Mapping[str, str] = field(default_factory=dict)
    """Backends that are known not to meet it, and why."""

    def excuse(self, backend: str) -> str:
        """Why this check is not for ``backend``; empty if it is."""
        return "nothing is isolated here" if self.walls and backend == "none" else self.unmet.get(backend, "")


def load_checks() -> list[Check]:
    """All checks. Names are unique."""
    text = resources.files("adjudge_sandbox").joinpath("conformance.toml").read_text("utf-8")
    return [_check(row) for row in tomllib.loads(text)["check"]]


def _check(row: dict[str, Any]) -> Check:
    stdout = text_of(row, "stdout", None)
    return Check(
        name=row["name"],
        source=text_of(row, "source", ""),
        run=run_of(row),
        outcome=Outcome(row.get("outcome", "finished")),
        stdout=stdout.encode() if isinstance(stdout, str) else stdout,
        value=ast.literal_eval(row["value_py"]) if "value_py" in row else _UNSET,
        detail=row.get("detail", ""),
        limits=Limits(**row.get("limits", {})),
        walls=row.get("walls", False),
        unmet=row.get("unmet", {}),
    )


def run_of(row: dict[str, Any]) -> Run:
    """The run that a row describes: ``call``, ``test`` or, by default, a script."""
    if "call" in row:
        args, kwargs = (
            ast.literal_eval(row.get(key, empty)) for key, empty in (("args_py", "()"), ("kwargs_py", "{}"))
        )
        return FunctionCall(row["call"], args, kwargs)
    if "test" in row:
        return Examination(row["test"], row.get("setup", ""), row.get("bind", {}))
    stdin = text_of(row, "stdin", "")
    return Script(stdin.encode() if isinstance(stdin, str) else stdin)


def text_of(row: dict[str, Any], key: str, default: Any) -> Any:
    """``key`` as it is, ``key_py`` as a Python literal, or ``key_parts`` as texts with how often they are repeated."""
    if f"{key}_py" in row:
        return ast.literal_eval(row[f"{key}_py"])
    if f"{key}_parts" in row:
        return "".join(text * times for text, times in row[f"{key}_parts"])
    return row.get(key, default)


async def find_problem(sandbox: Sandbox, check: Check) -> str | None:
    """Run one check; what is wrong with the result, or ``None``."""
    (result,) = await sandbox.run(Program(check.source), [check.run], check.limits)
    wrong = _compare(check, result)
    return f"{check.name}: {wrong}; {result!r}"[:2000] if wrong else None


def _compare(check: Check, result: RunResult) -> str | None:
    if result.outcome is not check.outcome:
        return f"outcome {result.outcome} instead of {check.outcome}"
    if check.stdout is not None and result.stdout != check.stdout:
        return f"stdout {result.stdout[:200]!r} instead of {check.stdout[:200]!r}"
    if check.value is not _UNSET and (result.value != check.value or type(result.value) is not type(check.value)):
        return f"value {result.value!r:.200} instead of {check.value!r:.200}"
    if check.detail not in result.detail:
        return f"detail without {check.detail!r}"
    return None
