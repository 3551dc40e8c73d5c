"""The runner's side of an examination: two processes in two jails, joined by one socket, and who is to blame.

The examiner's word counts, and only for what it saw: ``FINISHED`` needs its report that the test code ran to its end
while the program was still alive. When one of the two breaks a limit, the blame follows the work: the examiner is
charged only for time that it spent by itself (its state page says whether it was waiting), and not when the program had
sent it more than small values, because then the program may have made it slow.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import time
from dataclasses import replace
from typing import Any

from .. import frames, values
from ..base import Limits, Outcome
from ..kernel.cgroups import Slot
from ..outcome import MAX_DETAIL, Result, judge_compilation, judge_process, killed_from_outside
from ..python.examiner import STATE, STATE_BYTES
from ..python.session import read_results
from .execution import Ending, Execution, memory_file, wait_for
from .jail import Identity, Jail

__all__ = ["Place", "examiner_limits_of", "run_examination"]

_MUCH_DATA_BYTES = 64 << 10
_OWN_SHARE = 0.5
_MIN_EXAMINER_CPU_S = 4.0
_TICK_S = 0.25
_VERDICTS = {
    "passed": Outcome.FINISHED,
    "failed": Outcome.FAILED_ASSERT,
    "raised": Outcome.RAISED,
    "memory": Outcome.MEMORY_LIMIT,
    "missing": Outcome.COMPILE_ERROR,
    "bad_test": Outcome.BAD_TEST,
}


def examiner_limits_of(limits: Limits) -> Limits:
    """What the test code may use: at least what the program may."""
    return replace(
        limits,
        cpu_s=max(_MIN_EXAMINER_CPU_S, 2 * limits.cpu_s),
        memory_mib=max(1024, limits.memory_mib),
        wall_s=None,
        processes=64,
    )


class Place:
    """One of the two jails, with its limits."""

    def __init__(self, jail: Jail, group: Slot | None, identity: Identity, limits: Limits) -> None:
        self.jail = jail
        self.group = group
        self.identity = identity
        self.limits = limits

    def start(
        self,
        role: str,
        program_fd: int,
        extra_fds: list[int],
        output_bytes: int,
        *,
        quiet: bool = False,
        ends: tuple[int, int] | None = None,
    ) -> Execution:
        return Execution(
            self.jail,
            self.group,
            role,
            program_fd=program_fd,
            identity=self.identity,
            extra_fds=extra_fds,
            output_bytes=output_bytes,
            cpu_s=self.limits.cpu_s,
            quiet=quiet,
            ends=ends,
        )


def run_examination(
    candidate: Place, examiner: Place, program_fd: int, run: dict[str, Any], texts: list[bytes], *, compiles: bool
) -> tuple[Result, Ending, bool]:
    """Run it. Returns the result, how the program's process ended, and whether something outside has interfered."""
    asked = {name: run[name] for name in ("bind", "session", "files", "modules")}
    header = {**asked, "max_bytes": candidate.limits.output_kib << 10}
    with contextlib.ExitStack() as resources:
        request_fd = memory_file("request", frames.pack(header, texts))
        resources.callback(os.close, request_fd)
        state_fd = memory_file("state", bytes(STATE_BYTES))
        resources.callback(os.close, state_fd)
        state = resources.enter_context(mmap.mmap(state_fd, STATE_BYTES))
        results_fd = memory_file("results", b"")
        resources.callback(os.close, results_fd)
        programs, examiners = socket.socketpair()
        with programs, examiners:
            output_bytes = candidate.limits.output_kib << 10
            tested = candidate.start("serve", program_fd, [programs.fileno()], output_bytes)
            resources.callback(tested.close)
            fds = [examiners.fileno(), state_fd, request_fd, results_fd]
            tests = examiner.start("examine", program_fd, fds, output_bytes, quiet=True)
            resources.callback(tests.close)
        watch = _Watch(tested, tests, state, candidate.limits.wall_limit_s)
        wait_for([tested, tests], candidate.limits.wall_limit_s + examiner.limits.cpu_s, watch.look, tick_s=_TICK_S)
        endings = tested.ending(), tests.ending()
        result = _judge(endings, candidate.limits, examiner.limits, STATE.unpack_from(state, 0), compiles)
        result.more.update(_caught(*endings))
        if run["session"] is not None:
            written = os.pread(results_fd, os.fstat(results_fd).st_size, 0)
            result.value = values.encode(read_results(written))
        interfered = _interfered(endings[1], examiner.limits) or _interfered(endings[0], candidate.limits)
        return result, endings[0], interfered and result.outcome is not Outcome.FINISHED


