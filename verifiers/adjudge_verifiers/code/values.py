"""Is the value that a function returned the expected one? Decided outside the jail, on plain data only.

The expected value comes from JSON, the returned one from Python, so the comparison forgives what JSON cannot say and
nothing else:

* a tuple equals a list of the same items; no other kind of collection does;
* a dict's keys are compared as JSON would write them, so ``{1: "a"}`` equals ``{"1": "a"}``;
* a float is compared with a tolerance if the *expected* number is a float; whole numbers are exact, ``2`` equals
  ``2.0``, and NaN equals NaN;
* ``True`` is not ``1``.

The walk is iterative and goes only where the two shapes agree, so it ends after as many steps as the expected value
has parts, however deep or large the returned one is.
"""

from __future__ import annotations

import math
from typing import Any

from .compare import Tolerance

__all__ = ["VALUE_TOLERANCE", "equal_json", "preview"]

VALUE_TOLERANCE = Tolerance(rel=1e-6, abs=1e-9, written=False)
_PREVIEW_CHARS = 200
_MAX_SHOWN_BITS = 2_000


def equal_json(expected: Any, got: Any, tolerance: Tolerance = VALUE_TOLERANCE) -> bool:
    """Does ``got``, built-in types only, say what the JSON value ``expected`` says?"""
    todo: list[tuple[Any, Any]] = [(expected, got)]
    while todo:
        one, other = todo.pop()
        if isinstance(one, list | tuple):
            if not isinstance(other, list | tuple) or len(one) != len(other):
                return False
            todo.extend(zip(one, other, strict=True))
        elif isinstance(one, dict):
            pairs = _paired(one, other)
            if pairs is None:
                return False
            todo.extend(pairs)
        elif not _equal_scalar(one, other, tolerance):
            return False
    return True


def _paired(expected: dict[Any, Any], got: Any) -> list[tuple[Any, Any]] | None:
    """The values of two dicts side by side; ``None`` if their keys differ."""
    if not isinstance(got, dict) or len(expected) != len(got):
        return None
    named = {_json_key(key): value for key, value in got.items()}
    pairs = []
    for key, value in expected.items():
        name = _json_key(key)
        if name not in named:
            return None
        pairs.append((value, named[name]))
    return pairs if len(named) == len(expected) else None


def _json_key(key: Any) -> str | object:
    """The name that JSON gives to a dict key; a key that JSON does not know stays what it is."""
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key) if key.bit_length() <= _MAX_SHOWN_BITS else key
    if isinstance(key, float):
        return repr(key)
    return object()


def _equal_scalar(expected: Any, got: Any, tolerance: Tolerance) -> bool:
    if expected is None or isinstance(expected, bool | str) or got is None or isinstance(got, bool):
        return type(expected) is type(got) and bool(expected == got)
    if not isinstance(got, int | float):
        return False
    if not isinstance(expected, float):
        return bool(expected == got)
    try:
        value = float(got)
    except OverflowError:
        return False
    if math.isnan(expected) or math.isnan(value):
        return math.isnan(expected) and math.isnan(value)
    return math.isclose(expected, value, rel_tol=tolerance.rel, abs_tol=tolerance.abs)


def preview(value: Any, limit: int = _PREVIEW_CHARS) -> str:
    """At most ``limit`` characters of what ``repr`` would say, in time bounded by ``limit``; never raises.

    ``repr`` itself does not do: it is unbounded, and it raises on an integer of more than 4,300 digits.
    """
    parts: list[str] = []
    _write(value, parts, limit, depth=0)
    text = "".join(parts)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _write(value: Any, parts: list[str], limit: int, depth: int) -> None:
    if sum(map(len, parts)) > limit:
        return
    if isinstance(value, str | bytes):
        parts.append(repr(value[: limit + 1]))
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MAX_SHOWN_BITS:
        parts.append(f"<int of {value.bit_length()} bits>")
    elif isinstance(value, list | tuple | dict | set | frozenset):
        _write_collection(value, parts, limit, depth)
    elif value is None or isinstance(value, bool | int | float | complex):
        parts.append(repr(value))
    else:
        parts.append(f"<{type(value).__name__}>")


def _write_collection(value: Any, parts: list[str], limit: int, depth: int) -> None:
    opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")") if isinstance(value, tuple) else ("{", "}")
    parts.append(opening)
    if depth > 8:
        parts.append("...")
    else:
        for index, item in enumerate(value):
            if sum(map(len, parts)) > limit:
                break
            if index:
                parts.append(", ")
            _write(item, parts, limit, depth + 1)
            if isinstance(value, dict):
                parts.append(": ")
                _write(value[item], parts, limit, depth + 1)
    parts.append(closing)
