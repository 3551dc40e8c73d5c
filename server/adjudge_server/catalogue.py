"""A verifier as its users see it: for the HTTP catalogue and for ``adjudge verifiers``."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from adjudge_verifiers.base import NoReference, Verifier

__all__ = ["VerifierCard", "card"]


class VerifierCard(BaseModel):
    """What there is to know about a verifier before using it."""

    name: str
    version: str
    lane: str
    description: str
    source: str = Field(description="Paper, or the grader whose published behaviour this is.")
    timeout_s: float
    reference_schema: dict[str, Any] | None = Field(description="JSON schema of `reference`; null if it takes none.")
    options_schema: dict[str, Any]
    examples: list[dict[str, Any]] = Field(description="Tasks with the verdict that they get.")


@cache
def card(verifier: Verifier[Any, Any]) -> VerifierCard:
    """The card of ``verifier``."""
    takes_reference = verifier.Reference is not NoReference
    return VerifierCard(
        name=verifier.name,
        version=verifier.version,
        lane=verifier.lane,
        description=verifier.description(),
        source=verifier.source,
        timeout_s=verifier.timeout_s,
        reference_schema=verifier.reference_adapter().json_schema() if takes_reference else None,
        options_schema=verifier.Options.model_json_schema(),
        examples=[asdict(example) for example in verifier.examples],
    )
