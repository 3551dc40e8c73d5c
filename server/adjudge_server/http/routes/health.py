"""``/livez``, ``/readyz`` and ``/metrics``, for those who look after the server."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

import adjudge

from ...metrics import CONTENT_TYPE_LATEST
from .verify import engine_of

__all__ = ["router"]

router = APIRouter(tags=["health"])


@router.get("/livez", summary="Does the process answer?")
async def livez() -> dict[str, str]:
    """200 as long as the event loop turns."""
    return {"status": "alive", "version": adjudge.__version__}


@router.get("/readyz", summary="May tasks be sent?", responses={503: {"description": "Not now; the body says why."}})
@router.get("/health", include_in_schema=False)
async def readyz(request: Request) -> Response:
    """200 when tasks may be sent, 503 when not; the body says how each part is."""
    state: dict[str, Any] = engine_of(request).state()
    return JSONResponse(state, 200 if state["ready"] else 503)


@router.get("/metrics", summary="Metrics in OpenMetrics text", response_class=Response)
async def metrics(request: Request) -> Response:
    """What Prometheus scrapes; names and meanings are in the documentation."""
    return Response(engine_of(request).metrics.render(), media_type=CONTENT_TYPE_LATEST)
