"""Math-Verify, as the last word on equality; only ever called in a worker process that can be killed.

Math-Verify parses LaTeX with a grammar (nothing is evaluated as Python) and compares sympy expressions. It has no time
limit here: the ``cpu`` lane holds the clock, because an alarm signal is not delivered during one long C call. Its two
habits that would turn a failure into a wrong number are undone: an error while comparing is raised, and numbers below
1e-15, which it rounds to zero, are compared by their ratio.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Any

__all__ = ["equal", "parse_answer", "parse_gold"]

_LETTER_FRACTION = re.compile(r"\\[dt]?frac\s*(\\[a-z]+|\w)\s*(\\[a-z]+|\w)(?![a-z{])")
_LG = re.compile(r"\\lg(?![A-Za-z])")
_PLAIN_FUNCTION = re.compile(r"(?<![A-Za-z\\{])(sin|cos|tan|ln|log|exp|pi)(?![A-Za-z])")
_RATIO_TOLERANCE = 1e-5  # Math-Verify rounds decimals to six places; below that size only the ratio tells


@lru_cache(maxsize=1)
def _quiet() -> None:
    """Math-Verify warns on every process that its own time limits are off, which is on purpose."""
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    logging.getLogger("latex2sympy2_extended").setLevel(logging.ERROR)


@lru_cache(maxsize=4_096)
def parse_gold(text: str) -> tuple[Any, ...]:
    """The reference as sympy objects; empty if it does not parse. Kept, since many answers share one reference."""
    return parse_answer(text)


def parse_answer(text: str) -> tuple[Any, ...]:
    """The answer as sympy objects; empty if it does not parse.

    Only as LaTeX: Math-Verify's reader of plain expressions finds the 5 in ``5ab`` and ``2 ** 5``.
    """
    from math_verify import LatexExtractionConfig, parse  # type: ignore[import-untyped]

    _quiet()
    wrapped = f"\\boxed{{{_readable(text)}}}"
    no_limit: Any = None  # the annotation says int, the code takes None
    return tuple(
        parse(
            wrapped,
            [LatexExtractionConfig(boxed_match_priority=0)],
            fallback_mode="no_fallback",
            parsing_timeout=no_limit,
        )
    )


def _readable(text: str) -> str:
    """Spellings that the grammar does not know, in ones that it does."""
    text = _LETTER_FRACTION.sub(r"\\frac{\1}{\2}", text.replace("°", "^\\circ"))
    text = _PLAIN_FUNCTION.sub(r"\\\1", text.replace("**", "^"))
    return _LG.sub(r"\\log_{10}", text)


def equal(gold: tuple[Any, ...], answer: tuple[Any, ...]) -> bool:
    """Are the two equal? Raises what sympy raises, so that a crash is not taken for a wrong answer."""
    from math_verify import verify

    _quiet()
    if not verify(list(gold), list(answer), timeout_seconds=None, raise_on_error=True):
        return False
    return not (len(gold) == len(answer) == 1 and _ratio_differs(gold[0], answer[0]))


def _ratio_differs(gold: Any, answer: Any) -> bool:
    """Are both plain numbers whose ratio is not 1? Catches what became equal by being rounded to zero."""
    from sympy import Expr  # type: ignore[import-untyped]

    if not (isinstance(gold, Expr) and isinstance(answer, Expr)) or gold.free_symbols or answer.free_symbols:
        return False
    gold, answer = gold.doit(), answer.doit()
    if gold.is_zero or answer.is_zero:
        return bool(gold.is_zero) != bool(answer.is_zero) and gold.is_zero is not None and answer.is_zero is not None
    ratio = (gold / answer).evalf(20)
    if not ratio.is_number or not ratio.is_finite:
        return False
    return bool(abs(ratio - 1) > _RATIO_TOLERANCE)
