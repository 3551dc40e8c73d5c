"""Rules for comparing outputs: what each accepts, what it refuses, and that hostile output costs nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge_verifiers.code.compare import PROFILES, Profile, Tolerance, difference

SAME: list[tuple[Profile, str, bytes]] = [
    ("tokens", "1 2\n3\n", b"1 2\n3"),
    ("tokens", "1 2 3", b"  1\t2\r\n\n3\n"),
    ("tokens", "0.5", b"0.50000001"),
    ("tokens", "0.166667", b"0.16666666666666666"),
    ("tokens", "0.333333", b"0.3333333333333333"),
    ("tokens", "1e-7", b"0.0000001"),
    ("tokens", "-0.0", b"0"),
    ("tokens", "2.0", b"2"),
    ("tokens", "nan", b"nan"),
    ("tokens", "", b"\n"),
    ("tokens", "1e400", b"1e400"),
    ("tokens", "héllo", "héllo\n".encode()),
    ("lines", "1 2\n\n3\n", b"1  2\n3\n\n"),
    ("exact", "a\n", b"a\n"),
    ("trim", "a\nb\n", b"a  \r\nb\n\n\n"),
    ("floats", "3", b"3.0000000001"),
    ("floats", "x 1", b"x 1.0"),
    ("verl", "a\nb", b"a\nb\n\n"),
    ("lcb", "1.0 2\nx", b"  1.00 2.0  \nx\n"),
    ("sandboxfusion", "YES\n1.0", b"yes\n1.000001"),
    ("codecontests", "Yes 0.5\n", b"YES\n0.500001"),
    ("apps", "1 2\n3", b"3\n2 1"),
    ("apps", "0.1\n0.2", b"0.1000001\n0.2"),
    ("apps", "a\n\nb", b"a\nb"),
]
DIFFERENT: list[tuple[Profile, str, bytes]] = [
    ("tokens", "1 2 3", b"1 2"),
    ("tokens", "1 2 3", b"1 2 3 4"),
    ("tokens", "1 2 3", b"3 2 1"),
    ("tokens", "7", b"7.0"),
    ("tokens", "1000", b"1_000"),
    ("tokens", "1000000", b"1000001"),
    ("tokens", "100000000", b"100000001"),
    ("tokens", "1e-7", b"0"),
    ("tokens", "0.1234567", b"0.1234569"),
    ("tokens", "0.5", b"nan"),
    ("tokens", "0.5", b"5_0e-2"),
    ("tokens", "nan", b"NaN"),
    ("tokens", "1e400", b"1e401"),
    ("tokens", "inf", b"1e999"),
    ("tokens", "1.5", b"inf"),
    ("tokens", "Yes", b"YES"),
    ("tokens", "1", "１".encode()),
    ("tokens", "0.5", "०.५".encode()),
    ("lines", "1\n2", b"1 2"),
    ("exact", "a\n", b"a"),
    ("trim", " a", b"a"),
    ("trim", "a\n\nb", b"a\nb"),
    ("floats", "1.0", b"nan"),
    ("floats", "1.0", b"1.1"),
    ("floats", "abc", b"abd"),
    ("verl", "a ", b"a"),
    ("lcb", "0.3333333", b"0.33333333"),
    ("lcb", "1 2", b"1\n2"),
    ("lcb", "Yes", b"yes"),
    ("sandboxfusion", "1 2", b"1 2.0"),
    ("sandboxfusion", "a\nb", b"a b"),
    ("codecontests", "0.5", b"0.6"),
    ("codecontests", "a", b"a b"),
    ("apps", "1 2\n3", b"1 2\n4"),
]


@pytest.mark.parametrize(("profile", "expected", "got"), SAME)
def test_same(profile: Profile, expected: str, got: bytes) -> None:
    assert difference(profile, expected, got) is None


@pytest.mark.parametrize(("profile", "expected", "got"), DIFFERENT)
def test_different(profile: Profile, expected: str, got: bytes) -> None:
    assert difference(profile, expected, got)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "got",
    [
        b"\xff\xfe1",
        b"\x00" * 1000,
        b"9" * 1_000_000,
        b"1e" + b"9" * 100_000,
        b" " * 1_000_000,
        b"\n" * 500_000,
        b"1 2 " * 150_000,
        b"0." + b"0" * 200_000,
        b"sNaN",
        b"1_0" * 50_000,
    ],
    ids=lambda got: f"{got[:3]!r}x{len(got)}",
)
def test_hostile_output_is_only_wrong(profile: Profile, got: bytes) -> None:
    for expected in ("1.5", "1", "sNaN x", "9" * 5000):
        assert difference(profile, expected, got)


def test_a_given_tolerance_is_the_tolerance() -> None:
    strict = Tolerance(rel=0.0, abs=0.001, written=False)
    assert difference("tokens", "2.50", b"2.5009", strict) is None
    assert difference("tokens", "2.50", b"2.502", strict)


def test_the_sentence_names_the_place() -> None:
    assert difference("tokens", "1 2 3", b"1 5 3") == "Token 2 is '5', expected '2'."
    assert difference("lines", "1\n2", b"1\n4") == "Line 2: Token 1 is '4', expected '2'."
    long = difference("tokens", "a" * 500, b"b" * 500)
    assert long is not None
    assert len(long) < 200


@given(st.text(alphabet="ab01.\n e-", max_size=40))
def test_every_rule_accepts_the_expected_text_itself(text: str) -> None:
    for profile in PROFILES:
        assert difference(profile, text, text.encode()) is None  # type: ignore[arg-type]


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_whole_numbers_are_exact(one: int, other: int) -> None:
    assert (difference("tokens", str(one), str(other).encode()) is None) == (one == other)
