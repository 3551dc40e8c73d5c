"""The runner: a process of ours that takes one answer after another, outside every jail.

It is forked from a nursery and holds what the answers wrote, so no jail inherits its memory: jails are made by a zygote
that is given descriptors only (:mod:`adjudge_sandbox.supervisor.jail`). What an answer prints and reports is read here
and passed on as bytes: the runner decodes no value.

What it sends for an answer: ``result`` for each run, then ``done``; or ``lost`` (a process of ours died and nobody here
killed it: the answer is to be run again), ``refused`` (no jail can be made), ``overloaded`` (a run waited for a core
until its wall clock ran out, twice), or ``killed`` (a process was killed by somebody outside, twice).
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import frames
from ..base import Limits, Outcome
from ..kernel import cgroups
from ..kernel import namespaces as ns
from ..languages.order import compiler_was_killed, fetched_files, judge_exec, pack_order
from ..outcome import Result, judge_call, judge_script, killed_from_outside
from ..python.process import is_alone, pack_program
from .examination import Place, examiner_limits_of, run_examination
from .execution import Ending, Execution, JailBroken, memory_file, wait_for
from .interaction import run_interaction
from .jail import NOBODY, Identity, Jail, JailLost, JailRefused, JailSpec, connect
from .messages import LAST, RUN, STEM, TEST

__all__ = ["serve_answers", "warm"]

_HALF = 0.5
_SEND_AT_BYTES = 1 << 18
_OURS = 2
"""Processes of ours in a control group: the keeper, and the first process of a jail. A stem is one more."""
_MOST_FOR_A_STEM_BYTES = 1 << 16
"""A stem is not to need much memory, or long, to compile the source: it is there beside every test."""
_MOST_STEMS = 3
"""A program that leaves files or processes behind is run in jails of its own from then on."""
_NOT_BY_A_STEM = re.compile(rb"ctypes|cffi|sysv_ipc|posix_ipc|psutil|prlimit|setpriority|sched_set|ioprio")
"""Names by which programs reach what is refused beside a stem: System V and POSIX IPC, limits and scheduling of process
2. A hint for the sake of programs that mean well, not a wall."""


class _Starved(Exception):
    """A run waited for a core until its wall clock ran out, twice."""


class _Killed(Exception):
    """A process was killed that neither we nor a limit killed, and that cannot have killed itself, twice."""


def serve_answers(sock: socket.socket, config: dict[str, Any]) -> None:
    """Serve answers on ``sock`` until it closes. The target of the nursery.

    First of all come the number of this runner's slot and a descriptor: the way to its zygote.
    """
    message, fds, _, _ = socket.recv_fds(sock, 16, 1)
    if not fds:
        return
    connect(socket.socket(fileno=fds[0]))
    identity = Identity.of_runner(os.getpid(), isolated=config["plan"] is not None)
    place = _Standing(int(message), identity, {})
    outbox = _Outbox(sock)
    while True:
        frame = frames.receive(sock)
        try:
            answer = _Answer(outbox, config, place, frame)
            try:
                answer.run(frame.blobs[1:])
            finally:
                answer.close()
            outbox.send({"op": "done"})
        except JailLost as error:
            outbox.send({"op": "lost", "why": str(error)})
        except _Starved as error:
            outbox.send({"op": "overloaded", "why": str(error)})
        except _Killed as error:
            outbox.send({"op": "killed", "why": str(error)})
        except (JailRefused, JailBroken, OSError) as error:
            outbox.send({"op": "refused", "why": str(error)})
        outbox.flush()


@dataclass(frozen=True, slots=True)
class _Standing:
    """What remains from answer to answer."""

    slot: int
    identity: Identity
    groups: dict[tuple[str, int, int], cgroups.Slot | None]
    """The limits that are set in each of the slot's control groups."""


