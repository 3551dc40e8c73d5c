"""Programs that bring their own tests (MultiPL-E and its like): exit status 0 is not enough to believe them.

The tests are code of the data set, in the answer's language and in the answer's own process, so nothing they say can be
trusted as much as an examination or a comparison outside. Two things are asked for all the same, and both cost an
answer more than ``exit(0)``:

* a sign of life: behind the last test a statement prints a random text, which is in the output or the tests were not
  all run;
* a trip-wire: the same program with a deliberately false test before that statement must *not* print it. An answer that
  ends its process early, prints what it finds in its own source, or replaces the assertion passes that too, and is
  found out.

What is judged in this way is to be marked ``in_process``.
"""

from __future__ import annotations

import functools
import re
import secrets
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ..base import Outcome, Program, RunResult
from ..errors import InvalidProgram
from .table import find

__all__ = ["SelfTest", "self_test"]

_TAG = re.compile(r"_test\.\w+\Z")


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The program to run, and the one that must fail. Both are run as a Script without input."""

    program: Program
    trip_wire: Program
    nonce: str

    def passed(self, result: RunResult) -> bool:
        """Did a run end well, and behind the last test?"""
        return result.outcome is Outcome.FINISHED and self.nonce.encode() in result.stdout.splitlines()


def self_test(language: str, answer: str, tests: str) -> SelfTest:
    """``answer`` (prompt and completion) followed by ``tests``.

    Raises:
        InvalidProgram: it is not known how the tests of this language end, or these end otherwise.
    """
    known = find(_TAG.sub("", language))
    rules = _rules().get(known[0].name) if known is not None else None
    if rules is None:
        raise InvalidProgram(f"it is not known how tests in {language[:50]!a} say that they have passed")
    nonce = secrets.token_hex(16)
    said = rules["said"].replace("{nonce}", nonce)
    return SelfTest(
        _program(language, rules, answer, _insert(tests, rules, said)),
        _program(language, rules, answer, _insert(tests, rules, f"{rules['false']}\n{said}")),
        nonce,
    )


def _program(language: str, rules: dict[str, Any], answer: str, tests: str) -> Program:
    text = f"{rules.get('head', '')}{answer}{tests}{rules.get('tail', '')}"
    language = _TAG.sub("", language)
    if "source" not in rules:
        return Program(text, language, build=rules.get("build"))
    return Program("", language, files={rules["source"]: text.encode("utf-8", "replace")}, build=rules.get("build"))


def _insert(tests: str, rules: dict[str, Any], statements: str) -> str:
    """Before the line that closes the tests, or at the end."""
    if "before" not in rules:
        return f"{tests}\n{statements}\n"
    closing, place = rules["before"]
    lines = tests.split("\n")
    at = [number for number, line in enumerate(lines) if line.strip() == closing]
    if len(at) < place:
        raise InvalidProgram(f"these tests do not end with {closing!r}")
    return "\n".join([*lines[: at[-place]], statements, *lines[at[-place] :]])


@functools.cache
def _rules() -> dict[str, dict[str, Any]]:
    text = resources.files("adjudge_sandbox.languages").joinpath("self_test.toml").read_text("utf-8")
    return tomllib.loads(text)
