"""The files that ``adjudge verify`` and ``adjudge preflight`` read: JSONL, one answer to be judged per line.

A line is one of

* a task: ``{"verifier": "math", "response": "...", "reference": "..."}``;
* ``{"task": {...}}``: the same, with room for more keys beside it;
* ``{"row": {...}, "response": "...", "format": "verl"}``: a row of a data set as it is; with ``--format`` the whole
  line is the row.

``expect`` beside any of them holds keys of the verdict that must come out; ``note`` is for people. A line that is none
of these is reported with its number, and the others are judged all the same.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from .problems import UsageProblem

__all__ = ["Defaults", "Item", "count_lines", "read_items"]

_MAX_LINE_CHARS = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a line takes unless it says otherwise."""

    verifier: str | None = None
    recipe: str | None = None
    format: str | None = None


@dataclass(slots=True)
class Item:
    """One line. Exactly one of ``task``, ``row`` and ``problem`` is set."""

    where: str
    """``file:line``, for messages."""
    line: int
    task: dict[str, Any] | None = None
    row: dict[str, Any] | None = None
    """``{"row": ..., "format": ..., "response"?, "id"?}``, as ``POST /v1/rows`` takes it."""
    expect: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def read_items(paths: Sequence[str], defaults: Defaults) -> Iterator[Item]:
    """Every line of ``paths`` (``-`` is stdin, ``.gz`` is unpacked) that is not blank.

    Raises:
        UsageProblem: a file cannot be read.
    """
    for path in paths:
        name = "stdin" if path == "-" else path
        with _opened(path) as stream:
            for number, text in enumerate(stream, 1):
                if text.strip():
                    yield _item(f"{name}:{number}", number, text, defaults)


def count_lines(paths: Sequence[str]) -> int | None:
    """Lines that :func:`read_items` will give, or ``None`` if stdin is among them."""
    if "-" in paths:
        return None
    total = 0
    for path in paths:
        with _opened(path) as stream:
            total += sum(1 for text in stream if text.strip())
    return total


@contextmanager
def _opened(path: str) -> Iterator[io.TextIOBase]:
    """Text of a file; bytes that are not UTF-8 become U+FFFD, so that one bad line does not hide the rest."""
    if path == "-":
        yield io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="replace", newline="\n")
        return
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as raw:
            yield io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8-sig", errors="replace", newline="\n")
    except (OSError, EOFError, zlib.error) as error:
        raise UsageProblem(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _item(where: str, number: int, text: str, defaults: Defaults) -> Item:
    item = Item(where=where, line=number)
    try:
        if len(text) > _MAX_LINE_CHARS:
            raise ValueError(f"the line is longer than {_MAX_LINE_CHARS:,} characters")
        _fill(item, json.loads(text), defaults)
    except json.JSONDecodeError as error:
        item.problem = f"not JSON: {error.msg} at column {error.colno}"
    except RecursionError:
        item.problem = "the JSON is nested too deeply"
    except ValueError as error:  # of ours, or an integer with more digits than Python reads
        item.problem = str(error)
    return item


def _fill(item: Item, value: Any, defaults: Defaults) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"a line is a JSON object, not {_kind(value)}")
    body = dict(value)
    item.expect = _expectation(body.pop("expect", None))
    body.pop("note", None)
    if "row" in body:
        row = {"row": _object(body["row"], "row"), "format": body.get("format") or defaults.format or "auto"}
        item.row = row | {key: body[key] for key in ("id", "response") if body.get(key) is not None}
        return
    if "task" in body:
        outer = {key: body[key] for key in ("id", "response") if key in body}
        body = {**outer, **_object(body["task"], "task")}
    elif defaults.format is not None:
        item.row = {"row": body, "format": defaults.format}
        return
    if "verifier" not in body and "recipe" not in body:
        body |= {key: name for key in ("verifier", "recipe") if (name := getattr(defaults, key)) is not None}
    item.task = body


def _object(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key!r} is a JSON object, not {_kind(value)}")
    return value


def _expectation(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    from .expect import check_expectation

    expectation = _object(value, "expect")
    check_expectation(expectation)
    return expectation


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return names.get(type(value), "an object")
