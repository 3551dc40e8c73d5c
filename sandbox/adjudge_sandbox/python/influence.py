"""What the program under test may do to the test code without breaking a rule: make it slow, and make it look away.

An examination that breaks a limit is the data set's fault only if the program cannot have brought it about, so the
examiner notes whether it was ever sent more than modest values: a test that counts up to what ``f`` returned ends for
every honest ``f``. And ``unittest`` keeps failures to itself unless somebody asks its result, so they are noted here.
"""

from __future__ import annotations

import types
import unittest
from collections.abc import Callable
from typing import Any

from .proxies import Proxy, RemoteIterator

__all__ = ["is_modest", "watch_unittest"]

_MOST, _LONGEST_TEXT, _LONGEST, _DEEPEST = 1000, 16, 8, 3
_HANDLES = (Proxy, RemoteIterator, types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)


def is_modest(value: Any, depth: int = 0) -> bool:
    """Is there so little to this value that no honest test becomes slow by it?"""
    if isinstance(value, int | float):
        return abs(value) <= _MOST
    if isinstance(value, str | bytes | bytearray):
        return len(value) <= _LONGEST_TEXT
    if isinstance(value, list | tuple | set | frozenset | dict):
        if len(value) > _LONGEST or depth == _DEEPEST:
            return not value
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return all(is_modest(item, depth + 1) for item in items)
    return value is None or isinstance(value, _HANDLES)


def watch_unittest(note: Callable[[str], None]) -> None:
    """Have ``note`` called with a sentence for every test case that fails, whoever runs it."""

    def noting(inherited: Callable[..., Any]) -> Callable[..., Any]:
        def record(result: Any, test: Any, error: Any) -> Any:
            try:
                note(f"{test}: {error[0].__name__}: {error[1]}")
            except Exception:  # noqa: BLE001 - the text may need an object of the program
                note("a test case failed")
            return inherited(result, test, error)

        return record

    for name in ("addError", "addFailure"):
        setattr(unittest.TestResult, name, noting(getattr(unittest.TestResult, name)))

    def record_part(result: Any, test: Any, part: Any, error: Any) -> Any:
        if error is not None:
            note(f"{part} failed")
        return add_part(result, test, part, error)

    add_part = unittest.TestResult.addSubTest
    setattr(unittest.TestResult, "addSubTest", record_part)  # noqa: B010 - of another signature
