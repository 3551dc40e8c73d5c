"""Which verifiers there are.

Three ways in, first come first kept: the ones that ship with adjudge; those of installed packages, by an entry point
of the group ``adjudge.verifiers`` whose value is a :class:`Verifier` class; and :func:`register`, used as a decorator
in a module that the entry point or the caller imports. Two verifiers of one name are an error at once, not a matter of
import order.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any, TypeVar

from .base import Verifier
from .errors import UnknownVerifier, nearest

__all__ = ["ENTRY_POINT_GROUP", "get", "load", "names", "register"]

ENTRY_POINT_GROUP = "adjudge.verifiers"

_SHIPPED = (
    "answers.exact_match",
    "answers.numeric",
    "answers.multiple_choice",
    "answers.math",
    "instructions.format",
    "instructions.length",
    "code.tests",
    "prediction.output",
    "prediction.input",
    "sql.query",
    "repository.verifier",
)

_registered: dict[str, Verifier[Any, Any]] = {}
_loaded = False

V = TypeVar("V", bound=Verifier[Any, Any])


def register(cls: type[V]) -> type[V]:
    """Class decorator: make one instance of ``cls`` known under ``cls.name``. Raises ``ValueError`` on a clash."""
    for attribute in ("name", "version", "lane", "Reference", "Options"):
        if not hasattr(cls, attribute):
            raise TypeError(f"verifier class {cls.__qualname__} lacks the attribute {attribute!r}")
    known = _registered.get(cls.name)
    if known is not None:
        if type(known) is cls:
            return cls
        raise ValueError(
            f"two verifiers are called {cls.name!r}: {type(known).__module__}.{type(known).__qualname__} "
            f"and {cls.__module__}.{cls.__qualname__}; rename one"
        )
    _registered[cls.name] = cls()
    return cls


def load() -> None:
    """Import the shipped verifiers and every entry point, once. Called by :func:`get` and :func:`names`."""
    global _loaded
    if _loaded:
        return
    for module in _SHIPPED:
        importlib.import_module(f"adjudge_verifiers.{module}")
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        loaded = point.load()
        if not (isinstance(loaded, type) and issubclass(loaded, Verifier)):
            raise TypeError(f"entry point {point.name!r} of {ENTRY_POINT_GROUP} is {loaded!r}, not a Verifier class")
        register(loaded)
    _loaded = True


def get(name: str) -> Verifier[Any, Any]:
    """The verifier of this name. Raises :class:`UnknownVerifier`, which lists near matches."""
    load()
    try:
        return _registered[name]
    except KeyError:
        raise UnknownVerifier(f"There is no verifier {name[:100]!r}.{nearest(name, _registered)}") from None


def names() -> list[str]:
    """All names, sorted."""
    load()
    return sorted(_registered)
