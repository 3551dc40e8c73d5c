"""What a patch is tested on. Field names are those of SWE-bench and its kin, whose rows validate as they are."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = ["RepositoryReference", "Runner"]

Runner = Literal["pytest", "unittest", "command"]

_UNITTEST = re.compile(r"(\w+) \(([\w.]+)\)")
_Ids = list[Annotated[str, Field(min_length=1, max_length=4000)]]


class RepositoryReference(BaseModel):
    """One repository, the state it is in, and the tests that a right patch makes pass."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore")

    image: str = Field(default="", max_length=500, description="Container image that holds the repository.")
    folder: str = Field(
        default="/testbed", description="Where the repository is in the image, and is laid to be tested."
    )
    files: dict[str, str] = Field(default_factory=dict, description="The repository itself, as texts by name.")
    archive: str = Field(default="", description="The repository itself: base64 of a tar (also compressed) or a zip.")
    base_commit: str = Field(default="", description="Recorded, not used: the image or the files are the base.")
    patch: str = Field(default="", description="The gold patch, for checking the data set. Never shown to an answer.")
    test_patch: str = Field(default="", description="Diff that brings the tests into the state they are run in.")
    test_files: dict[str, str] | list[str] = Field(
        default_factory=dict, description="Further test files: texts by name, or names of files that are there already."
    )
    fail_to_pass: _Ids = Field(alias="FAIL_TO_PASS", min_length=1, max_length=20_000)
    pass_to_pass: _Ids = Field(default_factory=list, alias="PASS_TO_PASS", max_length=200_000)
    test_runner: Runner = Field(default="pytest", description="How tests are run and what their names look like.")
    test_command: str = Field(
        default="",
        max_length=20_000,
        description="Runner `command`: a shell command that writes a JUnit XML report to the file named by $REPORT; "
        "$TEST_FILES holds the names of the test files.",
    )
    pytest_args: list[str] = Field(default_factory=list, max_length=100)
    python: str = Field(default="python3", max_length=500, description="The interpreter in the image.")
    env: dict[str, str] = Field(default_factory=dict, description="Environment of the tests.")
    timeout_s: float = Field(default=300.0, gt=0, le=1800, description="Wall seconds of one run of the tests.")

    @field_validator("fail_to_pass", "pass_to_pass", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        """Some data sets keep these lists as JSON inside a string."""
        if isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError:
                raise ValueError("neither a list nor the JSON text of one") from None
        return value

    @field_validator("fail_to_pass", "pass_to_pass", mode="after")
    @classmethod
    def _one_spelling(cls, value: list[str]) -> list[str]:
        """``test_a (module.Class)``, as unittest prints it, is ``module.Class.test_a``; each test once."""
        spelled = [
            f"{match.group(2)}.{match.group(1)}" if (match := _UNITTEST.fullmatch(name)) else name for name in value
        ]
        return list(dict.fromkeys(spelled))

    @field_validator("folder")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not re.fullmatch(r"/[\w.\-]+(?:/[\w.\-]+)*", value) or ".." in value.split("/"):
            raise ValueError("must be a plain absolute path")
        if value.split("/")[1] in ("bin", "box", "dev", "etc", "lib", "proc", "sys", "tmp", "usr"):
            raise ValueError("is a folder of the system; a repository cannot be laid there")
        return value

    @model_validator(mode="after")
    def _complete(self) -> RepositoryReference:
        if bool(self.files) + bool(self.archive) > 1:
            raise ValueError("give files or archive, not both")
        if not (self.image or self.files or self.archive):
            raise ValueError("give image, files or archive: there is no repository")
        if (self.test_runner == "command") != bool(self.test_command):
            raise ValueError("test_command goes with test_runner 'command'")
        return self

    @property
    def listed(self) -> list[str]:
        """All tests that must pass."""
        return list(dict.fromkeys([*self.fail_to_pass, *self.pass_to_pass]))
