"""From the ending of a process to the outcome of a run: one place, no input or output."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

from .base import Limits, Outcome
from .supervisor.execution import Ending

__all__ = [
    "MAX_DETAIL",
    "Result",
    "judge_call",
    "judge_compilation",
    "judge_process",
    "judge_script",
    "killed_from_outside",
]

MAX_DETAIL = 2000
_LAST_LINES_BYTES = 4000


@dataclass(slots=True)
class Result:
    """A result on its way to the caller. ``value`` is still encoded."""

    outcome: Outcome
    detail: str = ""
    exit_status: int | None = None
    signal: int | None = None
    value: bytes | None = None
    ended_early: bool = False
    """The process ended with status 0 where the only honest way out is to return."""
    more: dict[str, Any] = field(default_factory=dict)


def judge_process(ending: Ending, limits: Limits) -> Result | None:
    """What is wrong with how the process ended, or ``None`` if it exited with status 0 within all limits."""
    report = ending.report
    status = os.waitstatus_to_exitcode(report.status)
    exit_status, number = (status, None) if status >= 0 else (None, -status)

    def result(outcome: Outcome, detail: str) -> Result:
        return Result(outcome, detail[:MAX_DETAIL], exit_status, number)

    if ending.flooded:
        return result(Outcome.OUTPUT_LIMIT, f"wrote more than {limits.output_kib} KiB to stdout or stderr")
    if (ending.oom_kills and status != 0) or report.killed == "memory":
        return result(Outcome.MEMORY_LIMIT, f"needed more than {limits.memory_mib} MiB of memory")
    if report.killed == "files":
        return result(Outcome.OUTPUT_LIMIT, f"wrote more than {limits.scratch_mib} MiB of files")
    if report.killed == "cpu" or report.cpu_s > limits.cpu_s:
        return result(Outcome.TIME_LIMIT, f"used more than {limits.cpu_s:g} s of CPU time")
    if ending.wall_exceeded:
        return result(Outcome.TIME_LIMIT, f"did not end within {limits.wall_limit_s:g} s of wall time")
    if number is not None:
        return result(Outcome.SIGNALLED, f"killed by {_signal_name(number)}")
    if status == 0:
        return None
    last_line = _last_line(ending.stderr)
    if last_line.startswith("MemoryError"):
        return result(Outcome.MEMORY_LIMIT, f"needed more than {limits.memory_mib} MiB of memory (MemoryError)")
    return result(Outcome.RAISED, f"exit status {status}{': ' if last_line else ''}{last_line}")


def judge_script(ending: Ending, limits: Limits, *, compiles: bool) -> Result:
    """The outcome of a script. ``compiles``: was it this run's task to compile the source?"""
    if compiles and (early := judge_compilation(ending, limits)) is not None:
        return early
    return judge_process(ending, limits) or Result(Outcome.FINISHED, exit_status=0)


def judge_call(ending: Ending, limits: Limits, *, compiles: bool) -> Result:
    """The outcome of a function call. A process that ends without a value has not returned, whatever its status."""
    if compiles and (early := judge_compilation(ending, limits)) is not None:
        return early
    frame = next((frame for frame in ending.frames if frame.header.get("op") in _CALL_ENDS), None)
    if ending.garbage:
        detail = "the program wrote to the socket of its own report"
        return Result(Outcome.RAISED, detail, more={"tampering": "forged_report"})
    if frame is None or ending.flooded or ending.report.cpu_s > limits.cpu_s:
        fault = judge_process(ending, limits)
        if fault is not None:
            return fault
        detail = "the process ended before the function returned a value"
        return Result(Outcome.RAISED, detail, exit_status=0, ended_early=True)
    operation, detail = frame.header["op"], str(frame.header.get("detail", ""))[:MAX_DETAIL]
    if operation == "value" and len(frame.blobs) == 1:
        if len(frame.blobs[0]) > limits.output_kib << 10:
            return Result(Outcome.OUTPUT_LIMIT, f"the returned value takes more than {limits.output_kib} KiB")
        caught = {"tampering": "always_equal"} if frame.header.get("always_equal") is True else {}
        return Result(Outcome.FINISHED, value=frame.blobs[0], more=caught)
    if operation == "raised" and frame.header.get("memory"):
        return Result(Outcome.MEMORY_LIMIT, f"needed more than {limits.memory_mib} MiB of memory (MemoryError)")
    return Result(_CALL_ENDS.get(operation, Outcome.RAISED), detail, ended_early=frame.header.get("exit") is True)


_CALL_ENDS = {
    "value": Outcome.RAISED,  # a malformed one; a good one has been dealt with
    "missing": Outcome.COMPILE_ERROR,
    "bad_value": Outcome.BAD_VALUE,
    "large_value": Outcome.OUTPUT_LIMIT,
    "raised": Outcome.RAISED,
}


def judge_compilation(ending: Ending, limits: Limits) -> Result | None:
    """What went wrong before the code object was sent, and so before anything of the program ran."""
    first = ending.frames[0] if ending.frames else None
    if first is not None and first.header.get("op") == "code":
        return None
    if first is not None and first.header.get("op") == "compile_error":
        return Result(Outcome.COMPILE_ERROR, str(first.header["detail"])[:MAX_DETAIL])
    fault = judge_process(ending, limits)
    if fault is not None and fault.outcome is Outcome.SIGNALLED and fault.signal != signal.SIGKILL:
        return Result(Outcome.COMPILE_ERROR, f"the compiler was {fault.detail}")
    return fault or Result(Outcome.COMPILE_ERROR, "the compiler gave no result")


def killed_from_outside(ending: Ending, result: Result) -> bool:
    """Was the process killed by a SIGKILL that neither we nor a limit sent? (Or by itself: nobody can tell.)

    Or, and that is certain, one of its processes because the host had no memory left.
    """
    return ending.host_kills > 0 or (
        result.outcome is Outcome.SIGNALLED
        and result.signal == signal.SIGKILL
        and not ending.report.killed
        and not ending.oom_kills
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(stderr: bytes) -> str:
    lines = stderr[-_LAST_LINES_BYTES:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
