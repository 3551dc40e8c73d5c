"""Sums of plain numbers, so that ``16 - 3 - 4 = 9`` can be checked without an algebra system.

``+ - * /`` and parentheses over what :mod:`.numbers` reads, exact, by two stacks instead of recursion. Anything else,
powers included, is not arithmetic here and gives ``None``.
"""

from __future__ import annotations

import re
from fractions import Fraction

from ..extract.text import fold, plain_latex, unwrap
from .numbers import parse_quantity

__all__ = ["contradicts_itself", "evaluate"]

MAX_CHARS = 500
_TOKEN = re.compile(r"\s*(?:(\d[\d,]*(?:\.\d+)?|\.\d+)|([-+*/()]))")
_PRECEDENCE = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "~": 3}
_CURRENCY = str.maketrans("", "", "$€£¥")


def evaluate(text: str) -> Fraction | None:
    """The value of a plain number or of a sum of plain numbers."""
    if len(text) > MAX_CHARS:
        return None
    quantity = parse_quantity(text)
    if quantity is not None:
        return quantity.ratio if not quantity.words or quantity.unit else None
    tokens = _tokens(text)
    return _reduce(tokens) if tokens else None


def contradicts_itself(text: str) -> bool:
    """Does a chain of equations claim that two different numbers are equal, as ``12=13`` does?"""
    sides = [side for side in re.split(r":?=", text[:MAX_CHARS]) if side.strip(" {}")] if "=" in text else []
    values = {value for side in sides if (value := evaluate(unwrap(side.strip(" {}")))) is not None}
    return len(values) > 1


def _tokens(text: str) -> list[str]:
    text = unwrap(plain_latex(fold(text))).replace("\\times", "*").replace("\\cdot", "*").replace("\\div", "/")
    text = text.replace("×", "*").replace("·", "*").translate(_CURRENCY).rstrip()
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return []
        operator = match[2]
        if operator in ("+", "-") and (not tokens or tokens[-1] in _PRECEDENCE):
            operator = "~" if operator == "-" else ""
        if operator != "":
            tokens.append(operator or match[1])
        position = match.end()
    return tokens


def _reduce(tokens: list[str]) -> Fraction | None:
    values: list[Fraction] = []
    operators: list[str] = []
    try:
        for token in tokens:
            if token == "(" or token == "~":
                operators.append(token)
            elif token == ")":
                while operators[-1] != "(":
                    _apply(values, operators.pop())
                operators.pop()
            elif token in _PRECEDENCE:
                while operators and _PRECEDENCE[operators[-1]] >= _PRECEDENCE[token]:
                    _apply(values, operators.pop())
                operators.append(token)
            else:
                quantity = parse_quantity(token)
                if quantity is None:
                    return None
                values.append(quantity.value)
        while operators:
            _apply(values, operators.pop())
    except (IndexError, ZeroDivisionError, KeyError):
        return None
    return values[0] if len(values) == 1 else None


def _apply(values: list[Fraction], operator: str) -> None:
    right = values.pop()
    if operator == "~":
        values.append(-right)
        return
    if operator == "(":
        raise KeyError(operator)
    left = values.pop()
    if operator == "+":
        values.append(left + right)
    elif operator == "-":
        values.append(left - right)
    elif operator == "*":
        values.append(left * right)
    else:
        values.append(left / right)
