"""What the wire formats of other sandboxes share: a program of theirs becomes a run, and what it wrote becomes text.

Names and contents of files are untrusted: a name stays within the program's folder, whatever those sandboxes allowed.
A failure that is not the program's leaves these routes as an error of the kind that the format's own client tries
again, never as the result of a run.
"""

from __future__ import annotations

import binascii
import functools
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from adjudge_sandbox.base import Limits, Outcome, RunResult
from adjudge_sandbox.errors import InvalidProgram
from adjudge_sandbox.languages import table
from adjudge_sandbox.languages.names import safe_name

from ..engine.prepare import describe_error
from ..settings import LimitSettings
from ..wire import to_wire
from .problems import Problem

__all__ = [
    "MAX_SECONDS",
    "ProgramOptions",
    "Spoken",
    "check_length",
    "check_name",
    "decode_file",
    "json_reply",
    "language_of",
    "limits_of",
    "program_options",
    "shown",
    "why",
]

MAX_SECONDS = 600.0
"""Longest time limit of a run or a compilation that these routes take."""
_DEFAULT_MEMORY_MIB = 2048
_LEAST_MEMORY_MIB = 16
_MOST_MEMORY_MIB = 16_384

_THEIR_LANGUAGES = {"kotlin_script": "kotlin", "d_ut": "d"}
"""Names that are in no language table but theirs."""


class ProgramOptions(BaseModel):
    """The URL's parameters, beside ``key``."""

    model_config = ConfigDict(extra="forbid")

    queue_timeout_s: float | None = Field(default=None, gt=0, le=3600, description="Longest wait for a free slot.")


P = TypeVar("P", bound=ProgramOptions)


def program_options(request: Request, model: type[P]) -> P:
    """Read the URL's parameters; raises :class:`Problem` that names one that is not known."""
    if not request.url.query:
        return model()
    values = {name: value for name, value in request.query_params.items() if name != "key"}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise Problem("invalid-request", f"URL parameters: {describe_error(error, model)}") from None


@dataclass(frozen=True, slots=True)
class Spoken:
    """A language, by the name that a request gives it."""

    name: str
    """Of the language table."""
    given: str
    """What the sandbox is told: an alias may choose a standard."""
    compiled: bool
    """Does its source go through a compiler of its own before it runs?"""


@functools.lru_cache(maxsize=256)
def language_of(name: str) -> Spoken:
    """The language that another sandbox calls ``name``; one that is not in the table stays what it is called."""
    given = name.strip().lower()
    given = _THEIR_LANGUAGES.get(given, given)
    found = table.find(given)
    if found is None:
        return Spoken(given, given, compiled=False)
    return Spoken(found[0].name, given, compiled=bool(found[0].toolchains[0].compile))


def limits_of(
    run_s: float, compile_s: float, memory_mib: float | None, *, cpu_s: float | None = None, output_kib: int = 4096
) -> Limits:
    """Limits for a time limit in wall seconds, which is what those sandboxes have.

    Here it bounds CPU time. The wall clock gets twice as much and two seconds, so that a busy host costs no program its
    result, and a program that sleeps still ends before its client has gone.
    """
    wanted = memory_mib if memory_mib is not None and memory_mib > 0 else _DEFAULT_MEMORY_MIB
    return Limits(
        cpu_s=max(0.01, cpu_s or run_s),
        wall_s=2 * run_s + 2,
        memory_mib=int(min(max(wanted, _LEAST_MEMORY_MIB), _MOST_MEMORY_MIB)),
        processes=64,
        output_kib=output_kib,
        compile_cpu_s=max(0.01, compile_s),
    )


def check_length(text: str, limits: LimitSettings, what: str = "The program") -> None:
    """Raises :class:`Problem` ``response-too-long``."""
    if len(text) > limits.max_response_chars:
        raise Problem(
            "response-too-long",
            f"{what} has {len(text):,} characters; the limit is {limits.max_response_chars:,} "
            "(limits.max_response_chars).",
            limit=limits.max_response_chars,
        )


def check_name(name: str) -> str:
    """``name`` as a path below the program's folder; raises :class:`Problem` if it leads elsewhere."""
    try:
        return safe_name(name.removeprefix("./"))
    except InvalidProgram as error:
        raise Problem("invalid-request", f"{error}.") from None


def decode_file(name: str, content: str) -> bytes:
    """The bytes of base64 text; raises :class:`Problem` that names the file."""
    try:
        return b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise Problem("invalid-request", f"The content of file {name[:100]!r} is not base64.") from None


def shown(data: bytes) -> tuple[str, str | None]:
    """What a program wrote, as text; if it is not UTF-8, as base64 too, with ``\\xff`` for such bytes in the text."""
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace"), b64encode(data).decode()


def why(result: RunResult) -> str:
    """One sentence on what the result itself has no field for: which limit it was, and what is missing."""
    silent = result.outcome in (Outcome.FINISHED, Outcome.RAISED)
    detail = "" if result.outcome is Outcome.COMPILE_ERROR else f": {result.detail}"  # stderr has it
    said = [] if silent else [f"{result.outcome}{detail}"]
    streams = {"stdout": result.stdout_truncated, "stderr": result.stderr_truncated}
    cut = [name for name, is_cut in streams.items() if is_cut]
    if cut:
        said.append(f"{' and '.join(cut)} cut at the output limit")
    return "; ".join(said)


def json_reply(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A reply of plain values, whatever text a program put into them."""
    return Response(to_wire(body), status, headers, media_type="application/json")
