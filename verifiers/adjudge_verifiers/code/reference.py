"""What a code answer is tested on: one form inside, every form that data sets use outside.

:class:`CodeReference` is the native form. It also validates from anything that :mod:`.layouts` knows (APPS, TACO, verl,
SYNTHETIC, LiveCodeBench, HumanEval, MBPP, Guru, ROLL, CodeContests, SandboxFusion, lists of asserts, packed blobs), so
that a data set's own column can be sent as it is. :func:`normalise` does the same with :class:`InvalidReference`, whose
sentence names what is wrong; it is never the answer's fault and never a reward.

Three kinds of test::

    {"stdin": "2 3\\n", "stdout": "5\\n"}                          the program reads and writes
    {"call": {"function": "add", "args": [2, 3]}, "expect": 5}    a function is called; the value is compared outside
    {"assert": "assert add(2, 3) == 5"}                           test code that calls the program's functions
"""

from __future__ import annotations

import keyword
import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from ..errors import InvalidReference
from .layouts import to_native
from .literals import parse_python, short

__all__ = ["AssertTest", "CallTest", "CodeReference", "FunctionSpec", "StdinTest", "Test", "normalise"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class StdinTest(_Part):
    """Run the program on ``stdin``; its output is compared with ``stdout`` by the option ``comparison``."""

    stdin: str = ""
    stdout: str


class FunctionSpec(_Part):
    """A call of one of the program's functions. Without ``function``, the reference's ``fn_name`` is called."""

    function: Annotated[str | None, AfterValidator(lambda name: _checked_name(name))] = None
    args: list[Any] = Field(default_factory=list, description="JSON values.")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="JSON values.")


class CallTest(_Part):
    """Call a function and compare its value with ``expect`` as JSON."""

    call: FunctionSpec
    expect: Any = Field(description="A JSON value.")
    unwrap: bool = Field(
        default=False,
        description="`expect` may stand for its only item: APPS and data made from it wrap every value in a list.",
    )


class AssertTest(_Part):
    """Python test code. It calls the program's functions by name and asserts; it passes if it runs to its end."""

    code: str = Field(alias="assert")


def _kind(test: Any) -> str:
    """Which of the three a test means to be, so that a complaint is about that one."""
    if isinstance(test, BaseModel):
        return {StdinTest: "stdin", CallTest: "call", AssertTest: "assert"}.get(type(test), "stdin")
    keys = test if isinstance(test, dict) else {}
    return "call" if "call" in keys else "assert" if "assert" in keys or "code" in keys else "stdin"


Test = Annotated[
    Annotated[StdinTest, Tag("stdin")] | Annotated[CallTest, Tag("call")] | Annotated[AssertTest, Tag("assert")],
    Discriminator(_kind),
]


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
    solution: str | None = Field(default=None, description="A right answer, for checking the data set. Never run.")
    _studies: dict[int, Any] = PrivateAttr(default_factory=dict)

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
        return _checked_name(name)

    @field_validator("setup", "prelude")
    @classmethod
    def _compiles(cls, code: str) -> str:
        _check_python(code, "setup code")
        return code

    @model_validator(mode="after")
    def _consistent(self) -> CodeReference:
        for number, test in enumerate(self.tests, 1):
            if isinstance(test, CallTest) and not (test.call.function or self.fn_name or self.entry_point):
                raise ValueError(f"test {number} calls a function, but neither it nor fn_name says which")
            if isinstance(test, AssertTest):
                _check_python(test.code, f"test {number}")
        return self


_NAME = re.compile(r"[^\W\d]\w{0,199}(?:(?:\(\))?\.[^\W\d]\w{0,199}){0,5}")


def _checked_name(name: str | None) -> str | None:
    """``f``, ``Solution.f`` or ``Solution().f``. Another text names nothing that any answer could define."""
    if name is None:
        return None
    parts = name.replace("()", "").split(".")
    if not _NAME.fullmatch(name) or any(map(keyword.iskeyword, parts)):
        raise ValueError(f"{short(name)} is not the name of a function")
    return name


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
