"""``GET /v1/verifiers``, ``GET /v1/verifiers/{name}`` and ``GET /v1/recipes``: what this server can judge."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from adjudge_verifiers import registry
from adjudge_verifiers.errors import UnknownVerifier

from ...catalogue import VerifierCard, card
from ..problems import Problem
from .verify import engine_of

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get("/verifiers", summary="All verifiers")
async def verifiers() -> list[VerifierCard]:
    """Name, lane, description, JSON schemas and worked examples of each."""
    return [card(registry.get(name)) for name in registry.names()]


@router.get("/verifiers/{name}", summary="One verifier", responses={404: {"description": "No such verifier."}})
async def verifier(name: str) -> VerifierCard:
    """One verifier in full."""
    try:
        return card(registry.get(name))
    except UnknownVerifier as error:
        raise Problem("not-found", str(error)) from None


@router.get("/recipes", summary="All recipes")
async def recipes(request: Request) -> dict[str, dict[str, Any]]:
    """The recipes of the configuration, as they are run."""
    return {name: recipe.model_dump(mode="json") for name, recipe in sorted(engine_of(request).recipes.items())}
