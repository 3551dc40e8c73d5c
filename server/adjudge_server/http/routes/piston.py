"""``/compat/piston/api/v2``: Piston's wire format. A client is given that as its endpoint.

Times are in milliseconds, memory in bytes. ``status`` of a run is Piston's: ``TO`` (time), ``RE`` (exit status), ``SG``
(signal), ``OL`` and ``EL`` (too much on stdout, on stderr). Errors are ``{"message"}`` with status 400, and 503 when it
was not the request's fault.
"""

from __future__ import annotations

import binascii
import signal
from base64 import b64decode
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Script

from ...engine import Engine, NotExecuted
from ...engine.prepare import describe_error
from ..body import body_schema, read_json
from ..disconnect import while_connected
from ..middleware import request_facts
from ..problems import Problem
from ..programs import (
    MAX_SECONDS,
    ProgramOptions,
    check_length,
    check_name,
    json_reply,
    language_of,
    limits_of,
    program_options,
    shown,
    why,
)
from ..runtimes import Runtime, find_runtime, runtimes_of
from .verify import engine_of

__all__ = ["BODIES", "PistonRequest", "router"]

router = APIRouter(prefix="/compat/piston/api/v2", tags=["compat"])

_MOST_MS = int(MAX_SECONDS * 1000)
_GRADERS = "grader_config"
"""A file that only the packages of Open-R1's Piston (``cms_ioi``, ``codeforces``) know what to do with."""


class PistonFile(BaseModel):
    """One file; the first that is text is the program."""

    name: str | None = None
    content: str
    encoding: str = Field(default="utf8", description="`utf8`, `base64` or `hex`.")


class PistonRequest(BaseModel):
    """What Piston's clients send."""

    language: str = Field(min_length=1, max_length=100)
    version: str = Field(min_length=1, max_length=100, description="A version, or a selector such as `*` or `3.x`.")
    files: list[PistonFile] = Field(min_length=1)
    stdin: str = ""
    args: list[str] = Field(default_factory=list)
    run_timeout: float = Field(default=3000, gt=0, le=_MOST_MS)
    compile_timeout: float = Field(default=10_000, gt=0, le=_MOST_MS)
    run_cpu_time: float | None = Field(default=None, gt=0, le=_MOST_MS)
    compile_cpu_time: float | None = Field(default=None, gt=0, le=_MOST_MS)
    run_memory_limit: float = Field(default=-1, description="Bytes; -1 leaves it to the server.")
    compile_memory_limit: float = Field(default=-1, description="Taken, and left to the language's table.")


class PistonMessage(BaseModel):
    """Piston's errors."""

    message: str


BODIES = (PistonRequest,)
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request does not fit", "model": PistonMessage},
    503: {"description": "Not the request's fault: try again", "model": PistonMessage},
}


@router.get("/runtimes", summary="Piston: languages and their versions")
async def runtimes(request: Request) -> list[dict[str, Any]]:
    """Languages that have a toolchain on this host."""
    return [runtime.shown() for runtime in await runtimes_of(engine_of(request).sandbox)]


@router.post("/execute", summary="Piston: run a program", openapi_extra=body_schema(PistonRequest), responses=_ERRORS)
async def execute(request: Request) -> Response:
    """Run a program, after compiling it where its language has a compiler."""
    try:
        options = program_options(request, ProgramOptions)
        body = _read(await read_json(request))
        engine = engine_of(request)
        runtime = await _runtime(engine, body)
        program, script = _program(engine, body)
    except Problem as problem:
        if problem.slug not in ("invalid-request", "response-too-long", "invalid-json"):
            raise
        return json_reply({"message": problem.detail}, 400)
    work = engine.execute(program, [script], _limits(body), queue_timeout_s=options.queue_timeout_s)
    facts = request_facts.get()
    try:
        (result,) = await while_connected(request, work)
    except NotExecuted as error:
        facts["outcome"] = error.status
        if error.status == "invalid_task":
            return json_reply({"message": error.reason}, 400)
        return json_reply({"message": error.reason}, 503, {"Retry-After": "1"})
    facts["outcome"] = result.outcome.value
    return json_reply(_reply(result, runtime))


