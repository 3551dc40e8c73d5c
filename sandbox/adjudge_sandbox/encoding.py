"""The writing half of :mod:`adjudge_sandbox.values`."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["DEFAULT_MAX_BYTES", "MAX_DEPTH", "MAX_PRECISE_BYTES", "Encoder", "Malformed", "NotPlain", "TooLarge"]

MAX_DEPTH = 200
DEFAULT_MAX_BYTES = 64 << 20
MAX_PRECISE_BYTES = 1 << 16
"""Of a Decimal or of the terms of a Fraction, whose arithmetic is not linear."""
U32, I64, F64, C128 = struct.Struct(">I"), struct.Struct(">q"), struct.Struct(">d"), struct.Struct(">dd")


class NotPlain(TypeError):
    """The value, or something in it, is not plain data; the message says what."""


class TooLarge(ValueError):
    """The encoded value would exceed the limit."""


class Malformed(ValueError):
    """The bytes are no encoded value, or one that exceeds a limit."""


Hook = Callable[["Encoder", object, int], bool]


class Encoder:
    """Turns values into bytes.

    ``hook(encoder, value, depth)`` is asked about what is not plain data; it may write a handle and return true.
    ``references`` maps ``id(container)`` to a number: such a container is written as that number. With ``numbered``
    given, every list, dict, set, bytearray and deque met is appended to it, in the order in which the decoder meets
    them.
    """

    def __init__(
        self,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        hook: Hook | None = None,
        references: dict[int, int] | None = None,
        numbered: list[Any] | None = None,
    ) -> None:
        self.out = bytearray()
        self._max_bytes = max_bytes
        self._hook = hook
        self._references = references
        self._numbered = numbered

    def write(self, value: Any, depth: int = 0) -> None:
        """Append one value. Raises :class:`NotPlain`, :class:`TooLarge`."""
        if len(self.out) > self._max_bytes:
            raise TooLarge(f"the value takes more than {self._max_bytes >> 10} KiB")
        if depth > MAX_DEPTH:
            raise NotPlain(f"the value is nested more than {MAX_DEPTH} levels deep, or contains itself")
        kind = type(value)
        writer = _WRITERS.get(kind) or _writer_of_base(kind)
        if writer is None:
            self._write_other(value, kind, depth)
            return
        if kind in _MUTABLE or writer in _MUTABLE_WRITERS:
            if self._references is not None and (number := self._references.get(id(value))) is not None:
                self.out += b"m" + U32.pack(number)
                return
            if self._numbered is not None:
                if self._references is not None:
                    self._references[id(value)] = len(self._numbered)
                self._numbered.append(value)
        writer(self, value, depth + 1)

    def content(self, container: Any) -> bytes:
        """The content of a mutable container, which is not looked up among the references. To compare and update."""
        before, self.out = self.out, bytearray()
        try:
            kind = type(container)
            writer = _WRITERS.get(kind) or _writer_of_base(kind)
            assert writer is not None
            writer(self, container, 1)
            return bytes(self.out)
        finally:
            self.out = before

    def tagged(self, tag: bytes, payload: bytes) -> None:
        """Append a tag and bytes with their length."""
        if len(payload) > self._max_bytes:
            raise TooLarge(f"the value takes more than {self._max_bytes >> 10} KiB")
        self.out += tag + U32.pack(len(payload)) + payload

    def count(self, tag: bytes, count: int) -> None:
        """Append a tag and a number of items."""
        self.out += tag + U32.pack(count)

    def _write_other(self, value: Any, kind: type, depth: int) -> None:
        if self._hook is not None and self._hook(self, value, depth):
            return
        if kind.__module__.partition(".")[0] == "numpy" and hasattr(kind, "tolist"):
            self.write(value.tolist(), depth + 1)
        elif _is_iterable_once(kind):
            self.items(b"l", value, depth + 1)
        else:
            raise NotPlain(f"an object of type {kind.__module__}.{kind.__qualname__} is not plain data"[:300])

    def items(self, tag: bytes, items: Any, depth: int) -> None:
        """Append a tag and items whose number is known only afterwards."""
        self.out += tag
        at, count = len(self.out), 0
        self.out += b"\0\0\0\0"
        for item in items:
            self.write(item, depth)
            count += 1
        self.out[at : at + 4] = U32.pack(count)


def _is_iterable_once(kind: type) -> bool:
    return hasattr(kind, "__next__") or kind in _VIEWS


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _write_int(to: Encoder, value: Any, depth: int) -> None:
    number = int.__int__(value)
    if -(1 << 63) <= number < 1 << 63:
        to.out += b"i" + I64.pack(number)
    else:
        to.tagged(b"I", number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _write_float(to: Encoder, value: Any, depth: int) -> None:
    to.out += b"f" + F64.pack(float.__float__(value))


def _write_complex(to: Encoder, value: Any, depth: int) -> None:
    number = complex.__add__(value, 0j) if type(value) is not complex else value
    to.out += b"c" + C128.pack(number.real, number.imag)


def _write_str(to: Encoder, value: Any, depth: int) -> None:
    to.tagged(b"s", str.encode(value, "utf-8", "surrogatepass"))


def _write_bytes(to: Encoder, value: Any, depth: int) -> None:
    to.tagged(b"b", bytes.__getitem__(value, slice(None)))


def _write_bytearray(to: Encoder, value: Any, depth: int) -> None:
    to.tagged(b"B", bytes(memoryview(value)))


def _sequence(tag: bytes, base: Any) -> Callable[[Encoder, Any, int], None]:
    iterate, length = base.__iter__, base.__len__

    def write(to: Encoder, value: Any, depth: int) -> None:
        to.count(tag, length(value))
        for item in tuple(iterate(value)):
            to.write(item, depth)

    return write


def _mapping(tag: bytes) -> Callable[[Encoder, Any, int], None]:
    def write(to: Encoder, value: Any, depth: int) -> None:
        pairs = tuple(dict.items(value))
        to.count(tag, len(pairs))
        for key, item in pairs:
            to.write(key, depth)
            to.write(item, depth)

    return write


def _write_ordered_dict(to: Encoder, value: Any, depth: int) -> None:
    keys = tuple(collections.OrderedDict.__iter__(value))
    to.count(b"O", len(keys))
    for key in keys:
        to.write(key, depth)
        to.write(dict.__getitem__(value, key), depth)


def _write_deque(to: Encoder, value: Any, depth: int) -> None:
    to.out += b"q"
    to.write(collections.deque.maxlen.__get__(value), depth)
    _write_deque_items(to, value, depth)


_write_deque_items = _sequence(b"l", collections.deque)


def _fields(tag: bytes, *getters: Callable[[Any], Any]) -> Callable[[Encoder, Any, int], None]:
    def write(to: Encoder, value: Any, depth: int) -> None:
        to.out += tag
        for getter in getters:
            to.write(getter(value), depth)

    return write


def _getter(descriptor: Any) -> Callable[[Any], Any]:
    return lambda value: descriptor.__get__(value)


def _offset_s(value: Any) -> float | None:
    offset = value.utcoffset()
    return None if offset is None else offset.total_seconds()


def _write_decimal(to: Encoder, value: Any, depth: int) -> None:
    text = decimal.Decimal.__str__(value).encode()
    if len(text) > MAX_PRECISE_BYTES:
        raise TooLarge("a Decimal has too many digits")
    to.tagged(b"M", text)


def _write_fraction(to: Encoder, value: Any, depth: int) -> None:
    terms = (fractions.Fraction.numerator.__get__(value), fractions.Fraction.denominator.__get__(value))
    if any(term.bit_length() > 8 * MAX_PRECISE_BYTES for term in terms):
        raise TooLarge("a Fraction has too many digits")
    to.out += b"R"
    for term in terms:
        to.write(term, depth)


_date, _time, _datetime = datetime.date, datetime.time, datetime.datetime
_DATE = (_getter(_date.year), _getter(_date.month), _getter(_date.day))
_TIME = tuple(_getter(getattr(_time, name)) for name in ("hour", "minute", "second", "microsecond", "fold"))
_CLOCK = tuple(_getter(getattr(_datetime, name)) for name in ("hour", "minute", "second", "microsecond", "fold"))
_DELTA = tuple(_getter(getattr(datetime.timedelta, name)) for name in ("days", "seconds", "microseconds"))

Writer = Callable[[Encoder, Any, int], None]


def _constant(tag: bytes) -> Writer:
    def write(to: Encoder, value: Any, depth: int) -> None:
        to.out += tag

    return write


def _write_bool(to: Encoder, value: Any, depth: int) -> None:
    to.out += b"T" if value else b"F"


# Order matters for subclasses: the first base found along the method resolution order wins.
_WRITERS: dict[type, Writer] = {
    type(None): _constant(b"N"),
    type(Ellipsis): _constant(b"E"),
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    complex: _write_complex,
    str: _write_str,
    bytes: _write_bytes,
    bytearray: _write_bytearray,
    list: _sequence(b"l", list),
    tuple: _sequence(b"t", tuple),
    set: _sequence(b"S", set),
    frozenset: _sequence(b"Z", frozenset),
    dict: _mapping(b"d"),
    collections.OrderedDict: _write_ordered_dict,
    collections.Counter: _mapping(b"C"),
    collections.defaultdict: _mapping(b"D"),
    collections.deque: _write_deque,
    range: _fields(b"r", _getter(range.start), _getter(range.stop), _getter(range.step)),
    slice: _fields(b"x", _getter(slice.start), _getter(slice.stop), _getter(slice.step)),
    decimal.Decimal: _write_decimal,
    fractions.Fraction: _write_fraction,
    datetime.datetime: _fields(b"V", *_DATE, *_CLOCK, _offset_s),
    datetime.date: _fields(b"Y", *_DATE),
    datetime.time: _fields(b"W", *_TIME, _offset_s),
    datetime.timedelta: _fields(b"U", *_DELTA),
}
_MUTABLE = (
    list,
    set,
    dict,
    bytearray,
    collections.deque,
    collections.OrderedDict,
    collections.Counter,
    collections.defaultdict,
)
_MUTABLE_WRITERS = frozenset(_WRITERS[kind] for kind in _MUTABLE)


def _writer_of_base(kind: type) -> Writer | None:
    for base in type.__dict__["__mro__"].__get__(kind):
        if base in _WRITERS:
            return _WRITERS[base]
    return None
