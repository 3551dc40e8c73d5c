"""How other graders compare outputs and values, quirks included, so that a published score can be reproduced.

===================== ==============================================================================================
rule                  what counts as equal
===================== ==============================================================================================
``verl``              the same text but for newlines at the end (verl's client of SandboxFusion)
``lcb``               LiveCodeBench: stripped lines, or the same exact decimal numbers on them; values by ``==``, an
                      outermost tuple as a list
``sandboxfusion``     stripped, lower-cased lines; a line that is one number within 1e-5 relative
``codecontests``      lower-cased tokens, numbers within 1e-5 absolute
``apps``              APPS and verl's prime_code: looser and looser, at the end lines as sets of tokens; values by
                      ``==``, also with the first item of the expected list
``reasoning360``      Reasoning360's coder1: tokens by line; numbers within 1e-6 absolute; yes and no in any case
``open_r1``           open-r1: stripped lines side by side, as far as both go. **A missing or extra end passes**
``evalplus``          EvalPlus: values by ``==``; expected floats within 1e-6 absolute plus 1e-7 relative
``dmoj_standard``     tokens, and between them either a line break on both sides or on none
``dmoj_floats``       lines of tokens; where a number is expected, one within 1e-6, absolute or relative; never NaN
``dmoj_sorted``       the same lines of tokens in any order
``dmoj_unordered``    the same tokens in any order
``dmoj_linematches``  the same lines, blank ones left out
``dmoj_rstripped``    the same lines but for white space at their ends
``dmoj_identical``    the same bytes
===================== ==============================================================================================

Every rule takes time linear in the two texts (sorting aside). A token of more than 400 characters is no number to any
of them: it equals its own spelling.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["BYTE_RULES", "MAX_NUMBER_CHARS", "TEXT_RULES", "VALUE_RULES", "dmoj_floats"]

MAX_NUMBER_CHARS = 400
"""Longer tokens are compared as text, so that a number bomb costs nothing."""

_LINE_BREAK = re.compile(rb"[\r\n]+")


# ---------------------------------------------------------------------------------------------------------------------
# Text.


def _same(expected: str, got: str) -> bool:
    return expected == got


def _trim(expected: str, got: str) -> bool:
    def lines(text: str) -> list[str]:
        return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n").split("\n")

    return lines(expected) == lines(got)


def _verl(expected: str, got: str) -> bool:
    return expected.rstrip("\n") == got.rstrip("\n")


def _stripped_lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_lines(expected: list[str], got: list[str], same: Callable[[str, str], bool]) -> bool:
    return len(expected) == len(got) and all(same(one, other) for one, other in zip(expected, got, strict=True))


def _decimals(line: str) -> list[Decimal] | None:
    tokens = line.split()
    if any(len(token) > MAX_NUMBER_CHARS for token in tokens):
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


def _lcb(expected: str, got: str) -> bool:
    return _same_lines(_stripped_lines(expected), _stripped_lines(got), _lcb_line)


def _float(text: str | bytes) -> float | None:
    """Python's own reading (underscores, infinities), as those graders use it; a long token is no number."""
    if len(text) > MAX_NUMBER_CHARS:
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
    if "_" in expected or "_" in got:  # its reader is C++'s, to which 1_000 is no number
        return False
    one, other = _float(expected), _float(got)
    return one is not None and other is not None and abs(one - other) <= 1e-5


def _codecontests(expected: str, got: str) -> bool:
    wanted = expected.lower().split()
    return _same_lines(wanted, got.lower().split(None, len(wanted)), _codecontests_token)


def _reasoning360_token(expected: str, got: str) -> bool:
    if expected == got:
        return True
    if expected.lower() in ("yes", "no") and got.lower() in ("yes", "no"):
        return expected.lower() == got.lower()
    one, other = _float(expected), _float(got)
    return one is not None and other is not None and abs(one - other) <= 1e-6


def _reasoning360_line(expected: str, got: str) -> bool:
    return expected == got or _same_lines(expected.split(), got.split(), _reasoning360_token)


def _reasoning360(expected: str, got: str) -> bool:
    def lines(text: str) -> list[str]:
        return text.strip().replace("\r\n", "\n").split("\n")

    return _same_lines(lines(expected), lines(got), _reasoning360_line)


def _open_r1(expected: str, got: str) -> bool:
    pairs = zip(got.strip().split("\n"), expected.split("\n"), strict=False)
    return all(one.strip() == other.strip() for one, other in pairs)


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


TEXT_RULES: dict[str, Callable[[str, str], bool]] = {
    "exact": _same,
    "trim": _trim,
    "verl": _verl,
    "lcb": _lcb,
    "sandboxfusion": _sandboxfusion,
    "codecontests": _codecontests,
    "apps": _apps,
    "reasoning360": _reasoning360,
    "open_r1": _open_r1,
    "evalplus": _same,
}
"""(expected, got) as text."""


