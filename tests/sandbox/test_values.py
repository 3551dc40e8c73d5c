"""The codec: what goes in comes out, as the exact plain type, and hostile bytes are refused cheaply."""

import collections
import datetime
import decimal
import enum
import fractions
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge_sandbox.values import MAX_DEPTH, Malformed, NotPlain, TooLarge, decode, encode

_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.none() | st.just(datetime.timezone(datetime.timedelta(hours=5, minutes=30))))
    | st.timedeltas()
    | st.builds(range, st.integers(), st.integers(), st.integers(1, 9))
)
_HASHABLE = st.recursive(_ATOMS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
_VALUES = st.recursive(
    _ATOMS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.sets(_HASHABLE, max_size=4)
        | st.dictionaries(_HASHABLE, inner, max_size=4)
        | st.builds(collections.OrderedDict, st.dictionaries(_HASHABLE, inner, max_size=3))
        | st.builds(collections.deque, st.lists(inner, max_size=3), st.none() | st.integers(3, 5))
        | st.builds(collections.Counter, st.text(max_size=5))
        | st.builds(bytearray, st.binary())
    ),
    max_leaves=20,
)


def _shape(value):
    """The exact types, all the way down."""
    kind = type(value)
    if issubclass(kind, dict):
        return kind, [(_shape(key), _shape(item)) for key, item in value.items()]
    if kind in (list, tuple, collections.deque):
        return kind, [_shape(item) for item in value]
    return kind


@given(_VALUES)
@settings(max_examples=150, deadline=None)
def test_round_trip(value):
    again = decode(encode(value))
    assert again == value
    assert _shape(again) == _shape(value)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_decoded_or_refused(data):
    try:
        value = decode(data)
    except Malformed:
        return
    encode(value)


@given(_VALUES, st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_bytes_are_decoded_or_refused(value, data):
    good = bytearray(encode(value))
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(good))
    except Malformed:
        return


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324])
def test_floats_bit_by_bit(value):
    assert repr(decode(encode(value))) == repr(value)


def test_decimals_that_are_no_numbers():
    assert [str(decode(encode(decimal.Decimal(text)))) for text in ("NaN", "-Infinity", "1.500")] == [
        "NaN",
        "-Infinity",
        "1.500",
    ]


class _Equal(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__

    def __int__(self):
        return 99


class _Text(str):
    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__

    def encode(self, *args):
        return b"other"

    def __str__(self):
        return "other"


class _List(list):
    def __iter__(self):
        return iter([99])

    def __len__(self):
        return 1

    def __eq__(self, other):
        return True


class _Dict(dict):
    def items(self):
        return [("other", 99)]

    def __iter__(self):
        return iter(["other"])


class _Colour(enum.IntEnum):
    RED = 1


_Point = collections.namedtuple("_Point", "x y")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (_Equal(3), 3),
        (_Text("abc"), "abc"),
        (_List([1, 2]), [1, 2]),
        (_Dict(a=1), {"a": 1}),
        (_Colour.RED, 1),
        (_Point(1, 2), (1, 2)),
        (collections.defaultdict(list, a=[1]), collections.defaultdict(None, a=[1])),
        ((n for n in (1, 2)), [1, 2]),
        (map(str, (1, 2)), ["1", "2"]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.items(), [("a", 1)]),
    ],
)
def test_subclasses_lose_their_own_methods(value, plain):
    again = decode(encode(value))
    assert type(again) is type(plain)
    assert again == plain


@pytest.mark.parametrize("value", [object(), len, int, [lambda: 1], {1: object}, NotPlain])
def test_what_is_not_plain(value):
    with pytest.raises(NotPlain):
        encode(value)


def test_depth_is_bounded():
    value = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(NotPlain, match="nested"):
        encode([[value]])
    cyclic = []
    cyclic.append(cyclic)
    with pytest.raises(NotPlain, match="nested"):
        encode(cyclic)
    with pytest.raises(Malformed):
        decode(b"l\0\0\0\1" * 10_000 + b"N")


def test_size_is_bounded():
    with pytest.raises(TooLarge):
        encode("x" * 2000, max_bytes=1000)
    with pytest.raises(TooLarge):
        encode(list(range(1000)), max_bytes=1000)
    with pytest.raises(TooLarge):
        encode(iter(int, 1), max_bytes=1000)


def test_keys_of_one_hash_are_refused():
    """Building such a dictionary takes quadratic time."""
    modulus = 2**61 - 1
    with pytest.raises(Malformed, match="one hash"):
        decode(encode(tuple(n * modulus for n in range(3000))).replace(b"t", b"S", 1))


def test_unhashable_keys_are_refused():
    with pytest.raises(Malformed):
        decode(b"S\0\0\0\1l\0\0\0\0")


@pytest.mark.parametrize("value", [fractions.Fraction(1, 7**300_000), decimal.Decimal("1" * 100_000)])
def test_slow_arithmetic_is_refused(value):
    with pytest.raises(TooLarge):
        encode(value)


def test_huge_integers():
    value = -(1 << 1_000_000)
    assert decode(encode(value)) == value


@pytest.mark.parametrize("tag", [b"h", b"H", b"n", b"m"])
def test_handles_are_for_examinations_only(tag):
    with pytest.raises(Malformed):
        decode(tag + b"\0\0\0\0" + b"\0" * 20)
