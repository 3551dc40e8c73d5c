"""Every named rule against a restatement of the grader that it is named after, on generated pairs of outputs.

The restatements are written from what the graders are documented to do, without regard to time or hostile text. They
stand here and nowhere else, so that a rule and its restatement cannot share a mistake by sharing code.
"""

from __future__ import annotations

import ast
import math
import re
import time
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjudge_sandbox.base import Outcome, RunResult
from adjudge_verifiers.code.compare import PROFILES, Profile, Tolerance, difference
from adjudge_verifiers.code.graders import VALUE_RULES
from adjudge_verifiers.code.plan import Comparison, plan
from adjudge_verifiers.code.program import assemble
from adjudge_verifiers.code.reference import normalise

Grader = Callable[[str, str], bool]
"""(expected, printed)"""


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def exact(expected: str, printed: str) -> bool:
    return expected == printed


def trim(expected: str, printed: str) -> bool:
    def cleaned(text: str) -> list[str]:
        lines = [line.rstrip() for line in text.split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    return cleaned(expected) == cleaned(printed)


def verl(expected: str, printed: str) -> bool:
    while expected.endswith("\n"):
        expected = expected[:-1]
    while printed.endswith("\n"):
        printed = printed[:-1]
    return expected == printed


def lcb(expected: str, printed: str) -> bool:
    wanted = [line.strip() for line in expected.strip().split("\n")]
    lines = [line.strip() for line in printed.strip().split("\n")]
    if len(wanted) != len(lines):
        return False
    for one, other in zip(wanted, lines, strict=True):
        if one == other:
            continue
        try:
            if [Decimal(token) for token in one.split()] != [Decimal(token) for token in other.split()]:
                return False
        except InvalidOperation:
            return False
    return True


def sandboxfusion(expected: str, printed: str) -> bool:
    wanted = [line.strip() for line in expected.strip().lower().split("\n")]
    lines = [line.strip() for line in printed.strip().lower().split("\n")]
    if len(wanted) != len(lines):
        return False
    for one, other in zip(wanted, lines, strict=True):
        if one == other:
            continue
        a, b = number(one), number(other)
        if a is None or b is None:
            return False
        if not (a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= 1e-5 * max(abs(a), abs(b)))):
            return False
    return True


def codecontests(expected: str, printed: str) -> bool:
    wanted, tokens = expected.lower().split(), printed.lower().split()
    if len(wanted) != len(tokens):
        return False
    for one, other in zip(wanted, tokens, strict=True):
        a, b = (None if "_" in token else number(token) for token in (one, other))
        if one != other and (a is None or b is None or not abs(a - b) <= 1e-5):
            return False
    return True


def apps(expected: str, printed: str) -> bool:
    wanted = [line.strip() for line in expected.strip().split("\n")]
    lines = [line.strip() for line in printed.strip().split("\n")]
    if wanted == lines or expected.strip() == printed.strip():
        return True
    wanted, lines = [line for line in wanted if line], [line for line in lines if line]
    if wanted == lines:
        return True
    a, b = [number(line) for line in wanted], [number(line) for line in lines]
    if None not in a and None not in b and len(a) == len(b):
        close = [x == y or abs(y - x) <= 1e-8 + 1e-5 * abs(x) for x, y in zip(a, b, strict=True)]  # type: ignore[operator, arg-type]
        if all(c and (x == y or math.isfinite(x)) for c, x, y in zip(close, a, b, strict=True)):  # type: ignore[arg-type]
            return True
    sets = [frozenset(line.split()) for line in wanted], [frozenset(line.split()) for line in lines]
    if sets[0] == sets[1] or set(sets[0]) == set(sets[1]):
        return True
    try:
        rounded = [{frozenset(round(float(token), 3) for token in tokens) for tokens in side} for side in sets]
    except ValueError:
        return False
    return rounded[0] == rounded[1]


def reasoning360(expected: str, printed: str) -> bool:
    wanted = expected.strip().replace("\r\n", "\n").split("\n")
    lines = printed.strip().replace("\r\n", "\n").split("\n")
    if len(wanted) != len(lines):
        return False
    for line, other_line in zip(wanted, lines, strict=True):
        if line == other_line:
            continue
        if len(line.split()) != len(other_line.split()):
            return False
        for one, other in zip(line.split(), other_line.split(), strict=True):
            if one == other:
                continue
            if {one.lower(), other.lower()} <= {"yes", "no"}:
                if one.lower() != other.lower():
                    return False
                continue
            a, b = number(one), number(other)
            if a is None or b is None or not abs(a - b) <= 1e-6:
                return False
    return True


