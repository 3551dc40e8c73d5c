"""``POST /compat/sandboxfusion/submit``: SandboxFusion's wire format for judging one answer (``/submit`` is the same).

The problem comes with the request (``config.provided_data``): this server holds no data sets. Code that the request
would have the server execute to find the program (``custom_extract_logic``) is refused.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from adjudge.types import Verdict
from adjudge_verifiers.code.compare import Profile

from ...engine import Engine, NotExecuted
from ..body import body_schema, read_model
from ..disconnect import while_connected
from ..middleware import request_facts
from ..problems import Problem
from ..programs import MAX_SECONDS, ProgramOptions, check_length, json_reply, language_of, limits_of, program_options
from ..sandboxfusion import ERRORS, no_result, sandbox_error
from ..sandboxfusion_oj import extract, from_text, read_cases, run_cases
from ..sandboxfusion_rows import is_io, read_row, tests_reply
from .verify import engine_of

__all__ = ["BODIES", "SubmitRequest", "router"]

router = APIRouter(tags=["compat"])


class SubmitConfig(BaseModel):
    """How SandboxFusion is told to judge."""

    language: str | None = Field(default=None, max_length=40)
    dataset_type: str | None = Field(default=None, max_length=100, examples=["CommonOJDataset"])
    compile_timeout: float | None = Field(default=None, gt=0, le=MAX_SECONDS)
    run_timeout: float | None = Field(default=None, gt=0, le=MAX_SECONDS, description="Seconds of each test.")
    provided_data: dict[str, Any] | list[dict[str, Any]] | None = Field(default=None, description="The problem's row.")
    custom_extract_logic: str | None = Field(default=None, description="Refused: the server runs no code of a request.")
    extra: dict[str, Any] = Field(default_factory=dict)


class SubmitRequest(BaseModel):
    """What SandboxFusion's clients send."""

    dataset: str = ""
    id: int | str
    completion: str
    config: SubmitConfig


class SubmitOptions(ProgramOptions):
    """The URL's parameters, beside ``key``."""

    comparison: Profile = Field(default="sandboxfusion", description="How outputs are compared.")


BODIES = (SubmitRequest,)


@router.post(
    "/compat/sandboxfusion/submit",
    summary="SandboxFusion: judge an answer",
    openapi_extra=body_schema(SubmitRequest),
    responses=ERRORS,
)
@router.post("/submit", include_in_schema=False)
async def submit(request: Request) -> Response:
    """Judge an answer. 504 if the sandbox could not, which its client tries again."""
    options = program_options(request, SubmitOptions)
    body = await read_model(request, SubmitRequest)
    engine = engine_of(request)
    check_length(body.completion, engine.settings.limits, "The completion")
    row = _row(body.config)
    kind = body.config.dataset_type or ""
    tests = row.get("test")
    tests = from_text(tests, "test") if isinstance(tests, str) and tests.lstrip()[:1] in ("[", "{") else tests
    try:
        if is_io(kind, tests):
            reply = await while_connected(request, _input_output(engine, body, tests, options))
        else:
            reply = await while_connected(request, _by_verifier(engine, body, row, options, request.state.request_id))
    except NotExecuted as error:
        request_facts.get()["outcome"] = error.status
        return sandbox_error(error, request.state.request_id)
    request_facts.get()["outcome"] = "accepted" if reply["accepted"] else "rejected"
    return json_reply(reply)


def _row(config: SubmitConfig) -> dict[str, Any]:
    if config.custom_extract_logic is not None:
        raise Problem(
            "invalid-request",
            "config.custom_extract_logic is code that this server would have to execute, and it executes none. Extract "
            "the program on your side and send it in a fenced block.",
        )
    if not isinstance(config.provided_data, dict):
        raise Problem("invalid-request", "Send the problem's row as config.provided_data: there are no data sets here.")
    return config.provided_data


async def _input_output(engine: Engine, body: SubmitRequest, tests: Any, options: SubmitOptions) -> dict[str, Any]:
    config = body.config
    if not config.language:
        raise Problem("invalid-request", "config.language is needed for tests of input and output.")
    language = language_of(config.language)
    cases = read_cases(tests)
    code, how = extract(body.completion, language.name)
    run_all = bool(config.extra.get("run_all_cases"))
    reply = _reply(body, code, how)
    if not code:
        failed = {"passed": False, "exec_info": no_result("The response holds no program."), "test_info": None}
        return reply | {"tests": [failed] * (len(cases) if run_all else 1)}
    results = await run_cases(
        engine,
        code,
        language,
        cases,
        limits_of(config.run_timeout or (10 if language.compiled else 20), config.compile_timeout or 10, None),
        comparison=options.comparison,
        run_all=run_all,
        full=bool(config.extra.get("return_full_case")),
        queue_timeout_s=options.queue_timeout_s,
    )
    accepted = len(results) == len(cases) and all(result["passed"] for result in results)
    return reply | {"accepted": accepted, "tests": results}


async def _by_verifier(
    engine: Engine, body: SubmitRequest, row: dict[str, Any], options: SubmitOptions, request_id: str
) -> dict[str, Any]:
    config = body.config
    language = language_of(config.language).name if config.language else None
    kind, run_s = config.dataset_type or "", config.run_timeout or 20
    task, code, how = read_row(kind, row, body.completion, language, config.extra, run_s)
    task = task.model_copy(update={"queue_timeout_s": options.queue_timeout_s})
    (verdict,) = await engine.judge_all([task], request_id=request_id)
    if verdict.status != "ok":
        raise NotExecuted(verdict.status, verdict.reason)
    return _reply(body, code, how) | {
        "accepted": bool(verdict.correct),
        "test_code": _test_code(task.reference),
        "tests": tests_reply(verdict),
        "extra": _facts(verdict),
    }


def _reply(body: SubmitRequest, code: str, how: str) -> dict[str, Any]:
    return {
        "id": body.id,
        "accepted": False,
        "extracted_code": code,
        "full_code": None,
        "test_code": None,
        "tests": [],
        "extracted_type": how,
        "extra": None,
    }


def _test_code(reference: Any) -> str | None:
    tests = reference.get("tests") if isinstance(reference, dict) else None
    codes = [test.get("assert") for test in tests if isinstance(test, dict)] if isinstance(tests, list) else []
    return "\n".join(code for code in codes if isinstance(code, str)) or None


def _facts(verdict: Verdict) -> dict[str, Any]:
    return {
        "category": verdict.category,
        "flags": verdict.flags,
        "trust": verdict.trust,
        "isolation": verdict.isolation,
    }
