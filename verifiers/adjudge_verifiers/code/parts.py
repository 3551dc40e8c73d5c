"""The parts of a code reference: tests of every kind, and the programs of the data set that decide about them.

Kinds of tests::

    {"stdin": "2 3\\n", "stdout": "5\\n"}                          the program reads and writes
    {"stdin": "", "files": {"in.txt": "2"}, "expect_files": {"out.txt": "4"}}     ... files
    {"call": {"function": "add", "args": [2, 3]}, "expect": 5}    a function is called; the value is compared outside
    {"assert": "assert add(2, 3) == 5"}                           test code that calls the program's functions
    {"pytest": "from solution import add\\n..."}                   a test file; each of its tests counts by itself
    {"harness": "}\\nint main() { assert(add(2, 3) == 5); }"}       test code in the answer's language, put behind it

Every test may say which ``group`` (sub-task) it belongs to, how many ``points`` it is worth, and its ``level``.
"""

from __future__ import annotations

import base64
import binascii
import keyword
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from .literals import short

__all__ = [
    "AssertTest",
    "CallTest",
    "Files",
    "FunctionSpec",
    "HarnessTest",
    "Helper",
    "Packed",
    "Project",
    "PytestTest",
    "StdinTest",
    "Test",
    "checked_name",
    "contents",
    "module_name",
]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Packed(Part):
    """A file that is no text."""

    base64: str

    @model_validator(mode="after")
    def _decodes(self) -> Packed:
        try:
            base64.b64decode("".join(self.base64.split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"a file's base64 cannot be read: {error}") from None
        return self


_MAX_PATH_CHARS = 240


def checked_path(name: str) -> str:
    """A relative name that stays in its folder, without ``.``, ``..`` or empty parts. Raises ``ValueError``."""
    parts = name.split("/")
    if len(name) > _MAX_PATH_CHARS or any(part in ("", ".", "..") for part in parts) or "\0" in name or "\\" in name:
        raise ValueError(f"{short(name)} is not a file name inside the program's folder")
    return name


def _checked_files(files: dict[str, str | Packed]) -> dict[str, str | Packed]:
    for name in files:
        checked_path(name)
    return files


Files = Annotated[dict[str, str | Packed], AfterValidator(_checked_files)]
"""Relative names to text, or to ``{"base64": ...}``."""


def contents(files: dict[str, str | Packed]) -> dict[str, bytes]:
    """The bytes of each file."""
    return {name: _content(value) for name, value in files.items()}


def _content(value: str | Packed) -> bytes:
    if isinstance(value, Packed):
        return base64.b64decode("".join(value.base64.split()))
    return value.encode("utf-8", "surrogatepass")


Points = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Test(Part):
    group: str | list[str] | None = Field(default=None, description="Sub-task, or several of them, for `subtasks`.")
    points: Points | None = Field(default=None, description="Weight among the tests, for `fraction` and `subtasks`.")
    level: int | None = Field(default=None, ge=1, le=1000, description="Difficulty from 1, for `tddr_*`.")

    @property
    def groups(self) -> tuple[str, ...]:
        if self.group is None:
            return ()
        return (self.group,) if isinstance(self.group, str) else tuple(self.group)

    @model_validator(mode="before")
    @classmethod
    def _numbers_name_groups_too(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("group"), int | list | tuple):
            given = value["group"]
            named = str(given) if isinstance(given, int) else [str(each) for each in given]
            return {**value, "group": named}
        return value


class StdinTest(_Test):
    """Run the program on ``stdin``; its output is compared with ``stdout`` by the option ``comparison``.

    With a ``checker`` or an ``interactor`` in the reference, ``stdin`` is their input and ``stdout`` their answer file.
    """

    stdin: str = ""
    stdout: str | None = Field(default=None, description="Expected output; only a checker can do without.")
    args: list[str] = Field(default_factory=list, description="Command line, after the program's name.")
    files: Files = Field(default_factory=dict, description="Laid into the program's folder before it starts.")
    expect_files: Files = Field(default_factory=dict, description="What it has to leave there, compared like output.")


class FunctionSpec(Part):
    """A call of one of the program's functions. Without ``function``, the reference's ``fn_name`` is called."""

    function: Annotated[str | None, AfterValidator(lambda name: checked_name(name))] = None
    args: list[Any] = Field(default_factory=list, description="JSON values.")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="JSON values.")


