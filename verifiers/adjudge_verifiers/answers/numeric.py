"""``numeric``: is the answer the number that was asked for?"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from adjudge.types import Verdict

from ..base import Call, Context, Example, Extraction, Verifier
from ..errors import InvalidReference
from ..extract.final import Convention, ExtractionOptions, final_answer
from ..extract.prose import first_stated, one_line
from ..registry import register
from .arithmetic import contradicts_itself
from .equations import stated_side
from .numbers import Quantity, is_count, parse_quantity
from .outcomes import shown, unanswered

__all__ = ["Numeric", "NumericOptions", "read"]

_Gold = StrictStr | StrictInt | StrictFloat
Accepted = _Gold | Annotated[list[_Gold], Field(min_length=1)]

_MAX_PROSE = 2_000
_REASON = re.compile(r"\b(?:because|since)\b", re.IGNORECASE)


class NumericOptions(ExtractionOptions):
    """How exact the number must be, and how it is written and found."""

    conventions: tuple[Convention, ...] = Field(
        default=("answer_tag", "boxed", "hash", "anchor", "last_number"),
        min_length=1,
        description="Tried in this order; leave out `last_number` to demand that the answer be announced.",
    )
    abs_tol: float = Field(default=0.0, ge=0, description="Largest distance from the reference.")
    rel_tol: float = Field(default=0.0, ge=0, description="Largest distance, as a share of the reference.")
    percent: Literal["lenient", "strict", "ignore"] = Field(
        default="lenient",
        description="`strict`: 25% is 0.25 and nothing else. `lenient`: if only one side has the sign, 25% is also 25 "
        "(never 0.5% for 0.5). `ignore`: the sign is dropped.",
    )
    decimal_comma: bool = Field(default=False, description="Read 1.234,5 and 2,5 with a decimal comma.")


@register
class Numeric(Verifier[str | int | float | list[str | int | float], NumericOptions]):
    """Correct if the final answer is one number and equals the reference exactly, or within the tolerance asked for.

    Reads separators of thousands, currencies, percent, fractions, mixed numbers, powers of ten, "3 million" and the
    digits of every script; compares fractions, never floats. A unit may be left out, but a stated unit of measure
    must be that of the reference; none is converted. What stands beside the number must leave it as it is: "less than
    5", "not 5", `5!`, `2x = 5` and "5 or more" do not state 5. The reference may be a whole solution that ends in
    `#### 18` or `A: 18`. It knows no variables and no functions: that is `math`.
    """

    name, version, lane = "numeric", "1", "inline"
    Reference, Options = Accepted, NumericOptions
    examples = (
        Example("She makes 9 * 2 = 18 dollars.\n#### 18", "18"),
        Example("The total is $1,234.50.", 1234.5),
        Example("So it is \\boxed{\\frac{3}{4}}", "0.75"),
        Example("Sum: 16 - 7 = 9\nA: 9", "work\nA: 9", {"conventions": ["anchor"], "anchors": ["A:"]}),
        Example("The answer is 3.14.", "3.14159", {"abs_tol": 0.002}),
        Example("The answer is 25%", "25"),
        Example("The answer is 19.", "18", reward=0.0, category="wrong_answer"),
        Example("It costs 20 cents.", "$20", reward=0.0, category="wrong_answer"),
        Example("The answer is at least 18.", "18", reward=0.0, category="wrong_answer"),
        Example("The answer is 12 or 13.", "12", reward=0.0, category="hedged"),
        Example("\\boxed{12=13}", "13", reward=0.0, category="wrong_answer"),
        Example("I cannot tell.", "18", reward=0.0, category="no_answer"),
        Example("First \\boxed{18}, and finally \\boxed{", "18", reward=0.0, category="truncated"),
        Example("18", "eighteen or so", reward=None, status="invalid_task"),
    )

    def extract(self, response: str, options: NumericOptions) -> Extraction:
        found = options.final_answer(response)
        if found.outcome != "answered":
            return found
        return read(found, decimal_comma=options.decimal_comma)

    def gold(self, reference: str | int | float | list[str | int | float], options: NumericOptions) -> str | None:
        first = reference[0] if isinstance(reference, list) else reference
        return options.as_response(_gold_text(first, options))

    def verify(self, call: Call[str | int | float | list[str | int | float], NumericOptions], ctx: Context) -> Verdict:
        references = call.reference if isinstance(call.reference, list) else [call.reference]
        golds = [_gold(reference, call.options) for reference in references]
        extraction = call.extraction or self.extract(call.response, call.options)
        if extraction.outcome != "answered":
            return unanswered(extraction)
        found = extraction.text[:1_000]
        if contradicts_itself(extraction.text):
            return Verdict.scored(0.0, "wrong_answer", f"{shown(found)} contradicts itself.", extracted=found)
        side = stated_side(extraction.text)
        answer = None if side is None else parse_quantity(side, decimal_comma=call.options.decimal_comma)
        if answer is None or not is_count(answer):
            return Verdict.scored(0.0, "wrong_answer", f"{shown(found)} does not state one number.", extracted=found)
        if any(_equal(gold, answer, call.options) for gold in golds):
            return Verdict.scored(1.0, "correct", "The number is the reference.", extracted=found)
        reason = f"{shown(found)} is not {shown(str(references[0]))}."
        return Verdict.scored(0.0, "wrong_answer", reason, extracted=found)


def read(found: Extraction, *, decimal_comma: bool = False) -> Extraction:
    """Narrow a marked answer down to the number that it states; an answer that states none stays as it is."""
    text, method = found.text, found.method
    if not text.strip(" \n!?.…"):
        return Extraction("none", method=method)
    quantity = parse_quantity(text, decimal_comma=decimal_comma)
    if (quantity is not None and is_count(quantity)) or len(text) > _MAX_PROSE:
        return found
    prose = one_line(text)
    if "=" in prose:
        claim = _REASON.split(prose, maxsplit=1)[0]
        if "=" in claim or method == "boxed" or not any(char.isdigit() for char in claim):
            return found
        prose = claim
    stated = first_stated(prose)
    if stated.problem == "listed":
        return Extraction("hedged", method=method, candidates=stated.numbers)
    if method == "boxed":
        return found
    if stated.problem == "several":
        return Extraction("ambiguous", method=method, candidates=stated.numbers)
    return Extraction("answered", stated.text, method) if stated.text else found


def _gold(reference: str | int | float, options: NumericOptions) -> Quantity:
    text = _gold_text(reference, options)
    quantity = parse_quantity(text, decimal_comma=options.decimal_comma and isinstance(reference, str))
    if quantity is None or not is_count(quantity):
        raise InvalidReference(
            f"The reference {shown(text)} is no number, nor does it end in one after '####' or 'A:'."
        )
    return quantity


def _gold_text(reference: str | int | float, options: NumericOptions) -> str:
    """The number of a reference: the whole of it, or what a solution marks as its result."""
    if isinstance(reference, float) and not math.isfinite(reference):
        raise InvalidReference("The reference is not a finite number.")
    if isinstance(reference, int) and abs(reference) >= 10**1_000:
        raise InvalidReference("The reference has more than 1,000 digits.")
    if not isinstance(reference, str):
        return repr(reference)
    if parse_quantity(reference, decimal_comma=options.decimal_comma) is not None:
        return reference
    marked = final_answer(reference, ("boxed", "hash", "anchor"), anchors=(*options.anchors, "answer:", "A:"))
    return marked.text or reference


def _equal(gold: Quantity, answer: Quantity, options: NumericOptions) -> bool:
    if gold.unit and answer.unit and gold.unit != answer.unit:
        return False
    if gold.percent == answer.percent or options.percent == "ignore":
        return _close(gold.value, answer.value, options)
    if _close(gold.ratio, answer.ratio, options):
        return True
    return options.percent == "lenient" and abs(gold.value) >= 1 and _close(gold.value, answer.value, options)


def _close(gold: Fraction, answer: Fraction, options: NumericOptions) -> bool:
    allowed = max(Fraction(repr(options.abs_tol)), Fraction(repr(options.rel_tol)) * abs(gold))
    return abs(gold - answer) <= allowed
