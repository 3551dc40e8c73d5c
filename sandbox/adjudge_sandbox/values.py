"""Plain data between processes that do not trust each other: a small binary codec.

What crosses is data of exact built-in and standard types and nothing else. An instance of a subclass of ``int``,
``str``, ``list``... is rebuilt as the plain type *by the plain type's own methods*, so that an object that claims to
equal everything arrives as the number, text or list that it is. Decoding calls no constructor that the bytes could
choose: each tag stands for one type of the table below.

========================================  ============================================================
given                                     arrives as
========================================  ============================================================
None, bool, int, float, complex, str,     itself (nan, inf, huge integers, lone surrogates included)
bytes, bytearray, Ellipsis
list, tuple, set, frozenset, dict         itself; a named tuple as a tuple
deque, Counter, OrderedDict, defaultdict  itself; a ``default_factory`` is dropped
range, slice, Decimal, Fraction           itself
datetime, date, time, timedelta           itself (a time zone as its offset from UTC)
iterator, generator, dict view            a list of its items (unless a hook takes it, see below)
numpy scalar, numpy array                 a number, nested lists
========================================  ============================================================

Everything else is :class:`NotPlain`, unless the :class:`Encoder` has a hook that turns it into a *handle*, a number
that stands for an object that stays where it is (:mod:`adjudge_sandbox.python.rpc`).

Sizes are bounded on both sides: bytes, depth, and the number of keys with one hash (integers whose hashes collide would
make a dictionary quadratic); where a program's word is read, also the number of containers.
"""

from __future__ import annotations

from typing import Any

from .decoding import MAX_CONTAINERS, Decoder
from .encoding import DEFAULT_MAX_BYTES, MAX_DEPTH, Encoder, Malformed, NotPlain, TooLarge

__all__ = ["MAX_CONTAINERS", "MAX_DEPTH", "Decoder", "Encoder", "Malformed", "NotPlain", "TooLarge", "decode", "encode"]


def encode(value: Any, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """The bytes of one value. Raises :class:`NotPlain`, :class:`TooLarge`."""
    encoder = Encoder(max_bytes=max_bytes)
    encoder.write(value)
    if len(encoder.out) > max_bytes:
        raise TooLarge(f"the value takes more than {max_bytes >> 10} KiB")
    return bytes(encoder.out)


def decode(data: bytes, *, max_containers: int | None = None) -> Any:
    """The value in ``data``. Raises :class:`Malformed`, whatever ``data`` is."""
    decoder = Decoder(data, max_containers=max_containers)
    try:
        value = decoder.read()
    except RecursionError:
        raise Malformed("nested too deeply") from None
    decoder.end()
    return value
