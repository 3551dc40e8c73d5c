"""``POST /compat/sandboxfusion/run_code``: SandboxFusion's wire format for running one program.

Its clients are verl, ROLL, ReTool, Reasoning360 and the package ``sandbox-fusion``. Some can be given no more than a
host, so ``/run_code`` is the same route.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from adjudge_sandbox.base import Program, Script

from ...engine import NotExecuted
from ..body import body_schema, read_model
from ..disconnect import while_connected
from ..middleware import request_facts
from ..programs import (
    MAX_SECONDS,
    ProgramOptions,
    check_length,
    check_name,
    decode_file,
    json_reply,
    language_of,
    limits_of,
    program_options,
)
from ..sandboxfusion import ERRORS, run_response, sandbox_error
from .verify import engine_of

__all__ = ["BODIES", "RunCodeRequest", "router"]

router = APIRouter(tags=["compat"])

_QUEUE_MARGIN_S = 5.0
"""verl waits for the two time limits and ten seconds; an answer that comes in that time can be tried again."""


class RunCodeRequest(BaseModel):
    """What SandboxFusion's clients send."""

    code: str
    language: str = Field(max_length=40, examples=["python"])
    stdin: str | None = None
    compile_timeout: float = Field(default=10, gt=0, le=MAX_SECONDS, description="Seconds.")
    run_timeout: float = Field(default=10, gt=0, le=MAX_SECONDS, description="Seconds.")
    memory_limit_MB: int = Field(default=-1, description="MiB; -1 leaves it to the server.")
    files: dict[str, str | None] = Field(default_factory=dict, description="Relative name -> base64.")
    fetch_files: list[str] = Field(default_factory=list, description="Files to bring back.")


BODIES = (RunCodeRequest,)


@router.post(
    "/compat/sandboxfusion/run_code",
    summary="SandboxFusion: run a program",
    openapi_extra=body_schema(RunCodeRequest),
    responses=ERRORS,
)
@router.post("/run_code", include_in_schema=False)
async def run_code(request: Request) -> Response:
    """Run a program. 504 if the sandbox could not, which its clients try again."""
    options = program_options(request, ProgramOptions)
    body = await read_model(request, RunCodeRequest)
    engine = engine_of(request)
    check_length(body.code, engine.settings.limits)
    language = language_of(body.language)
    files = {check_name(name): decode_file(name, text) for name, text in body.files.items() if text is not None}
    script = Script((body.stdin or "").encode(), fetch=tuple(map(check_name, body.fetch_files)))
    work = engine.execute(
        Program(body.code, language.given, files),
        [script],
        limits_of(body.run_timeout, body.compile_timeout, body.memory_limit_MB),
        queue_timeout_s=options.queue_timeout_s or body.run_timeout + body.compile_timeout + _QUEUE_MARGIN_S,
    )
    facts = request_facts.get()
    try:
        (result,) = await while_connected(request, work)
    except NotExecuted as error:
        facts["outcome"] = error.status
        return sandbox_error(error, request.state.request_id)
    facts["outcome"] = result.outcome.value
    return json_reply(run_response(result, compiled=language.compiled))