def _read(value: Any) -> PistonRequest:
    try:
        return PistonRequest.model_validate(value)
    except ValidationError as error:
        raise Problem("invalid-request", describe_error(error, PistonRequest)) from None


async def _runtime(engine: Engine, body: PistonRequest) -> Runtime:
    if any(file.name == _GRADERS for file in body.files):
        raise Problem("invalid-request", "The grader packages of Open-R1's Piston (cms_ioi, codeforces) are not here.")
    wanted = language_of(body.language).name
    if engine.sandbox is None or not engine.sandbox.languages():  # down: the execution will say so
        return Runtime(wanted, body.version, ())
    found = find_runtime(await runtimes_of(engine.sandbox, wanted), wanted, body.version)
    if found is None:
        raise Problem("invalid-request", f"{body.language}-{body.version} runtime is unknown")
    return found


def _program(engine: Engine, body: PistonRequest) -> tuple[Program, Script]:
    main = next((index for index, file in enumerate(body.files) if file.encoding not in ("base64", "hex")), None)
    if main is None:
        raise Problem("invalid-request", "files must include at least one utf8 encoded file")
    source = body.files[main].content
    check_length(source, engine.settings.limits)
    others = {
        check_name(file.name or f"file{index}.code"): _content(file, index)
        for index, file in enumerate(body.files)
        if index != main
    }
    if name := body.files[main].name:
        check_name(name)
    return Program(source, language_of(body.language).given, others), Script(body.stdin.encode(), tuple(body.args))


def _content(file: PistonFile, index: int) -> bytes:
    try:
        if file.encoding == "base64":
            return b64decode(file.content, validate=True)
        return bytes.fromhex(file.content) if file.encoding == "hex" else file.content.encode()
    except (binascii.Error, ValueError):
        raise Problem("invalid-request", f"files[{index}].content is not {file.encoding}") from None


def _limits(body: PistonRequest) -> Limits:
    cpu_ms = body.run_cpu_time or body.run_timeout
    compile_ms = body.compile_cpu_time or body.compile_timeout
    memory = body.run_memory_limit
    mib = memory / 2**20 if memory > 0 else None
    return limits_of(body.run_timeout / 1000, compile_ms / 1000, mib, cpu_s=cpu_ms / 1000)


def _reply(result: RunResult, runtime: Runtime) -> dict[str, Any]:
    stage = _stage(result)
    reply: dict[str, Any] = {"language": runtime.language, "version": runtime.version, "run": stage}
    if language_of(runtime.language).compiled:
        broken = result.outcome is Outcome.COMPILE_ERROR
        done = {"stdout": "", "stderr": "", "output": "", "code": 0, "signal": None, "message": None, "status": None}
        reply["compile"] = stage if broken else {**done, "cpu_time": None, "wall_time": None, "memory": None}
    return reply


def _stage(result: RunResult) -> dict[str, Any]:
    stdout, _ = shown(result.stdout)
    stderr, _ = shown(result.stderr)
    if result.outcome is Outcome.COMPILE_ERROR and not stderr:
        stderr = result.detail
    status, code, number = _ending(result)
    return {
        "stdout": stdout,
        "stderr": stderr,
        "output": stdout + stderr,
        "code": code,
        "signal": number,
        "message": why(result) or (result.detail if status else None) or None,
        "status": status,
        "cpu_time": round(result.cpu_ms),
        "wall_time": round(result.wall_ms),
        "memory": None if result.peak_memory_mib is None else int(result.peak_memory_mib * 2**20),
    }


def _ending(result: RunResult) -> tuple[str | None, int | None, str | None]:
    """Piston's status, exit code and signal; a code of 0 only for a program that finished."""
    if result.outcome is Outcome.FINISHED:
        return None, 0, None
    if result.outcome is Outcome.TIME_LIMIT:
        return "TO", None, "SIGKILL"
    if result.outcome is Outcome.OUTPUT_LIMIT:
        return ("EL" if result.stderr_truncated and not result.stdout_truncated else "OL"), None, "SIGKILL"
    if result.outcome is Outcome.MEMORY_LIMIT and not result.exit_status:
        return "SG", None, "SIGKILL"
    if result.signal:
        return "SG", None, _signal_name(result.signal)
    return "RE", result.exit_status or 1, None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
