"""The one place where the parts meet: settings in, ASGI application out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.responses import Response

import adjudge
from adjudge.types import BatchRequest, ContentPart, Message, StreamItem, Task

from .engine import Engine
from .http import problems
from .http.disconnect import ClientGone
from .http.middleware import Authentication, BodyLimit, RequestContext
from .http.routes import (
    catalogue,
    health,
    open_instruct,
    open_r1,
    openrlhf,
    piston,
    preflight,
    rows,
    sandboxfusion,
    sandboxfusion_submit,
    slime,
    verify,
)
from .settings import Settings

__all__ = ["create_app"]

_COMPAT = (openrlhf, slime, sandboxfusion, sandboxfusion_submit, piston, open_instruct, open_r1)
"""Routes that speak other systems' wire formats."""

_DESCRIPTION = """Judges answers of language models and returns rewards that a trainer can trust.

`reward` is a number if and only if `status` is `ok`. Errors are problem+json (RFC 9457) with a stable `type`."""


def create_app(settings: Settings, engine: Engine | None = None) -> FastAPI:
    """The application. Its lifespan starts and stops the engine; ``app.state.engine`` is that engine.

    Setting ``app.state.engine.draining`` makes ``/readyz`` say no and new requests get a 503.
    """
    judge = engine or Engine(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await judge.start()
        try:
            yield
        finally:
            judge.draining = True
            await judge.stop()

    app = FastAPI(
        title="adjudge",
        version=adjudge.__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url="/docs",
        redoc_url=None,
    )
    app.state.engine = judge
    for module in (verify, rows, preflight, catalogue, *_COMPAT, health):
        app.include_router(module.router)
    problems.install(app)

    @app.exception_handler(ClientGone)
    async def _gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=499)  # nobody reads it; the log line does say so

    app.add_middleware(BodyLimit, max_mib=settings.limits.max_body_mib)
    app.add_middleware(Authentication, settings=settings)
    app.add_middleware(RequestContext, metrics=judge.metrics, draining=lambda: judge.draining)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, object]:
    """FastAPI's document, with the models of bodies that the routes read themselves."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        models = schema.setdefault("components", {}).setdefault("schemas", {})
        bodies: list[type[BaseModel]] = [Task, BatchRequest, StreamItem, Message, ContentPart, problems.ProblemDetails]
        bodies += [*rows.BODIES, *preflight.BODIES, *(body for module in _COMPAT for body in module.BODIES)]
        for model in bodies:
            described = model.model_json_schema(ref_template="#/components/schemas/{model}")
            models.update(described.pop("$defs", {}))
            models[model.__name__] = described
        models["BatchRequest"]["properties"]["tasks"]["items"] = {"$ref": "#/components/schemas/Task"}
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = {
                    "description": "A problem (RFC 9457)",
                    "content": {
                        "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
                    },
                }
        app.openapi_schema = schema
    return app.openapi_schema
