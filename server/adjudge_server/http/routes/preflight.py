"""``POST /v1/preflight``: check a data set before it costs a run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from adjudge.types import Task, TaskDefaults, Verdict

from ...engine import Engine, Submission
from ...preflight import PreflightItem, preflight_tasks
from ..body import body_schema, read_model
from ..disconnect import while_connected
from ..tasks import check_count, read_task
from .rows import check_format, read_row
from .verify import engine_of

__all__ = ["BODIES", "PreflightReply", "PreflightRequest", "router"]

router = APIRouter(prefix="/v1", tags=["rows"])


class PreflightRequest(BaseModel):
    """Body of ``POST /v1/preflight``: tasks, or rows, or both. ``response`` may be left out or hold a gold answer."""

    model_config = ConfigDict(extra="forbid")

    tasks: list[Any] = Field(default_factory=list)
    rows: list[Any] = Field(default_factory=list)
    format: str = "auto"
    defaults: TaskDefaults = Field(default_factory=TaskDefaults)


class PreflightReply(BaseModel):
    """One item per task, then per row, in order; and how many there are of each problem (``fine`` for none)."""

    summary: dict[str, int]
    items: list[PreflightItem]


BODIES = (PreflightRequest,)


@router.post("/preflight", summary="Check references and gold answers", openapi_extra=body_schema(PreflightRequest))
async def preflight(request: Request) -> PreflightReply:
    """Does each reference parse, and does each gold answer score 1?"""
    body = await read_model(request, PreflightRequest)
    engine = engine_of(request)
    check_count(len(body.tasks) + len(body.rows), engine.settings.limits)
    check_format(body.format)
    items: list[Task | Submission | Verdict] = [read_task(_blank(task), body.defaults) for task in body.tasks]
    items += [read_row(engine, _blank(row), body.format, body.defaults) for row in body.rows]
    found = await while_connected(request, _collect(engine, items, request.state.request_id))
    found.sort(key=lambda item: item.index)
    return PreflightReply(summary=dict(Counter(item.problem or "fine" for item in found)), items=found)


async def _collect(engine: Engine, items: list[Task | Submission | Verdict], request_id: str) -> list[PreflightItem]:
    return [item async for item in preflight_tasks(engine, items, request_id=request_id)]


def _blank(value: Any) -> Any:
    """A task without a response is one whose gold answer is to be made."""
    return {"response": "", **value} if isinstance(value, dict) else value
