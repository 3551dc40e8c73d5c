"""Verifier ``code``: run the answer's program on the data set's tests.

Expected outputs stay here; the jail gets one input at a time, and what comes back is compared outside it
(:mod:`.compare`, :mod:`.values`). Test code, where there is no way around it, runs in a jail of its own
(:class:`adjudge_sandbox.base.Examination`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from adjudge.types import Verdict
from adjudge_sandbox.base import Limits, Program
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage

from ..base import Call, Context, Example, Extraction, Options, Verifier
from ..errors import InvalidTask, Unavailable
from ..extract.code import Pick, canonical_language, find_program
from ..registry import register
from .compare import Profile, Tolerance
from .examples import EXAMPLES
from .plan import Comparison, plan
from .program import assemble
from .reference import CodeReference
from .running import Budget, fitted, run_checks
from .scoring import Scoring, score

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
    output_kib: int = Field(default=4096, ge=1, le=65_536)

    @model_validator(mode="after")
    def _tolerances_fit(self) -> CodeOptions:
        given = self.rel_tol is not None or self.abs_tol is not None
        if given and self.comparison not in ("tokens", "lines", "floats"):
            raise ValueError(f"comparison {self.comparison!r} has a fixed tolerance; drop rel_tol and abs_tol")
        return self

    @property
    def limits(self) -> Limits:
        return Limits(self.cpu_s, self.wall_s, self.memory_mib, output_kib=self.output_kib)

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

    Tests are taken in the layout of their data set (see ``reference``). Not judged: pytest suites, checker programs,
    interactive problems, and languages that the host has no toolchain for.
    """

    name = "code"
    version = "1"
    lane = "sandbox"
    Reference = CodeReference
    Options = CodeOptions
    examples: ClassVar[tuple[Example, ...]] = EXAMPLES
    timeout_s: ClassVar[float] = 600.0

    def extract(self, response: str, options: CodeOptions) -> Extraction:
        return find_program(
            response,
            language=options.language or "python",
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
        extraction = call.extraction or self.extract(call.response, options)
        if extraction.outcome != "answered":
            return _no_program(extraction)
        language = canonical_language(options.language or reference.language or "python")
        program = assemble(extraction.text, reference)
        checks = plan(reference, program, options.rules, options.test_limit)
        timeout_s = call.timeout_s or self.timeout_s
        limits = fitted(options.limits, timeout_s)
        budget = Budget.of(limits, timeout_s)
        sandbox = ctx.sandbox
        try:
            outcomes = await run_checks(
                sandbox,
                Program(program.source, language),
                checks,
                limits,
                budget,
                stop_at_failure=options.scoring == "all",
            )
        except SandboxUnavailable as error:
            raise Unavailable(f"The sandbox cannot run programs now: {error}") from error
        except (UnsupportedLanguage, InvalidProgram) as error:
            raise InvalidTask(str(error)) from error
        return score(
            outcomes,
            len(checks),
            options.scoring,
            extracted=extraction.text,
            isolation=sandbox.name,
            flags=["helper_redefined"] if program.redefined else [],
        )


def _no_program(extraction: Extraction) -> Verdict:
    category, reason = _NO_PROGRAM.get(extraction.outcome, _NO_PROGRAM["none"])
    return Verdict.scored(
        0.0,
        category,  # type: ignore[arg-type]
        reason,
        parts={"accuracy": 0.0, "pass_rate": 0.0},
        evidence={"passed": 0, "run": 0},
    )
