"""Is this output the expected output? Named rules, outside every jail, in time linear in the two texts.

Graders disagree about white space, case and numbers, so the rule has a name, and a published score can be reproduced by
naming the rule that it was made with:

================ ===================================================================================================
profile          what counts as equal
================ ===================================================================================================
``tokens``       the same tokens in the same order, however they are spaced (the default)
``lines``        the same, and they stand on the same lines (blank lines do not count)
``exact``        the same bytes
``trim``         the same lines, but for white space at line ends, blank lines at the end, and CR LF
``floats``       like ``tokens``, with the tolerance for every number, whole numbers included
``verl``         the same text but for newlines at the end (its sandbox client)
``lcb``          LiveCodeBench: stripped lines, or the same exact decimal numbers on them
``sandboxfusion`` stripped, lower-cased lines; a line that is one number within 1e-5 relative
``codecontests`` lower-cased tokens, numbers within 1e-5 absolute
``apps``         APPS and verl's prime_code, their leniency included: at the end, lines are compared as sets of tokens
================ ===================================================================================================

Numbers in ``tokens`` and ``lines``: a tolerance applies only where the *expected* token is written with a decimal point
or an exponent. It is met by a relative error of 1e-6, an absolute error of 1e-9, or half a unit in the last written
decimal (1e-6 at most), so that ``0.166667`` accepts ``0.1666666666``. Everything else is text: ``7`` is not ``7.0``,
``1_000`` is not ``1000``, NaN and infinities equal only their own spelling, and a number too long or too large for a
double equals only its own digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal, get_args

__all__ = ["PROFILES", "TEXT_TOLERANCE", "Profile", "Tolerance", "difference"]

Profile = Literal["tokens", "lines", "exact", "trim", "floats", "verl", "lcb", "sandboxfusion", "codecontests", "apps"]
PROFILES: tuple[str, ...] = get_args(Profile)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?", re.ASCII)
_MAX_NUMBER_CHARS = 400  # longer tokens are compared as text, so that a number bomb costs nothing


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may be off. ``written`` also allows half a unit in the last written decimal, 1e-6 at most."""

    rel: float = 1e-6
    abs: float = 1e-9
    written: bool = True


TEXT_TOLERANCE = Tolerance()


def difference(profile: Profile, expected: str, got: bytes, tolerance: Tolerance = TEXT_TOLERANCE) -> str | None:
    """``None`` if ``got`` counts as ``expected`` under ``profile``; else one sentence on the first difference."""
    wanted = expected.encode("utf-8", "surrogatepass")
    if wanted == got:
        return None
    if profile == "tokens":
        return _tokens(wanted, got, tolerance, every_number=False)
    if profile == "floats":
        return _tokens(wanted, got, tolerance, every_number=True)
    if profile == "lines":
        return _lines(wanted, got, tolerance)
    rule = _RULES[profile]
    return None if rule(expected, got.decode("utf-8", "surrogateescape")) else f"The outputs differ (rule {profile!r})."


def _tokens(wanted: bytes, got: bytes, tolerance: Tolerance, *, every_number: bool) -> str | None:
    expected_tokens = wanted.split()
    got_tokens = got.split(None, len(expected_tokens))  # a flood of tokens is not split up
    for index, (one, other) in enumerate(zip(expected_tokens, got_tokens, strict=False)):
        if one != other and not _close(one, other, tolerance, every_number=every_number):
            return f"Token {index + 1} is {_show(other)}, expected {_show(one)}."
    if len(got_tokens) < len(expected_tokens):
        return f"The output ends after {len(got_tokens)} of {len(expected_tokens)} tokens."
    if len(got_tokens) > len(expected_tokens):
        return f"The output goes on after the {len(expected_tokens)} expected tokens."
    return None


def _lines(wanted: bytes, got: bytes, tolerance: Tolerance) -> str | None:
    expected_lines = [line for line in wanted.splitlines() if line.strip()]
    got_lines = [line for line in got.splitlines() if line.strip()]
    if len(expected_lines) != len(got_lines):
        return f"The output has {len(got_lines)} lines, expected {len(expected_lines)}."
    for index, (one, other) in enumerate(zip(expected_lines, got_lines, strict=True)):
        if one != other and (found := _tokens(one, other, tolerance, every_number=False)):
            return f"Line {index + 1}: {found}"
    return None


def _number(token: str) -> float | None:
    """A finite double, if the token is a plain decimal number."""
    if len(token) > _MAX_NUMBER_CHARS or not _NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if math.isfinite(value) else None


def _close(expected: bytes, got: bytes, tolerance: Tolerance, *, every_number: bool) -> bool:
    if len(expected) > _MAX_NUMBER_CHARS or len(got) > _MAX_NUMBER_CHARS:
        return False
    wanted = expected.decode("latin-1")
    if not every_number and not ("." in wanted or "e" in wanted or "E" in wanted):
        return False
    one, other = _number(wanted), _number(got.decode("latin-1"))
    if one is None or other is None:
        return False
    if math.isclose(one, other, rel_tol=tolerance.rel, abs_tol=tolerance.abs):
        return True
    return tolerance.written and not every_number and abs(one - other) <= _half_unit(wanted)


