"""What a runner and a keeper say to each other: fixed fields first, so that the keeper need not decode the rest.

A request is ``RUN`` with the limits and, marshalled (both ends are ours, and the words are the runner's own), what the
run's process is told; ``KILL``; or ``JOIN``. For the tests of one answer (:mod:`adjudge_sandbox.supervisor.stem`)
there are, of the form of ``RUN``, ``STEM``, the first test and the making of a stem; ``TEST``, a further one; ``LAST``,
after which the jail is cleared; and ``END``, to clear it at once. An answer is ``REPORT``; ``LOST``, when a process of
ours has been killed; or ``REFUSED`` with the kernel's reason.
"""

from __future__ import annotations

import marshal
import os
import resource
import struct
import time
from dataclasses import dataclass
from typing import Any

__all__ = [
    "END",
    "JOIN",
    "KILL",
    "LAST",
    "RUN",
    "STEM",
    "TEST",
    "Report",
    "mark_alive",
    "pack_loss",
    "pack_refusal",
    "pack_report",
    "pack_run",
    "pack_watched",
    "quiet_ms",
    "unpack_answer",
    "unpack_fds",
    "unpack_run",
]

RUN, KILL, JOIN, STEM, TEST, LAST, END = b"RKJSTLE"
_REPORT, _LOST, _REFUSED = b"PLX"
_RUN = struct.Struct("<BdIIIB")
_OUTCOME = struct.Struct("<BidddBdB")
_KILLED = ("", "cpu", "memory", "asked", "files")
_MEMORY_TICK_MS = 20.0
_CORES = max(1, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Report:
    """How one run's process ended."""

    status: int
    """As :func:`os.waitpid` gives it."""
    cpu_s: float
    wall_s: float
    peak_mib: float
    killed: str = ""
    """Why the keeper killed it: ``cpu``, ``memory``, ``files``, ``asked``; empty if it ended by itself."""
    runnable_share: float = 0.0
    """Asked to be killed: for which part of its time that task of the run which had most to do ran or waited for a
    core."""
    stem: bool = False
    """Is there a stem for a further test?"""


def pack_run(limits: tuple[float, int, int, int, bool], request: dict[str, Any], kind: int = RUN) -> bytes:
    """``limits``: CPU seconds, MiB of memory, processes, MiB of scratch, and are they held by control groups?"""
    return _RUN.pack(kind, *limits) + marshal.dumps(request)


def unpack_run(message: bytes) -> tuple[tuple[float, int, int, int, bool], dict[str, Any]]:
    _, cpu_s, memory_mib, processes, scratch_mib, grouped = _RUN.unpack_from(message)
    return (cpu_s, memory_mib, processes, scratch_mib, bool(grouped)), marshal.loads(message[_RUN.size :])


def quiet_ms(message: bytes, *, measured: bool = False) -> float:
    """For how long after its start a run cannot be over a limit that the keeper watches."""
    (_, cpu_s, _, _, _, grouped) = _RUN.unpack_from(message)
    at_soonest_ms: float = cpu_s / _CORES * 1000
    return at_soonest_ms if grouped and not measured else min(_MEMORY_TICK_MS, at_soonest_ms)


def unpack_fds(ancillary: bytes) -> tuple[int, ...]:
    return struct.unpack(f"{len(ancillary) // 4}i", ancillary)


def pack_report(status: int, usage: resource.struct_rusage, started: float, before_s: float = 0.0) -> bytes:
    """Of a process that ended by itself; ``started`` by the monotonic clock, after ``before_s`` CPU seconds."""
    cpu_s, wall_s = max(0.0, usage.ru_utime + usage.ru_stime - before_s), time.monotonic() - started
    return _OUTCOME.pack(_REPORT, status, cpu_s, wall_s, usage.ru_maxrss / 1024, 0, 0.0, 0)


def pack_watched(report: Report) -> bytes:
    """Of a process that had to be watched."""
    killed = _KILLED.index(report.killed)
    times = report.cpu_s, report.wall_s, report.peak_mib
    return _OUTCOME.pack(_REPORT, report.status, *times, killed, report.runnable_share, report.stem)


def mark_alive(report: bytes) -> bytes:
    """The same report, and the stem is there for a further test."""
    return report[:-1] + b"\1"


def pack_loss(why: str) -> bytes:
    return bytes([_LOST]) + why.encode()


def pack_refusal(why: str) -> bytes:
    return bytes([_REFUSED]) + why.encode()


def unpack_answer(message: bytes) -> tuple[Report | None, str, str]:
    """A report, or why the jail is lost, or why it is refused."""
    if message[0] == _REPORT:
        _, status, cpu_s, wall_s, peak_mib, killed, runnable_share, stem = _OUTCOME.unpack(message)
        return Report(status, cpu_s, wall_s, peak_mib, _KILLED[killed], runnable_share, bool(stem)), "", ""
    text = message[1:].decode(errors="replace")
    return (None, text, "") if message[0] == _LOST else (None, "", text)
