"""The runs that a prediction needs, each in the jail, each with nothing in it that another one must not see.

* the data set's function on its own input, twice: what comes out is the expected value, and it comes out every time;
* an expression that an answer gives in place of a value, in a program that holds nothing else;
* the data set's function on the input that an answer states.
"""

from __future__ import annotations

from typing import Any

from adjudge_sandbox import values
from adjudge_sandbox.base import FunctionCall, Limits, Outcome, Program, RunResult, Sandbox

from ..code.values import preview
from ..errors import InvalidTask
from ..sandboxed import sandbox_failures
from .equality import same
from .reference import PredictionReference
from .written import NotWritten, arguments

__all__ = ["call_function", "evaluate", "expected_output", "given_arguments", "sendable"]

_GIVEN = "_the_call_that_is_asked_about"
_EVALUATOR = """\
import collections, datetime, decimal, fractions, itertools, math, string
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

def stated(*args, **kwargs):
    return args, kwargs

def evaluated():
    return stated({source})
"""
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def given_arguments(reference: PredictionReference) -> Arguments | None:
    """The call that is asked about; ``None`` if its text is an expression."""
    if reference.input is None:
        return tuple(reference.args or ()), dict(reference.kwargs)
    try:
        return arguments(reference.input).values()
    except NotWritten:
        return None


async def expected_output(sandbox: Sandbox, reference: PredictionReference, limits: Limits) -> Any:
    """What the function returns for its own input: found by running it, and as the data set has it.

    Raises:
        InvalidTask: it cannot be run, gives different values, or another one than the data set says.
    """
    if reference.computed:
        return reference.computed[0]
    found, recorded = [], []
    if reference.has_output:
        try:
            recorded = [reference.recorded_output()]
        except NotWritten as error:
            if not reference.has_input:
                raise InvalidTask(f"The output {preview(reference.output, 80)} cannot be read: {error}.") from None
    if reference.code and reference.has_input:
        found = [await _own_value(sandbox, reference, limits)]
        if recorded and not (same(recorded[0], found[0], "python", 1e-9) or same(recorded[0], found[0], "json", 1e-9)):
            raise InvalidTask(
                f"{reference.function} returns {preview(found[0], 100)} for its input, and the data set says "
                f"{preview(recorded[0], 100)}."
            )
    reference.computed.extend(found or recorded)
    return reference.computed[0]


async def _own_value(sandbox: Sandbox, reference: PredictionReference, limits: Limits) -> Any:
    given = given_arguments(reference)
    source = reference.source
    if given is None:
        source += f"\n\ndef {_GIVEN}():\n    return {reference.function}({arguments(reference.input or '').source()})\n"
        run = FunctionCall(_GIVEN)
    else:
        run = FunctionCall(reference.function, *given)
    with sandbox_failures():
        results = await sandbox.run(Program(source), [run, run], limits, stop_at_failure=True)
    for result in results:
        if result.outcome is not Outcome.FINISHED:
            raise InvalidTask(f"{reference.function} does not return a plain value for its own input: {result.detail}")
    first, second = (result.value for result in results)
    if not same(first, second, "python"):
        raise InvalidTask(f"{reference.function} returns different values for the same input.")
    return first


async def call_function(
    sandbox: Sandbox, reference: PredictionReference, given: Arguments, limits: Limits
) -> RunResult:
    """The function on what an answer states. Raises :class:`InvalidTask` if there is no such function."""
    with sandbox_failures():
        (result,) = await sandbox.run(Program(reference.source), [FunctionCall(reference.function, *given)], limits)
    if result.outcome is Outcome.COMPILE_ERROR:
        raise InvalidTask(f"The function cannot be run: {result.detail}")
    return result


async def evaluate(sandbox: Sandbox, source: str, limits: Limits) -> Arguments | RunResult:
    """The values of an argument list that holds expressions; the result itself if there are none."""
    with sandbox_failures():
        program = Program(_EVALUATOR.replace("{source}", source))
        (result,) = await sandbox.run(program, [FunctionCall("evaluated")], limits)
    match result.value:
        case (tuple() as args, dict() as kwargs) if result.outcome is Outcome.FINISHED:
            return args, kwargs
    return result


def sendable(given: Arguments) -> bool:
    """Can these values be sent into the jail?"""
    try:
        values.encode(given)
    except (values.NotPlain, values.TooLarge):
        return False
    return True