class CallTest(_Test):
    """Call a function and compare its value with ``expect`` as JSON."""

    call: FunctionSpec
    expect: Any = Field(description="A JSON value.")
    unwrap: bool = Field(
        default=False,
        description="`expect` may stand for its only item: APPS and data made from it wrap every value in a list.",
    )


class AssertTest(_Test):
    """Python test code. It calls the program's functions by name and asserts; it passes if it runs to its end."""

    code: str = Field(alias="assert")


class PytestTest(_Test):
    """A test file for pytest or ``unittest`` that imports the program's module. Each test in it counts by itself."""

    code: str = Field(alias="pytest")
    name: Annotated[str, AfterValidator(checked_path)] = "test_solution.py"
    files: Files = Field(default_factory=dict, description="Beside it: `conftest.py`, data.")
    expected: list[str] | None = Field(
        default=None, description="Which tests must have passed, `test_add` or `TestAdd::test_zero`; default: all."
    )


class HarnessTest(_Test):
    """Test code in the answer's language, which is put behind it (MultiPL-E). It is the only test of its problem."""

    code: str = Field(alias="harness", min_length=1)
    stop_tokens: list[str] = Field(
        default_factory=list, description="Where a completion of the prompt ends; default: by the language."
    )


def _kind(test: Any) -> str:
    """Which kind a test means to be, so that a complaint is about that one."""
    if isinstance(test, BaseModel):
        kinds = {
            StdinTest: "stdin",
            CallTest: "call",
            AssertTest: "assert",
            PytestTest: "pytest",
            HarnessTest: "harness",
        }
        return kinds.get(type(test), "stdin")
    keys = test if isinstance(test, dict) else {}
    for kind in ("pytest", "harness"):
        if kind in keys:
            return kind
    return "call" if "call" in keys else "assert" if "assert" in keys or "code" in keys else "stdin"


Test = Annotated[
    Annotated[StdinTest, Tag("stdin")]
    | Annotated[CallTest, Tag("call")]
    | Annotated[AssertTest, Tag("assert")]
    | Annotated[PytestTest, Tag("pytest")]
    | Annotated[HarnessTest, Tag("harness")],
    Discriminator(_kind),
]


class Helper(Part):
    """A program of the data set that decides about answers: a checker or an interactor. Runs in a jail of its own."""

    source: str = Field(min_length=1)
    language: str = Field(default="python", max_length=40)
    files: Files = Field(default_factory=dict, description="Beside it: `testlib.h` for what includes it.")
    protocol: Literal["testlib", "score"] = Field(
        default="testlib",
        description="`testlib`: arguments input, output, answer; the exit status decides. `score`: arguments input, "
        "answer, output; the number that it prints decides (CMS, Open-R1).",
    )

    @model_validator(mode="before")
    @classmethod
    def _text_is_its_source(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"source": value}
        if isinstance(value, dict) and isinstance(value.get("source"), str) and not value.get("language"):
            value = {**value, "language": "cpp" if _INCLUDE.search(value["source"]) else "python"}
        return value

    @model_validator(mode="after")
    def _has_what_it_includes(self) -> Helper:
        included = re.search(r'^[ \t]*#[ \t]*include[ \t]*["<](testlib\.h)[">]', self.source, re.MULTILINE)
        if included and "testlib.h" not in self.files:
            raise ValueError("the program includes testlib.h, which has to come with it in `files`")
        return self


_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)


class Project(Part):
    """An answer of several files."""

    files: Files = Field(default_factory=dict, description="Given beside the answer's; they win over its own.")
    main: Annotated[str, AfterValidator(checked_path)] = Field(
        default="main.py", description="The file that is run, and the name of an answer's only block without a name."
    )
    build: str | None = Field(default=None, description="Shell script, run once before the tests.")
    run: str | None = Field(default=None, description="Shell command of each test; default: by the language.")


_NAME = re.compile(r"[^\W\d]\w{0,199}(?:(?:\(\))?\.[^\W\d]\w{0,199}){0,5}")


def checked_name(name: str | None) -> str | None:
    """``f``, ``Solution.f`` or ``Solution().f``. Another text names nothing that any answer could define."""
    if name is None:
        return None
    parts = name.replace("()", "").split(".")
    if not _NAME.fullmatch(name) or any(map(keyword.iskeyword, parts)):
        raise ValueError(f"{short(name)} is not the name of a function")
    return name


def module_name(name: str) -> str:
    """A name that Python can import. Raises ``ValueError``."""
    parts = name.split(".")
    if len(name) > _MAX_PATH_CHARS or not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise ValueError(f"{short(name)} is not the name of a module")
    return name