# ---------------------------------------------------------------------------------------------------------------------
# Bytes: DMOJ's checkers.


def _dmoj_lines(text: bytes) -> list[bytes]:
    return [line for line in _LINE_BREAK.split(text) if line]


def _token_lines(text: bytes) -> list[list[bytes]]:
    return [tokens for line in _dmoj_lines(text) if (tokens := line.split())]


def _dmoj_standard(expected: bytes, got: bytes) -> bool:
    return _token_lines(expected) == _token_lines(got)


def dmoj_floats(expected: bytes, got: bytes, epsilon: float = 1e-6) -> bool:
    """See the module; ``epsilon`` is the checker's 10 to the minus ``precision``."""
    wanted, lines = _dmoj_lines(expected), _dmoj_lines(got)
    if len(wanted) != len(lines):
        return False
    for one, other in zip(wanted, lines, strict=True):
        tokens, others = one.split(), other.split()
        if len(tokens) != len(others):
            return False
        if not all(_dmoj_float(a, b, epsilon) for a, b in zip(tokens, others, strict=True)):
            return False
    return True


def _dmoj_float(expected: bytes, got: bytes, epsilon: float) -> bool:
    wanted = _float(expected)
    if wanted is None:
        return expected == got
    value = _float(got)
    if value is None:
        return False
    if abs(value - wanted) <= epsilon:
        return True
    return abs(wanted) >= epsilon and abs(1.0 - value / wanted) <= epsilon


def _dmoj_sorted(expected: bytes, got: bytes) -> bool:
    def lines(text: bytes) -> Counter[tuple[bytes, ...]]:
        return Counter(tuple(line.split()) for line in _dmoj_lines(text))

    return lines(expected) == lines(got)


def _dmoj_unordered(expected: bytes, got: bytes) -> bool:
    return Counter(expected.split()) == Counter(got.split())


def _dmoj_linematches(expected: bytes, got: bytes) -> bool:
    return _dmoj_lines(expected) == _dmoj_lines(got)


def _dmoj_rstripped(expected: bytes, got: bytes) -> bool:
    return [line.rstrip() for line in expected.split(b"\n")] == [line.rstrip() for line in got.split(b"\n")]


def _identical(expected: bytes, got: bytes) -> bool:
    return expected == got


BYTE_RULES: dict[str, Callable[[bytes, bytes], bool]] = {
    "dmoj_standard": _dmoj_standard,
    "dmoj_floats": dmoj_floats,
    "dmoj_sorted": _dmoj_sorted,
    "dmoj_unordered": _dmoj_unordered,
    "dmoj_linematches": _dmoj_linematches,
    "dmoj_rstripped": _dmoj_rstripped,
    "dmoj_identical": _identical,
}
"""(expected, got) as bytes."""


# ---------------------------------------------------------------------------------------------------------------------
# Values of calls: built-in types only, so that ``==`` runs nobody's code.


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except (ArithmeticError, RecursionError, TypeError, ValueError):
        return False


def _lcb_value(expected: Any, got: Any) -> bool:
    return _equal(list(got) if isinstance(got, tuple) else got, expected)


def _apps_value(expected: Any, got: Any) -> bool:
    got = list(got) if isinstance(got, tuple) else got
    if _equal(got, expected):
        return True
    if not isinstance(expected, list) or not expected:
        return False
    if _equal(got, expected[0]):
        return True
    if isinstance(got, list) and got and all(isinstance(item, list | tuple) for item in got):
        return _equal([list(item) for item in got], expected[0])
    return False


def _evalplus_value(expected: Any, got: Any) -> bool:
    if _equal(got, expected):
        return True
    if isinstance(expected, float):
        return _near(expected, got)
    if not isinstance(expected, list | tuple) or not all(isinstance(item, float) for item in expected):
        return False
    if not isinstance(got, list | tuple) or len(got) != len(expected):
        return False
    return all(_near(one, other) for one, other in zip(expected, got, strict=True))


def _near(expected: float, got: Any) -> bool:
    """numpy's ``assert_allclose``: NaN equals NaN, an infinity only itself."""
    if not isinstance(got, int | float):
        return False
    try:
        value = float(got)
    except OverflowError:
        return False
    if math.isnan(expected) or math.isnan(value):
        return math.isnan(expected) and math.isnan(value)
    if math.isinf(expected) or math.isinf(value):
        return expected == value
    return abs(value - expected) <= 1e-6 + 1e-7 * abs(expected)


VALUE_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "lcb": _lcb_value,
    "apps": _apps_value,
    "evalplus": _evalplus_value,
}
"""(expected, got) of function calls; the other profiles compare values by :mod:`.values`."""