def open_r1(expected: str, printed: str) -> bool:
    fine = True
    for one, other in zip(printed.strip().split("\n"), expected.split("\n"), strict=False):
        fine = fine and one.strip() == other.strip()
    return fine


def nonblank(text: str) -> list[str]:
    return [line for line in re.split(r"[\r\n]", text) if line]


def dmoj_standard(expected: str, printed: str) -> bool:
    """Walk over both texts; a gap with a line break and one without differ."""
    a, b = expected.strip(" \t\v\f\r\n"), printed.strip(" \t\v\f\r\n")

    def folded(text: str) -> str:
        text = re.sub(r"[ \t\v\f\r\n]*[\r\n][ \t\v\f\r\n]*", "\n", text)
        return re.sub(r"[ \t\v\f]+", " ", text)

    return folded(a) == folded(b)


def dmoj_floats(expected: str, printed: str, epsilon: float = 1e-6) -> bool:
    wanted, lines = nonblank(expected), nonblank(printed)
    if len(wanted) != len(lines):
        return False
    for one_line, other_line in zip(wanted, lines, strict=True):
        if len(one_line.split()) != len(other_line.split()):
            return False
        for one, other in zip(one_line.split(), other_line.split(), strict=True):
            a, b = number(one), number(other)
            if a is None and one != other:
                return False
            if a is None:
                continue
            if b is None or math.isnan(a) or math.isnan(b):
                return False
            if not (abs(a - b) <= epsilon or (abs(a) >= epsilon and abs(1 - b / a) <= epsilon)):
                return False
    return True


def dmoj_sorted(expected: str, printed: str) -> bool:
    return sorted(line.split() for line in nonblank(expected)) == sorted(line.split() for line in nonblank(printed))


def dmoj_unordered(expected: str, printed: str) -> bool:
    return sorted(expected.split()) == sorted(printed.split())


def dmoj_linematches(expected: str, printed: str) -> bool:
    return nonblank(expected) == nonblank(printed)


def dmoj_rstripped(expected: str, printed: str) -> bool:
    return [line.rstrip() for line in expected.split("\n")] == [line.rstrip() for line in printed.split("\n")]


def plain_decimal(token: str) -> float | None:
    """What our own rules call a number: digits, a point, an exponent; nothing that is not finite."""
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,5})?", token, re.ASCII):
        return None
    return float(token) if math.isfinite(float(token)) else None


