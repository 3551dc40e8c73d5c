r"""What is settled about a mathematical answer before an algebra system is asked.

Each rule sees the reference and the answer as short texts and says *equal*, *different* or nothing. They are here for
two reasons: most answers are numbers, and exact fractions cost microseconds where algebra costs milliseconds; and the
algebra system that is asked next is known to accept things that are not equal (``1/2004!`` for ``1/2006!``, ``10 cm``
for ``10 m``, ``52_9`` for ``52_8``, ``13=12`` for ``12``, ``n = 7 or more`` for 7, ``cab`` for ``abc``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ..extract.hidden import hides_text
from ..extract.text import key, plain_latex, unwrap
from .arithmetic import contradicts_itself, evaluate
from .equations import stated_side
from .numbers import Quantity, is_count, parse_quantity
from .units import unit_of

__all__ = ["Finding", "compare_by_rule", "is_plain_text"]

_OR = re.compile(r"(?<![A-Za-z\\])or(?![A-Za-z])|\\lor(?![A-Za-z])|\\vee(?![A-Za-z])|∨")
_BOUND = re.compile(r"\bor\s+(?:more|less|fewer|greater|higher|lower)\b|\bat\s+(?:least|most)\b", re.IGNORECASE)
_MANY = re.compile(
    r"\\pm|±|\\mp|,|;|\\cup|∪|\\ne|≠|<|>|\\l?eq?\b|\\geq?\b|≤|≥|\\{|\bor\b|\band\b|\\lor|\||\\in\b|\\sqrt|\^"
)
_BASED = re.compile(r"([0-9A-Za-z]+)_\{?(\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen)\}?")
_BASE_NAMES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_BASES = {name: base for base, name in enumerate(_BASE_NAMES, 2)} | {"twelve": 12, "sixteen": 16}
_MAX_BASED = 200
_TIME = re.compile(r"\d{1,2}:\d\d(?:[ap]\.?m\.?)?")
_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*)*\.?")
_FUNCTIONS = frozenset(
    """sin cos tan cot sec csc log ln lg exp sqrt pi frac infty inf oo theta alpha beta arcsin arccos arctan
    infinity""".split()  # noqa: SIM905
)
_UNIT_AT_END = re.compile(r"\\(?:text|mathrm|mbox)\s*\{\s*([^{}]{1,30}?)\s*\}\s*((?:\^\{?[23]\}?)?)$|(\\\$|\\%|%)$")
_NO_VALUE = re.compile(
    r"\\(?:boxed|fbox|(?:long)?(?:right|left)arrow|to|implies|iff)(?![A-Za-z])|→|⇒|\d_|\\\\|\\p?mod(?![A-Za-z])"
    r"|[<>≤≥≠]|\\(?:neq?|leq?|geq?|lt|gt|not)(?![A-Za-z])|^[-+]?\d[\d.,]*(?!(?:st|nd|rd|th)$)[A-Za-z]{2,3}$|^[^()\[\]]*,(?!\d{3})"
)
_LEFT_SIDE = re.compile(r"^(?:\\angle\s*[A-Z]{1,3}|[A-Za-z])(?:_\{?\w+\}?)?\s*:?=\s*")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found, and why."""

    verdict: Literal["equal", "different", "hedged"]
    reason: str


def compare_by_rule(gold: str, answer: str) -> Finding | None:
    """The first rule that decides; ``None`` if algebra has to. Both texts are at most a few thousand characters."""
    if _BOUND.search(plain_latex(answer)) and not _BOUND.search(plain_latex(gold)):
        return Finding("different", "The answer gives a bound where a value is asked for.")
    if _OR.search(plain_latex(answer)) and not _MANY.search(gold):
        return Finding("hedged", "The answer offers alternatives.")
    if contradicts_itself(answer) or _is_tautology(answer) or _far_apart(answer):
        return Finding("different", "The answer is a chain of equations that is false or says nothing.")
    if hides_text(answer) and not hides_text(gold):
        return Finding("different", "The answer hides a part of itself.")
    if key(gold, keep_case=True) == key(answer, keep_case=True):
        return Finding("equal", "The answer is written like the reference.")
    for rule in (_numbers, _other_base, _plain_text, _units):
        finding = rule(gold, answer)
        if finding is not None:
            return finding
    return None


def is_plain_text(text: str) -> bool:
    """Is it a word or a name, to be compared letter by letter? ``\\text{east}`` and ``abc`` are, ``xy`` is not."""
    words = unwrap(plain_latex(unwrap(text)))
    if not _WORDS.fullmatch(words):
        return False
    if set(words.lower().rstrip(".").split()) & _FUNCTIONS or words.lower().startswith(("sqrt", "frac")):
        return False
    return len(words.replace(" ", "").rstrip(".")) > 2 or "\\text" in text


def _is_tautology(answer: str) -> bool:
    sides = [key(side) for side in re.split(r":?=", answer.strip(" {}")) if side.strip(" {}")]
    return len(sides) > 1 and len(set(sides)) == 1 and not re.search(r"[<>]", answer)


