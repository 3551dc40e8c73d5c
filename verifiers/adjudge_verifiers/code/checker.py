"""Checker programs: a program of the data set reads the input, the answer's output and the expected one, and decides.

It runs after the answer, in a jail of its own that the answer never sees, and is given three files. Two conventions:

``testlib``  arguments ``input output answer``. The exit status decides: 0 right; 1 wrong; 2, 4 and 8 wrong form; 3 the
             checker itself gives up (its jury answer is worse, or it has a fault); 7 points, of which it prints how
             many (``points 0.5``); a number above 1 is out of 100.
``score``    arguments ``input answer output``, and what it prints first is a number from 0 to 1, or a word (CMS and IOI
             checkers, Open-R1's ``generated_checker``).

A checker that crashes or breaks a limit may have met an output that it was not made for, which is the answer's doing,
or may be broken, which is the data set's fault. So it is tried on the expected output: if it handles that, the answer
is wrong; if not, the task is ``invalid_task``. No answer is blamed for a broken checker, and no crash is a way out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Sandbox, Script

from ..errors import InvalidTask
from ..extract.code import canonical_language, spoken_language
from .parts import Helper, contents
from .scoring import Found

__all__ = ["HELPER_LIMITS", "Checker", "Fault", "decide", "program_of"]

HELPER_LIMITS = Limits(cpu_s=10.0, memory_mib=1024, output_kib=1024, scratch_mib=256)
"""Of a checker or an interactor. Not the answer's: a slow checker is no fault of it."""
INPUT, OUTPUT, ANSWER = "input.txt", "output.txt", "answer.txt"
_CHUNK = 32
_WRONG = {1: "", 2: "presentation error", 4: "presentation error", 8: "unexpected end of output"}
_FAILED, _POINTS = 3, 7
_NUMBER = re.compile(r"[-+]?(?:\d{1,12}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?", re.ASCII)
_YES = frozenset({"ok", "yes", "true", "ac", "accepted", "correct", "right", "pass", "passed"})
_NO = frozenset({"no", "false", "wa", "wrong", "incorrect", "rejected", "fail", "failed", "pe", "wrong_answer"})
_MAX_WORD_CHARS = 64
_MAX_MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """The program of the data set did not decide: it crashed, broke a limit, or said nothing that can be read."""

    detail: str
    certain: bool = False
    """It said itself that it failed."""


def program_of(helper: Helper) -> Program:
    return Program(helper.source, spoken_language(helper.language), files=contents(helper.files))


def decide(helper: Helper, result: RunResult) -> Found | Fault:
    """What the exit status, or the printed score, of ``helper`` says."""
    message = _message(result)
    if result.outcome not in (Outcome.FINISHED, Outcome.RAISED):
        return Fault(f"{result.outcome}: {result.detail}", certain=result.outcome is Outcome.COMPILE_ERROR)
    return _by_score(result, message) if helper.protocol == "score" else _by_status(helper, result, message)


def _by_status(helper: Helper, result: RunResult, message: str) -> Found | Fault:
    status = 0 if result.outcome is Outcome.FINISHED else result.exit_status
    if status == 0:
        return Found("correct", credit=1.0)
    if status in _WRONG:
        if status == 1 and _crashed(helper, result):
            return Fault(f"it raised: {result.detail}")
        return Found(
            "wrong_answer", ": ".join(part for part in ("The checker says no", _WRONG[status], message) if part)
        )
    if status == _FAILED:
        return Fault(f"it gave up (exit status 3): {message}", certain=True)
    if status == _POINTS:
        credit = _points(result)
        return Fault("exit status 7 without points") if credit is None else _graded(credit, message)
    return Fault(f"exit status {status}: {message}")


def _by_score(result: RunResult, message: str) -> Found | Fault:
    if result.outcome is not Outcome.FINISHED:
        return Fault(f"it raised: {result.detail}")
    words = _text(result.stdout).split(None, 1)
    word = words[0].strip(".,:;!").lower() if words else ""
    if word in _YES or word in _NO:
        return _graded(float(word in _YES), message)
    credit = _number(word)
    return Fault("it printed no score") if credit is None else _graded(credit, message)


