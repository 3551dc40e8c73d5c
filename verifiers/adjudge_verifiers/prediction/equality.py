"""Is this value that value? Decided outside the jail, on plain data only, in time linear in the expected value.

``python``: Python's own ``==`` (``1 == 1.0 == True``, a tuple is no list), except that NaN equals NaN: a prediction of
NaN is right if NaN comes out. ``strict``: the types must agree as well. ``json``: what JSON cannot tell apart is equal
(:mod:`adjudge_verifiers.code.values`), and text that holds JSON stands for what it holds, as in CodeI/O's rows.
"""

from __future__ import annotations

import collections
import math
from typing import Any, Literal

from ..code.compare import Tolerance
from ..code.literals import parse_json
from ..code.values import equal_json

__all__ = ["Equality", "same"]

Equality = Literal["python", "strict", "json"]
_NUMBERS = (bool, int, float, complex)
_SEQUENCES = (list, tuple, collections.deque)


def same(expected: Any, got: Any, equality: Equality, tolerance: float = 0.0) -> bool:
    """``tolerance``: relative and absolute, where a float is expected."""
    if equality == "json":
        return equal_json(_unpacked(expected), _unpacked(got), Tolerance(tolerance, tolerance, written=False))
    todo: list[tuple[Any, Any]] = [(expected, got)]
    while todo:
        one, other = todo.pop()
        if equality == "strict" and type(one) is not type(other):
            return False
        if isinstance(one, _SEQUENCES):
            if type(one) is not type(other) or len(one) != len(other):
                return False
            todo.extend(zip(one, other, strict=True))
        elif isinstance(one, dict):
            if not isinstance(other, dict) or len(one) != len(other) or _order_differs(one, other):
                return False
            missing = object()
            todo.extend((value, other.get(key, missing)) for key, value in one.items())
        elif not _same_scalar(one, other, tolerance):
            return False
    return True


def _order_differs(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    ordered = isinstance(one, collections.OrderedDict) and isinstance(other, collections.OrderedDict)
    return ordered and list(one) != list(other)


def _same_scalar(expected: Any, got: Any, tolerance: float) -> bool:
    if isinstance(expected, _NUMBERS) and isinstance(got, _NUMBERS):
        if expected == got or (expected != expected and got != got):
            return True
        if not isinstance(expected, float) or isinstance(got, complex) or not tolerance:
            return False
        try:
            return math.isclose(expected, float(got), rel_tol=tolerance, abs_tol=tolerance)
        except OverflowError:
            return False
    try:
        return bool(expected == got)
    except (ArithmeticError, RecursionError, TypeError, ValueError):
        return False


def _unpacked(value: Any) -> Any:
    """``"true"`` and ``"[1, 2]"`` as what they say, at any depth that a person would write."""
    return _unpack(value, 0)


def _unpack(value: Any, depth: int) -> Any:
    if depth > 100:
        return value
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        if text[:1] in ("[", "{"):
            try:
                return _unpack(parse_json(text), depth + 1)
            except ValueError:
                return value
        return value
    if isinstance(value, list | tuple):
        return [_unpack(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _unpack(item, depth + 1) for key, item in value.items()}
    return value
