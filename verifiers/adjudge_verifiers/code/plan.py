"""From tests to runs: what is sent into the jail for each test, and how its result is judged out here.

A run never carries an expected value. A test of reading and writing is a :class:`Script`; a function call is a
:class:`FunctionCall` whose value is compared here; test code is a :class:`Examination`, which runs in a jail of its own
beside the program's, except that an assert which merely compares a call on literals with a literal becomes a call too.
"""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from adjudge.types import Trust
from adjudge_sandbox.base import Examination, FunctionCall, Limits, Outcome, Run, RunResult, Sandbox, Script

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
from .checker import Checker, Fault
from .compare import TEXT_TOLERANCE, Profile, Tolerance
from .graders import VALUE_RULES
from .interactive import Interactor
from .multipl.program import Attempt
from .parts import AssertTest, CallTest, HarnessTest, PytestTest, StdinTest, Test
from .program import Assembled, callable_name, defines
from .pytest_files import examination, judge_session
from .reference import CodeReference
from .scoring import Found
from .standard import imports_for, modules_in, with_runner
from .streams import judge_files, script
from .values import VALUE_TOLERANCE, equal_json, preview

__all__ = ["Check", "Comparison", "Deciders", "plan"]

Verdicts = Found | list[Found] | Script | Fault
"""One test, the tests of a file, what to ask the checker, or an interactor that did not decide."""
Judge = Callable[[RunResult], Verdicts]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How outputs and values are compared."""

    profile: Profile = "tokens"
    text: Tolerance = TEXT_TOLERANCE
    values: Tolerance = VALUE_TOLERANCE


@dataclass(frozen=True, slots=True)
class Deciders:
    """Programs of the data set that decide."""

    checker: Checker | None = None
    interactor: Interactor | None = None
    attempt: Attempt | None = None
    """Test code in the answer's own process."""


@dataclass(frozen=True, slots=True)
class Check:
    """One test: the run, the judge of its result, and what may be shown of the expected value."""

    run: Run
    judge: Judge
    expected: str
    trust: Trust = "rules"
    confirm: Callable[[Sandbox, Limits], Awaitable[Found]] | None = None
    """What a pass still has to stand."""

    @property
    def target(self) -> str:
        """Tests of one target fail to compile together: the whole program, or one function of it."""
        return self.run.function if isinstance(self.run, FunctionCall) else type(self.run).__name__


def _finished(complain: Callable[[RunResult], str | None]) -> Judge:
    """A judge of runs that have to finish. ``complain`` gives a sentence, or ``None`` if all is right."""

    def judge(result: RunResult) -> Found:
        if result.outcome is not Outcome.FINISHED:
            return Found.unfinished(result)
        return Found.of(complain(result))

    return judge


def plan(
    reference: CodeReference,
    program: Assembled,
    comparison: Comparison,
    limit: int | None = None,
    deciders: Deciders | None = None,
) -> Sequence[Check]:
    """One check for each of the first ``limit`` tests, made when it is asked for.

    A suite may have a hundred thousand tests of which the first one fails, and all this is done by the process that
    answers everybody else.
    """
    planner = _Planner(reference, program, comparison, deciders or Deciders())
    return _Checks(planner, reference.tests[:limit])


class _Checks(Sequence[Check]):
    def __init__(self, planner: _Planner, tests: list[Test]) -> None:
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
    def __init__(
        self, reference: CodeReference, program: Assembled, comparison: Comparison, deciders: Deciders
    ) -> None:
        self.deciders = deciders
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

    def check(self, number: int, test: Test) -> Check:
        if isinstance(test, StdinTest):
            return self._stream(test)
        if isinstance(test, CallTest):
            return self._call(test)
        if isinstance(test, PytestTest):
            return self._session(test)
        if isinstance(test, HarnessTest):
            attempt = self.deciders.attempt
            assert attempt is not None
            return Check(Script(), attempt.program.judge, "", "in_process", attempt.confirm)
        return self._assert(number, test)

    def _stream(self, test: StdinTest) -> Check:
        interactor, checker = self.deciders.interactor, self.deciders.checker
        if interactor is not None:
            return Check(interactor.run(test), interactor.judge, "")
        reference, rules = self.reference, self.comparison
        judge = judge_files(test, reference.output_file, rules.profile, rules.text, checker)
        return Check(script(test, reference.input_file, reference.output_file), judge, test.stdout or "")

    def _session(self, test: PytestTest) -> Check:
        modules = (self.reference.module, "*") if self.reference.project is not None else (self.reference.module,)
        return Check(examination(test, modules), judge_session(test), "")

    def _call(self, test: CallTest) -> Check:
        name = test.call.function
        function = self._function(name) if name else self.program.function or ""
        accepted = [test.expect]
        if test.unwrap and isinstance(test.expect, list) and len(test.expect) == 1:
            accepted.append(test.expect[0])
        tolerance, shown = self.comparison.values, preview(accepted[-1])
        rule = VALUE_RULES.get(self.comparison.profile)

        def judge(result: RunResult) -> str | None:
            if rule(test.expect, result.value) if rule else _equals_any(accepted, result.value, tolerance):
                return None
            return f"{function} returned {preview(result.value, 100)}, expected {shown[:100]}."

        run = FunctionCall(function, tuple(test.call.args), dict(test.call.kwargs))
        return Check(run, _finished(judge), shown)

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

            run = FunctionCall(simple.function, simple.args, simple.kwargs)
            return Check(run, _finished(judge), preview(simple.expected))
        trust: Trust = "in_process" if self.helpers & study.names else "rules"
        # What the test calls is bound by name, so that a program without it fails, and not the test.
        bound = self.setup_names | study.bound
        called, known = sorted_out((self.setup_calls | study.calls) - bound)
        own = {name for name in known if name not in BUILTINS or defines(self.program.source, name)}
        bind = {name: name for name in called or own} | self.bind
        imports = imports_for(study.modules | self.setup_modules, bound | bind.keys(), known)
        setup = "\n".join(filter(None, (imports, self.setup)))
        return Check(Examination(study.code, setup, bind), _finished(lambda result: None), "", trust)

    def _is_programs(self, name: str) -> bool:
        if name in self.setup_names:
            return False
        return name not in BUILTINS or defines(self.program.source, name)


def _equals_any(accepted: list[Any], value: Any, tolerance: Tolerance) -> bool:
    return any(equal_json(expect, value, tolerance) for expect in accepted)
