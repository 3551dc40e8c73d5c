"""From a task to a checked call: find the verifier, check reference and options, extract the answer.

Whatever is wrong with the task is raised as :class:`InvalidTask`, with a sentence that says what to change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from adjudge.types import Task
from adjudge_verifiers import registry
from adjudge_verifiers.base import Call, Lane, NoReference, Verifier
from adjudge_verifiers.errors import InvalidOptions, InvalidReference, InvalidTask, nearest

__all__ = ["LONG_CHARS", "Prepared", "describe_error", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run; ``lane`` is the verifier's, or ``cpu`` for an ``inline`` one with a long response."""

    verifier: Verifier[Any, Any]
    call: Call[Any, Any]
    reference: Any
    options: dict[str, Any]
    timeout_s: float
    lane: Lane


LONG_CHARS = 50_000
"""Beyond this even linear work on a response is too much for the process that answers HTTP; a worker does it."""


_KEPT_REFERENCES = 128
_checked_references: dict[tuple[str, bytes], Any] = {}


def prepare(
    task: Task,
    name: str,
    *,
    max_response_chars: int,
    options: Mapping[str, Any] | None = None,
    reference: Any = None,
) -> Prepared:
    """Check ``task`` for verifier ``name``; ``options`` and ``reference`` replace the task's own where given.

    Raises:
        InvalidTask: unknown verifier, unusable reference or options, a response that is too long.
    """
    verifier = registry.get(name)
    raw_options: dict[str, Any] = task.options if options is None else dict(options)
    raw_reference = task.reference if reference is None else reference
    checked_options = _options(verifier, raw_options)
    checked_reference = _reference(verifier, raw_reference)
    response = task.text
    if len(response) > max_response_chars:
        raise InvalidTask(
            f"The response has {len(response):,} characters; this server takes {max_response_chars:,} "
            "(limits.max_response_chars)."
        )
    lane: Lane = "cpu" if verifier.lane == "inline" and len(response) > LONG_CHARS else verifier.lane
    here = verifier.has_extract() and not (lane == "cpu" and len(response) > LONG_CHARS)
    extraction = verifier.extract_for(response, checked_options, checked_reference) if here else None
    call: Call[Any, Any] = Call(
        response="" if extraction is not None else response,
        reference=checked_reference,
        options=checked_options,
        prompt=task.prompt,
        extraction=extraction,
        timeout_s=task.timeout_s,
        metadata=task.metadata,
    )
    if verifier.Reference is NoReference:
        raw_reference = None
    return Prepared(verifier, call, raw_reference, raw_options, task.timeout_s or verifier.timeout_s, lane)


def _options(verifier: Verifier[Any, Any], raw: dict[str, Any]) -> BaseModel:
    try:
        return verifier.Options.model_validate(raw)
    except ValidationError as error:
        raise InvalidOptions(
            f"Options of verifier {verifier.name!r}: {describe_error(error, verifier.Options)}"
        ) from None


def _reference(verifier: Verifier[Any, Any], raw: Any) -> Any:
    if verifier.Reference is NoReference:
        return None
    if raw is None:
        raise InvalidReference(f"Verifier {verifier.name!r} needs a reference, and the task has none.")
    key = None
    if verifier.lane == "sandbox":  # a suite of tests may have megabytes, and all rollouts of its problem share it
        key = (verifier.name, hashlib.blake2b(to_json(raw, inf_nan_mode="strings"), digest_size=16).digest())
        if key in _checked_references:
            return _checked_references[key]
    try:
        checked = verifier.reference_adapter().validate_python(raw)
    except ValidationError as error:
        raise InvalidReference(f"Reference of verifier {verifier.name!r}: {describe_error(error)}") from None
    if key is not None:
        if len(_checked_references) >= _KEPT_REFERENCES:
            _checked_references.pop(next(iter(_checked_references)))
        _checked_references[key] = checked
    return checked


def describe_error(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The first problems that pydantic found, as one line without the input's own text."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False)[:3]:
        where = ".".join(str(key) for key in problem["loc"])[:200]
        if problem["type"] == "extra_forbidden" and model is not None:
            lines.append(f"there is no {where!r}.{nearest(str(problem['loc'][-1]), model.model_fields)}")
        else:
            lines.append(f"{where}: {problem['msg']}" if where else problem["msg"])
    more = error.error_count() - len(lines)
    return "; ".join(lines)[:600] + (f" (and {more} more)" if more > 0 else "")
