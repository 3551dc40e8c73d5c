"""From a request's JSON to tasks: defaults merged, and what cannot be read settled on the spot."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from adjudge.types import Task, TaskDefaults, Verdict

from ..engine.prepare import describe_error
from ..settings import LimitSettings
from .problems import Problem

__all__ = ["check_count", "read_task"]

_MERGED = ("options", "metadata")


def check_count(count: int, limits: LimitSettings) -> None:
    """Raises :class:`Problem` ``too-many-tasks``."""
    if count > limits.max_tasks:
        raise Problem(
            "too-many-tasks",
            f"{count:,} tasks; one request may hold {limits.max_tasks:,} (limits.max_tasks). Send several requests.",
            limit=limits.max_tasks,
        )


def read_task(value: Any, defaults: TaskDefaults) -> Task | Verdict:
    """``value`` as a task; an ``invalid_task`` verdict, with the task's id if it has one, when it is not one."""
    if not isinstance(value, dict):
        return Verdict.failed("invalid_task", f"A task is a JSON object, not {_kind(value)}.")
    try:
        return Task.model_validate(_with_defaults(value, defaults) if defaults.model_fields_set else value)
    except ValidationError as error:
        verdict = Verdict.failed("invalid_task", f"The task does not fit: {describe_error(error, Task)}")
        if isinstance(identity := value.get("id"), str | int):
            verdict.id = identity
        return verdict


def _with_defaults(value: dict[str, Any], defaults: TaskDefaults) -> dict[str, Any]:
    filled = {name: getattr(defaults, name) for name in defaults.model_fields_set}
    if value.get("verifier") is not None or value.get("recipe") is not None:
        filled.pop("verifier", None)
        filled.pop("recipe", None)
    merged = {**filled, **value}
    for name in _MERGED:
        if isinstance(filled.get(name), dict) and isinstance(value.get(name), dict):
            merged[name] = {**filled[name], **value[name]}
    return merged


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
