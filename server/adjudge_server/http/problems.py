"""Errors as RFC 9457 problem+json: a stable ``type``, a sentence that says what to change, and the request id.

=========================== ====== ============================================================================
type (``urn:adjudge:...``)  status when
=========================== ====== ============================================================================
``invalid-json``            400    the body is not JSON, or holds NaN, Infinity, a lone surrogate or too deep nesting
``unauthenticated``         401    no API key, or one that this server does not know
``not-found``               404    no such path, verifier or recipe
``method-not-allowed``      405    the path exists, the method does not
``deadline-exceeded``       408    the call's own ``Adjudge-Deadline-S`` passed
``body-too-large``          413    the body is larger than ``limits.max_body_mib``
``unsupported-media-type``  415    the body is something else than JSON
``invalid-request``         422    the body is JSON, but not what this route takes
``too-many-tasks``          422    more tasks than ``limits.max_tasks``
``response-too-long``       422    a response longer than ``limits.max_response_chars``
``no-reward``               422    a trainer's wire format has no word for a task without a reward: its row is broken
``overloaded``              429    no room in the queues now; see ``Retry-After``
``internal-error``          500    a bug of ours; the log has the traceback under the request id
``draining``                503    the server is going down; see ``Retry-After``
``no-reward-now``           503    a trainer's wire format has no word for a failure of ours; try again
=========================== ====== ============================================================================
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..engine.prepare import describe_error

__all__ = ["PROBLEMS", "Problem", "ProblemDetails", "install", "problem_response"]

PROBLEMS: dict[str, tuple[int, str]] = {
    "invalid-json": (400, "The body is not valid JSON"),
    "unauthenticated": (401, "An API key is needed"),
    "not-found": (404, "There is nothing here"),
    "method-not-allowed": (405, "This path does not take this method"),
    "deadline-exceeded": (408, "The deadline passed"),
    "body-too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body must be JSON"),
    "invalid-request": (422, "The request does not fit"),
    "too-many-tasks": (422, "Too many tasks at once"),
    "response-too-long": (422, "The response is too long"),
    "no-reward": (422, "This task has no reward"),
    "overloaded": (429, "No room now"),
    "internal-error": (500, "A bug of ours"),
    "draining": (503, "The server is going down"),
    "no-reward-now": (503, "No reward for now"),
}
"""Slug -> (status, title). The ``type`` on the wire is ``urn:adjudge:<slug>``."""

_RETRYABLE = {408, 429, 503}
_RETRY_AFTER_S = {"overloaded": 1, "draining": 5, "no-reward-now": 1}
_BY_STATUS = {401: "unauthenticated", 404: "not-found", 405: "method-not-allowed", 415: "unsupported-media-type"}


class ProblemDetails(BaseModel):
    """The body of every error."""

    type: str = Field(examples=["urn:adjudge:invalid-request"])
    title: str
    status: int
    detail: str = Field(description="What to change.")
    request_id: str = ""
    retryable: bool = False


class Problem(Exception):
    """Raise it anywhere below a route; ``slug`` is a key of :data:`PROBLEMS`."""

    def __init__(self, slug: str, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.slug = slug
        self.detail = detail
        self.extra = extra


def problem_response(slug: str, detail: str, request_id: str = "", **extra: Any) -> Response:
    """The reply for one problem; ``extra`` adds members to the body."""
    status, title = PROBLEMS[slug]
    body = {
        "type": f"urn:adjudge:{slug}",
        "title": title,
        "status": status,
        "detail": detail,
        "request_id": request_id,
        "retryable": status in _RETRYABLE,
        **extra,
    }
    headers = {"Retry-After": str(_RETRY_AFTER_S[slug])} if slug in _RETRY_AFTER_S else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(to_json(body), status, headers, media_type="application/problem+json")


def _request_id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))


def install(app: FastAPI) -> None:
    """Turn what routes raise on purpose into problems; a bug is answered by the outermost middleware."""

    @app.exception_handler(Problem)
    async def _problem(request: Request, error: Problem) -> Response:
        return problem_response(error.slug, error.detail, _request_id(request), **error.extra)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        if any(problem["type"] == "json_invalid" for problem in error.errors()):
            return problem_response("invalid-json", "The body is not valid JSON.", _request_id(request))
        lines = [
            f"{'.'.join(str(key) for key in problem['loc'])}: {problem['msg']}"[:300] for problem in error.errors()[:3]
        ]
        return problem_response("invalid-request", "; ".join(lines), _request_id(request))

    @app.exception_handler(ValidationError)
    async def _model(request: Request, error: ValidationError) -> Response:
        return problem_response("invalid-request", describe_error(error), _request_id(request))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        slug = _BY_STATUS.get(error.status_code, "invalid-request" if error.status_code < 500 else "internal-error")
        detail = f"{request.method} {request.url.path[:200]}: {error.detail}"
        reply = problem_response(slug, detail, _request_id(request))
        if allowed := (error.headers or {}).get("Allow"):
            reply.headers["Allow"] = allowed
        return reply
