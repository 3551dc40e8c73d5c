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
others           the rules of other graders, quirks included, see :mod:`.graders`
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
from dataclasses import dataclass
from typing import Literal, get_args

from .graders import BYTE_RULES, MAX_NUMBER_CHARS, TEXT_RULES, dmoj_floats

__all__ = ["PROFILES", "TEXT_TOLERANCE", "Profile", "Tolerance", "difference"]

Profile = Literal[
    "tokens",
    "lines",
    "exact",
    "trim",
    "floats",
    "verl",
    "lcb",
    "sandboxfusion",
    "codecontests",
    "apps",
    "reasoning360",
    "open_r1",
    "evalplus",
    "dmoj_standard",
    "dmoj_floats",
    "dmoj_sorted",
    "dmoj_unordered",
    "dmoj_linematches",
    "dmoj_rstripped",
    "dmoj_identical",
]
PROFILES: tuple[str, ...] = get_args(Profile)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?", re.ASCII)


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
    if wanted == got and profile != "dmoj_floats":  # which refuses NaN even where it is expected
        return None
    if profile == "tokens":
        return _tokens(wanted, got, tolerance, every_number=False)
    if profile == "floats":
        return _tokens(wanted, got, tolerance, every_number=True)
    if profile == "lines":
        return _lines(wanted, got, tolerance)
    if profile == "dmoj_floats":
        same = dmoj_floats(wanted, got, *(() if tolerance.written else (max(tolerance.abs, tolerance.rel),)))
    elif profile in BYTE_RULES:
        same = BYTE_RULES[profile](wanted, got)
    else:
        same = TEXT_RULES[profile](expected, got.decode("utf-8", "surrogateescape"))
    return None if same else f"The outputs differ (rule {profile!r})."


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
    if len(token) > MAX_NUMBER_CHARS or not _NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if math.isfinite(value) else None


def _close(expected: bytes, got: bytes, tolerance: Tolerance, *, every_number: bool) -> bool:
    if len(expected) > MAX_NUMBER_CHARS or len(got) > MAX_NUMBER_CHARS:
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
