"""Rows of data sets, as callers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._encode import encode_task
from .types import Message, Verdict

__all__ = ["Row", "encode_row"]

Response = str | list[Message] | list[dict[str, Any]]

Row = tuple[Mapping[str, Any], Response] | Mapping[str, Any]
"""``(row, response)``; or a mapping ``{"row": ..., "response": ..., "id"?: ...}``; or a row with its own response."""


def encode_row(row: Row) -> bytes | Verdict:
    """JSON of a row with its response, or the verdict that says why it has none."""
    if isinstance(row, tuple):
        if len(row) != 2:
            raise TypeError(f"a row is a pair (row, response), not a tuple of {len(row)}")
        row = {"row": row[0], "response": row[1]}
    elif not isinstance(row, Mapping):
        raise TypeError(f"a row is a pair (row, response) or a mapping, not {type(row).__name__}")
    return encode_task(row)
