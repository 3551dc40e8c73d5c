"""The contract between the layouts of rows and what makes a task of them.

A layout knows two things: which rows are its own (:attr:`Layout.matches`, by their keys) and where in such a row the
question, the right answer and the name of its kind stand (:attr:`Layout.read`). Which verifier judges that kind is not
its business; :mod:`.routing` decides it by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adjudge.types import Task
from adjudge_verifiers.compose import Recipe
from adjudge_verifiers.errors import InvalidTask

__all__ = ["Layout", "Reading", "Row", "RowError", "RowTask", "Target"]

Row = dict[str, Any]


class RowError(InvalidTask):
    """The row cannot be judged; the message says as which layout it was read and what is missing."""


@dataclass(frozen=True, slots=True)
class RowTask:
    """A row as a task. ``recipe``, if set, judges it in place of a verifier or recipe of the task's own."""

    task: Task
    recipe: Recipe | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One right answer, and the names under which its kind may be routed, the most particular first."""

    names: tuple[str, ...]
    reference: Any


@dataclass(frozen=True, slots=True)
class Reading:
    """What a layout found in a row."""

    targets: tuple[Target, ...]
    """Usually one; open-instruct rows may ask several verifiers."""
    response: Any = None
    """An answer that the row itself holds."""
    prompt: Any = None
    extra: dict[str, Any] = field(default_factory=dict)
    """What stands beside the answer and a verifier may need: ``prefix``, ``options``, ``language``, ..."""
    identity: Any = None
    unknown_as: str | None = None
    """How the names are called in the row's own words: ``data_source``, ``task_type``, ``dataset``."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One way of writing rows."""

    name: str
    matches: Callable[[Row], bool]
    read: Callable[[Row], Reading]
    """Raises :class:`RowError`."""
    needs: str
    """The keys that tell it, for messages."""
