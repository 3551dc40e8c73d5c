"""``/compat/open_instruct/test_program`` and ``/test_program_stdio``: open-instruct's ``--code_api_url``.

Request ``{"program", "tests", "max_execution_time"}``; reply ``{"results": [0 or 1], "runtimes": [seconds]}``, one of
each for every test, in order, a run-time of -1 for a test that was not passed. ``tests`` are assert statements, or
objects with ``input`` and ``output``; as a list, as JSON text, or packed as open-instruct packs them, which is read
without unpickling anything but plain data. Its client turns every failure into a reward of 0 but tries 5xx again first:
so what is ours is a 503, and what is the data set's a 422.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from adjudge.types import Task, Verdict
from adjudge_verifiers.code.blobs import decode_blob, looks_like_blob

from ..body import body_schema, read_model
from ..compat import refuse
from ..disconnect import while_connected
from ..middleware import request_facts
from ..problems import Problem
from ..programs import MAX_SECONDS, ProgramOptions, check_length, json_reply, program_options
from ..sandboxfusion_oj import from_text
from ..sandboxfusion_rows import fenced
from ..tasks import check_count
from .verify import engine_of

__all__ = ["BODIES", "ProgramTestsRequest", "router"]

router = APIRouter(prefix="/compat/open_instruct", tags=["compat"])

_GROUP = 20
"""Tests in one task: as many as a verdict's evidence tells about one by one."""
_LEAST_S = 0.1


class ProgramTestsRequest(BaseModel):
    """What open-instruct sends."""

    program: str
    tests: Any = Field(default=None, description="A list, JSON text, or base64 of compressed plain data.")
    max_execution_time: float = Field(default=1.0, gt=0, le=MAX_SECONDS, description="Seconds of each test.")


BODIES = (ProgramTestsRequest,)


@router.post(
    "/test_program", summary="open-instruct: assert statements", openapi_extra=body_schema(ProgramTestsRequest)
)
async def test_program(request: Request) -> Response:
    """Which of the assert statements hold."""
    return await _judge(request, "assert")


@router.post(
    "/test_program_stdio", summary="open-instruct: input and output", openapi_extra=body_schema(ProgramTestsRequest)
)
async def test_program_stdio(request: Request) -> Response:
    """Which of the inputs give their outputs."""
    return await _judge(request, "stdio")


async def _judge(request: Request, kind: Literal["assert", "stdio"]) -> Response:
    options = program_options(request, ProgramOptions)
    body = await read_model(request, ProgramTestsRequest)
    engine = engine_of(request)
    check_length(body.program, engine.settings.limits)
    tests = [_native(test, number, kind) for number, test in enumerate(_decoded(body.tests), 1)]
    check_count(len(tests), engine.settings.limits)
    groups = [tests[start : start + _GROUP] for start in range(0, len(tests), _GROUP)]
    tasks = [_task(body, group, options) for group in groups]
    verdicts = await while_connected(request, engine.judge_all(tasks, request_id=request.state.request_id))
    request_facts.get().update(task_count=len(tests), ok=sum(verdict.ok for verdict in verdicts))
    if failed := [verdict for verdict in verdicts if not verdict.ok]:
        raise refuse(failed[0], hint=False)
    found = [each for verdict, group in zip(verdicts, groups, strict=True) for each in _each(verdict, len(group))]
    return json_reply({"results": [int(passed) for passed, _ in found], "runtimes": [seconds for _, seconds in found]})


def _decoded(tests: Any) -> list[Any]:
    if isinstance(tests, str) and tests.strip():
        try:
            tests = decode_blob(tests.strip()) if looks_like_blob(tests.strip()) else from_text(tests, "tests")
        except ValueError as error:
            raise Problem("invalid-request", f"tests: {error}") from None
    if not tests:
        return []
    if not isinstance(tests, Sequence) or isinstance(tests, str):
        raise Problem("invalid-request", "tests should be a list.")
    return list(tests)


def _native(test: Any, number: int, kind: str) -> Any:
    """One test in a form that the verifier takes. Raises :class:`Problem`."""
    if kind == "assert" and isinstance(test, str) and test.strip():
        return {"assert": test.replace("\r\n", "\n")}
    if kind == "stdio" and isinstance(test, dict) and "input" in test and "output" in test:
        return {key: test[key] for key in ("input", "output", "fn_name") if test.get(key) is not None}
    wanted = "an assert statement" if kind == "assert" else "an object with input and output"
    raise Problem("invalid-request", f"tests: number {number} is not {wanted}.")


def _task(body: ProgramTestsRequest, tests: list[Any], options: ProgramOptions) -> Task:
    return Task(
        verifier="code",
        response=fenced(body.program, "python"),
        reference={"tests": tests},
        options={
            "scoring": "fraction",
            "comparison": "lcb",
            "cpu_s": min(max(body.max_execution_time, _LEAST_S), 120.0),
            "memory_mib": 2048,
        },
        queue_timeout_s=options.queue_timeout_s,
    )


def _each(verdict: Verdict, count: int) -> list[tuple[bool, float]]:
    """Passed or not, and the seconds, of each test of one task."""
    lines = {line["index"]: line for line in verdict.evidence.get("tests", ())}
    found = []
    for index in range(count):
        line = lines.get(index)
        passed = line is not None and line["category"] == "correct"
        found.append((passed, round(line["cpu_ms"] / 1000, 6) if line is not None and passed else -1.0))
    return found
