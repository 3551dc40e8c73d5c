"""Objects that both sides of an examination have, and that therefore cross by name.

Built-in types, and what ordinary standard modules define: when test code uses ``math`` or ``Counter`` and only the
program imports it, the examiner takes its own. The list of modules is closed, so that a program cannot make the
examiner take something of its choosing (``unittest.mock.ANY`` equals everything).
"""

from __future__ import annotations

import builtins
import importlib
import sys
import types
import typing
from typing import Any

__all__ = ["find", "name_of"]

_DEFINING = frozenset(
    [
        "abc",
        "array",
        "bisect",
        "cmath",
        "collections",
        "collections.abc",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "heapq",
        "itertools",
        "json",
        "math",
        "numbers",
        "operator",
        "re",
        "statistics",
        "string",
        "textwrap",
        "typing",
    ]
)
_MODULES = _DEFINING | {"io", "numpy", "os", "random", "sys", "time"}
_BUILTIN_TYPES: tuple[type, ...] = (
    *(int, float, complex, bool, str, bytes, bytearray, list, tuple, set, frozenset, dict, range, slice, object, type),
    type(None),
)
_BY_NAME: dict[str, type] = {kind.__name__: kind for kind in _BUILTIN_TYPES}
_CODE = type | types.FunctionType | types.BuiltinFunctionType


def name_of(value: object) -> str | None:
    """``module:name`` (``math:`` for a module itself), or ``None`` if it is no such object."""
    if isinstance(value, types.ModuleType):
        own_name = value.__name__
        return f"{own_name}:" if own_name in _MODULES and sys.modules.get(own_name) is value else None
    if isinstance(value, type) and _BY_NAME.get(value.__name__) is value:
        return f"builtins:{value.__name__}"
    if not isinstance(value, _CODE):
        return _typing_name(value)
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if module == "builtins" and isinstance(value, type) and issubclass(value, Exception):
        return f"builtins:{name}"
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    module = module.removeprefix("_") if module.removeprefix("_") in _DEFINING else module
    if module in _DEFINING and getattr(sys.modules.get(module), name, None) is value:
        return f"{module}:{name}"
    return None


def _typing_name(value: object) -> str | None:
    if type(value).__module__ != "typing":
        return None
    name = getattr(value, "_name", None)
    return f"typing:{name}" if isinstance(name, str) and getattr(typing, name, None) is value else None


def find(name: str) -> Any:
    """The object of that name. Raises ``LookupError`` for one that may not cross."""
    module, _, attribute = name.partition(":")
    if module == "builtins":
        kind = _BY_NAME.get(attribute) or getattr(builtins, attribute, None)
        if isinstance(kind, type) and (attribute in _BY_NAME or issubclass(kind, Exception)):
            return kind
        raise LookupError(name)
    if module not in (_DEFINING if attribute else _MODULES):
        raise LookupError(name)
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise LookupError(name) from error
    if not attribute:
        return found
    value = getattr(found, attribute, None)
    if not isinstance(value, _CODE) and _typing_name(value) is None:
        raise LookupError(name)
    return value
