"""What a code answer is tested on: one form inside, every form that data sets use outside.

:class:`CodeReference` is the native form. It also validates from anything that :mod:`.layouts` knows (APPS, TACO, verl,
SYNTHETIC, LiveCodeBench, HumanEval, MBPP, Guru, ROLL, CodeContests, SandboxFusion, lists of asserts, packed blobs), so
that a data set's own column can be sent as it is. :func:`normalise` does the same with :class:`InvalidReference`, whose
sentence names what is wrong; it is never the answer's fault and never a reward.

The kinds of tests, and the other parts that a reference may have, are in :mod:`.parts`.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import to_json

from ..errors import InvalidReference
from ..extract.code import canonical_language
from .layouts import to_native
from .literals import parse_python
from .multipl.program import Harness
from .parts import (
    AssertTest,
    CallTest,
    FunctionSpec,
    HarnessTest,
    Helper,
    Project,
    PytestTest,
    StdinTest,
    Test,
    checked_name,
    checked_path,
    module_name,
)

__all__ = ["AssertTest", "CallTest", "CodeReference", "FunctionSpec", "PytestTest", "StdinTest", "Test", "normalise"]

_FilePath = Annotated[str, AfterValidator(checked_path)]


class CodeReference(BaseModel):
    """The tests of one problem."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tests: list[Test] = Field(min_length=1, description="In order; what is run first decides a failure's category.")
    fn_name: str | None = Field(
        default=None, description="The function to call: `add`, or a method of `Solution` by its bare name."
    )
    entry_point: str | None = Field(default=None, description="What `candidate` stands for in test code.")
    setup: str = Field(default="", description="Test-side Python code that is run before each test's code.")
    prelude: str = Field(default="", description="Code that is put before the answer's: imports, given classes.")
    prompt: str = Field(
        default="",
        description="Code that the answer may complete (HumanEval). Put before an answer that does not define "
        "`entry_point` itself; otherwise only its imports and helpers are.",
    )
    language: str | None = Field(default=None, description="Language of the answer; `python` if nothing says else.")
    module: Annotated[str, AfterValidator(module_name)] = Field(
        default="solution", description="As what test files import the program."
    )
    checker: Helper | None = Field(default=None, description="A program that judges what the answer printed.")
    interactor: Helper | None = Field(default=None, description="A program that the answer talks to.")
    project: Project | None = Field(default=None, description="The answer is several files.")
    input_file: _FilePath | None = Field(default=None, description="Where `stdin` is put, too: problems with files.")
    output_file: _FilePath | None = Field(default=None, description="The file that is compared with `stdout`.")
    groups: dict[str, Annotated[float, Field(ge=0, le=1e9)]] = Field(
        default_factory=dict, description="Points of sub-tasks; default: of their tests."
    )
    level_scores: list[Annotated[float, Field(ge=0, le=1e9)]] = Field(
        default_factory=list, description="Of the levels, easiest first, for `tddr_*`; default: 1, 2, 3, ..."
    )
    time_limit_s: float | None = Field(default=None, gt=0, le=600, description="CPU seconds that the problem allows.")
    memory_limit_mib: float | None = Field(default=None, gt=0, le=65_536)
    solution: str | None = Field(default=None, description="A right answer, for checking the data set. Never run.")
    _studies: dict[int, Any] = PrivateAttr(default_factory=dict)
    _fingerprint: bytes | None = PrivateAttr(default=None)

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that stand for the tests; made once."""
        if self._fingerprint is None:
            material = to_json([self.tests, self.fn_name, self.entry_point], inf_nan_mode="strings", fallback=repr)
            self._fingerprint = hashlib.blake2b(material, digest_size=16).digest()
        return self._fingerprint

    @property
    def studies(self) -> dict[int, Any]:
        """What :mod:`.plan` found out about single tests, kept for the next answer to them."""
        return self._studies

    @model_validator(mode="before")
    @classmethod
    def _from_any_layout(cls, value: Any) -> Any:
        try:
            return value if isinstance(value, cls) else to_native(value)
        except RecursionError:
            raise ValueError("the tests are nested too deeply") from None

    @field_validator("fn_name", "entry_point")
    @classmethod
    def _is_named(cls, name: str | None) -> str | None:
        return checked_name(name)

    @field_validator("setup", "prelude")
    @classmethod
    def _compiles(cls, code: str) -> str:
        _check_python(code, "setup code")
        return code

    @model_validator(mode="after")
    def _consistent(self) -> CodeReference:
        if self.checker is not None and self.interactor is not None:
            raise ValueError("a checker and an interactor cannot both decide")
        for helper, what in ((self.checker, "the checker"), (self.interactor, "the interactor")):
            if helper is not None and canonical_language(helper.language) == "python":
                _check_python(helper.source, what)
        for number, test in enumerate(self.tests, 1):
            if isinstance(test, CallTest) and not (test.call.function or self.fn_name or self.entry_point):
                raise ValueError(f"test {number} calls a function, but neither it nor fn_name says which")
            if isinstance(test, AssertTest | PytestTest):
                _check_python(test.code, f"test {number}")
            if isinstance(test, HarnessTest):
                self._check_harness()
            if isinstance(test, StdinTest):
                self._check_stdin(number, test)
            elif self.checker is not None or self.interactor is not None:
                raise ValueError(f"test {number} is no test of standard input, for which a checker or interactor is")
        return self

    def _check_stdin(self, number: int, test: StdinTest) -> None:
        decided = test.stdout is not None or test.expect_files or self.checker or self.interactor
        if not decided:
            raise ValueError(f"test {number} has no expected output, and no checker or interactor decides")
        if self.interactor is not None and (test.args or test.files or test.expect_files):
            raise ValueError(f"test {number}: an answer that talks to an interactor gets no files and no arguments")

    def _check_harness(self) -> None:
        if len(self.tests) > 1 or self.project is not None:
            raise ValueError("test code that is put behind the answer must be the only test")
        harness = self.harness
        assert harness is not None
        harness.program("")  # shows what is wrong with the tests

    @property
    def harness(self) -> Harness | None:
        """Its test code, if that is put behind the answer. Raises ``ValueError`` if it cannot be."""
        test = self.tests[0]
        if not isinstance(test, HarnessTest):
            return None
        if not self.language:
            raise ValueError("test code that is put behind the answer needs the `language` of both")
        return Harness.of(test.code, self.language, self.prompt, test.stop_tokens, self.entry_point)

    @property
    def speaks(self) -> str:
        """The language of its answers, as far as it says."""
        harness = self.harness
        return harness.dialect.language if harness else canonical_language(self.language or "python")


def _check_python(code: str, what: str) -> None:
    """Raise ``ValueError`` if the data set's own code does not compile. It is parsed, not run."""
    try:
        parse_python(code)
    except SyntaxError as error:
        raise ValueError(f"{what} is not Python: {error.msg} in line {error.lineno}") from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"{what} is not Python: {error}") from None


def normalise(raw: Any) -> CodeReference:
    """``raw``, in any layout, as a :class:`CodeReference`. Raises :class:`InvalidReference`."""
    try:
        return CodeReference.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidReference(f"The tests cannot be used: {where + ': ' if where else ''}{message}") from None