def _far_apart(answer: str) -> bool:
    """``13 \\approx 12`` says two things; ``1/3 \\approx 0.333`` says one."""
    sides = [evaluate(side) for side in re.split(r"\\approx|≈|\\simeq", answer)]
    known = [side for side in sides if side is not None]
    return len(sides) > 1 and len(known) > 1 and max(known) - min(known) > abs(max(known, key=abs)) / 20


def _quantity(text: str) -> Quantity | None:
    """A number with nothing but a unit or a noun beside it; ``12x`` is a product."""
    *left, last = _LEFT_SIDE.sub("", unwrap(text), count=1).split("=")
    if any(evaluate(side) is None for side in left):
        return None  # an equation, which says more than its right side
    text = last if left else _LEFT_SIDE.sub("", unwrap(text), count=1)
    quantity = parse_quantity(text)
    if quantity is None or not quantity.words:
        return quantity
    if quantity.unit and (
        "\\text" in text or "\\circ" in text or "\\mathrm" in text or " " in text.strip() or not text.isascii()
    ):
        return quantity
    word = quantity.words.replace(" ", "")
    return quantity if len(word) > 2 and word.isalpha() and is_count(quantity) else None


def _numbers(gold: str, answer: str) -> Finding | None:
    right, given = _quantity(gold), _quantity(answer)
    if right is not None and given is None:
        based = _based_value(answer)
        if based is not None:
            return Finding("equal" if based == right.value else "different", "The base is worked out.")
        if _is_no_single_value(answer):
            return Finding("different", "The answer is not one number.")
    if right is None or given is None:
        return None
    if right.unit and given.unit and right.unit != given.unit:
        return Finding(
            "different", f"The answer is in {given.unit}, the reference in {right.unit}; nothing is converted."
        )
    if _same_number(right, given):
        return Finding("equal", "The numbers are equal.")
    return Finding("different", "The numbers differ.")


def _is_no_single_value(answer: str) -> bool:
    """An equation that is not solved, a list, a box in a box, or a number with words that change it."""
    side = stated_side(answer)
    if side is None or _NO_VALUE.search(side):
        return True
    quantity = parse_quantity(side)
    return quantity is not None and not is_count(quantity)


def _based_value(answer: str) -> Fraction | None:
    """The value of digits in a stated base: 101_2 is 5."""
    match = _BASED.fullmatch(key(answer))
    if match is None or len(match[1]) > _MAX_BASED:
        return None
    try:
        return Fraction(int(match[1], _BASES.get(match[2]) or int(match[2])))
    except ValueError:
        return None


def _same_number(right: Quantity, given: Quantity) -> bool:
    """Equal as they stand; 50% is 0.5, and also 50 where only one side has the sign (but 0.5% is not 0.5)."""
    if right.percent == given.percent:
        return right.value == given.value or _rounds_to(given, right)
    return right.ratio == given.ratio or (abs(right.value) >= 1 and right.value == given.value)


def _rounds_to(given: Quantity, right: Quantity) -> bool:
    """A rounded reference of three digits or more stands for what rounds to it."""
    places = right.decimals
    if not places or (given.decimals is not None and given.decimals <= places):
        return False
    scaled = abs(right.value) * 10**places
    return bool(scaled >= 100 and abs(given.value - right.value) * 10**places <= Fraction(1, 2))


def _other_base(gold: str, answer: str) -> Finding | None:
    """A reference in a stated base asks for these digits; the base may be left out, but not be another."""
    right = _BASED.fullmatch(key(gold))
    if right is None or not any(char.isdigit() for char in right[1]):
        return None
    given = _BASED.fullmatch(key(answer))
    if given is not None:
        bases = [_BASES.get(match[2]) or int(match[2]) for match in (right, given)]
        same = right[1].lstrip("0") == given[1].lstrip("0") and bases[0] == bases[1]
    else:
        same = right[1].lstrip("0") == key(answer).lstrip("0")
    return Finding("equal" if same else "different", "Digits and base are compared.")


def _plain_text(gold: str, answer: str) -> Finding | None:
    """Words, names and times of day are compared as they are written."""
    if is_plain_text(gold):
        if key(gold) == key(answer):
            return Finding("equal", "The words are the same.")
        first = unwrap(plain_latex(answer)).split(",")[0]
        wordy = len(gold) < 12 and key(first) == key(gold) and key(gold) in ("yes", "no", "true", "false")
        bracketed = len(key(gold)) == 3 and key(answer) == key(gold).strip("()")
        return Finding("equal" if wordy or bracketed else "different", "Words are compared letter by letter.")
    if _TIME.fullmatch(key(gold)):
        same = key(gold).replace(".", "") == key(answer).replace(".", "")
        return Finding("equal" if same else "different", "Times of day are compared as they are written.")
    return None


def _units(gold: str, answer: str) -> Finding | None:
    right, given = _stated_unit(gold), _stated_unit(answer)
    if right and given and right != given:
        return Finding("different", f"The answer is in {given}, the reference in {right}; nothing is converted.")
    return None


def _stated_unit(text: str) -> str:
    match = _UNIT_AT_END.search(unwrap(text))
    if match is None or match[3]:
        return ""
    return unit_of(match[1] + match[2])