def _graded(credit: float, message: str) -> Found:
    if credit >= 1:
        return Found("correct", credit=1.0)
    if credit <= 0:
        return Found("wrong_answer", f"The checker says no{': ' if message else ''}{message}")
    return Found("partial", f"The checker gives {credit:g}{': ' if message else ''}{message}", credit)


def _points(result: RunResult) -> float | None:
    """``points 0.5 good``, ``0.5`` or ``50``, on stderr or on stdout."""
    for stream in (result.stderr, result.stdout):
        words = _text(stream).split(None, 2)[:2]
        if words and words[0].lower().rstrip(":") in ("points", "score", "partially"):
            words = words[1:]
        if words and (value := _number(words[0].strip("(),"))) is not None:
            return value
    return None


def _number(word: str) -> float | None:
    """A share; a number above 1 is out of 100."""
    if len(word) > _MAX_WORD_CHARS or not _NUMBER.fullmatch(word):
        return None
    value = float(word)
    if not math.isfinite(value):
        return None
    return min(max(value, 0.0), 100.0) / 100 if value > 1 else max(value, 0.0)


def _crashed(helper: Helper, result: RunResult) -> bool:
    """Python ends with status 1, which also means "wrong", when it raises; the traceback tells the two apart."""
    return canonical_language(helper.language) == "python" and b"Traceback (most recent call last)" in result.stderr


def _text(stream: bytes) -> str:
    return stream[:4096].decode("utf-8", "replace")


def _message(result: RunResult) -> str:
    text = _text(result.stderr) or _text(result.stdout)
    return " ".join(text.split())[:_MAX_MESSAGE_CHARS]


class Checker:
    """The checker of one reference."""

    def __init__(self, helper: Helper, wall_s: float | None = None) -> None:
        self._helper = helper
        self._program = program_of(helper)
        self._limits = HELPER_LIMITS if wall_s is None else _within(HELPER_LIMITS, wall_s)
        self._trusted: bool | None = None

    def question(self, given: bytes, output: bytes, answer: bytes | None) -> Script:
        """The run that judges ``output``; ``answer`` is the expected one."""
        files = {INPUT: given, OUTPUT: output, ANSWER: answer or b""}
        order = (INPUT, OUTPUT, ANSWER) if self._helper.protocol == "testlib" else (INPUT, ANSWER, OUTPUT)
        return Script(args=order, files=files)

    async def ask(self, sandbox: Sandbox, questions: Sequence[Script]) -> list[Found]:
        """One decision for each question. Raises :class:`InvalidTask` if the checker is at fault."""
        found: list[Found] = []
        for start in range(0, len(questions), _CHUNK):
            chunk = questions[start : start + _CHUNK]
            results = await sandbox.run(self._program, chunk, self._limits)
            if len(results) != len(chunk):
                raise RuntimeError(f"the sandbox {sandbox.name!r} gave {len(results)} results for {len(chunk)} runs")
            for question, result in zip(chunk, results, strict=True):
                decision = decide(self._helper, result)
                found.append(
                    await self._blame(sandbox, question, decision) if isinstance(decision, Fault) else decision
                )
        return found

    async def _blame(self, sandbox: Sandbox, question: Script, fault: Fault) -> Found:
        if not fault.certain and await self._handles(sandbox, question.files[INPUT], question.files[ANSWER]):
            return Found("wrong_answer", f"The checker cannot read the output ({fault.detail[:_MAX_MESSAGE_CHARS]}).")
        raise InvalidTask(f"cannot be judged: the checker failed: {fault.detail[:_MAX_MESSAGE_CHARS]}")

    async def _handles(self, sandbox: Sandbox, given: bytes, answer: bytes) -> bool:
        """Does the checker decide, in any way, about the expected output?"""
        if self._trusted is None:
            (result,) = await sandbox.run(self._program, [self.question(given, answer, answer)], self._limits)
            self._trusted = isinstance(decide(self._helper, result), Found)
        return self._trusted


def _within(limits: Limits, wall_s: float) -> Limits:
    return Limits(
        cpu_s=min(limits.cpu_s, wall_s),
        wall_s=wall_s,
        memory_mib=limits.memory_mib,
        output_kib=limits.output_kib,
        scratch_mib=limits.scratch_mib,
    )
