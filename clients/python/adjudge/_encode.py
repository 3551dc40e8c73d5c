"""From what a caller has to the JSON that goes over the wire.

A task is encoded by itself, once, however often it is sent. One that cannot be (a NaN, an object without a JSON form,
a missing ``response``'s worth of nesting) becomes an ``invalid_task`` verdict here and spoils no other. Tasks given as
mappings are not checked further: the server does that, for each by itself.

Lone surrogates, which a tokenizer can leave in a text and which no UTF-8 can carry, are replaced by U+FFFD.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from .errors import ConfigurationError, ProtocolError
from .types import Task, TaskDefaults, Verdict

__all__ = [
    "as_list",
    "as_object",
    "decode",
    "decode_verdict",
    "encode_defaults",
    "encode_object",
    "encode_task",
    "task_fields",
]


def task_fields(task: Task | Mapping[str, Any] | None, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a task as the caller set them, with ``extra`` on top."""
    if isinstance(task, Task):
        fields = {name: getattr(task, name) for name in task.model_fields_set}
    elif isinstance(task, Mapping):
        fields = dict(task)
    elif task is None:
        fields = {}
    else:
        raise TypeError(f"a task is a Task or a mapping of its fields, not {type(task).__name__}")
    return {**fields, **extra}


def encode_task(task: Task | Mapping[str, Any] | None, extra: Mapping[str, Any] | None = None) -> bytes | Verdict:
    """JSON of a task, or the verdict that says why it has none. Raises ``TypeError`` for what is no task at all."""
    fields = task_fields(task, extra or {})
    try:
        return encode_object(fields)
    except ValueError as error:
        given = fields.get("id")
        verdict = Verdict.failed("invalid_task", f"The task cannot be sent as JSON: {error}")
        return verdict.model_copy(update={"id": given if isinstance(given, str | int) else None})


def encode_defaults(defaults: TaskDefaults | Mapping[str, Any] | None) -> bytes | None:
    """JSON of the defaults of a batch. Raises :class:`ConfigurationError` if they cannot be sent."""
    if defaults is None:
        return None
    try:
        return encode_object(defaults if isinstance(defaults, BaseModel) else dict(defaults))
    except ValueError as error:
        raise ConfigurationError(f"`defaults` cannot be sent as JSON: {error}") from None


def encode_object(value: Any) -> bytes:
    """Compact UTF-8 JSON. Raises ``ValueError`` for what JSON cannot say."""
    try:
        return _dumps(value).encode("utf-8")
    except UnicodeEncodeError:
        return _without_surrogates(_dumps(value)).encode("utf-8")
    except TypeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _without_surrogates(text: str) -> str:
    # A high and a low half that stand side by side are one character; what is left over cannot be encoded.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(value: Any) -> Any:
    """The plain form of objects that data sets are full of: our own models, dates, numbers and arrays of numpy."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="python", exclude_unset=True)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def decode(body: bytes) -> Any:
    """A JSON value. Raises :class:`ProtocolError`."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _not_ours(body.decode("utf-8", "replace")) from None


def as_object(value: Any) -> dict[str, Any]:
    """``value`` if it is a JSON object. Raises :class:`ProtocolError`."""
    if not isinstance(value, dict):
        raise _not_ours(repr(value))
    return value


def as_list(value: Any) -> list[dict[str, Any]]:
    """``value`` if it is a JSON array of objects. Raises :class:`ProtocolError`."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _not_ours(repr(value))
    return value


def _not_ours(shown: str) -> ProtocolError:
    return ProtocolError(f"The reply is not what adjudge sends: {shown[:200]}. Is base_url an adjudge server?")


def decode_verdict(body: bytes) -> Verdict:
    """A verdict. Raises :class:`ProtocolError`."""
    try:
        return Verdict.model_validate_json(body)
    except ValidationError as error:
        raise ProtocolError(f"The reply is not a verdict: {error.errors(include_url=False)[0]['msg']}") from None
