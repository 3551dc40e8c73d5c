r"""Numbers as people and models write them, read exactly.

``1,234.50``, ``$3``, ``-2 1/2``, ``\frac{3}{4}``, ``6.02\times 10^{23}``, ``25\%``, ``1.2 million``, ``¾``, ``12 cm``
become a :class:`Quantity` with a :class:`~fractions.Fraction` in it. Nothing is evaluated: one regular expression must
match the whole text. A number of more than 10,000 digits is not read.

Commas separate thousands, also in Indian groups (``1,00,000``); ``1.234,56`` and ``2{,}5`` can only be decimal commas.
A single comma before two digits (``12,34``) is neither and is not read unless ``decimal_comma`` is set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from ..extract.surroundings import alters_after, is_counted
from ..extract.text import fold, plain_latex, unwrap
from .units import unit_of

__all__ = ["MAX_DIGITS", "Quantity", "integer", "is_count", "parse_quantity"]

MAX_DIGITS = 10_000
_CHUNK = 4_000  # below the limit of the interpreter on int(str)

_NUM = r"(?:\d[\d,]*(?:\.[\d,]*)*|\.\d+)"
_QUANTITY = re.compile(
    rf"""
    (?P<sign>[-+]?)[ ]?(?P<currency>(?:[A-Z]{{1,3}})?[$€£¥₹₩₽¢]|)[ ]?(?P<sign2>[-+]?)[ ]?
    (?: 10[ ]?\^\(?(?P<ten>[-+]?\d+)\)?
      | (?:(?P<whole>\d[\d,]*)[ ])?(?P<num>{_NUM})[ ]?/[ ]?(?P<den>{_NUM})
      | (?P<decimal>{_NUM})
        (?: e(?P<exponent>[-+]?\d+) | [ ]?[*x][ ]?10[ ]?(?:\^|\*\*)[ ]?\(?(?P<power>[-+]?\d+)\)? )?
    )
    [ ]?(?:(?P<multiplier>hundred|thousand|million|billion|trillion)(?![a-z])|(?P<myriad>[万亿億]))?
    [ ]?(?P<rest>(?![-,. ^/:_!'])[^\d=<>+*\\,;|]*(?:(?<=[a-z^])[23](?!\d)[^\d=<>+*\\,;|]*)?)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d])")
_LATEX_COMMA = re.compile(r"(?<!\d)\d+(?:\{,\}\d+)+")
_FRAC = re.compile(r"\\[dtc]?frac\s*(?:\{\s*([-+]?[\d.,]+)\s*\}|(\d))\s*(?:\{\s*([-+]?[\d.,]+)\s*\}|(\d))")
_REPEATING = re.compile(r"([-+]?)(\d*)\.(\d*)\\(?:overline|bar|dot)\{(\d+)\}")
_POWER = re.compile(r"\^\s*\{\s*([-+]?\d+)\s*\}")
_SIGNED_BRACKET = re.compile(r"^([-+]) ?\(\s?(\d[\d.,]*)\s?\)$")
_APPROXIMATELY = re.compile(r"^(?:about|approximately|approx\.?|roughly|around|~|≈|\\approx|\\sim) ?", re.IGNORECASE)
_SHORT_MULTIPLIERS = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9, "b": 10**9}
_MULTIPLIERS = {
    "one": 1,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "万": 10**4,
    "亿": 10**8,
    "億": 10**8,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that was read. ``value`` takes the percent sign as it stands: 25 % has ``value`` 25."""

    value: Fraction
    percent: bool = False
    unit: str = ""
    """Canonical name of a stated unit of measure or currency; empty for none, and for words that are no such unit."""
    words: str = ""
    """What follows the number: the unit as it was written, or what is counted."""
    decimals: int | None = None
    """Digits after the point, if it was written as a plain decimal number; ``None`` for fractions and powers."""

    @property
    def ratio(self) -> Fraction:
        """The value with the percent sign worked out: 25 % is 1/4."""
        return self.value / 100 if self.percent else self.value


def parse_quantity(text: str, *, decimal_comma: bool = False) -> Quantity | None:
    """The one number that ``text`` is, or ``None`` if it is anything else or anything more."""
    if len(text) > 2 * MAX_DIGITS or text.rstrip(" $").endswith(("...", "…", "!", "\\ldots", "\\dots")):
        return None
    tidy = _tidy(text)
    repeating = _REPEATING.fullmatch(tidy)
    if repeating is not None:
        return _repeating(*repeating.groups())
    match = _QUANTITY.fullmatch(tidy)
    if match is None or (match["sign"] and match["sign2"]):
        return None
    value = _value(match, decimal_comma)
    if value is None:
        return None
    if "-" in (match["sign"], match["sign2"]):
        value = -value
    value *= _MULTIPLIERS[(match["multiplier"] or match["myriad"] or "one").lower()]
    rest = match["rest"].strip(" .")
    glued = bool(rest) and tidy[match.start("rest") - 1].isdigit()
    if (match["currency"] and rest.lower() in _SHORT_MULTIPLIERS) or (glued and rest == "k"):
        value, rest = value * _SHORT_MULTIPLIERS[rest.lower()], ""  # $5k, 5k
    rest = rest.lower()
    if glued and rest[:1].isalpha() and not is_counted(rest, glued=True):
        return None  # 3x is a product
    percent = rest in ("%", "percent", "per cent", "pct", "percentage", "percents")
    unit = "" if percent else unit_of(rest) or unit_of((match["currency"] or "")[-1:])
    plain = match["decimal"] is not None and not (match["multiplier"] or match["myriad"])
    decimals = (
        _decimals(match["decimal"], decimal_comma) if plain and not (match["exponent"] or match["power"]) else None
    )
    return Quantity(value, percent, unit, "" if percent else rest, decimals)


def _repeating(sign: str, whole: str, fixed: str, period: str) -> Quantity | None:
    """0.8\\overline{3} is 8/10 + 3/90."""
    if len(whole + fixed + period) > _CHUNK:
        return None
    value = Fraction(int(whole + fixed or "0")) + Fraction(int(period), 10 ** len(period) - 1)
    return Quantity((-1 if sign == "-" else 1) * value / 10 ** len(fixed))


def is_count(quantity: Quantity) -> bool:
    """Is what follows the number a unit or a noun? ``3x``, ``2 pi`` and ``7 or more`` are no numbers."""
    if not quantity.words or quantity.unit:
        return True
    return not alters_after(" " + quantity.words)


def integer(digits: str) -> int:
    """``int(digits)`` for as many digits as :data:`MAX_DIGITS`; the interpreter refuses more than 4,300 at once."""
    value = 0
    for start in range(0, len(digits), _CHUNK):
        chunk = digits[start : start + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def _tidy(text: str) -> str:
    """One way of writing for what has many: fractions as ``a/b``, powers without braces, single spaces."""
    text = re.sub(r",\\!\s*", ",", unwrap(fold(text))).replace("\\%", "%").replace("\\$", "$")
    text = (
        text.replace("^\\circ", "°")
        .replace("^{\\circ}", "°")
        .replace("\\times", "*")
        .replace("\\cdot", "*")
        .replace("×", "*")
        .replace("·", "*")
    )
    text = _LATEX_COMMA.sub(_latex_comma, text)
    text = _FRAC.sub(lambda m: f" {m[1] or m[2]}/{m[3] or m[4]}", text)
    text = unwrap(" ".join(_POWER.sub(r"^\1", plain_latex(text)).split()))
    text = _APPROXIMATELY.sub("", text, count=1)
    text = _SIGNED_BRACKET.sub(r"\1\2", text)
    while len(text) > 2 and (text[0], text[-1]) in (("(", ")"), ("{", "}")) and text[1] not in "({":
        text = text[1:-1].strip()
    text = re.sub(r"^([-+]?) (?=\d)", r"\1", text)
    return _SPACED.sub(lambda match: match.group().replace(" ", ""), text) if "/" not in text else text


def _latex_comma(match: re.Match[str]) -> str:
    """``1{,}000`` has a comma between thousands, ``2{,}5`` a decimal comma."""
    joined = match.group().replace("{,}", ",")
    return joined.replace(",", ".") if joined.count(",") == 1 and not _THOUSANDS.fullmatch(joined) else joined


def _value(match: re.Match[str], decimal_comma: bool) -> Fraction | None:
    if match["ten"]:
        return _power_of_ten(match["ten"])
    if match["num"]:
        numerator, denominator = (_decimal(match[group], decimal_comma) for group in ("num", "den"))
        whole = _decimal(match["whole"], decimal_comma) if match["whole"] else Fraction(0)
        if numerator is None or denominator is None or whole is None or denominator == 0:
            return None
        if match["whole"] and not (numerator.denominator == denominator.denominator == 1 and numerator < denominator):
            return None  # "4 10/3" is no mixed number
        return whole + numerator / denominator
    value = _decimal(match["decimal"], decimal_comma)
    scale = _power_of_ten(match["exponent"] or match["power"] or "0")
    return None if value is None or scale is None else value * scale


def _power_of_ten(exponent: str) -> Fraction | None:
    power = int(exponent) if len(exponent) < 8 else MAX_DIGITS + 1
    return Fraction(10) ** power if abs(power) <= MAX_DIGITS else None


def _decimal(text: str, decimal_comma: bool) -> Fraction | None:
    """A number without sign: digits, separators of thousands, and a decimal point."""
    if len(text) > MAX_DIGITS:
        return None
    if decimal_comma or _EUROPEAN.fullmatch(text):
        text = text.translate(str.maketrans(",.", ".,"))
    whole, _, digits = text.partition(".")
    if "," in digits or "." in digits or ("," in whole and not _THOUSANDS.fullmatch(whole)):
        return None
    whole = whole.replace(",", "")
    return Fraction(integer(whole + digits), 10 ** len(digits)) if whole + digits else None


def _decimals(text: str, decimal_comma: bool) -> int:
    point = "," if decimal_comma or _EUROPEAN.fullmatch(text) else "."
    return len(text.partition(point)[2])
