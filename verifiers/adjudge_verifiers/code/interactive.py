"""Interactive problems: the answer talks to a program of the data set, which decides by its exit status.

Each is in a jail of its own, and their pipes lead directly to each other. Only the interactor is given the test. Its
word counts (:func:`.checker.decide`: testlib's exit statuses, or a printed score on stderr), unless the answer crashed
or broke a limit by itself. When neither says or does anything any more, the wall clock ends it and the answer is at
fault: an interactor waits for it, never the other way round.

An interactor that crashes or breaks a limit is tried on a program that listens and says nothing. If it waits for that
one, or decides, the answer drove it to its end; if it fails again, it is broken, and the task ``invalid_task``.
"""

from __future__ import annotations

from dataclasses import replace

from adjudge_sandbox.base import Interaction, Limits, Outcome, Program, RunResult, Sandbox

from ..errors import InvalidTask
from .checker import ANSWER, INPUT, OUTPUT, Fault, decide, program_of
from .parts import Helper, StdinTest
from .scoring import Found

__all__ = ["Interactor"]

_LISTENER = Program("import sys\nfor line in sys.stdin:\n    pass\n")
_TRIAL_S = 5.0
_LATER_MS = 100.0
_SIGPIPE = 13
_LOST_READER = ("BrokenPipeError", "EOFError")


class Interactor:
    """The interactor of one reference."""

    def __init__(self, helper: Helper, limits: Limits) -> None:
        self._helper = helper
        self._program = program_of(helper)
        self._limits = limits
        self._trusted: bool | None = None

    def run(self, test: StdinTest) -> Interaction:
        """It is called as testlib's are: input, a file to write to, answer."""
        given, answer = (text.encode("utf-8", "surrogatepass") for text in (test.stdin, test.stdout or ""))
        return Interaction(self._program, (INPUT, OUTPUT, ANSWER), {INPUT: given, ANSWER: answer})

    def judge(self, result: RunResult) -> Found | Fault:
        partner = result.partner
        if partner is None:
            if result.outcome is Outcome.COMPILE_ERROR:
                return Found.unfinished(result)
            raise RuntimeError("the sandbox gave no result for the interactor")
        decision = decide(self._helper, partner)
        failed = result.outcome is not Outcome.FINISHED and not _lost_its_partner(result)
        if isinstance(decision, Fault):
            return self._without_a_word(result, partner, decision, failed)
        if not failed or (decision.credit <= 0 and partner.wall_ms + _LATER_MS < result.wall_ms and _is_late(result)):
            return decision
        return Found(Found.unfinished(result).category, f"{result.detail} {decision.detail}".strip())

    def _without_a_word(self, result: RunResult, partner: RunResult, fault: Fault, failed: bool) -> Found | Fault:
        if fault.certain:
            return fault
        waited = partner.outcome is Outcome.TIME_LIMIT and _is_idle(partner, self._limits)
        if waited and result.outcome in (Outcome.TIME_LIMIT, Outcome.FINISHED):
            wall_s = self._limits.wall_limit_s
            return Found("time_limit", f"Nothing was said any more until {wall_s:g} s of wall time had passed.")
        kept_waiting = result.outcome is Outcome.TIME_LIMIT and _is_idle(result, self._limits)
        return Found.unfinished(result) if failed and not kept_waiting else fault

    async def blame(self, sandbox: Sandbox, run: Interaction, fault: Fault) -> Found:
        """The interactor ended without a decision. Raises :class:`InvalidTask` if it is at fault."""
        if not fault.certain and await self._works(sandbox, run):
            return Found("wrong_answer", f"The interactor ended without a decision ({fault.detail[:300]}).")
        raise InvalidTask(f"cannot be judged: the interactor failed: {fault.detail[:300]}")

    async def _works(self, sandbox: Sandbox, run: Interaction) -> bool:
        if self._trusted is None:
            limits = replace(self._limits, wall_s=min(_TRIAL_S, self._limits.wall_limit_s))
            (result,) = await sandbox.run(_LISTENER, [run], limits)
            partner = result.partner
            waits = partner is not None and partner.outcome is Outcome.TIME_LIMIT and _is_idle(partner, limits)
            self._trusted = waits or (partner is not None and isinstance(decide(self._helper, partner), Found))
        return self._trusted


def _is_idle(result: RunResult, limits: Limits) -> bool:
    return result.cpu_ms < 500 * limits.cpu_s


def _lost_its_partner(result: RunResult) -> bool:
    """Did it end because the interactor had, and nobody read or answered any more?"""
    if result.signal == _SIGPIPE or result.exit_status == 128 + _SIGPIPE:
        return True
    said = result.detail + result.stderr[-4000:].decode("utf-8", "replace")
    return result.outcome is Outcome.RAISED and any(sign in said for sign in _LOST_READER)


def _is_late(result: RunResult) -> bool:
    """It went on after the decision against it."""
    return result.outcome in (Outcome.TIME_LIMIT, Outcome.SIGNALLED, Outcome.RAISED)
