"""The runner: one process of ours for one answer, forked from the nursery, outside every jail.

It is given the program first and makes the jail of the answer *before* it reads the runs, so that no test text, no
argument and no input of a later run is in the memory that the jail inherits. Then it takes the runs one by one and
sends each result as soon as it is there. What the answer prints and reports is read here and passed on as bytes: the
runner decodes no value.

What it sends: ``result`` for each run, then ``done``; or ``lost`` (a jail died and nobody here killed it: the answer is
to be run again), or ``refused`` (no jail can be made).
"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import replace
from typing import Any

from .. import frames
from ..base import Limits, Outcome
from ..kernel import cgroups, seccomp
from ..kernel import namespaces as ns
from ..outcome import Result, judge_call, judge_script, killed_from_outside
from ..python.process import pack_program
from .examination import Place, examiner_limits_of, run_examination
from .execution import Ending, Execution, JailBroken, memory_file, wait_for
from .jail import NOBODY, Identity, Jail, JailLost, JailRefused, JailSpec

__all__ = ["run_answer", "warm"]

_STARVED_SHARE = 0.1
_OVERLOAD = 3.0


def run_answer(sock: socket.socket, config: dict[str, Any]) -> None:
    """Serve one answer on ``sock``. The target of the nursery."""
    ns.become_subreaper()
    first = frames.receive(sock)
    try:
        answer = _Answer(sock, config, first.header, first.blobs[0])
        try:
            answer.run(frames.receive(sock))
        finally:
            answer.close()
        frames.send(sock, {"op": "done"})
    except JailLost as error:
        frames.send(sock, {"op": "lost", "why": str(error)})
    except (JailRefused, JailBroken, OSError) as error:
        frames.send(sock, {"op": "refused", "why": str(error)})


class _Answer:
    def __init__(self, sock: socket.socket, config: dict[str, Any], header: dict[str, Any], source: bytes) -> None:
        self._sock = sock
        self._config = config
        self._limits = Limits(**header["limits"])
        self._slot = int(header["slot"])
        self._source = source
        self._code = b""
        self._uncompiled: Result | None = None
        self._identity = Identity.of_slot(2 * self._slot, isolated=config["plan"] is not None)
        self._group = self._open_group("a", self._limits.memory_mib, self._limits.processes)
        self._jail = Jail(self._spec(self._identity, self._limits, self._group is not None))
        self._examiner: Place | None = None

    def close(self) -> None:
        self._jail.close()
        if self._examiner is not None:
            self._examiner.jail.close()

    def run(self, request: frames.Frame) -> None:
        """All runs, in order."""
        blobs = iter(request.blobs)
        for run in request.header["runs"]:
            result = self._one(run, [next(blobs) for _ in range(run["blobs"])])
            if request.header["stop_at_failure"] and result.outcome is not Outcome.FINISHED:
                break

    def _one(self, run: dict[str, Any], blobs: list[bytes]) -> Result:
        if self._uncompiled is not None:
            self._send(self._uncompiled, None)
            return self._uncompiled
        result, ending, interfered = self._attempt(run, blobs)
        lost_s = 0.0
        if interfered or _was_starved(ending, self._limits):
            lost_s = ending.report.wall_s
            result, ending, _ = self._attempt(run, blobs)  # a second time it is the program's own doing
        self._send(result, ending, lost_s)
        return result

    def _attempt(self, run: dict[str, Any], blobs: list[bytes]) -> tuple[Result, Ending, bool]:
        """One run. Also: was a process of it killed by somebody who is not us?"""
        compiles = not self._code
        with contextlib.ExitStack() as files:
            program = _file(files, "program", pack_program(self._source, self._code))
            if run["kind"] == "script":
                ending = self._execute("script", program, stdin=blobs[0])
                result = judge_script(ending, self._limits, compiles=compiles)
                interfered = killed_from_outside(ending, result)
            elif run["kind"] == "call":
                header = {"function": run["function"], "max_bytes": self._limits.output_kib << 10}
                request = _file(files, "request", frames.pack(header, blobs))
                ending = self._execute("call", program, extra_fds=[request])
                result = judge_call(ending, self._limits, compiles=compiles)
                interfered = killed_from_outside(ending, result)
            else:
                candidate = Place(self._jail, self._group, self._identity, self._limits)
                result, ending, interfered = run_examination(
                    candidate, self._examiner_place(), program, run, blobs, compiles=compiles
                )
        if compiles:
            self._keep_code(ending, result)
        return result, ending, interfered

    def _examiner_place(self) -> Place:
        """The second jail, made when the first examination asks for it."""
        if self._examiner is None:
            limits = examiner_limits_of(self._limits)
            identity = replace(self._identity, uid=self._identity.uid + 1, gid=self._identity.gid + 1)
            identity = identity if identity.privileged and self._identity.uid != NOBODY else self._identity
            group = self._open_group("b", limits.memory_mib, limits.processes)
            self._examiner = Place(Jail(self._spec(identity, limits, group is not None)), group, identity, limits)
        return self._examiner

    def _execute(self, role: str, program: int, *, stdin: bytes = b"", extra_fds: list[int] | None = None) -> Ending:
        execution = Execution(
            self._jail,
            self._group,
            role,
            program_fd=program,
            identity=self._identity,
            stdin=stdin,
            extra_fds=extra_fds or [],
            output_bytes=self._limits.output_kib << 10,
            cpu_s=self._limits.cpu_s,
        )
        with contextlib.closing(execution):

            def look() -> None:
                if role == "call" and execution.frame("value", "raised", "missing", "bad_value", "large_value"):
                    execution.kill()  # it has said what it had to say

            wait_for([execution], self._limits.wall_limit_s, look)
            return execution.ending()

    def _keep_code(self, ending: Ending, result: Result) -> None:
        first = ending.frames[0] if ending.frames else None
        if first is not None and first.header.get("op") == "code" and first.blobs:
            self._code = first.blobs[0]
        elif first is not None and first.header.get("op") == "compile_error":
            self._uncompiled = result

    def _send(self, result: Result, ending: Ending | None, lost_s: float = 0.0) -> None:
        """``lost_s``: wall seconds of a first attempt that does not count. Who asked has waited for it all the same."""
        header = {
            "op": "result",
            "outcome": result.outcome.value,
            "detail": result.detail,
            "exit_status": result.exit_status,
            "signal": result.signal,
            "has_value": result.value is not None,
            "cpu_ms": ending.report.cpu_s * 1000 if ending else 0.0,
            "wall_ms": (ending.report.wall_s + lost_s) * 1000 if ending else 0.0,
            "peak_memory_mib": ending.peak_mib if ending else None,
        }
        output = [ending.stdout, ending.stderr] if ending else [b"", b""]
        frames.send(self._sock, header, [*output, result.value or b""])

    def _open_group(self, suffix: str, memory_mib: int, processes: int) -> cgroups.Slot | None:
        return cgroups.slot(self._config["cgroups"], f"{self._slot}{suffix}", memory_mib, processes)

    def _spec(self, identity: Identity, limits: Limits, grouped: bool) -> JailSpec:
        return JailSpec(
            identity=identity,
            plan=self._config["plan"],
            cpu_s=limits.cpu_s,
            memory_mib=limits.memory_mib,
            processes=limits.processes,
            scratch_mib=limits.scratch_mib,
            grouped=grouped,
        )


def _was_starved(ending: Ending, limits: Limits) -> bool:
    """Did it run out of wall time with next to no CPU time, on a machine that has far too much to do?"""
    idle = ending.wall_exceeded and ending.report.cpu_s < _STARVED_SHARE * limits.cpu_s
    return idle and os.getloadavg()[0] > _OVERLOAD * (os.cpu_count() or 1)


def _file(files: contextlib.ExitStack, name: str, content: bytes) -> int:
    fd = memory_file(name, content)
    files.callback(os.close, fd)
    return fd


def warm(config: dict[str, Any]) -> None:
    """Called once in the nursery: do what every runner would otherwise do again."""
    with contextlib.suppress(OSError):
        seccomp.build()
    ns.warm()
    ns.become_subreaper()  # what a killed runner leaves behind is reaped here, not by whoever is process 1
