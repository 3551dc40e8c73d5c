"""``exact_match``: is the answer one of the accepted texts, letter for letter?"""

from __future__ import annotations

import unicodedata
from typing import Annotated

from pydantic import Field, StrictStr

from adjudge.types import Verdict

from ..base import Call, Context, Example, Extraction, Verifier
from ..errors import InvalidReference
from ..extract.final import Convention, ExtractionOptions
from ..extract.text import plain_latex, unwrap
from ..registry import register
from .outcomes import shown, unanswered

__all__ = ["ExactMatch", "ExactMatchOptions"]

Accepted = StrictStr | Annotated[list[StrictStr], Field(min_length=1)]


class ExactMatchOptions(ExtractionOptions):
    """What is ignored when texts are compared, and how the answer is found."""

    conventions: tuple[Convention, ...] = Field(
        default=("answer_tag", "boxed", "anchor", "hash", "whole"),
        min_length=1,
        description="Tried in this order; `whole` alone compares the whole response.",
    )
    ignore_case: bool = Field(default=False, description="Compare without regard to case.")
    strip: bool = Field(default=True, description="Ignore white space at both ends.")
    collapse_whitespace: bool = Field(default=True, description="Treat every run of white space as one space.")
    ignore_punctuation: bool = Field(default=False, description="Leave out punctuation and symbols.")
    nfkc: bool = Field(default=True, description="Bring characters into Unicode's compatible form (NFKC).")


@register
class ExactMatch(Verifier[str | list[str], ExactMatchOptions]):
    """Correct if the answer is the reference, or one of the references in a list, letter for letter.

    The answer is what `<answer>..</answer>`, a box, `Answer:` or `####` marks, else the whole response. By default
    only white space and Unicode's compatible forms are ignored; case and punctuation count. It knows no synonyms.
    """

    name, version, lane = "exact_match", "1", "inline"
    Reference, Options = Accepted, ExactMatchOptions
    examples = (
        Example("Paris", "Paris"),
        Example("The capital is <answer> Paris </answer>", ["Paris", "City of Paris"]),
        Example("The answer is **Paris**.", "Paris"),
        Example("<think>Paris? London?</think>London", "London"),
        Example("paris", "Paris", reward=0.0, category="wrong_answer"),
        Example("paris!", "Paris", {"ignore_case": True, "ignore_punctuation": True}),
        Example("", "Paris", reward=0.0, category="no_answer"),
        Example("<think>It must be Paris", "Paris", reward=0.0, category="truncated"),
        Example("Answer: Paris\nAnswer: London", "London", reward=0.0, category="ambiguous"),
        Example("Paris", "", reward=None, status="invalid_task", note="an empty reference would reward silence"),
    )

    def extract(self, response: str, options: ExactMatchOptions) -> Extraction:
        return options.final_answer(response)

    def gold(self, reference: str | list[str], options: ExactMatchOptions) -> str | None:
        return options.as_response(reference if isinstance(reference, str) else reference[0])

    def verify(self, call: Call[str | list[str], ExactMatchOptions], ctx: Context) -> Verdict:
        accepted = [call.reference] if isinstance(call.reference, str) else call.reference
        targets = {_normal(text, call.options) for text in accepted}
        if not all(target.strip() for target in targets):
            raise InvalidReference("The reference is empty, or is after leaving out what the options ignore.")
        extraction = call.extraction or self.extract(call.response, call.options)
        if extraction.outcome != "answered":
            return unanswered(extraction)
        candidates = {_normal(extraction.text, call.options)}
        if extraction.method != "whole":
            candidates.add(_normal(unwrap(extraction.text), call.options))
        if extraction.method == "boxed":
            candidates.add(_normal(unwrap(plain_latex(extraction.text)), call.options))  # \boxed{\text{Paris}}
        found = extraction.text[:1_000]
        if candidates & targets:
            return Verdict.scored(1.0, "correct", "The answer is an accepted text.", extracted=found)
        reason = f"{shown(extraction.text)} is not the accepted text {shown(accepted[0])}."
        return Verdict.scored(0.0, "wrong_answer", reason, extracted=found)


def _normal(text: str, options: ExactMatchOptions) -> str:
    if options.nfkc:
        text = unicodedata.normalize("NFKC", text)
    if options.ignore_case:
        text = text.casefold()
    if options.ignore_punctuation:
        text = "".join(" " if unicodedata.category(char)[0] in "PS" else char for char in text)
    if options.collapse_whitespace:
        return " ".join(text.split()) if options.strip or options.ignore_punctuation else _collapsed(text)
    return text.strip() if options.strip else text


def _collapsed(text: str) -> str:
    """Runs of white space to one space, keeping one at either end."""
    inner = " ".join(text.split())
    before, after = text[:1].isspace(), text[-1:].isspace()
    return f"{' ' if before else ''}{inner}{' ' if after and inner else ''}"
