"""Verifier ``code``: run the answer's program on the data set's tests.

Expected outputs stay here; the jail gets one input at a time, and what comes back is compared outside it
(:mod:`.compare`, :mod:`.values`). Test code, where there is no way around it, runs in a jail of its own
(:class:`adjudge_sandbox.base.Examination`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from adjudge.types import Verdict
from adjudge_sandbox.base import Examination, Limits, Program, Sandbox

from ..base import Call, Context, Example, Extraction, Options, Verifier
from ..errors import InvalidTask
from ..extract.code import Pick, canonical_language, find_program, spoken_language
from ..registry import register
from ..sandboxed import sandbox_failures
from .asserts import functions_of
from .checker import HELPER_LIMITS, Checker
from .compare import Profile, Tolerance
from .examples import EXAMPLES
from .interactive import Interactor
from .multipl.program import Attempt
from .order import Course, TestOrder
from .parts import AssertTest, CallTest, PytestTest
from .plan import Check, Comparison, Deciders, plan
from .program import Assembled, assemble
from .project import find_files, program_of_project
from .pytest_files import session_limits, size_of
from .reference import CodeReference
from .rewards import Scoring, rules_for
from .running import Budget, fitted, run_checks
from .scoring import Suite, TestOutcome, score
from .tripwire import is_subverted

__all__ = ["Code", "CodeOptions"]

_NO_PROGRAM = {
    "none": ("no_answer", "The response holds no program."),
    "truncated": ("truncated", "The program's code block is never closed: the response was cut off."),
}


class CodeOptions(Options):
    """How the program is found, run, compared and scored."""

    language: str | None = Field(
        default=None, max_length=40, description="Language of the answer; default: the reference's, else Python."
    )
    pick: Pick = Field(default="last_tagged", description="Which fenced block is the program.")
    bare: bool = Field(default=True, description="Without any fence, take the whole response if it looks like code.")
    allow_unclosed: bool = Field(default=False, description="Take a last block without a closing fence for whole.")
    comparison: Profile = Field(default="tokens", description="How outputs are compared.")
    rel_tol: float | None = Field(default=None, ge=0, le=1, description="Relative tolerance of numbers.")
    abs_tol: float | None = Field(default=None, ge=0, description="Absolute tolerance of numbers.")
    scoring: Scoring = Field(default="all", description="From passed tests to the reward.")
    first_n: Annotated[int, Field(ge=1, le=10_000)] = 10
    max_tests: int | None = Field(default=None, ge=1, description="Run only the first so many tests.")
    cpu_s: float = Field(default=5.0, gt=0, le=120, description="CPU seconds of each test.")
    wall_s: float | None = Field(default=None, gt=0, le=600, description="Wall seconds; default 3 x cpu_s + 5.")
    memory_mib: int = Field(default=512, ge=16, le=16_384)
    strict_limits: bool = Field(
        default=False,
        description="Take the time and memory limit that a problem states as they are. They were meant for another "
        "machine and often for C++, so that by default they only ever raise `cpu_s` and `memory_mib`.",
    )
    output_kib: int = Field(default=4096, ge=1, le=65_536)
    learn_order: bool = Field(
        default=True,
        description="With `scoring` `all`, run first the tests that have failed most answers to this problem. The "
        "reward is the same; which failure is reported may differ. `false`: the order of the data set.",
    )

    @model_validator(mode="after")
    def _tolerances_fit(self) -> CodeOptions:
        given = self.rel_tol is not None or self.abs_tol is not None
        if given and self.comparison not in ("tokens", "lines", "floats", "dmoj_floats"):
            raise ValueError(f"comparison {self.comparison!r} has a fixed tolerance; drop rel_tol and abs_tol")
        return self

    def limits(self, reference: CodeReference) -> Limits:
        """Of each run of the answer."""
        cpu_s, memory_mib = self.cpu_s, self.memory_mib
        if reference.time_limit_s is not None and (self.strict_limits or "cpu_s" not in self.model_fields_set):
            cpu_s = reference.time_limit_s if self.strict_limits else max(cpu_s, reference.time_limit_s)
        if reference.memory_limit_mib is not None and (self.strict_limits or "memory_mib" not in self.model_fields_set):
            stated = max(16, int(reference.memory_limit_mib))
            memory_mib = stated if self.strict_limits else max(memory_mib, stated)
        return Limits(cpu_s, self.wall_s, memory_mib, output_kib=self.output_kib)

    @property
    def test_limit(self) -> int | None:
        if self.scoring != "first_n":
            return self.max_tests
        return min(self.first_n, self.max_tests or self.first_n)

    @property
    def rules(self) -> Comparison:
        """A given tolerance is the whole tolerance; the default one also goes by the digits that are written."""
        if self.rel_tol is None and self.abs_tol is None:
            return Comparison(self.comparison)
        rel, absolute = self.rel_tol or 0.0, self.abs_tol or 0.0
        tolerance = Tolerance(rel, absolute, written=False)
        return Comparison(self.comparison, tolerance, tolerance)


@register
class Code(Verifier[CodeReference, CodeOptions]):
    """Does the program in the response pass the tests?

    The program is the last fenced block in the right language. Each test runs in a fresh process inside one jail, under
    limits of CPU time, memory and output: reading and writing, a function call, or assert code. A program that is too
    slow, crashes or does not compile is a wrong answer; a test that is itself at fault is ``invalid_task``.

    Tests are taken in the layout of their data set (see ``reference``). A ``checker`` or an ``interactor`` of the data
    set decides in a jail of its own; test files run under pytest beside the answer's jail, not in it. Not judged: calls
    and assert code in other languages than Python, and languages that the host has no toolchain for.
    """

    name = "code"
    version = "2"
    lane = "sandbox"
    Reference = CodeReference
    Options = CodeOptions
    examples: ClassVar[tuple[Example, ...]] = EXAMPLES
    timeout_s: ClassVar[float] = 600.0

    def __init__(self) -> None:
        self.order = TestOrder()

    def extract(self, response: str, options: CodeOptions) -> Extraction:
        return self._find(response, options, options.language or "python")

    def extract_for(self, response: str, options: CodeOptions, reference: CodeReference) -> Extraction:
        """What to look for is the reference's to say: its language, or several files."""
        if reference.project is not None:
            return find_files(response, reference.project, allow_unclosed=options.allow_unclosed)
        return self._find(response, options, options.language or reference.speaks)

    @staticmethod
    def _find(response: str, options: CodeOptions, language: str) -> Extraction:
        return find_program(
            response,
            language=language,
            pick=options.pick,
            bare=options.bare,
            allow_unclosed=options.allow_unclosed,
        )

    def gold(self, reference: CodeReference, options: CodeOptions) -> str | None:
        if not reference.solution:
            return None
        fence = "~~~~" if "```" in reference.solution else "```"
        language = options.language or reference.language or "python"
        return f"{fence}{language}\n{reference.solution}\n{fence}"

    async def verify(self, call: Call[CodeReference, CodeOptions], ctx: Context) -> Verdict:
        options, reference = call.options, call.reference
        extraction = call.extraction or self.extract_for(call.response, options, reference)
        if extraction.outcome != "answered":
            return _no_program(extraction)
        language = canonical_language(options.language or reference.speaks)
        _check_language(reference, language)
        attempt = _attempt(extraction.text, reference, language)
        spoken = language if reference.harness else spoken_language(options.language or reference.language or language)
        assembled, program = _programs(extraction.text, reference, spoken, attempt)
        if program is None:
            return _no_program(Extraction("none"))
        tests = reference.tests[: options.test_limit]
        rules = rules_for(options.scoring, tests, reference.groups, reference.level_scores)
        suite = Suite(rules, {i: size_of(test) for i, test in enumerate(tests) if isinstance(test, PytestTest)})
        timeout_s = call.timeout_s or self.timeout_s
        limits = session_limits(options.limits(reference), [each for each in tests if isinstance(each, PytestTest)])
        limits = fitted(limits, timeout_s)
        deciders = replace(_deciders(reference, limits, timeout_s), attempt=attempt)
        checks = plan(reference, assembled, options.rules, options.test_limit, deciders)
        learns = options.learn_order and options.scoring == "all" and len(checks) > 1
        course = self.order.course(reference.fingerprint, len(checks)) if learns else Course(range(len(checks)))
        try:
            with sandbox_failures():
                outcomes = await run_checks(
                    ctx.sandbox,
                    program,
                    checks,
                    limits,
                    Budget.of(limits, timeout_s),
                    suite,
                    deciders=deciders,
                    order=course.indexes,
                    first=course.first,
                )
                outcomes = await _try_helpers(ctx.sandbox, program, reference, checks, outcomes, limits)
        except InvalidTask:
            if learns:
                self.order.fix(reference.fingerprint)
            raise
        if learns:
            self.order.learn(reference.fingerprint, course, outcomes)
        flags = ["helper_redefined"] if assembled.redefined else []
        return score(suite, outcomes, extracted=extraction.text, flags=flags)


