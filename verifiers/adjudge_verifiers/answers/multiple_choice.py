"""``multiple_choice``: does the answer name the right option, by its letter, by its text, or by both?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from adjudge.types import Category, Verdict

from ..base import Call, Context, Example, Extraction, Verifier
from ..errors import InvalidReference
from ..extract.final import Convention, ExtractionOptions
from ..extract.tags import find_tags
from ..extract.text import key
from ..registry import register
from .choices import Choices, Named, labels_in, read_choices
from .outcomes import shown, unanswered

__all__ = ["Keyed", "MultipleChoice", "MultipleChoiceOptions"]

_GATE = "format_gate"


class Keyed(BaseModel):
    """The right answer together with the options."""

    model_config = ConfigDict(extra="forbid")

    answer: StrictStr | StrictInt | list[StrictStr] = Field(
        description="A label, the text of an option, or the position of an option counted from 0; a list if several."
    )
    options: list[str] | dict[str, str] | list[dict[str, str | None]] | None = Field(
        default=None, description='`["Rome", "Paris"]`, `{"A": "Rome"}` or `[{"A": "Rome"}, {"B": "Paris"}]`.'
    )


Accepted = StrictStr | StrictInt | Annotated[list[StrictStr], Field(min_length=1)] | Keyed


class MultipleChoiceOptions(ExtractionOptions):
    """The options of the question if the reference does not hold them, and what the format is worth."""

    conventions: tuple[Convention, ...] = Field(
        default=("answer_tag", "boxed", "anchor", "hash", "short"),
        min_length=1,
        description="Tried in this order; `short` takes a one-line response as a whole.",
    )
    options: list[str] | dict[str, str] | list[dict[str, str | None]] | None = Field(
        default=None, description="The options, if the reference does not hold them."
    )
    count: int = Field(default=26, ge=2, le=26, description="How many letters there are, if the options are unknown.")
    format: Literal["any", "think_answer"] = Field(
        default="any",
        description="`think_answer` demands one `<think>` block, then one answer block with one option, then nothing.",
    )
    reward_correct: float = Field(default=1.0, description="Reward of the right option.")
    reward_wrong: float = Field(default=0.0, description="Reward of a wrong, missing or hedged answer.")
    reward_bad_format: float = Field(default=0.0, description="Reward of an answer that fails the `format`.")


@register
class MultipleChoice(Verifier[Any, MultipleChoiceOptions]):
    """Correct if the answer names the right one of 2 to 26 options, by label, by text, or by both in agreement.

    The reference is a label (`C`, `(C)`), or `{answer, options}` where the answer may also be an option's text or its
    position counted from 0. A list, or a label such as `AC`, asks for exactly that set. Naming several options where
    one is right is hedging, and so is a label with the text of another option.
    """

    name, version, lane = "multiple_choice", "1", "inline"
    Reference, Options = Accepted, MultipleChoiceOptions
    source = "format gate: Med-RLVR (2502.19655); up to 26 options: Fleming-R1 (2509.15279)"
    examples = (
        Example("The answer is (C).", "C"),
        Example("\\boxed{\\text{C}}", "(C)"),
        Example("Paris", {"answer": "B", "options": ["Rome", "Paris", "Oslo"]}),
        Example("B. Paris", {"answer": "Paris", "options": {"A": "Rome", "B": "Paris"}}),
        Example("<answer>U</answer>", "U", {"count": 21}),
        Example("B. Rome", {"answer": "B", "options": ["Rome", "Paris"]}, reward=0.0, category="hedged"),
        Example("The answer is A or C.", "C", reward=0.0, category="hedged"),
        Example("The answer is A and C.", "AC"),
        Example("The answer is D", "C", reward=0.0, category="wrong_answer"),
        Example("Answer: V", "U", {"count": 21}, reward=0.0, category="no_answer"),
        Example("", "C", reward=0.0, category="no_answer"),
        Example("<think>x</think><answer>C</answer>", "C", {"format": "think_answer", "reward_bad_format": -1.0}),
        Example("C", "C", {"format": "think_answer", "reward_bad_format": -1.0}, reward=-1.0, category="wrong_format"),
        Example("C", {"answer": "E", "options": ["a", "b"]}, reward=None, status="invalid_task"),
    )

    def extract(self, response: str, options: MultipleChoiceOptions) -> Extraction:
        if options.format == "think_answer":
            fault = _format_fault(response, options.answer_tags)
            if fault:
                return Extraction("none", method=_GATE, candidates=(fault,))
        return options.final_answer(response)

    def gold(self, reference: Any, options: MultipleChoiceOptions) -> str | None:
        _, right = _key(reference, options)
        answer = ", ".join(sorted(right))
        if options.format == "think_answer":
            return f"<think>.</think><{options.answer_tags[0]}>{answer}</{options.answer_tags[0]}>"
        return options.as_response(answer)

    def verify(self, call: Call[Any, MultipleChoiceOptions], ctx: Context) -> Verdict:
        options = call.options
        choices, right = _key(call.reference, options)
        extraction = call.extraction or self.extract(call.response, options)
        gated = options.format != "any"
        if extraction.method == _GATE:
            return _scored(options.reward_bad_format, "wrong_format", extraction.candidates[0], gated, form=0.0)
        if extraction.outcome != "answered":
            parts = _parts(0.0, gated, 1.0)
            return unanswered(extraction, reward=options.reward_wrong, parts=parts)
        named = labels_in(choices, extraction.text)
        found = extraction.text[:1_000]
        if gated and len(named.labels) != 1:
            reason = f"The answer block {shown(found)} does not name exactly one option."
            return _scored(options.reward_bad_format, "wrong_format", reason, gated, found, form=0.0)
        category, reason = _judge(named, right, found)
        reward = options.reward_correct if category == "correct" else options.reward_wrong
        return _scored(reward, category, reason, gated, found)


def _judge(named: Named, right: frozenset[str], found: str) -> tuple[Category, str]:
    if not named.labels:
        return "no_answer", f"{shown(found)} names none of the options."
    if named.problem == "contradiction":
        return "hedged", f"{shown(found)} names one option and gives the text of another."
    if frozenset(named.labels) == right:
        return "correct", "The answer names the right option."
    if len(named.labels) > 1 and len(right) == 1:
        return "hedged", f"{shown(found)} names several options."
    return "wrong_answer", f"The answer names {', '.join(named.labels)}; right is {', '.join(sorted(right))}."


def _scored(
    reward: float, category: Category, reason: str, gated: bool, found: str | None = None, form: float = 1.0
) -> Verdict:
    accuracy = 1.0 if category == "correct" else 0.0
    return Verdict.scored(reward, category, reason, parts=_parts(accuracy, gated, form), extracted=found)


def _parts(accuracy: float, gated: bool, form: float) -> dict[str, float | None]:
    return {"accuracy": accuracy, "format": form if gated else None}


def _key(reference: Any, options: MultipleChoiceOptions) -> tuple[Choices, frozenset[str]]:
    """The options of the question, and the labels of the right ones."""
    answer = reference.answer if isinstance(reference, Keyed) else reference
    listed = reference.options if isinstance(reference, Keyed) and reference.options is not None else options.options
    choices = read_choices(listed, options.count)
    if isinstance(answer, int):
        if not 0 <= answer < len(choices.labels):
            raise InvalidReference(
                f"The reference, counted from 0, is no position among {len(choices.labels)} options."
            )
        return choices, frozenset((choices.labels[answer],))
    right: set[str] = set()
    for one in answer if isinstance(answer, list) else [answer]:
        named = labels_in(choices, one)
        if not named.labels or named.problem:
            raise InvalidReference(f"The reference {shown(one)} names none of the options {', '.join(choices.labels)}.")
        right.update(named.labels)
    return choices, frozenset(right)


def _format_fault(response: str, answer_tags: tuple[str, ...]) -> str:
    """What is wrong with the think/answer structure; empty if nothing is."""
    thinking, answers = find_tags(response, ("think",)), find_tags(response, answer_tags)
    marks = response.lower()
    if len(thinking) != 1 or not thinking[0].closed or marks.count("<think>") != 1 or marks.count("</think>") != 1:
        return "There must be exactly one <think> block."
    tag = answer_tags[0].lower()
    if len(answers) != 1 or not answers[0].closed or marks.count(f"<{tag}>") != 1 or marks.count(f"</{tag}>") != 1:
        return f"There must be exactly one <{tag}> block."
    if answers[0].start < thinking[0].end:
        return "The answer block must come after the think block."
    if response[answers[0].end :].strip():
        return "Nothing may follow the answer block."
    return "" if key(answers[0].content[:4_000]) else "The answer block is empty."