def tokens(expected: str, printed: str, *, every: bool = False) -> bool:
    wanted, got = expected.split(), printed.split()
    if len(wanted) != len(got):
        return False
    for one, other in zip(wanted, got, strict=True):
        if one == other:
            continue
        a, b = plain_decimal(one), plain_decimal(other)
        if a is None or b is None or not (every or re.search("[.eE]", one)):
            return False
        close = abs(a - b) <= max(1e-6 * max(abs(a), abs(b)), 1e-9)
        mantissa, _, exponent = one.lower().partition("e")
        unit = Decimal(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        written = not every and abs(Decimal(a) - Decimal(b)) <= min(Decimal("1e-6"), unit / 2) * (1 + Decimal("1e-9"))
        if not (close or written):
            return False
    return True


def floats(expected: str, printed: str) -> bool:
    return tokens(expected, printed, every=True)


def lines(expected: str, printed: str) -> bool:
    wanted = [line for line in re.split(r"\r\n|\r|\n", expected) if line.strip()]
    got = [line for line in re.split(r"\r\n|\r|\n", printed) if line.strip()]
    return len(wanted) == len(got) and all(tokens(one, other) for one, other in zip(wanted, got, strict=True))


GRADERS: dict[str, Grader] = {
    "tokens": tokens,
    "lines": lines,
    "exact": exact,
    "trim": trim,
    "floats": floats,
    "verl": verl,
    "lcb": lcb,
    "sandboxfusion": sandboxfusion,
    "codecontests": codecontests,
    "apps": apps,
    "reasoning360": reasoning360,
    "open_r1": open_r1,
    "evalplus": exact,
    "dmoj_standard": dmoj_standard,
    "dmoj_floats": dmoj_floats,
    "dmoj_sorted": dmoj_sorted,
    "dmoj_unordered": dmoj_unordered,
    "dmoj_linematches": dmoj_linematches,
    "dmoj_rstripped": dmoj_rstripped,
    "dmoj_identical": exact,
}

WORDS = (
    *(
        "0",
        "1",
        "2",
        "1.0",
        "1.00",
        "01",
        "1e0",
        "1.000001",
        "1.0000001",
        "1.00001",
        "0.999999",
        "-0.0",
        "1_000",
        "1000",
    ),
    *("nan", "NaN", "inf", "-inf", "infinity", "1e400", "-1e400", "1e-400", "9" * 30, "1.5e3", ".5", "5.", "+1", "0x1"),
    *("yes", "YES", "Yes", "no", "NO", "a", "A", "b", "é", "1,5", "٣", "1e", "--1", "sNaN", "1e5", "100000", "100001"),
)
GAPS = (" ", " ", " ", "\n", "\n", "\n\n", "  ", "\t", "\r\n", " \n", "\n ", "")
PIECES = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=6)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """An expected output, and one that differs from it in few places, if at all."""
    expected = draw(PIECES)
    printed = list(expected)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(len(printed) - 1, 0)))
        match draw(st.sampled_from(["word", "gap", "add", "drop", "swap"])):
            case "word" if printed:
                printed[place] = (draw(st.sampled_from(WORDS)), printed[place][1])
            case "gap" if printed:
                printed[place] = (printed[place][0], draw(st.sampled_from(GAPS)))
            case "add":
                printed.insert(place, draw(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS))))
            case "drop" if printed:
                del printed[place]
            case "swap" if printed:
                printed[place], printed[0] = printed[0], printed[place]
    lead = draw(st.sampled_from(["", "", "", " ", "\n"]))
    return "".join(map("".join, expected)), lead + "".join(map("".join, printed))


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=80, deadline=None)
@given(pair=pairs())
@example(pair=("", ""))
@example(pair=("", "\n"))
@example(pair=("1\n2", "1"))
@example(pair=("1", "1\n2"))
@example(pair=("a b\nc", "a\nb c"))
def test_a_rule_is_what_its_grader_does(profile: Profile, pair: tuple[str, str]) -> None:
    expected, printed = pair
    found = difference(profile, expected, printed.encode()) is None
    assert found == GRADERS[profile](expected, printed), (expected, printed)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=30, deadline=None)
@given(pair=pairs())
def test_what_is_right_is_right(profile: Profile, pair: tuple[str, str]) -> None:
    if profile == "dmoj_floats" and any(not math.isfinite(number(token) or 0.0) for token in pair[0].split()):
        return  # its checker refuses NaN and infinities even where they are expected
    assert difference(profile, pair[0], pair[0].encode()) is None


@given(pairs(), st.sampled_from([1e-9, 1e-4, 0.5]))
def test_the_precision_of_dmojs_floats_can_be_given(pair: tuple[str, str], epsilon: float) -> None:
    tolerance = Tolerance(0.0, epsilon, written=False)
    found = difference("dmoj_floats", pair[0], pair[1].encode(), tolerance) is None
    assert found == dmoj_floats(*pair, epsilon)


NOT_RANDOM = [
    ("open_r1", "1\n2\n3", "1", True),
    ("open_r1", "1", "1\n9", True),
    ("lcb", "0.3333333", "0.33333333", False),
    ("lcb", "1.0", "1.00", True),
    ("sandboxfusion", "1.0 2", "1.000001 2", False),
    ("sandboxfusion", "1_000", "1000", True),
    ("codecontests", "1_000", "1000", False),
    ("codecontests", "inf", "infinity", False),
    ("apps", "1 2 3", "3 2 1 1", True),
    ("reasoning360", "YES 0.5", "yes 0.5000009", True),
    ("reasoning360", "True", "true", False),
    ("dmoj_floats", "nan", "nan ", False),
    ("dmoj_floats", "1", "1.0000005", True),
    ("dmoj_standard", "1 2\n", "1\n2", False),
    ("dmoj_standard", "1  2\n\n3", "\n1 2 \n3\n\n", True),
    ("dmoj_sorted", "1 2\n3", "3\n1 2", True),
    ("dmoj_sorted", "1 2\n3", "3\n2 1", False),
    ("dmoj_unordered", "1 2\n3", "3 2 1", True),
    ("dmoj_rstripped", "1\n2", "1 \n2\n", False),
]


