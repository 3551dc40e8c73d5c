"""SandboxFusion's ``/submit`` for tests of input and output (its CommonOJ): find the program, run it, compare outside.

Its rules hold, with these differences: the whole answer runs in one jail and is compiled once; a test may also bring
files and expect some (its format has them, its code ignores them); a response without a program fails.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Script
from adjudge_verifiers.code.compare import Profile, difference
from adjudge_verifiers.extract.code import blocks, find_program
from adjudge_verifiers.extract.thinking import strip_thinking

from ..engine import Engine
from ..engine.prepare import describe_error
from .problems import Problem
from .programs import Spoken, check_name
from .sandboxfusion import no_result, run_response

__all__ = ["ExtractedType", "IoCase", "extract", "from_text", "read_cases", "run_cases"]

ExtractedType = Literal["fenced", "incomplete_fenced", "heuristic", "empty"]

_FIRST_CHUNK = 8
_CHUNK_GROWTH = 4
_MAX_TIME_OUTS = 3
_SHORT_CHARS = 1000


class IoCase(BaseModel):
    """One test: ``stdin`` and ``stdout`` are the streams, every other name is a file."""

    input: dict[str, str] = Field(default_factory=dict)
    output: dict[str, str] = Field(default_factory=dict)


def extract(completion: str, language: str) -> tuple[str, ExtractedType]:
    """The first fenced block in the language, else the first; a block that is never closed only if none is."""
    text, open_thinking = strip_thinking(completion)
    if open_thinking:
        return "", "empty"
    found = blocks(text)
    closed = [block for block in found if block.closed]
    pool = closed or found
    if pool:
        chosen = next((block for block in pool if block.language == language), pool[0])
        kind: ExtractedType = "fenced" if closed else "incomplete_fenced"
        return (chosen.code, kind) if chosen.code.strip() else ("", "empty")
    whole = find_program(completion, language=language)
    return (whole.text, "heuristic") if whole.outcome == "answered" else ("", "empty")


def from_text(value: Any, what: str) -> Any:
    """A column that may be JSON in JSON. Raises :class:`Problem`."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        raise Problem("invalid-request", f"config.provided_data.{what} is text, and not JSON.") from None


def read_cases(tests: Any) -> list[IoCase]:
    """The tests of a row. Raises :class:`Problem` that names the first that is none."""
    if not isinstance(tests, list) or not tests:
        raise Problem("invalid-request", "config.provided_data.test holds no tests.")
    cases = []
    for number, test in enumerate(tests, 1):
        try:
            case = IoCase.model_validate(test)
        except ValidationError as error:
            raise Problem("invalid-request", f"Test {number}: {describe_error(error, IoCase)}") from None
        if not case.output:
            raise Problem("invalid-request", f"Test {number} has no expected output.")
        cases.append(case)
    return cases


@dataclass(slots=True)
class _Outcome:
    passed: bool
    exec_info: dict[str, Any]
    result: RunResult | None = None


async def run_cases(
    engine: Engine,
    code: str,
    language: Spoken,
    cases: Sequence[IoCase],
    limits: Limits,
    *,
    comparison: Profile,
    run_all: bool,
    full: bool,
    queue_timeout_s: float | None,
) -> list[dict[str, Any]]:
    """``tests`` of the reply: up to the first that fails, or all. Raises :class:`NotExecuted`."""
    program = Program(code, language.given)
    outcomes: list[_Outcome] = []
    chunk, time_outs = _FIRST_CHUNK, 0
    while len(outcomes) < len(cases):
        if outcomes and not outcomes[-1].passed:
            if not run_all:
                break
            if (known := _settled(outcomes[-1], time_outs)) is not None:
                outcomes += [known] * (len(cases) - len(outcomes))
                break
        batch = cases[len(outcomes) : len(outcomes) + chunk]
        results = await engine.execute(
            program, [_script(case) for case in batch], limits, stop_at_failure=True, queue_timeout_s=queue_timeout_s
        )
        for case, result in zip(batch, results, strict=False):
            time_outs += result.outcome is Outcome.TIME_LIMIT
            outcomes.append(_judged(case, result, language, comparison))
            if not outcomes[-1].passed and not run_all:
                break
        chunk *= _CHUNK_GROWTH
    return [_case_reply(case, outcome, full=full) for case, outcome in zip(cases, outcomes, strict=False)]


def _script(case: IoCase) -> Script:
    files = {check_name(name): text.encode() for name, text in case.input.items() if name != "stdin"}
    fetch = tuple(check_name(name) for name in case.output if name != "stdout")
    return Script(case.input.get("stdin", "").encode(), files=files, fetch=fetch)


def _judged(case: IoCase, result: RunResult, language: Spoken, comparison: Profile) -> _Outcome:
    info = run_response(result, compiled=language.compiled)
    return _Outcome(result.outcome is Outcome.FINISHED and _same(case, result, comparison), info, result)


def _same(case: IoCase, result: RunResult, comparison: Profile) -> bool:
    for name, expected in case.output.items():
        got = result.stdout if name == "stdout" else result.files.get(check_name(name))
        if got is None or difference(comparison, expected, got) is not None:
            return False
    return True


def _settled(last: _Outcome, time_outs: int) -> _Outcome | None:
    """What every further test would give: the program does not compile, or has had its time."""
    if last.result is not None and last.result.outcome is Outcome.COMPILE_ERROR:
        return last
    if time_outs >= _MAX_TIME_OUTS:
        return _Outcome(False, no_result(f"not run: {_MAX_TIME_OUTS} tests had run out of time"))
    return None


def _case_reply(case: IoCase, outcome: _Outcome, *, full: bool) -> dict[str, Any]:
    whole = full or not outcome.passed
    shown = [
        values if whole else {name: _short(text) for name, text in values.items()}
        for values in (case.input, case.output)
    ]
    return {
        "passed": outcome.passed,
        "exec_info": outcome.exec_info,
        "test_info": {"input": shown[0], "output": shown[1]},
    }


def _short(text: str) -> str:
    half = _SHORT_CHARS // 2
    return text if len(text) <= _SHORT_CHARS else f"{text[:half]}...{text[-half:]}"
