"""Does a value claim to equal everything? Asked beside the program, of what its function has just returned.

Such a value fools nobody, since it crosses the border as the plain data that it is; but an answer that returns one has
been written for the grader and not for the task, which a trainer wants to know. An honest object does not equal one
that has been made this moment and that nobody else has seen.
"""

from __future__ import annotations

from typing import Any

__all__ = ["equals_everything"]

_MOST = 64
_PLAIN: tuple[type, ...] = (int, float, complex, bool, str, bytes, type(None), range)
_HOLDERS: tuple[type, ...] = (list, tuple, set, frozenset)


def equals_everything(value: Any) -> bool:
    """Of the value, and of the first items of a collection."""
    kind = type(value)
    if kind in _PLAIN:
        return False
    if kind in _HOLDERS:
        items = [item for item, _ in zip(value, range(_MOST), strict=False)]
        return any(_claims(item) for item in items)
    if kind is dict:
        items = [item for item, _ in zip(value.values(), range(_MOST), strict=False)]
        return any(_claims(item) for item in items)
    return _claims(value)


def _claims(value: Any) -> bool:
    kind = type(value)
    if kind in _PLAIN or kind in _HOLDERS or kind is dict or kind.__module__.partition(".")[0] == "numpy":
        return False
    try:
        return (value == object()) is True and (value == object()) is True
    except Exception:  # noqa: BLE001 - a comparison of the program's own making
        return False
