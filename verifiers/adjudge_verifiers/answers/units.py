"""The units of measure and currencies that clash with one another: 10 cm is not 10 m, and $20 is not 20 cents.

A unit may be left out of an answer, but one that is stated must be the one of the reference. Nothing is converted here.
Words that are not in the table (``apples``, ``per week``) describe what is counted and never clash.
"""

from __future__ import annotations

import re

__all__ = ["unit_of"]

_NAMES: dict[str, str] = {
    "mm": "mm millimeter millimeters millimetre millimetres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "m": "m meter meters metre metres",
    "km": "km kilometer kilometers kilometre kilometres",
    "in": "inch inches",
    "ft": "ft foot feet",
    "yd": "yd yard yards",
    "mi": "mile miles",
    "mg": "mg milligram milligrams",
    "g": "g gram grams gramme grammes",
    "kg": "kg kilogram kilograms kilogramme kilogrammes",
    "lb": "lb lbs pound pounds",
    "oz": "oz ounce ounces",
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "year years yr yrs",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "l": "l liter liters litre litres",
    "gal": "gallon gallons",
    "usd": "$ usd dollar dollars",
    "cent": "¢ cent cents",
    "eur": "€ eur euro euros",
    "gbp": "£ gbp",
    "inr": "₹ inr rupee rupees",
    "cny": "rmb cny yuan",
    "jpy": "¥ jpy yen",
    "degree": "° degree degrees deg",
    "radian": "rad radian radians",
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "kelvin": "k kelvin",
    "n": "n newton newtons",
    "j": "j joule joules",
    "kj": "kj kilojoule kilojoules",
    "w": "w watt watts",
    "kw": "kw kilowatt kilowatts",
    "v": "v volt volts",
    "pa": "pa pascal pascals",
    "kpa": "kpa kilopascal kilopascals",
    "hz": "hz hertz",
    "mol": "mol mole moles",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
_SQUARED = {"square": "^2", "sq": "^2", "cubic": "^3"}
_POWER = re.compile(r"\s?\^?\{?([23])\}?$")


def unit_of(text: str) -> str:
    """The canonical name of the unit that ``text`` is, such as ``cm``, ``cm^2`` or ``km/h``; else the empty string."""
    text = text.strip().strip(".").lower().replace("^\\circ", "°").replace("\\circ", "°").replace("° ", "°")
    if not text or len(text) > 60:
        return ""
    if text.count("/") == 1 or " per " in text:
        over, _, under = text.replace(" per ", "/").partition("/")
        first, second = _simple(over), _simple(under)
        return f"{first}/{second}" if first and second else ""
    return _simple(text)


def _simple(text: str) -> str:
    words = text.split()
    power = ""
    if len(words) == 2 and words[0] in _SQUARED:
        power, words = _SQUARED[words[0]], words[1:]
    elif words and (match := _POWER.search(text)):
        power, words = f"^{match[1]}", text[: match.start()].split()
    unit = _UNITS.get(words[0], "") if len(words) == 1 else ""
    return unit + power if unit else ""