@pytest.mark.parametrize(("profile", "expected", "printed", "same"), NOT_RANDOM)
def test_known_pairs(profile: Profile, expected: str, printed: str, same: bool) -> None:
    assert (difference(profile, expected, printed.encode()) is None) is same


BOMBS = {
    "digits": "7" * 1_000_000,
    "other digits": "7" * 999_999 + "8",
    "decimal": "0." + "3" * 1_000_000,
    "exponents": "1e99999 " * 20_000,
    "tokens": "1.5 " * 100_000,
    "close tokens": "1.5000001 " * 100_000,
    "lines": "1\n" * 50_000,
    "blank": " " * 1_000_000,
    "blank lines": "\n" * 300_000,
    "mixed blanks": " \n\t\r" * 75_000,
    "words": "nan inf 1_0 " * 10_000,
    "NULs": "\0" * 1_000_000,
}


@pytest.mark.parametrize("profile", PROFILES)
def test_bombs_cost_little(profile: Profile) -> None:
    texts = list(BOMBS.values())
    began = time.process_time()
    for one, other in zip(texts, [*texts[1:], texts[0]], strict=True):
        difference(profile, one, other.encode())
        difference(profile, one, (one + " ").encode())
        difference(profile, "x", one.encode())
    assert time.process_time() - began < 60  # a quadratic rule takes hours


# ---------------------------------------------------------------------------------------------------------------------
# Values of calls.

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 0.5000004, 1.0, math.inf])
    | st.text("ab", max_size=1)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=2).map(tuple), max_leaves=5
)


def as_json(value: Any) -> Any:
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


def lcb_value(expected: Any, returned: Any) -> bool:
    return bool((list(returned) if isinstance(returned, tuple) else returned) == expected)


def apps_value(expected: Any, returned: Any) -> bool:
    if isinstance(returned, tuple):
        returned = list(returned)
    if returned == expected:
        return True
    if isinstance(expected, list) and expected:
        if returned == expected[0]:
            return True
        if isinstance(returned, list) and returned and all(isinstance(item, list | tuple) for item in returned):
            return bool([list(item) for item in returned] == expected[0])
    return False


def evalplus_value(expected: Any, returned: Any) -> bool:
    if returned == expected:
        return True
    wanted = expected if isinstance(expected, list) else [expected]
    got = list(returned) if isinstance(returned, list | tuple) else [returned]
    if isinstance(expected, list) != isinstance(returned, list | tuple) or len(wanted) != len(got):
        return False
    if not all(type(item) is float for item in wanted) or not all(isinstance(item, int | float) for item in got):
        return False
    return all(
        one == other or (math.isfinite(one) and math.isfinite(other) and abs(one - other) <= 1e-6 + 1e-7 * abs(one))
        for one, other in zip(wanted, got, strict=True)
    )


VALUE_GRADERS = {"lcb": lcb_value, "apps": apps_value, "evalplus": evalplus_value}


@pytest.mark.parametrize("profile", sorted(VALUE_RULES))
@given(expected=VALUES, returned=VALUES)
def test_value_rules(profile: str, expected: Any, returned: Any) -> None:
    wanted, rule, grader = as_json(expected), VALUE_RULES[profile], VALUE_GRADERS[profile]
    for got in (returned, expected, wanted, wanted[0] if isinstance(wanted, list) and wanted else None):
        assert rule(wanted, got) == grader(wanted, got), (wanted, got)


@pytest.mark.parametrize(
    ("profile", "expected", "returned", "same"),
    [
        ("tokens", "0.5", 0.5000001, True),
        ("lcb", "0.5", 0.5000001, False),
        ("evalplus", "0.5", 0.5000009, True),
        ("evalplus", "1", 1.0000001, False),
        ("apps", "[[1, 2]]", [1, 2], True),
        ("lcb", "[1, 2]", (1, 2), True),
        ("lcb", "[[1, 2]]", [(1, 2)], False),
        ("tokens", "[[1, 2]]", [(1, 2)], True),
    ],
)
def test_the_profile_also_decides_about_values(profile: Profile, expected: str, returned: Any, same: bool) -> None:
    reference = normalise({"inputs": ["1"], "outputs": [expected], "fn_name": "f"})
    (check,) = plan(reference, assemble("def f(x): pass", reference), Comparison(profile))
    found = check.judge(RunResult(Outcome.FINISHED, value=returned))
    assert (found.category == "correct") is same, ast.literal_eval(expected)  # type: ignore[union-attr]
