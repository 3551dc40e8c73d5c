"""The verifier ``code_input_prediction``: given a function and a value, which input gives it?"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from adjudge.types import Verdict
from adjudge_sandbox.base import Outcome, RunResult

from ..base import Call, Context, Example, Extraction, Verifier
from ..code.values import preview
from ..errors import InvalidTask
from ..registry import register
from .answer import find_prediction, json_field
from .equality import Equality, same
from .examples import INPUT_EXAMPLES
from .options import CATEGORY_OF, PredictionOptions, judged, not_answered
from .reference import PredictionReference
from .running import Arguments, call_function, evaluate, expected_output, given_arguments, sendable
from .written import NotWritten, Statement, arguments, statement, value_of

__all__ = ["CodeInputPrediction", "InputOptions"]

_FIELDS = ("input", "answer")


class InputOptions(PredictionOptions):
    """How the answer is found, read and compared."""

    expressions: bool = Field(
        default=True,
        description="Take arguments that are expressions, such as `'a' * 9`. They are evaluated in a jail of their own "
        "without the function, and only plain data comes out.",
    )


@register
class CodeInputPrediction(Verifier[PredictionReference, InputOptions]):
    """Does the function return the given value for the input that the response states?

    Any such input is right. The answer is the arguments of the call, alone or in ``f(1, x=2)`` or
    ``assert f(1, x=2) == value``; a value that is stated there must be the given one. Arguments are read as literals;
    what is an expression is evaluated in a jail that holds nothing else. Then only the function is run, on plain data,
    and what it returns is compared outside. Without a given output, the one of the data set's own input is computed.

    Not judged: functions that take objects which are not plain data. Without code, the answer is compared with the
    recorded input.
    """

    name = "code_input_prediction"
    version = "1"
    lane = "sandbox"
    Reference = PredictionReference
    Options = InputOptions
    source = "CRUXEval (arXiv 2401.03065); Absolute Zero (arXiv 2505.03335)"
    examples: ClassVar[tuple[Example, ...]] = INPUT_EXAMPLES
    timeout_s: ClassVar[float] = 120.0

    def extract(self, response: str, options: InputOptions) -> Extraction:
        fields = options.json_fields or _FIELDS
        return find_prediction(response, options.conventions, fields, allow_unclosed=options.allow_unclosed)

    def gold(self, reference: PredictionReference, options: InputOptions) -> str | None:
        if reference.input is None or not reference.code:
            return None
        call = f"{reference.function}({reference.input})"
        return f"[ANSWER]{call}[/ANSWER]" if options.conventions[0] == "bracket" else None

    async def verify(self, call: Call[PredictionReference, InputOptions], ctx: Context) -> Verdict:
        options, reference = call.options, call.reference
        extraction = call.extraction or self.extract(call.response, options)
        if extraction.outcome != "answered":
            return not_answered(extraction)
        equality: Equality = options.equality or ("python" if reference.code else "json")
        if not reference.code:
            return _recorded(extraction, reference, options, equality)
        limits = options.limits(call.timeout_s or self.timeout_s)
        expected = await expected_output(ctx.sandbox, reference, limits)
        try:
            said = _said(extraction.text, reference, options)
            _check_value(said, expected)
            given: Arguments | RunResult = _literal(said)
        except NotWritten as error:
            if not options.expressions or not isinstance(error, _Expression):
                return judged("wrong_format", f"The answer cannot be read: {error}.", extraction)
            given = await evaluate(ctx.sandbox, error.source, limits)
        if isinstance(given, RunResult):
            return _not_evaluated(given, extraction)
        if not sendable(given):
            return judged("wrong_format", "The stated input is no plain data.", extraction)
        result = await call_function(ctx.sandbox, reference, given, limits)
        return _verdict(result, expected, given, extraction, equality, options.tolerance)


class _Expression(NotWritten):
    """The arguments hold an expression; ``source`` is their code."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(why)
        self.source = source


def _said(text: str, reference: PredictionReference, options: InputOptions) -> Statement | Arguments:
    """The stated call. Raises :class:`NotWritten`."""
    if text.startswith("{"):
        try:
            return _from_json(json_field(text, options.json_fields or _FIELDS), reference)
        except (KeyError, ValueError, RecursionError):
            pass
    try:
        said = statement(text, reference.function)
        if said.call is not None:
            return said
    except NotWritten:
        pass
    return Statement(arguments(text), None)


def _from_json(value: Any, reference: PredictionReference) -> Arguments:
    """A JSON value is the one argument; an object or a list stands for several where the reference has several."""
    if isinstance(value, dict) and reference.kwargs:
        return (), value
    known = given_arguments(reference) if reference.has_input else None
    if isinstance(value, list) and known is not None and len(known[0]) > 1:
        return tuple(value), {}
    return (value,), {}


def _check_value(said: Statement | Arguments, expected: Any) -> None:
    """Where the answer says what comes out, it must say what was given. Raises :class:`NotWritten`."""
    if isinstance(said, Statement) and said.value is not None:
        stated = value_of(said.value)
        if not (same(expected, stated, "python") or same(expected, stated, "json")):
            raise NotWritten("it is about another output than the given one")


def _literal(said: Statement | Arguments) -> Arguments:
    """Raises :class:`_Expression`, :class:`NotWritten`."""
    if not isinstance(said, Statement):
        return said
    assert said.call is not None
    try:
        return said.call.values()
    except NotWritten as error:
        raise _Expression(said.call.source(), str(error)) from None


def _recorded(
    extraction: Extraction, reference: PredictionReference, options: InputOptions, equality: Equality
) -> Verdict:
    """Without code there is nothing to run."""
    known = given_arguments(reference) if reference.has_input else None
    if known is None:
        raise InvalidTask("There is no `code` to run and no `input` that can be compared.")
    try:
        said = _literal(_said(extraction.text, reference, options))
    except NotWritten as error:
        return judged("wrong_format", f"The answer cannot be read: {error}.", extraction)
    right = same(list(known), list(said), equality, options.tolerance)
    reason = "The stated input is the recorded one." if right else "The recorded input is another one."
    return judged("correct" if right else "wrong_answer", reason, extraction)


def _not_evaluated(result: RunResult, extraction: Extraction) -> Verdict:
    category = CATEGORY_OF.get(result.outcome, "runtime_error")
    category = "wrong_format" if category in ("runtime_error", "wrong_answer") else category
    return judged(category, f"The stated input cannot be evaluated: {result.detail}", extraction, result)


def _verdict(
    result: RunResult, expected: Any, given: Arguments, extraction: Extraction, equality: Equality, tolerance: float
) -> Verdict:
    shown = {"input": preview([*given[0], *given[1].values()])}
    if result.outcome is not Outcome.FINISHED:
        category = CATEGORY_OF.get(result.outcome, "runtime_error")
        return judged(category, f"The function fails on the stated input: {result.detail}", extraction, result, **shown)
    shown["returned"] = preview(result.value)
    if same(expected, result.value, equality, tolerance):
        return judged("correct", "The stated input gives the output.", extraction, result, **shown)
    return judged("wrong_answer", f"It returns {shown['returned']} for that input.", extraction, result, **shown)
