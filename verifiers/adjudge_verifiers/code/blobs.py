"""Test suites that data sets ship as base64(zlib(...)): LiveCodeBench's private tests, open-instruct's test lists.

What is inside is JSON or a pickle. Unpickling runs whatever the pickle says, so it is never done: :func:`read_pickle`
walks over the opcodes and knows only those that make plain constants, lists, tuples and dicts. Anything that would
import, call or build (``GLOBAL``, ``REDUCE``, ``BUILD``, ``INST``, ``OBJ``, ``NEWOBJ``, persistent ids, extensions) is
refused. Decompression, the number of opcodes and the depth are bounded, and a container that a pickle refers to again
is copied against a budget, so that a small text cannot stand for an endless one.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import re
import zlib
from collections.abc import Callable
from typing import Any, cast

from .literals import parse_json

__all__ = ["MAX_BYTES", "decode_blob", "inflate", "looks_like_blob", "read_pickle"]

MAX_BYTES = 64 * 1024 * 1024
_MAX_OPCODES = 2_000_000
_MAX_DEPTH = 100
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{8,}={0,2}\s*", re.ASCII)

_PUSH_ARGUMENT = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
    }
)
_PUSH_CONSTANT: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
_IGNORED = frozenset({"PROTO", "FRAME"})
_MARK = object()


def looks_like_blob(text: str) -> bool:
    """Is this base64 rather than JSON or code? Only its alphabet is looked at."""
    return _BASE64.fullmatch(text) is not None


def decode_blob(text: str) -> Any:
    """The value inside base64(zlib(JSON or pickle)). Raises ``ValueError`` saying which layer is broken."""
    try:
        packed = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"it is not base64: {error}") from None
    raw = inflate(packed)
    if not raw.startswith(b"\x80"):
        try:
            return parse_json(raw.decode("utf-8"))
        except ValueError as error:
            if not raw.endswith(b"."):  # every pickle ends with STOP
                raise ValueError(f"what is inside the blob is neither JSON nor a pickle: {error}") from None
    return read_pickle(raw)


def inflate(packed: bytes, limit: int = MAX_BYTES) -> bytes:
    """Decompress zlib data of at most ``limit`` bytes. Raises ``ValueError``."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, limit + 1)
    except zlib.error as error:
        raise ValueError(f"it is not zlib data: {error}") from None
    if len(raw) > limit:
        raise ValueError(f"it unpacks to more than {limit // (1024 * 1024)} MiB")
    if not stream.eof:
        raise ValueError("its zlib data ends too early")
    return raw


def read_pickle(raw: bytes) -> Any:
    """The plain value that a pickle describes, without unpickling. Raises ``ValueError`` for what is no plain data."""
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
            if count > _MAX_OPCODES:
                raise ValueError(f"the pickle has more than {_MAX_OPCODES} opcodes")
            machine.step(opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the pickle is broken ({type(error).__name__})") from None
    if len(machine.stack) != 1 or machine.stack[0] is _MARK:
        raise ValueError("the pickle is broken (it leaves no single value)")
    return machine.copy(machine.stack[0])


class _Machine:
    """The stack of the pickle format, for plain data."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.budget = 2 * _MAX_OPCODES

    def step(self, name: str, argument: Any) -> None:
        if name in _PUSH_ARGUMENT:
            self.stack.append(argument)
        elif name in _PUSH_CONSTANT:
            self.stack.append(_PUSH_CONSTANT[name]())
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[len(self.memo) if name == "MEMOIZE" else int(argument)] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self._recall(int(argument))
        elif name not in _IGNORED and name != "STOP":
            self._build(name)

    def _recall(self, index: int) -> None:
        self.stack.append(self.copy(self.memo[index]))

    def copy(self, value: Any, depth: int = 0) -> Any:
        """The same value with no part shared, charged to the budget."""
        if not isinstance(value, list | tuple | dict):
            return value
        self.budget -= len(value) + 1
        if self.budget < 0 or depth > _MAX_DEPTH:
            raise ValueError("the pickle is nested too deeply or refers to itself too often for plain test data")
        if isinstance(value, dict):
            return {self.copy(key, depth + 1): self.copy(item, depth + 1) for key, item in value.items()}
        return type(value)(self.copy(item, depth + 1) for item in value)

    def _pop(self, position: int = -1) -> Any:
        item = self.stack.pop(position)
        if item is _MARK:
            raise TypeError
        return item

    def _build(self, name: str) -> None:
        if name in ("APPEND", "APPENDS"):
            items = self._to_mark() if name == "APPENDS" else [self._pop()]
            cast("list[Any]", self._top(list)).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._to_mark() if name == "SETITEMS" else [self._pop(-2), self._pop()]
            cast("dict[Any, Any]", self._top(dict)).update(_pairs(items))
        elif name in ("LIST", "TUPLE"):
            items = self._to_mark()
            self.stack.append(items if name == "LIST" else tuple(items))
        elif name == "DICT":
            self.stack.append(dict(_pairs(self._to_mark())))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(name[-1])
            items = [self._pop() for _ in range(size)]
            self.stack.append(tuple(reversed(items)))
        else:
            raise ValueError(f"the pickle holds the opcode {name}; only plain data is read, objects are refused")

    def _top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise TypeError
        return self.stack[-1]

    def _to_mark(self) -> list[Any]:
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        items.reverse()
        return items


def _pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    if len(items) % 2 or any(isinstance(key, tuple | list | dict) for key in items[::2]):
        raise TypeError  # hashing a deep tuple would overflow the C stack
    return list(zip(items[::2], items[1::2], strict=True))
