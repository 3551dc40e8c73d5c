"""Read plain values out of the text of a data set, within bounds.

Test inputs and expected values come as JSON, as JSON inside JSON, or as Python literals. All three are parsed here and
nowhere else, never evaluated; whatever is too deep, too long or not a value raises ``ValueError`` with a sentence.
"""

from __future__ import annotations

import ast
import json
import warnings
from typing import Any, NoReturn

__all__ = ["parse_json", "parse_literal", "parse_python", "parse_value", "short"]

_MAX_LITERAL_CHARS = 4_000_000
_MAX_CODE_CHARS = 1_000_000  # half a second of parsing, in which this process does nothing else
_MAX_INT_DIGITS = 4_300  # beyond this Python refuses to convert


def short(text: object, limit: int = 60) -> str:
    """A quotation for an error message."""
    shown = text if isinstance(text, str) else type(text).__name__
    return repr(shown[:limit]) + ("..." if len(shown) > limit else "")


def parse_python(code: str) -> ast.Module:
    """The syntax tree of a data set's own code, without the warnings that Python may have about its style.

    Not from several threads: CPython's parser counts its depth for all of them together, and raises ``SystemError``.

    Raises ``SyntaxError``, ``ValueError``, ``MemoryError`` or ``RecursionError``.
    """
    if len(code) > _MAX_CODE_CHARS:
        raise ValueError(f"{len(code):,} characters of code in one piece; {_MAX_CODE_CHARS:,} is the limit")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def parse_json(text: str) -> Any:
    """JSON, as Python's own writer makes it (NaN and Infinity are read). Raises ``ValueError``."""
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _integer(digits: str) -> int:
    if len(digits) > _MAX_INT_DIGITS:
        raise ValueError(f"the JSON holds an integer of {len(digits)} digits; {_MAX_INT_DIGITS} is the limit")
    return int(digits)


def parse_literal(text: str) -> Any:
    """A Python literal: numbers, strings, tuples, lists, dicts, sets, constants. Raises ``ValueError``."""
    if len(text) > _MAX_LITERAL_CHARS:
        raise ValueError(f"a Python literal of {len(text)} characters is too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{short(text)} is neither JSON nor a Python literal") from None


def parse_value(text: str) -> Any:
    """One value written as JSON or, failing that, as a Python literal. Raises ``ValueError``."""
    try:
        return parse_json(text)
    except json.JSONDecodeError:
        return parse_literal(text)
