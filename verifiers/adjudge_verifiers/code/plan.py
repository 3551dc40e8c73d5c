"""From tests to runs: what is sent into the jail for each test, and how its result is judged out here.

A run never carries an expected value. A test of reading and writing is a :class:`Script`; a function call is a
:class:`FunctionCall` whose value is compared here; test code is a :class:`Examination`, which runs in a jail of its own
beside the program's, except that an assert which merely compares a call on literals with a literal becomes a call too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from adjudge.types import Trust
from adjudge_sandbox.base import Examination, FunctionCall, Outcome, Run, RunResult, Script

from ..errors import InvalidTask
from .asserts import (
    BUILTINS,
    SimpleAssert,
    bound_in,
    calls_in,
    functions_of,
    imports_of,
    names_in,
    parse,
    simple_assert,
    sorted_out,
)
from .compare import TEXT_TOLERANCE, Profile, Tolerance, difference
from .program import Assembled, callable_name, defines
from .reference import AssertTest, CallTest, CodeReference, StdinTest
from .standard import imports_for, modules_in, with_runner
from .values import VALUE_TOLERANCE, equal_json, preview

__all__ = ["Check", "Comparison", "plan"]

Judge = Callable[[RunResult], str | None]
"""``None`` if a run that finished is right, else a sentence."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How outputs and values are compared."""

    profile: Profile = "tokens"
    text: Tolerance = TEXT_TOLERANCE
    values: Tolerance = VALUE_TOLERANCE


@dataclass(frozen=True, slots=True)
class Check:
    """One test: the run, the judge of its result, and what may be shown of the expected value."""

    run: Run
    judge: Judge
    expected: str
    trust: Trust = "rules"

    @property
    def target(self) -> str:
        """Tests of one target fail to compile together: the whole program, or one function of it."""
        return self.run.function if isinstance(self.run, FunctionCall) else type(self.run).__name__


def plan(
    reference: CodeReference, program: Assembled, comparison: Comparison, limit: int | None = None
) -> Sequence[Check]:
    """One check for each of the first ``limit`` tests, made when it is asked for.

    A suite may have a hundred thousand tests of which the first one fails, and all this is done by the process that
    answers everybody else.
    """
    return _Checks(_Planner(reference, program, comparison), reference.tests[:limit])


class _Checks(Sequence[Check]):
    def __init__(self, planner: _Planner, tests: list[StdinTest | CallTest | AssertTest]) -> None:
        self._planner = planner
        self._tests = tests

    def __len__(self) -> int:
        return len(self._tests)

    @overload
    def __getitem__(self, index: int) -> Check: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Check]: ...
    def __getitem__(self, index: int | slice) -> Check | Sequence[Check]:
        if isinstance(index, slice):
            return [self._planner.check(number, self._tests[number]) for number in range(*index.indices(len(self)))]
        return self._planner.check(range(len(self))[index], self._tests[index])


@dataclass(frozen=True, slots=True)
class _Study:
    """What does not depend on the program: one test's code as syntax."""

    code: str
    """With the calls that a test runner would make."""
    simple: SimpleAssert | None
    names: set[str]
    bound: set[str]
    calls: set[str]
    modules: set[str]


def _study(number: int, code: str) -> _Study:
    tree = parse(code) or ast.Module([], [])
    try:
        complete = with_runner(code, tree)
    except ValueError as error:
        raise InvalidTask(f"Test {number + 1} cannot be run: {error}.") from None
    return _Study(complete, simple_assert(tree), names_in(tree), bound_in(tree), calls_in(tree), modules_in(tree))


class _Planner:
    def __init__(self, reference: CodeReference, program: Assembled, comparison: Comparison) -> None:
        self.reference = reference
        self.program = program
        self.comparison = comparison
        imports = imports_of(reference.prelude) if reference.prelude else ""
        self.setup = "\n".join(part for part in (imports, reference.setup) if part.strip())
        self.setup_names = bound_in(self.setup) if self.setup else set()
        self.setup_calls = calls_in(self.setup) if self.setup else set()
        self.setup_modules = modules_in(parse(self.setup)) if self.setup else set()
        self.helpers = functions_of(reference.prelude)[0] if reference.prelude else set()
        self.functions: dict[str, str] = {}
        self.bind = {"candidate": program.function} if program.function else {}

    def check(self, number: int, test: StdinTest | CallTest | AssertTest) -> Check:
        if isinstance(test, StdinTest):
            return self._script(test)
        if isinstance(test, CallTest):
            return self._call(test)
        return self._assert(number, test)

    def _script(self, test: StdinTest) -> Check:
        profile, tolerance, expected = self.comparison.profile, self.comparison.text, test.stdout

        def judge(result: RunResult) -> str | None:
            return difference(profile, expected, result.stdout, tolerance)

        return Check(Script(test.stdin.encode("utf-8", "surrogatepass")), judge, expected)

    def _call(self, test: CallTest) -> Check:
        name = test.call.function
        function = self._function(name) if name else self.program.function or ""
        accepted = [test.expect]
        if test.unwrap and isinstance(test.expect, list) and len(test.expect) == 1:
            accepted.append(test.expect[0])
        tolerance, shown = self.comparison.values, preview(accepted[-1])

        def judge(result: RunResult) -> str | None:
            if any(equal_json(expect, result.value, tolerance) for expect in accepted):
                return None
            return f"{function} returned {preview(result.value, 100)}, expected {shown[:100]}."

        return Check(FunctionCall(function, tuple(test.call.args), dict(test.call.kwargs)), judge, shown)

    def _function(self, name: str) -> str:
        if name not in self.functions:
            self.functions[name] = callable_name(self.program.source, name)
        return self.functions[name]

    def _assert(self, number: int, test: AssertTest) -> Check:
        study = self.reference.studies.get(number)
        if study is None:
            study = self.reference.studies[number] = _study(number, test.code)
        simple = study.simple
        if simple and self._is_programs(simple.root):

            def judge(result: RunResult) -> str | None:
                if simple.holds(result.value):
                    return None
                return f"{simple.function} returned {preview(result.value, 100)}: {test.code.strip()[:200]}"

            return Check(FunctionCall(simple.function, simple.args, simple.kwargs), judge, preview(simple.expected))
        trust: Trust = "in_process" if self.helpers & study.names else "rules"
        # What the test calls is bound by name, so that a program without it fails, and not the test.
        bound = self.setup_names | study.bound
        called, known = sorted_out((self.setup_calls | study.calls) - bound)
        own = {name for name in known if name not in BUILTINS or defines(self.program.source, name)}
        bind = {name: name for name in called or own} | self.bind
        imports = imports_for(study.modules | self.setup_modules, bound | bind.keys(), known)
        return Check(Examination(study.code, "\n".join(filter(None, (imports, self.setup))), bind), _passed, "", trust)

    def _is_programs(self, name: str) -> bool:
        if name in self.setup_names:
            return False
        return name not in BUILTINS or defines(self.program.source, name)


def _passed(result: RunResult) -> str | None:
    return None if result.outcome is Outcome.FINISHED else result.detail