def _half_unit(token: str) -> float:
    """Half a unit in the last written decimal of ``token``, 1e-6 at most; a hair more, for the rounding of doubles."""
    mantissa, _, exponent = token.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or "0")
    return float(min(1e-6, 0.5 * 10.0 ** -min(max(decimals, 0), 300))) * (1 + 1e-9)


def _show(token: bytes) -> str:
    text = token[:60].decode("utf-8", "backslashreplace")
    return repr(text) + ("..." if len(token) > 60 else "")


# ---------------------------------------------------------------------------------------------------------------------
# Other graders' rules, as they behave.


def _exact(expected: str, got: str) -> bool:
    return False  # the bytes were compared before


def _trim(expected: str, got: str) -> bool:
    def lines(text: str) -> list[str]:
        return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n").split("\n")

    return lines(expected) == lines(got)


def _verl(expected: str, got: str) -> bool:
    return expected.rstrip("\n") == got.rstrip("\n")


def _stripped_lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _decimals(line: str) -> list[Decimal] | None:
    tokens = line.split()
    if any(len(token) > _MAX_NUMBER_CHARS for token in tokens):
        return None
    try:
        return [Decimal(token) for token in tokens]
    except InvalidOperation:
        return None


def _lcb_line(expected: str, got: str) -> bool:
    if expected == got:
        return True
    one, other = _decimals(expected), _decimals(got)
    if one is None or other is None:
        return False
    try:
        return one == other
    except InvalidOperation:  # a signalling NaN
        return False


def _same_lines(expected: list[str], got: list[str], same: Callable[[str, str], bool]) -> bool:
    return len(expected) == len(got) and all(same(one, other) for one, other in zip(expected, got, strict=True))


def _lcb(expected: str, got: str) -> bool:
    return _same_lines(_stripped_lines(expected), _stripped_lines(got), _lcb_line)


def _float(text: str) -> float | None:
    """Python's own reading (underscores, infinities), as those graders use it; a long token is no number."""
    if len(text) > _MAX_NUMBER_CHARS:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _sandboxfusion_line(expected: str, got: str) -> bool:
    if expected == got:
        return True
    one, other = _float(expected), _float(got)
    return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-5)


def _sandboxfusion(expected: str, got: str) -> bool:
    return _same_lines(_stripped_lines(expected.lower()), _stripped_lines(got.lower()), _sandboxfusion_line)


def _codecontests_token(expected: str, got: str) -> bool:
    if expected == got:
        return True
    one, other = _float(expected), _float(got)
    return one is not None and other is not None and abs(one - other) <= 1e-5


def _codecontests(expected: str, got: str) -> bool:
    wanted = expected.lower().split()
    return _same_lines(wanted, got.lower().split(None, len(wanted)), _codecontests_token)


def _allclose(expected: Sequence[str], got: Sequence[str]) -> bool:
    """numpy's ``allclose`` with its defaults, when every line is one number."""
    if len(expected) != len(got):
        return False
    for one, other in zip(expected, got, strict=True):
        wanted, value = _float(one), _float(other)
        if wanted is None or value is None:
            return False
        if wanted != value and not abs(wanted - value) <= 1e-8 + 1e-5 * abs(wanted):
            return False
        if math.isinf(wanted) and wanted != value:
            return False
    return True


def _rounded(line: str) -> frozenset[float] | None:
    values = [_float(token) for token in line.split()]
    known = [value for value in values if value is not None]
    return frozenset(round(value, 3) for value in known) if len(known) == len(values) else None


def _apps(expected: str, got: str) -> bool:
    if expected.strip() == got.strip() or _stripped_lines(expected) == _stripped_lines(got):
        return True
    wanted = [line for line in _stripped_lines(expected) if line]
    lines = [line for line in _stripped_lines(got) if line]
    if wanted == lines or _allclose(wanted, lines):
        return True
    if [set(line.split()) for line in wanted] == [set(line.split()) for line in lines]:
        return True
    if {frozenset(line.split()) for line in wanted} == {frozenset(line.split()) for line in lines}:
        return True
    rounded_wanted, rounded = [_rounded(line) for line in wanted], [_rounded(line) for line in lines]
    return None not in rounded_wanted and None not in rounded and set(rounded_wanted) == set(rounded)


_RULES: dict[str, Callable[[str, str], bool]] = {
    "exact": _exact,
    "trim": _trim,
    "verl": _verl,
    "lcb": _lcb,
    "sandboxfusion": _sandboxfusion,
    "codecontests": _codecontests,
    "apps": _apps,
}
