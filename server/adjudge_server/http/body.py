"""Reading a request's body: strict JSON within a size limit, then pydantic.

JSON as RFC 8259 has it: NaN, Infinity, lone surrogates and nesting beyond the parser's bound are errors with a name,
and integers of any length stay integers.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from ..engine.prepare import describe_error
from .problems import Problem

__all__ = ["body_schema", "deadline_s", "parse", "read_json", "read_model"]

M = TypeVar("M", bound=BaseModel)

_JSON = re.compile(r"application/([\w.+-]+\+)?json\b|text/json\b", re.IGNORECASE)


async def read_json(request: Request) -> Any:
    """The body as plain JSON values.

    Raises :class:`Problem` ``body-too-large``, ``unsupported-media-type`` or ``invalid-json``.
    """
    kind = request.headers.get("content-type", "application/json")
    if not _JSON.match(kind):
        raise Problem("unsupported-media-type", f"Send Content-Type: application/json, not {kind[:100]!r}.")
    body = await request.body()
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Problem("invalid-json", f"{error}. NaN, Infinity and lone surrogates are not JSON."[:400]) from None


async def read_model(request: Request, model: type[M]) -> M:
    """The body as ``model``. Raises :class:`Problem`, ``invalid-request`` included."""
    return parse(model, await read_json(request))


def parse(model: type[M], value: Any) -> M:
    """``value`` as ``model``; raises :class:`Problem` ``invalid-request`` with what is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Problem("invalid-request", describe_error(error, model)) from None


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """``openapi_extra`` of a route that reads its body with :func:`read_model`."""
    reference = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": reference}}}}


def deadline_s(request: Request) -> float | None:
    """Seconds that the client still waits (header ``Adjudge-Deadline-S``), if it says so."""
    text = request.headers.get("adjudge-deadline-s")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise Problem("invalid-request", "Header Adjudge-Deadline-S holds seconds, more than 0 and at most 86400.")
    return seconds
