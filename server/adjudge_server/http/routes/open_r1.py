"""``POST /compat/open_r1/execute_batch``: the routers that Open-R1 puts before E2B and Morph.

Request ``{"scripts", "languages", "timeout", "request_timeout"}``; reply a list, one object for each script, that both
of its clients read: ``execution`` (E2B) holds ``results``, ``logs`` and ``error``, ``text`` (Morph) the result alone. A
Python script's result is the value of its last expression. Where the sandbox could not run a script, ``execution`` and
``text`` are null and ``exception_str`` says why: Open-R1 makes ``None`` of that, which TRL leaves out of the batch.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from adjudge.types import Verdict
from adjudge_sandbox.base import Program, Script

from ...engine import Engine, NotExecuted
from ..body import body_schema, read_model
from ..disconnect import while_connected
from ..middleware import request_facts
from ..notebook import Cell, cell_program, read_cell
from ..open_r1 import recognise
from ..problems import Problem
from ..programs import MAX_SECONDS, ProgramOptions, check_length, json_reply, language_of, limits_of, program_options
from ..tasks import check_count
from .verify import engine_of

__all__ = ["BODIES", "ExecuteBatchRequest", "router"]

router = APIRouter(prefix="/compat/open_r1", tags=["compat"])

_MEMORY_MIB = 2048


class ExecuteBatchRequest(BaseModel):
    """What Open-R1 sends."""

    scripts: list[str]
    languages: list[str] = Field(default_factory=list, description="One for each script; default: Python.")
    timeout: float = Field(default=30, gt=0, le=MAX_SECONDS, description="Seconds of each script.")
    request_timeout: float = Field(default=30, gt=0, description="What the client waits for one script.")


BODIES = (ExecuteBatchRequest,)


@router.post("/execute_batch", summary="Open-R1: run scripts", openapi_extra=body_schema(ExecuteBatchRequest))
async def execute_batch(request: Request) -> Response:
    """Run each script by itself, in a jail of its own."""
    options = program_options(request, ProgramOptions)
    body = await read_model(request, ExecuteBatchRequest)
    engine = engine_of(request)
    check_count(len(body.scripts), engine.settings.limits)
    languages = body.languages or ["python"] * len(body.scripts)
    if len(languages) != len(body.scripts):
        raise Problem("invalid-request", f"{len(body.scripts)} scripts, and {len(languages)} languages.")
    for script in body.scripts:
        check_length(script, engine.settings.limits, "A script")
    replies = await while_connected(request, _run_all(engine, body, languages, options, request.state.request_id))
    ran = sum(reply["execution"] is not None for reply in replies)
    request_facts.get().update(task_count=len(replies), ok=ran)
    return json_reply(replies)


async def _run_all(
    engine: Engine, body: ExecuteBatchRequest, languages: list[str], options: ProgramOptions, request_id: str
) -> list[dict[str, Any]]:
    """All at once: the queue of the sandbox decides how many really are."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_one(engine, script, language, body.timeout, options, request_id))
            for script, language in zip(body.scripts, languages, strict=True)
        ]
    return [task.result() for task in tasks]


async def _one(
    engine: Engine, script: str, name: str, timeout_s: float, options: ProgramOptions, request_id: str
) -> dict[str, Any]:
    language = language_of(name[:100])
    try:
        if language.name == "python" and (reward := recognise(script)) is not None:
            (verdict,) = await engine.judge_all([reward.task(options.queue_timeout_s)], request_id=request_id)
            return _of_verdict(verdict)
        program, marker = cell_program(script) if language.name == "python" else (script, "")
        (result,) = await engine.execute(
            Program(program, language.given),
            [Script()],
            limits_of(timeout_s, timeout_s, _MEMORY_MIB),
            queue_timeout_s=options.queue_timeout_s,
        )
    except NotExecuted as error:
        return {"execution": None, "text": None, "exception_str": f"{error.status}: {error.reason}"}
    cell = read_cell(result, marker)
    return _of_cell(cell, cell.stdout if not marker or cell.text is None else cell.text)


def _of_cell(cell: Cell, text: str) -> dict[str, Any]:
    error = cell.error
    return {
        "execution": {
            "results": [] if cell.text is None else [{"text": cell.text, "is_main_result": True}],
            "logs": {"stdout": _lines(cell.stdout), "stderr": _lines(cell.stderr)},
            "error": None if error is None else {"name": error[0], "value": error[1], "traceback": cell.stderr},
            "execution_count": 1,
        },
        "text": text if error is None else "",
        "exception_str": None if error is None else f"{error[0]}: {error[1]}",
    }


def _of_verdict(verdict: Verdict) -> dict[str, Any]:
    if verdict.reward is None:
        return {"execution": None, "text": None, "exception_str": f"{verdict.status}: {verdict.reason}"}
    return _of_cell(Cell(repr(verdict.reward), "", "", None), repr(verdict.reward))


def _lines(text: str) -> list[str]:
    return [text] if text else []
