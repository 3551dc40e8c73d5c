"""``math``: is the final answer mathematically equal to the reference?"""

from __future__ import annotations

import math
import re
from typing import Annotated, ClassVar, NoReturn

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from adjudge.types import Category, Verdict

from ..base import Call, Context, Example, Extraction, Verifier
from ..errors import InvalidReference
from ..extract.final import Convention, ExtractionOptions
from ..extract.prose import first_stated, one_line
from ..extract.surroundings import alters_after, alters_before
from ..extract.text import fold, plain_latex, unwrap
from ..registry import register
from . import algebra
from .cost import looks_costly
from .math_rules import compare_by_rule, is_plain_text
from .numbers import parse_quantity
from .outcomes import shown, unanswered

__all__ = ["Math", "MathOptions"]

_Gold = StrictStr | StrictInt | StrictFloat
Accepted = _Gold | Annotated[list[_Gold], Field(min_length=1)]

_MAX_ANSWER = 2_000
_MAX_GOLD = 10_000
_INLINE = re.compile(r"\$(?!\s)([^$\n]+)(?<!\s)\$|\\\(((?:[^\\]|\\(?!\)))+)\\\)")
_WORD = re.compile(r"(?<![A-Za-z\\{])[A-Za-z]{3,}")
_ESCAPED_BRACE = re.compile(r"\\[{}\\]")


class MathOptions(ExtractionOptions):
    """How the final answer is found."""

    conventions: tuple[Convention, ...] = Field(
        default=("boxed", "answer_tag", "hash", "anchor", "bare", "last_math"),
        min_length=1,
        description="Tried in this order; leave out `bare` and `last_math` to demand that the answer be announced.",
    )


@register
class Math(Verifier[str | int | float | list[str | int | float], MathOptions]):
    """Correct if the final answer equals the reference as mathematics, however either is written.

    Numbers are compared as exact fractions; words letter by letter; everything else by Math-Verify, in a process that
    is killed when it takes too long. A list of references accepts any of them. Alternatives ("12 or 13"), bounds
    ("7 or more") and chains that contradict themselves ("12 = 13") are wrong. Units are compared, not converted.
    """

    name, version, lane = "math", "1", "cpu"
    Reference, Options = Accepted, MathOptions
    source = "Math-Verify 0.9, behind exact rules for numbers and for what it is known to accept wrongly"
    preload: ClassVar[tuple[str, ...]] = ("math_verify", "sympy", "latex2sympy2_extended")
    """Modules that a worker imports before it forks."""
    timeout_s = 3.0
    examples = (
        Example("so $x = \\boxed{\\frac{1}{2}}$", "0.5"),
        Example("The answer is $(x+1)^2$.", "x^2+2x+1"),
        Example("\\boxed{3,1,2}", "\\{1,2,3\\}"),
        Example("First \\boxed{5}. Correcting: \\boxed{7}", "7"),
        Example("\\boxed{\\frac{1}{2006!}}", "\\frac{1}{2004!}", reward=0.0, category="wrong_answer"),
        Example("\\boxed{12} or \\boxed{13}", "12", reward=0.0, category="hedged"),
        Example("\\boxed{12 \\text{ or } 13}", "12", reward=0.0, category="hedged"),
        Example("It is \\boxed{12} ... no, it is \\boxed{", "12", reward=0.0, category="truncated"),
        Example("I do not know.", "12", reward=0.0, category="no_answer"),
        Example("\\boxed{12}", "\\frac{1}{", reward=None, status="invalid_task"),
    )

    def extract(self, response: str, options: MathOptions) -> Extraction:
        return _narrowed(options.final_answer(response))

    def costly(self, call: Call[str | int | float | list[str | int | float], MathOptions]) -> bool:
        references = call.reference if isinstance(call.reference, list) else [call.reference]
        answer = call.extraction.text if call.extraction else ""
        return looks_costly(answer, *(gold for gold in references if isinstance(gold, str)))

    def gold(self, reference: str | int | float | list[str | int | float], options: MathOptions) -> str | None:
        return options.as_response(_text(reference[0] if isinstance(reference, list) else reference))

    def verify(self, call: Call[str | int | float | list[str | int | float], MathOptions], ctx: Context) -> Verdict:
        references = call.reference if isinstance(call.reference, list) else [call.reference]
        golds = [_checked(reference) for reference in references]
        extraction = call.extraction or self.extract(call.response, call.options)
        if extraction.outcome != "answered":
            return unanswered(extraction)
        answer = extraction.text
        if len(answer) > _MAX_ANSWER:
            reason = f"The answer is longer than {_MAX_ANSWER} characters."
            return Verdict.scored(0.0, "wrong_answer", reason, extracted=answer[:1_000])
        category, reason = _judge(golds, unwrap(answer))
        reward = 1.0 if category == "correct" else 0.0
        return Verdict.scored(reward, category, reason, extracted=answer)