def _check_language(reference: CodeReference, language: str) -> None:
    """Raises :class:`InvalidTask` for tests that only a Python program can be put to."""
    if language == "python":
        return
    kinds = {CallTest: "calls a function", AssertTest: "is Python assert code", PytestTest: "is a Python test file"}
    for number, test in enumerate(reference.tests, 1):
        if type(test) in kinds:
            what = kinds[type(test)]
            raise InvalidTask(
                f"Test {number} {what}, which works for answers in Python only, and this one is to be in "
                f"{language[:40]}. Answers in other languages are tested by standard input and files."
            )


def _attempt(text: str, reference: CodeReference, language: str) -> Attempt | None:
    """The answer with the test code that is put behind it, if that is how it is tested."""
    harness = reference.harness
    if harness is None:
        return None
    if language != harness.dialect.language:
        raise InvalidTask(f"The test code is in {harness.dialect.language}, the answer is to be in {language[:40]}.")
    return Attempt(harness, text)


def _programs(
    text: str, reference: CodeReference, language: str, attempt: Attempt | None
) -> tuple[Assembled, Program | None]:
    """The answer as its functions are looked for, and as it is run."""
    if attempt is not None:
        return Assembled(text, None), attempt.program.program
    if reference.project is not None:
        needs_main = not all(isinstance(test, PytestTest) for test in reference.tests)
        program = program_of_project(text, reference.project, language, needs_main=needs_main)
        return assemble(program.source if program else "", reference), program
    if language != "python":
        return Assembled(text, None), Program(text, language)
    assembled = assemble(text, reference)
    return assembled, Program(assembled.source, language)