class _Watch:
    """Ends each side when the other has ended or has said its last word, or when the program keeps it waiting."""

    def __init__(self, tested: Execution, tests: Execution, state: mmap.mmap, wall_s: float) -> None:
        self._tested = tested
        self._tests = tests
        self._state = state
        self._wall_s = wall_s
        self._received = -1
        self._since = time.monotonic()

    def look(self) -> None:
        if self._tests.done or self._tests.frame("end", "lost") is not None:
            self._tested.kill()
            self._tests.kill()
        if self._tested.done:
            self._tests.kill()
        waiting, _, received, _ = STATE.unpack_from(self._state, 0)
        if not waiting or received != self._received:
            self._received, self._since = received, time.monotonic()
        elif time.monotonic() - self._since > self._wall_s:
            self._tested.wall_exceeded = True
            self._tested.kill()
            self._tests.kill()


def _caught(tested: Ending, tests: Ending) -> dict[str, str]:
    """What the program was caught at beyond doubt."""
    lost = next((frame.header for frame in tests.frames if frame.header.get("op") == "lost"), {})
    if lost.get("forged") is True or (tested.garbage and not tested.flooded):
        return {"tampering": "forged_report"}
    claims = any(frame.header.get("op") == "always_equal" for frame in tested.frames)
    return {"tampering": "always_equal"} if claims else {}


def _interfered(ending: Ending, limits: Limits) -> bool:
    fault = judge_process(ending, limits)
    return fault is not None and killed_from_outside(ending, fault)


def _judge(
    endings: tuple[Ending, Ending], limits: Limits, examiner_limits: Limits, state: tuple[Any, ...], compiles: bool
) -> Result:
    tested, tests = endings
    verdict = next((frame.header for frame in tests.frames if frame.header.get("op") in ("end", "lost")), None)
    compiled = judge_compilation(tested, limits) if compiles else None
    if compiled is not None and (verdict is None or verdict["op"] == "lost"):
        return compiled
    if verdict is not None and verdict["op"] == "end":
        if tested.flooded or tested.report.cpu_s > limits.cpu_s:
            return _judge_program(tested, limits)
        return Result(_VERDICTS[verdict["verdict"]], str(verdict["detail"])[:MAX_DETAIL])
    killed = os.waitstatus_to_exitcode(tests.report.status) == -signal.SIGKILL and not tests.oom_kills
    killed_by_us = tests.report.killed == "asked" and killed and not tests.wall_exceeded
    if verdict is not None or killed_by_us or tested.flooded:
        return _judge_program(tested, limits)
    return _judge_examiner(tests, limits, examiner_limits, state)


def _judge_program(tested: Ending, limits: Limits) -> Result:
    """The program's process ended, or had to be ended, before the test code was through."""
    over = tested.flooded or tested.wall_exceeded or tested.oom_kills or tested.report.cpu_s > limits.cpu_s
    if over or tested.report.killed != "asked":
        fault = judge_process(tested, limits)
        if fault is not None and fault.outcome not in (Outcome.RAISED, Outcome.SIGNALLED):
            return fault
    else:
        fault = None
    said = next((frame.header for frame in tested.frames if frame.header.get("op") in ("raised", "large_value")), None)
    if said is not None:
        detail = str(said.get("detail", ""))[:MAX_DETAIL]
        if said["op"] == "large_value":
            return Result(Outcome.OUTPUT_LIMIT, detail)
        if said.get("memory"):
            return Result(Outcome.MEMORY_LIMIT, detail)
        return Result(Outcome.RAISED, detail, ended_early=said.get("exit") is True)
    if fault is not None:
        return fault
    detail = "the program ended, or broke the conversation, before the test was over"
    return Result(Outcome.RAISED, detail, ended_early=os.waitstatus_to_exitcode(tested.report.status) == 0)


def _judge_examiner(tests: Ending, limits: Limits, examiner_limits: Limits, state: tuple[Any, ...]) -> Result:
    """The test code broke a limit, or its process died without a word."""
    waiting, influenced, received_bytes, cpu_at_last_word_s = state
    much = influenced or received_bytes > _MUCH_DATA_BYTES
    if waiting:
        return Result(Outcome.TIME_LIMIT, f"did not answer within {limits.wall_limit_s:g} s of wall time")
    fault = judge_process(tests, examiner_limits)
    detail = f"the test code {fault.detail}" if fault is not None else "the test code ended its own process"
    alone_s = tests.report.cpu_s - cpu_at_last_word_s
    if fault is not None and fault.outcome in (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT):
        busy_alone = fault.outcome is Outcome.MEMORY_LIMIT or alone_s > _OWN_SHARE * examiner_limits.cpu_s
        if much or not (busy_alone or tests.wall_exceeded):
            return Result(fault.outcome, f"{detail} on what the program returned"[:MAX_DETAIL])
    elif much:
        return Result(Outcome.FAILED_ASSERT, f"{detail} after what the program returned"[:MAX_DETAIL])
    return Result(Outcome.BAD_TEST, detail[:MAX_DETAIL])
