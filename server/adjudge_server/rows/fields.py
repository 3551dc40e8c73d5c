"""Reading values out of rows that went through parquet, JSON and numpy on their way.

A struct column has every key that any row has, ``None`` where this one has nothing; nested objects come as JSON text as
often as not. Both are undone here, once, and only at the keys where a layout expects an object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .base import Row, RowError

__all__ = ["as_object", "drop_none", "first_name", "needed", "parsed_list", "pick"]

_MAX_NAME = 200


def drop_none(row: Row) -> Row:
    """``row`` without the keys that hold nothing."""
    return {key: value for key, value in row.items() if value is not None}


def as_object(value: Any, what: str, layout: str) -> Row:
    """An object, or JSON text of one. Raises :class:`RowError`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise RowError(f"Read as layout {layout!r}: `{what}` is text but not JSON.") from None
    if not isinstance(value, dict):
        raise RowError(f"Read as layout {layout!r}: `{what}` should be an object, not {type(value).__name__}.")
    return drop_none(value)


def needed(row: Row, key: str, layout: str, where: str = "") -> Any:
    """``row[key]``. Raises :class:`RowError` naming the key if it is not there or empty."""
    value = row.get(key)
    if value is None or (isinstance(value, str | list | dict) and not value):
        raise RowError(f"Read as layout {layout!r}: `{where + '.' if where else ''}{key}` is missing or empty.")
    return value


def pick(row: Row, keys: Iterable[str]) -> Any:
    """The first of ``keys`` that ``row`` has, or ``None``."""
    return next((row[key] for key in keys if row.get(key) is not None), None)


def first_name(*values: Any) -> tuple[str, ...]:
    """Those of ``values`` that can be names of a kind, in order, without repetition."""
    names = (value.strip()[:_MAX_NAME] for value in values if isinstance(value, str) and value.strip())
    return tuple(dict.fromkeys(names))


def parsed_list(value: Any) -> Any:
    """A list, if ``value`` is JSON text of a list of texts or objects (``'["34"]'``); else ``value`` itself."""
    if isinstance(value, str) and value.lstrip().startswith(('["', "[{", '[ "')):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, list) else value
    return value
