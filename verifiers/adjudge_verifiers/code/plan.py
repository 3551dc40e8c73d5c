"""From tests to runs: what is sent into the jail for each test, and how its result is judged out here.

A run never carries an expected value. A test of reading and writing is a :class:`Script`; a function call is a
:class:`FunctionCall` whose value is compared here; test code is a :class:`Examination`, which runs in a jail of its own
beside the program's, except that an assert which merely compares a call on literals with a literal becomes a call too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adjudge.types import Trust
from adjudge_sandbox.base import Examination, FunctionCall, Outcome, Run, RunResult, Script

from .asserts import BUILTINS, bound_in, called_in, functions_of, imports_of, names_in, simple_assert
from .compare import TEXT_TOLERANCE, Profile, Tolerance, difference
from .program import Assembled, callable_name, defines
from .reference import AssertTest, CallTest, CodeReference, StdinTest
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


def plan(reference: CodeReference, program: Assembled, comparison: Comparison, limit: int | None = None) -> list[Check]:
    """One check for each of the first ``limit`` tests."""
    planner = _Planner(reference, program, comparison)
    return [planner.check(test) for test in reference.tests[:limit]]


class _Planner:
    def __init__(self, reference: CodeReference, program: Assembled, comparison: Comparison) -> None:
        self.program = program
        self.comparison = comparison
        imports = imports_of(reference.prelude) if reference.prelude else ""
        self.setup = "\n".join(part for part in (imports, reference.setup) if part.strip())
        self.setup_names = bound_in(self.setup) if self.setup else set()
        self.helpers = functions_of(reference.prelude)[0] if reference.prelude else set()
        self.functions: dict[str, str] = {}
        self.bind = {"candidate": program.function} if program.function else {}

    def check(self, test: StdinTest | CallTest | AssertTest) -> Check:
        if isinstance(test, StdinTest):
            return self._script(test)
        if isinstance(test, CallTest):
            return self._call(test)
        return self._assert(test)

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

    def _assert(self, test: AssertTest) -> Check:
        simple = simple_assert(test.code)
        if simple and self._is_programs(simple.root):

            def judge(result: RunResult) -> str | None:
                if simple.holds(result.value):
                    return None
                return f"{simple.function} returned {preview(result.value, 100)}: {test.code.strip()[:200]}"

            return Check(FunctionCall(simple.function, simple.args, simple.kwargs), judge, preview(simple.expected))
        trust: Trust = "in_process" if self.helpers & names_in(test.code) else "rules"
        # What the test calls is bound by name, so that a program without it fails, and not the test.
        called, builtin = called_in(f"{self.setup}\n{test.code}")
        names = called or {name for name in builtin if defines(self.program.source, name)}
        bind = {name: name for name in names} | self.bind
        return Check(Examination(test.code, self.setup, bind), _passed, "", trust)

    def _is_programs(self, name: str) -> bool:
        if name in self.setup_names:
            return False
        return name not in BUILTINS or defines(self.program.source, name)


def _passed(result: RunResult) -> str | None:
    return None if result.outcome is Outcome.FINISHED else result.detail
