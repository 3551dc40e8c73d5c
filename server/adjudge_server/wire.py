"""A verdict as JSON, whatever text found its way into it.

A verifier may quote a program's output or a model's text, and Python strings can hold what UTF-8 cannot: half of a
surrogate pair. That must not turn a good verdict into an error of ours.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from adjudge.types import Verdict

__all__ = ["to_wire", "verdict_json"]


def verdict_json(verdict: Verdict) -> bytes:
    """The verdict as UTF-8 JSON; lone surrogates become `?`, values that JSON cannot hold their ``repr``."""
    try:
        return verdict.model_dump_json().encode()
    except PydanticSerializationError:
        return to_json(_clean(verdict.model_dump()), inf_nan_mode="null", fallback=lambda value: _clean(repr(value)))


def to_wire(value: Any) -> bytes:
    """Plain values as UTF-8 JSON; lone surrogates become `?`."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        return to_json(_clean(value), inf_nan_mode="null")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
