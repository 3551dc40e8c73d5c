"""The verifier ``code_output_prediction``: given a function and an input, what comes out?"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from adjudge.types import Verdict
from adjudge_sandbox.base import Limits, RunResult, Sandbox

from ..base import Call, Context, Example, Extraction, Verifier
from ..code.literals import parse_json
from ..code.values import preview
from ..errors import InvalidTask
from ..registry import register
from .answer import find_prediction, json_field
from .equality import same
from .examples import OUTPUT_EXAMPLES
from .options import CATEGORY_OF, PredictionOptions, judged, not_answered
from .reference import PredictionReference
from .running import Arguments, evaluate, expected_output, given_arguments
from .written import CallText, NotWritten, arguments, statement, value_of

__all__ = ["CodeOutputPrediction", "OutputOptions"]

_FIELDS = ("output", "code_output", "answer")


class OutputOptions(PredictionOptions):
    """How the answer is found, read and compared."""

    expressions: bool = Field(
        default=False,
        description="Evaluate an answer that is an expression, in a jail of its own without the function. An answer "
        "may then hold a copy of the function in place of a prediction.",
    )


@register
class CodeOutputPrediction(Verifier[PredictionReference, OutputOptions]):
    """Does the response state what the function returns for the given input?

    The answer is a value as Python's ``repr`` writes it, alone or in ``assert f(x) == value``. It is read, not run: the
    call itself, a call of anything else, or an object of a class of its own is ``wrong_format``. Where the answer
    repeats the call, it must be the one that was asked about. The function is run once per problem; a function that
    returns something else than the data set says, or not always the same, is ``invalid_task``.

    Not judged: functions that return objects which are not plain data. A reference without code (CodeI/O, SYNTHETIC) is
    compared with its recorded output only.
    """

    name = "code_output_prediction"
    version = "1"
    lane = "sandbox"
    Reference = PredictionReference
    Options = OutputOptions
    source = "CRUXEval (arXiv 2401.03065); Absolute Zero (arXiv 2505.03335)"
    examples: ClassVar[tuple[Example, ...]] = OUTPUT_EXAMPLES
    timeout_s: ClassVar[float] = 120.0

    def extract(self, response: str, options: OutputOptions) -> Extraction:
        fields = options.json_fields or _FIELDS
        return find_prediction(response, options.conventions, fields, allow_unclosed=options.allow_unclosed)

    def gold(self, reference: PredictionReference, options: OutputOptions) -> str | None:
        if not isinstance(reference.output, str):
            return None
        return f"[ANSWER]{reference.output}[/ANSWER]" if options.conventions[0] == "bracket" else None

    async def verify(self, call: Call[PredictionReference, OutputOptions], ctx: Context) -> Verdict:
        options, reference = call.options, call.reference
        extraction = call.extraction or self.extract(call.response, options)
        if extraction.outcome != "answered":
            return not_answered(extraction)
        limits = options.limits(call.timeout_s or self.timeout_s)
        expected = await _expected(ctx, reference, limits)
        equality = options.equality or ("python" if reference.code else "json")
        try:
            readings = _readings(extraction.text, expected, reference, options)
        except NotWritten as error:
            if not options.expressions or not reference.code:
                return judged("wrong_format", f"The answer cannot be read as a value: {error}.", extraction)
            found = await _evaluated(ctx.sandbox, extraction, reference, limits)
            if isinstance(found, Verdict):
                return found
            readings = [found]
        shown = preview(readings[0])
        if any(same(expected, value, equality, options.tolerance) for value in readings):
            return judged("correct", "The stated output is what comes out.", extraction, stated=shown)
        reason = f"The answer says {shown}; another value comes out."
        return judged("wrong_answer", reason, extraction, stated=shown)


async def _expected(ctx: Context, reference: PredictionReference, limits: Limits) -> Any:
    if reference.computed:
        return reference.computed[0]
    if not reference.code:
        if not reference.has_output:
            raise InvalidTask("There is no `code` to run and no `output` to compare with.")
        return reference.output
    return await expected_output(ctx.sandbox, reference, limits)


def _readings(text: str, expected: Any, reference: PredictionReference, options: OutputOptions) -> list[Any]:
    """What the answer may mean, best first. Raises :class:`NotWritten` if it is no value."""
    fields = [
        field for field in options.json_fields or _FIELDS if not (isinstance(expected, dict) and field in expected)
    ]
    if text.startswith("{") and fields:
        try:
            return [json_field(text, fields)]
        except (KeyError, ValueError, RecursionError):
            pass
    if reference.code:
        return [_stated(text, reference)]
    found: list[Any] = []
    for read in (parse_json, value_of):
        try:
            found.append(read(text))
            break
        except ValueError:
            continue
    return [*found, text]


def _stated(text: str, reference: PredictionReference) -> Any:
    said = statement(text, reference.function)
    if said.value is None:
        raise NotWritten("it is the call itself, not what comes out")
    if said.call is not None and not _is_asked(said.call, reference):
        raise NotWritten("it is about another call than the one that was asked about")
    return value_of(said.value)


def _is_asked(call: CallText, reference: PredictionReference) -> bool:
    if not reference.has_input:
        return True
    given = given_arguments(reference)
    if given is None:
        return call.source() == arguments(reference.input or "").source()
    try:
        return _same_arguments(given, call.values())
    except NotWritten:
        return False


def _same_arguments(one: Arguments, other: Arguments) -> bool:
    return same(list(one), list(other), "python") or same(list(one), list(other), "json")


async def _evaluated(
    sandbox: Sandbox, extraction: Extraction, reference: PredictionReference, limits: Limits
) -> Any | Verdict:
    try:
        said = statement(extraction.text, reference.function)
        if said.value is None or (said.call is not None and not _is_asked(said.call, reference)):
            raise NotWritten("it does not say what comes out of the call that was asked about")
        source = CallText.of(said.value).source()
    except NotWritten as error:
        return judged("wrong_format", f"The answer cannot be read: {error}.", extraction)
    found = await evaluate(sandbox, source, limits)
    if not isinstance(found, RunResult):
        return found[0][0] if found[0] else None
    category = CATEGORY_OF.get(found.outcome, "runtime_error")
    category = "wrong_format" if category in ("runtime_error", "wrong_answer") else category
    return judged(category, f"The answer cannot be evaluated: {found.detail}", extraction, found)
