"""One call of one verifier, wherever it runs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from adjudge.types import Verdict
from adjudge_verifiers.base import Call, Context, Verifier
from adjudge_verifiers.errors import boundary

__all__ = ["NO_CONTEXT", "judge", "judge_async"]

NO_CONTEXT = Context()
"""What ``inline`` and ``cpu`` verifiers are given: nothing."""


def judge(verifier: Verifier[Any, Any], call: Call[Any, Any]) -> Verdict:
    """Run a plain verifier. Never raises: what escapes the verifier is in the verdict's status."""
    with boundary(f"Verifier {verifier.name!r}") as outcome:
        result = verifier.verify(call, NO_CONTEXT)
        if not isinstance(result, Verdict):
            _discard(result)
            raise TypeError(f"a verifier of lane {verifier.lane!r} must return a Verdict, not {type(result).__name__}")
        return result
    assert outcome.failure is not None
    return outcome.failure


async def judge_async(verifier: Verifier[Any, Any], call: Call[Any, Any], ctx: Context) -> Verdict:
    """Run an async verifier. Never raises but for cancellation."""
    with boundary(f"Verifier {verifier.name!r}") as outcome:
        result = verifier.verify(call, ctx)
        verdict = result if isinstance(result, Verdict) else await result
        if not isinstance(verdict, Verdict):
            raise TypeError(f"a verifier must return a Verdict, not {type(verdict).__name__}")
        return verdict
    assert outcome.failure is not None
    return outcome.failure


def _discard(result: Awaitable[Verdict] | object) -> None:
    if inspect.iscoroutine(result):
        result.close()
