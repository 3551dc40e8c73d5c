"""The reading half of :mod:`adjudge_sandbox.values`: strict, bounded, and deaf to everything but its table of tags."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator
from typing import Any

from .encoding import C128, F64, I64, MAX_DEPTH, MAX_PRECISE_BYTES, U32, Malformed

__all__ = ["MAX_CONTAINERS", "Decoder"]

MAX_CONTAINERS = 1 << 19
"""An empty set takes five bytes on the way and two hundred here."""
_DEQUE_WEIGHT = 4

_MAX_SAME_HASH = 500


class Decoder:
    """Turns bytes back into values.

    ``handle(decoder, tag)`` reads what the other side's hook wrote; without it handles are malformed. ``references``
    resolves numbered containers. With ``numbered`` given, every mutable container made is appended to it. More than
    ``max_containers`` of those are malformed.
    """

    def __init__(
        self,
        data: bytes,
        *,
        handle: Callable[[Decoder, int], Any] | None = None,
        references: list[Any] | None = None,
        numbered: list[Any] | None = None,
        max_containers: int | None = None,
    ) -> None:
        self._data = data
        self._room = max_containers
        self._at = 0
        self._handle = handle
        self._references = references
        self._numbered = numbered

    def read(self, depth: int = 0) -> Any:
        """The next value. Raises :class:`Malformed`."""
        if depth > MAX_DEPTH + 2:
            raise Malformed("nested too deeply")
        tag = self.take(1)[0]
        reader = _READERS.get(tag)
        if reader is not None:
            return reader(self, depth + 1)
        if tag == 0x6D and self._references is not None:  # m
            number = self.number()
            if number >= len(self._references):
                raise Malformed("a reference to nothing")
            return self._references[number]
        if self._handle is not None:
            return self._handle(self, tag)
        raise Malformed(f"unknown tag {tag}")

    def end(self) -> None:
        """Raises :class:`Malformed` unless everything has been read."""
        if self._at != len(self._data):
            raise Malformed("bytes are left over")

    def take(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise Malformed("cut off")
        return self._data[start : self._at]

    def number(self) -> int:
        return int(U32.unpack(self.take(4))[0])

    def payload(self) -> bytes:
        return self.take(self.number())

    def born(self, container: Any) -> Any:
        """Every new mutable container passes here before it is filled."""
        if self._room is not None:
            self._room -= _DEQUE_WEIGHT if type(container) is collections.deque else 1
            if self._room < 0:
                raise Malformed("too many lists, sets and dicts")
        if self._numbered is not None:
            self._numbered.append(container)
        return container

    def hashables(self, depth: int) -> Iterator[Any]:
        """Items that can be keys, few of them with one hash."""
        hashes: dict[int, int] = {}
        for _ in range(self.number()):
            item = self.read(depth)
            try:
                value = hash(item)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise Malformed(f"a key that cannot be hashed: {error}") from error
            count = hashes[value] = hashes.get(value, 0) + 1
            if count > _MAX_SAME_HASH:
                raise Malformed("too many keys with one hash")
            yield item

    def expect(self, depth: int, *kinds: type) -> Any:
        value = self.read(depth)
        if type(value) not in kinds:
            raise Malformed(f"{type(value).__name__} where {kinds[0].__name__} belongs")
        return value


def _read_sequence(make: Callable[[], Any]) -> Callable[[Decoder, int], Any]:
    def read(source: Decoder, depth: int) -> Any:
        container = source.born(make())
        append, again = container.append, source.read
        for _ in range(source.number()):
            append(again(depth))
        return container

    return read


def _read_mapping(make: Callable[[], dict[Any, Any]]) -> Callable[[Decoder, int], Any]:
    def read(source: Decoder, depth: int) -> Any:
        container = source.born(make())
        for key in source.hashables(depth):
            container[key] = source.read(depth)
        return container

    return read


def _read_set(source: Decoder, depth: int) -> set[Any]:
    container: set[Any] = source.born(set())
    container.update(source.hashables(depth))
    return container


def _read_bytearray(source: Decoder, depth: int) -> Any:
    container = source.born(bytearray())
    container += source.payload()
    return container


def _read_deque(source: Decoder, depth: int) -> Any:
    container: collections.deque[Any] = collections.deque(maxlen=source.expect(depth, int, type(None)))
    source.born(container)
    if source.take(1) != b"l":
        raise Malformed("a deque without items")
    for _ in range(source.number()):
        container.append(source.read(depth))
    return container


def _read_tuple(source: Decoder, depth: int) -> tuple[Any, ...]:
    items: list[Any] = []
    for _ in range(source.number()):
        items.append(source.read(depth))
    return tuple(items)


def _read_decimal(source: Decoder, depth: int) -> decimal.Decimal:
    text = source.payload()
    if len(text) > MAX_PRECISE_BYTES:
        raise Malformed("a Decimal has too many digits")
    try:
        return decimal.Decimal(text.decode("ascii"))
    except (decimal.InvalidOperation, ValueError) as error:
        raise Malformed("not a Decimal") from error


def _read_fraction(source: Decoder, depth: int) -> fractions.Fraction:
    terms = source.expect(depth, int), source.expect(depth, int)
    if terms[1] == 0 or any(term.bit_length() > 8 * MAX_PRECISE_BYTES for term in terms):
        raise Malformed("not a Fraction")
    return fractions.Fraction(*terms)


def _read_fields(make: Callable[..., Any], *kinds: tuple[type, ...]) -> Callable[[Decoder, int], Any]:
    def read(source: Decoder, depth: int) -> Any:
        fields = [source.expect(depth, *allowed) for allowed in kinds]
        try:
            return make(*fields)
        except (ValueError, OverflowError, TypeError) as error:
            raise Malformed(str(error)) from error

    return read


def _read_str(source: Decoder, depth: int) -> str:
    try:
        return source.payload().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Malformed("not UTF-8") from error


def _zone(offset_s: float | None) -> datetime.timezone | None:
    return None if offset_s is None else datetime.timezone(datetime.timedelta(seconds=offset_s))


def _make_datetime(y: int, mo: int, d: int, h: int, mi: int, s: int, us: int, fold: int, off: float | None) -> Any:
    return datetime.datetime(y, mo, d, h, mi, s, us, _zone(off), fold=fold)


def _make_time(h: int, mi: int, s: int, us: int, fold: int, off: float | None) -> datetime.time:
    return datetime.time(h, mi, s, us, _zone(off), fold=fold)


def _make_delta(days: int, seconds: int, microseconds: int) -> datetime.timedelta:
    return datetime.timedelta(days, seconds, microseconds)


_INT: tuple[type, ...] = (int,)
_OFFSET: tuple[type, ...] = (float, type(None))
_ANY_INDEX: tuple[type, ...] = (int, type(None))

_READERS: dict[int, Callable[[Decoder, int], Any]] = {
    ord(tag): reader
    for tag, reader in {
        "N": lambda source, depth: None,
        "E": lambda source, depth: Ellipsis,
        "T": lambda source, depth: True,
        "F": lambda source, depth: False,
        "i": lambda source, depth: I64.unpack(source.take(8))[0],
        "I": lambda source, depth: int.from_bytes(source.payload(), "big", signed=True),
        "f": lambda source, depth: F64.unpack(source.take(8))[0],
        "c": lambda source, depth: complex(*C128.unpack(source.take(16))),
        "s": _read_str,
        "b": lambda source, depth: source.payload(),
        "B": _read_bytearray,
        "l": _read_sequence(list),
        "t": _read_tuple,
        "S": _read_set,
        "Z": lambda source, depth: frozenset(source.hashables(depth)),
        "d": _read_mapping(dict),
        "O": _read_mapping(collections.OrderedDict),
        "C": _read_mapping(collections.Counter),
        "D": _read_mapping(collections.defaultdict),
        "q": _read_deque,
        "r": _read_fields(range, _INT, _INT, _INT),
        "x": _read_fields(slice, _ANY_INDEX, _ANY_INDEX, _ANY_INDEX),
        "M": _read_decimal,
        "R": _read_fraction,
        "V": _read_fields(_make_datetime, *[_INT] * 8, _OFFSET),
        "Y": _read_fields(datetime.date, *[_INT] * 3),
        "W": _read_fields(_make_time, *[_INT] * 5, _OFFSET),
        "U": _read_fields(_make_delta, *[_INT] * 3),
    }.items()
}
