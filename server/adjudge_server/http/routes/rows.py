"""``POST /v1/rows``: rows of a data set as they are, each with the answer to judge."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from adjudge.types import BatchReply, TaskDefaults, Verdict
from adjudge_verifiers.errors import InvalidTask, boundary

from ...engine import Engine, Submission
from ...rows import RowRoute, known_formats, to_task
from ..body import body_schema, read_model
from ..problems import Problem
from ..tasks import check_count
from .verify import engine_of, reply_to

__all__ = ["BODIES", "RowsRequest", "read_row", "router"]

router = APIRouter(prefix="/v1", tags=["rows"])


class RowsRequest(BaseModel):
    """Body of ``POST /v1/rows``."""

    model_config = ConfigDict(extra="forbid")

    rows: list[Any] = Field(
        description='Each `{"row": {...}, "response": ..., "id"?: ...}`, or a row that holds its own response.'
    )
    format: str = Field(default="auto", description="Layout of the rows; `auto` tells it by their keys.")
    defaults: TaskDefaults = Field(
        default_factory=TaskDefaults, description="Options and time limits for every task; a verifier overrides routes."
    )


BODIES = (RowsRequest,)


@router.post(
    "/rows", response_model=BatchReply, summary="Judge rows as they are", openapi_extra=body_schema(RowsRequest)
)
async def rows(request: Request) -> Response:
    """Layouts of verl, Guru, SYNTHETIC-1/2, open-instruct, SkyRL, NeMo-Gym, ROLL and plain rows."""
    body = await read_model(request, RowsRequest)
    engine = engine_of(request)
    check_count(len(body.rows), engine.settings.limits)
    check_format(body.format)
    return await reply_to(request, [read_row(engine, item, body.format, body.defaults) for item in body.rows])


def check_format(name: str) -> None:
    """Raises :class:`Problem` unless ``name`` is a known layout or ``auto``."""
    if name != "auto" and name not in known_formats():
        raise Problem(
            "invalid-request", f"There is no row format {name[:100]!r}. Known: auto, {', '.join(known_formats())}."
        )


def read_row(engine: Engine, item: Any, format: str, defaults: TaskDefaults) -> Submission | Verdict:
    """One row as a submission; an ``invalid_task`` verdict when it is not one."""
    with boundary("Reading the row") as outcome:
        if not isinstance(item, dict):
            raise InvalidTask("A row is a JSON object.")
        wrapped = isinstance(item.get("row"), dict)
        row, response = (item["row"], item.get("response")) if wrapped else (item, None)
        if response is not None and not isinstance(response, str | list | dict):
            raise InvalidTask("The response is text or chat messages.")
        layout = item.get("format", format) if wrapped else format
        found = to_task(row, response, format=layout, routes=engine.routes, fallback=_fallback(defaults))
        task = found.task
        if wrapped and isinstance(item.get("id"), str | int):
            task = task.model_copy(update={"id": item["id"]})
        return Submission(
            _with_defaults(task, defaults), None if defaults.verifier or defaults.recipe else found.recipe
        )
    assert outcome.failure is not None
    if isinstance(item, dict) and isinstance(identity := item.get("id"), str | int):
        outcome.failure.id = identity
    return outcome.failure


def _fallback(defaults: TaskDefaults) -> RowRoute | None:
    """Where rows of unknown sources go when the request names who judges."""
    if defaults.verifier or defaults.recipe:
        return RowRoute(match="*", verifier=defaults.verifier, recipe=defaults.recipe)
    return None


def _with_defaults(task: Any, defaults: TaskDefaults) -> Any:
    update: dict[str, Any] = {}
    if defaults.verifier or defaults.recipe:
        update |= {"verifier": defaults.verifier, "recipe": defaults.recipe, "options": {}}
    if defaults.options:
        update["options"] = {**update.get("options", task.options), **defaults.options}
    if defaults.metadata:
        update["metadata"] = {**defaults.metadata, **task.metadata}
    for name in ("timeout_s", "queue_timeout_s"):
        if getattr(defaults, name) is not None and getattr(task, name) is None:
            update[name] = getattr(defaults, name)
    return task.model_copy(update=update) if update else task