def _judge(golds: list[str], answer: str) -> tuple[Category, str]:
    """Rules for each reference, and algebra for those that no rule decides."""
    category: Category = "wrong_answer"
    reasons: list[str] = []
    undecided: list[str] = []
    for gold in golds:
        finding = compare_by_rule(gold, answer)
        if finding is None:
            undecided.append(gold)
        elif finding.verdict == "equal":
            return "correct", finding.reason
        else:
            reasons.append(finding.reason)
            category = "hedged" if finding.verdict == "hedged" else category
    if not undecided:
        return category, reasons[0]
    parsed = algebra.parse_answer(fold(answer))
    if not parsed:
        return "wrong_answer", f"{shown(answer)} cannot be read as mathematics."
    if any(algebra.equal(algebra.parse_gold(fold(gold)), parsed) for gold in undecided):
        return "correct", "The answer is equal by algebra."
    return category, f"{shown(answer)} does not equal {shown(undecided[0])}."


def _text(reference: str | int | float) -> str:
    if isinstance(reference, float) and not math.isfinite(reference):
        _refuse("not a finite number")
    if isinstance(reference, int) and abs(reference) >= 10**1_000:
        _refuse("a number of more than 1,000 digits")
    gold = unwrap(reference if isinstance(reference, str) else repr(reference))
    return unwrap(gold[7:-1]) if gold.startswith("\\boxed{") and gold.endswith("}") else gold


def _checked(reference: str | int | float) -> str:
    """The text of a reference that can be read. Raises :class:`InvalidReference`."""
    gold = _text(reference)
    if not unwrap(plain_latex(gold)):
        _refuse("empty")
    if len(gold) > _MAX_GOLD:
        _refuse(f"longer than {_MAX_GOLD} characters")
    braces = _ESCAPED_BRACE.sub("", gold)
    if braces.count("{") != braces.count("}"):
        _refuse(f"{shown(gold)}, whose braces do not match")
    if parse_quantity(gold) is None and not is_plain_text(gold) and not algebra.parse_gold(fold(gold)):
        _refuse(f"{shown(gold)}, which cannot be read as mathematics")
    return gold


def _refuse(what: str) -> NoReturn:
    raise InvalidReference(f"The reference is {what}.")


def _narrowed(found: Extraction) -> Extraction:
    """Of an announced sentence, the formula or number that it states: "is $x=5$ since ..", "is 12 and not 13"."""
    if found.outcome != "answered" or found.method == "boxed" or len(found.text) > _MAX_ANSWER:
        return found
    if not _WORD.search(plain_latex(found.text)):
        return found
    formulas = list(_INLINE.finditer(found.text))
    if len(formulas) == 1:
        before, after = found.text[: formulas[0].start()], found.text[formulas[0].end() :]
        if alters_before(one_line(before)) or alters_after(one_line(after), formula=True):
            return found
        return Extraction("answered", (formulas[0][1] or formulas[0][2]).strip(), found.method)
    if formulas or "=" in found.text or "\\" in found.text:
        return found
    stated = first_stated(one_line(found.text))
    return Extraction("answered", stated.text, found.method) if stated.text else found
