"""``POST /v1/verify`` and ``POST /v1/verify/batch``."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from adjudge.types import BatchReply, BatchRequest, Task, Verdict

from ...engine import Engine, Submission
from ...wire import verdict_json
from ..body import body_schema, deadline_s, parse, read_json, read_model
from ..disconnect import NdjsonResponse, while_connected
from ..middleware import request_facts
from ..problems import Problem
from ..tasks import check_count, read_task

__all__ = ["engine_of", "reply_to", "router"]

router = APIRouter(prefix="/v1", tags=["verify"])


def engine_of(request: Request) -> Engine:
    """The engine of the server that got this request."""
    engine: Engine = request.app.state.engine
    return engine


@router.post(
    "/verify",
    response_model=Verdict,
    summary="Judge one answer",
    openapi_extra=body_schema(Task),
)
async def verify(request: Request) -> Response:
    """One task in, one verdict out. A queue that is full is a 429 here, so that clients come back later."""
    engine = engine_of(request)
    task = parse(Task, await read_json(request))
    longest = engine.settings.limits.max_response_chars
    if len(task.text) > longest:
        raise Problem(
            "response-too-long",
            f"The response has {len(task.text):,} characters; the limit is {longest:,} (limits.max_response_chars).",
            limit=longest,
        )
    request_id = request.state.request_id
    work = engine.judge_all([task], deadline_s=deadline_s(request), request_id=request_id)
    verdict = (await while_connected(request, work))[0]
    request_facts.get()["outcome"] = verdict.category or verdict.status
    if verdict.status == "overloaded":
        raise Problem("overloaded", verdict.reason, verdict=verdict.model_dump(mode="json"))
    return Response(verdict_json(verdict), media_type="application/json")


@router.post(
    "/verify/batch",
    response_model=BatchReply,
    summary="Judge many answers",
    openapi_extra=body_schema(BatchRequest),
    responses={200: {"content": {"application/x-ndjson": {"schema": {"$ref": "#/components/schemas/StreamItem"}}}}},
)
async def verify_batch(request: Request) -> Response:
    """Verdicts in the order of the tasks; with ``Accept: application/x-ndjson`` each one as soon as it is ready."""
    batch = await read_model(request, BatchRequest)
    check_count(len(batch.tasks), engine_of(request).settings.limits)
    tasks = [read_task(value, batch.defaults) for value in batch.tasks]
    return await reply_to(request, tasks)


async def reply_to(request: Request, tasks: Sequence[Task | Submission | Verdict]) -> Response:
    """Judge ``tasks`` and answer as a batch, streamed or whole, as the client accepts."""
    engine = engine_of(request)
    deadline = deadline_s(request)
    request_id = request.state.request_id
    facts = request_facts.get()
    facts["task_count"] = len(tasks)
    if "application/x-ndjson" in request.headers.get("accept", ""):
        return NdjsonResponse(engine.submit(tasks, deadline_s=deadline, request_id=request_id))
    work = engine.judge_all(tasks, deadline_s=deadline, request_id=request_id)
    verdicts = await while_connected(request, work)
    facts["ok"] = sum(verdict.ok for verdict in verdicts)
    if verdicts and all(verdict.status == "overloaded" for verdict in verdicts):
        raise Problem("overloaded", verdicts[0].reason)
    return Response(_batch_json(verdicts), media_type="application/json")


def _batch_json(verdicts: list[Verdict]) -> bytes:
    return b'{"verdicts":[' + b",".join(map(verdict_json, verdicts)) + b"]}"