class _Outbox:
    """Frames to the server, several in one message as long as they are small."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._waiting: list[bytes] = []
        self._size = 0

    def send(self, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
        self._waiting.append(frames.pack(header, blobs))
        self._size += len(self._waiting[-1])
        if self._size > _SEND_AT_BYTES:
            self.flush()

    def flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        self._sock.sendall(b"".join(waiting))


class _Answer:
    def __init__(self, outbox: _Outbox, config: dict[str, Any], standing: _Standing, frame: frames.Frame) -> None:
        self._outbox = outbox
        self._config = config
        self._standing = standing
        self._header = frame.header
        self._limits = Limits(**frame.header["limits"])
        self._source = frame.blobs[0]
        self._code = b""
        self._uncompiled: Result | None = None
        self._identity = standing.identity
        self._tests_left = self._count_tests()
        self._stems = 0
        ours = _OURS + (self._tests_left > 1)
        self._group = self._open_group("a", self._limits.memory_mib, self._limits.processes + ours)
        self._jail = Jail(self._spec(self._identity, self._limits, self._group is not None))
        self._examiner: Place | None = None

    def close(self) -> None:
        self._jail.close()
        if self._examiner is not None:
            self._examiner.jail.close()

    def _count_tests(self) -> int:
        """How many runs are tests that a stem can fork."""
        if self._config["plan"] is None or len(self._source) > _MOST_FOR_A_STEM_BYTES or not is_alone(self._source):
            return 0
        if _NOT_BY_A_STEM.search(self._source):
            return 0
        return sum(map(_is_test, self._header["runs"]))

    def _kind(self, run: dict[str, Any]) -> int:
        """How to start this run."""
        if not self._tests_left or not _is_test(run):
            return RUN
        self._tests_left -= 1
        if self._jail.has_stem:
            return TEST if self._tests_left else LAST
        if not self._tests_left or self._stems >= _MOST_STEMS:
            return RUN
        self._stems += 1
        return STEM

    def run(self, contents: Sequence[bytes]) -> None:
        """All runs, in order."""
        blobs = iter(contents)
        for run in self._header["runs"]:
            result = self._one(run, [next(blobs) for _ in range(run["blobs"])])
            if self._header["stop_at_failure"] and result.outcome is not Outcome.FINISHED:
                break

    def _one(self, run: dict[str, Any], blobs: list[bytes]) -> Result:
        if self._uncompiled is not None:
            self._send(self._uncompiled, None)
            return self._uncompiled
        result, ending, interfered = self._attempt(run, blobs, self._kind(run))
        lost_s, starved = 0.0, _was_starved(ending)
        if interfered or starved:
            lost_s = ending.report.wall_s
            result, ending, again = self._attempt(run, blobs, RUN)  # a second time a kill is the program's own doing
            if starved and _was_starved(ending):
                raise _Starved(f"a run got {ending.report.cpu_s:.2f} s of CPU time in {ending.report.wall_s:.2f} s")
            if again and ending.host_kills:
                raise _Killed("a process was killed because the host has no memory left")
            if again and run.get("collect") and not run["executes"]:
                raise _Killed("a compiler was killed by somebody outside")  # who has not run a line of the program
        self._send(result, ending, lost_s)
        return result

    def _attempt(self, run: dict[str, Any], blobs: list[bytes], kind: int) -> tuple[Result, Ending, bool]:
        """One run. Also: was a process of it killed by somebody who is not us?"""
        if kind in (TEST, LAST):
            ending = self._execute("test", -1, stdin=blobs[0], kind=kind)
            result = judge_script(ending, self._limits, compiles=False)
            return result, ending, killed_from_outside(ending, result)
        compiles = not self._code
        with contextlib.ExitStack() as files:
            program = _file(files, "program", pack_program(self._source, b"" if kind == STEM else self._code))
            if kind == STEM:
                ending = self._execute("stem", program, stdin=blobs[0], kind=kind)
                result, compiles = judge_script(ending, self._limits, compiles=True), True
                interfered = killed_from_outside(ending, result)
            elif run["kind"] in ("script", "exec"):
                isolated, max_bytes = self._config["plan"] is not None, self._limits.output_kib << 10
                grouped = self._group is not None
                order = pack_order(run, blobs[1:], isolated=isolated, grouped=grouped, max_bytes=max_bytes)
                extra_fds = [_file(files, "order", order)] if order else []
                ending = self._execute(run["kind"], program, stdin=blobs[0], extra_fds=extra_fds)
                if run["kind"] == "exec":
                    result, compiles = judge_exec(ending, self._limits, run["memory_signs"]), False
                else:
                    result = judge_script(ending, self._limits, compiles=compiles)
                result.more.update(fetched_files(ending))
                interfered = killed_from_outside(ending, result) or (
                    run.get("collect", False) and compiler_was_killed(ending, result, run["killed_signs"])
                )
            elif run["kind"] == "call":
                header = {"function": run["function"], "max_bytes": self._limits.output_kib << 10}
                request = _file(files, "request", frames.pack(header, blobs))
                ending = self._execute("call", program, extra_fds=[request])
                result = judge_call(ending, self._limits, compiles=compiles)
                interfered = killed_from_outside(ending, result)
            elif run["kind"] == "interaction":
                candidate = Place(self._jail, self._group, self._identity, self._limits)
                partner, isolated = self._examiner_place(), self._config["plan"] is not None
                result, ending, interfered = run_interaction(
                    candidate, partner, program, run, blobs, isolated=isolated, compiles=compiles
                )
                compiles = compiles and run["own"]["kind"] == "script"
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
            group = self._open_group("b", limits.memory_mib, limits.processes + _OURS)
            self._examiner = Place(Jail(self._spec(identity, limits, group is not None)), group, identity, limits)
        return self._examiner

    def _execute(
        self, role: str, program: int, *, stdin: bytes = b"", extra_fds: list[int] | None = None, kind: int = RUN
    ) -> Ending:
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
            kind=kind,
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
        run = self._header["runs"][0]
        kind = "jail" if run.get("own", run)["kind"] == "exec" else "zygote"
        without = "landlock" if self._config["confined"] is not None else "none"
        isolation = kind if self._config["plan"] is not None else without
        header, blobs = _described(result, ending, isolation, lost_s)
        if "partner" in result.more:
            partner, theirs = result.more["partner"]
            header["partner"], more = _described(partner, theirs, isolation, 0.0)
            blobs += more
        self._outbox.send({"op": "result", **header}, blobs)

    def _open_group(self, suffix: str, memory_mib: int, processes: int) -> cgroups.Slot | None:
        key, set_up = (suffix, memory_mib, processes), self._standing.groups
        if key not in set_up:
            for other in [other for other in set_up if other[0] == suffix]:
                del set_up[other]
            name = f"{self._standing.slot}{suffix}"
            set_up[key] = cgroups.slot(self._config["cgroups"], name, memory_mib, processes)
        return set_up[key]

    def _spec(self, identity: Identity, limits: Limits, grouped: bool) -> JailSpec:
        return JailSpec(
            identity=identity,
            plan=self._config["plan"],
            cpu_s=limits.cpu_s,
            memory_mib=limits.memory_mib,
            processes=limits.processes,
            scratch_mib=limits.scratch_mib,
            grouped=grouped,
            confined=self._config["confined"],
        )


def _described(
    result: Result, ending: Ending | None, isolation: str, lost_s: float
) -> tuple[dict[str, Any], list[bytes]]:
    """A result as it is sent: a header, and stdout, stderr, the value and the files behind it."""
    fetched = result.more.get("files", {})
    header = {
        "files": list(fetched),
        "isolation": isolation,
        "truncated": [ending.stdout_flooded, ending.stderr_flooded] if ending else [False, False],
        "ended_early": result.ended_early,
        "tampering": result.more.get("tampering", ""),
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
    return header, [*output, result.value or b"", *fetched.values()]


def _is_test(run: dict[str, Any]) -> bool:
    """Is it a script that asks for nothing but its input?"""
    return run["kind"] == "script" and not (run["args"] or run["names"] or run["fetch"])


def _was_starved(ending: Ending) -> bool:
    """Did it run out of wall time because it waited for a core?

    Then it had work for more than half of the time and got a core for less than half of it. A program cannot bring
    that about by itself: when all cores are busy with its own threads, it gets more than that.
    """
    report = ending.report
    return ending.wall_exceeded and report.cpu_s < _HALF * report.wall_s and report.runnable_share > _HALF


def _file(files: contextlib.ExitStack, name: str, content: bytes) -> int:
    fd = memory_file(name, content)
    files.callback(os.close, fd)
    return fd


def warm(config: dict[str, Any]) -> None:
    """Called once in the nursery: do what every runner would otherwise do again."""
    ns.warm()
