"""From an answer and test code in its language to the programs that are run, and from their results to a verdict.

The program is the answer with the test code behind it, as MultiPL-E's own evaluator makes it. What is added: the tests
print a token when they have run to their end (:mod:`.ending`), and the same answer is run once more with one false
assertion (:mod:`.falsify`) if it passed. It is still one process: an answer that reads its own source while it runs can
find the token, so the verdict's trust is ``in_process``.

The token is a keyed digest of the program, with a key of this server process. The same answer to the same tests is the
same program, so that it is compiled once; no answer can hold its own token.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Sandbox, Script

from ..scoring import Found
from .answer import function_of, place
from .dialects import Dialect, dialect_of
from .ending import finished
from .falsify import falsified
from .golang import go_program
from .stand_ins import beside

__all__ = ["Attempt", "Harness", "Harnessed"]

_FAILED = re.compile(
    rb"[Aa]ssert|Test failed|[Ff]ailed test|--- FAIL|Check failed|(?:is|are) not TRUE|not deeply equal"
)
_SHOWN = 400
_PHP_OWN_WORDS = """
    abs array_sum ceil chr compact count current date end exp explode extract floor implode join key log max min next
    ord pos pow prev range reset round sin sort sqrt str_replace str_split strcmp strlen strpos strrev strstr substr
    trim
"""
_PHP_OWN = frozenset(_PHP_OWN_WORDS.split())
"""Functions of PHP itself that data sets ask for by their names. They can be declared in a namespace only."""
_PHP_OPEN = re.compile(r"\A\s*<\?php\b")
_PHP_NAMESPACE = "<?php\nnamespace Adjudge;\nuse ArrayObject, Exception, InvalidArgumentException, SplQueue, SplStack;"


def _why(result: RunResult) -> str:
    """How it ended, and the line of its complaint that says most."""
    lines = result.stderr[:20_000].decode("utf-8", "replace").strip().split("\n")
    telling = next((line for line in lines if _FAILED.search(line.encode())), lines[-1]).strip()[:_SHOWN]
    return result.detail if telling in result.detail else f"{result.detail}: {telling}"


@functools.cache
def _key() -> bytes:
    return secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class Harnessed:
    """A program that is an answer and its tests."""

    program: Program
    token: str

    def judge(self, result: RunResult) -> Found:
        """Passed is what ended well and has printed the token."""
        if result.outcome is Outcome.FINISHED:
            if self.passed(result):
                return Found("correct", credit=1.0)
            return Found("tampered", "The process ended with status 0 before the tests had run.", flags=("early_exit",))
        if result.outcome not in (Outcome.RAISED, Outcome.SIGNALLED):
            return Found.unfinished(result)
        silent = result.outcome is Outcome.RAISED and not result.stderr.strip() and result.exit_status == 1
        failed = silent or _FAILED.search(result.stderr) or _FAILED.search(result.stdout)
        return Found("wrong_answer" if failed else "runtime_error", _why(result))

    def passed(self, result: RunResult) -> bool:
        return result.outcome is Outcome.FINISHED and self.token.encode() in result.stdout


@dataclass(frozen=True, slots=True)
class Harness:
    """The test code of one problem."""

    tests: str
    dialect: Dialect
    prompt: str = ""
    stops: Sequence[str] = ()
    function: str | None = None

    @classmethod
    def of(
        cls, tests: str, language: str, prompt: str = "", stops: Sequence[str] = (), function: str | None = None
    ) -> Harness:
        """Raises ``ValueError`` if such tests cannot be used."""
        dialect = dialect_of(language)
        if dialect is None:
            raise ValueError(f"test code that is put behind an answer cannot be in {language[:40]}")
        return cls(tests, dialect, prompt, stops, function or function_of(prompt, dialect))

    def program(self, answer: str) -> Harnessed:
        """Raises ``ValueError`` if nothing can be put together with these tests."""
        return self._program(answer, self.tests)

    def false_program(self, answer: str) -> Harnessed | None:
        """The same with an assertion that is false; ``None`` if there is none that can be made so."""
        tests = falsified(self.tests, self.dialect)
        return None if tests is None else self._program(answer, tests)

    def _program(self, answer: str, tests: str) -> Harnessed:
        seed = "\0".join((answer, self.prompt, tests)).encode("utf-8", "surrogatepass")
        token = hmac.new(_key(), seed, hashlib.sha256).hexdigest()[:32]
        language = self.dialect.language
        placed = place(answer, self.prompt, tests, self.dialect, self.function, self.stops)
        code = finished(placed.tests, self.dialect, token)
        if language == "go":
            source = go_program(placed.before, code, self.prompt, self.dialect, token)
        else:
            source = f"{_with_headers(placed.before, language)}\n{code}{placed.after}"
        if language == "php" and self.function in _PHP_OWN:
            source = _PHP_OPEN.sub(_PHP_NAMESPACE, source, count=1)
        source, files = beside(source, language)
        return Harnessed(Program(source, language, files), token)


_ALL_OF_CPP = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<bits/stdc\+\+\.h>", re.MULTILINE)


def _with_headers(before: str, language: str) -> str:
    """With the headers that the ending needs; the one that may be kept compiled has to be the first, and comes once."""
    if language == "c":
        return f"#include <stdio.h>\n{before}"
    if language != "cpp":
        return before
    without = _ALL_OF_CPP.sub("", before)
    first = "" if without == before else "#include <bits/stdc++.h>\n"
    return f"{first}#include <cstdio>\n#include <cstdlib>\n{without}"


class Attempt:
    """One answer to one harness."""

    def __init__(self, harness: Harness, answer: str) -> None:
        self._harness = harness
        self._answer = answer
        self.program = harness.program(answer)

    async def confirm(self, sandbox: Sandbox, limits: Limits) -> Found:
        """It has passed: does it pass a false assertion, too? Raises what the sandbox raises."""
        false = self._harness.false_program(self._answer)
        if false is not None:
            (result,) = await sandbox.run(false.program, [Script()], limits)
            if false.passed(result):
                return Found("tampered", "A deliberately false assertion passed, too.", flags=("tripwire_passed",))
        return Found("correct", credit=1.0)