def _deciders(reference: CodeReference, limits: Limits, timeout_s: float) -> Deciders:
    wall_s = min(HELPER_LIMITS.wall_limit_s, timeout_s / 3)
    checker = Checker(reference.checker, wall_s) if reference.checker is not None else None
    interactor = None
    if reference.interactor is not None:
        most = replace(limits, memory_mib=max(limits.memory_mib, HELPER_LIMITS.memory_mib))
        interactor = Interactor(reference.interactor, most)
    return Deciders(checker, interactor)


async def _try_helpers(
    sandbox: Sandbox,
    program: Program,
    reference: CodeReference,
    checks: Sequence[Check],
    outcomes: list[TestOutcome],
    limits: Limits,
) -> list[TestOutcome]:
    """The outcomes, tampered with if a false assertion passes where helpers run beside the answer."""
    passed = next((each for each in outcomes if each.passed and each.trust == "in_process"), None)
    run = checks[passed.index].run if passed is not None else None
    if not isinstance(run, Examination):
        return outcomes
    helpers = functions_of(reference.prelude)[0]
    prelude = Program(assemble("pass", reference).source)
    if not await is_subverted(sandbox, program, prelude, run, helpers, limits):
        return outcomes
    detail = "A false assertion passes: the answer has replaced a function that the tests compare by."
    return [
        replace(each, category="tampered", credit=0.0, detail=detail, flags=(*each.flags, "helper_subverted"))
        if each.trust == "in_process"
        else each
        for each in outcomes
    ]


def _no_program(extraction: Extraction) -> Verdict:
    category, reason = _NO_PROGRAM.get(extraction.outcome, _NO_PROGRAM["none"])
    return Verdict.scored(
        0.0,
        category,  # type: ignore[arg-type]
        reason,
        parts={"accuracy": 0.0, "pass_rate": 0.0},
        evidence={"passed": 0, "run": 0},
    )
