"""The runner's side of one process in a jail: its pipes, its report, its end.

Output is drained for as long as the process lives and cut at a limit, and the end of a run is the end of its process
(the keeper says so), never the end of a pipe: a pipe that a stray child holds open keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from .. import frames
from ..kernel.cgroups import Slot
from .jail import Identity, Jail, JailLost, Report
from .messages import LAST, RUN, TEST

__all__ = ["Ending", "Execution", "JailBroken", "memory_file", "wait_for"]

_CHUNK = 1 << 16
_PREFIX_BYTES = 12
_REPORT_SLACK_BYTES = 32 << 20  # for a code object, which is sent before the program runs
_MAX_FRAMES = 8  # an honest driver sends four at most; each costs us work that no limit of the program counts
_KILL_TICK_S = 1.0
_CPU_TICK_S = 0.5
_CPU_SLACK_S, _CPU_SLACK = 0.2, 1.1
"""A group also counts the freeing of memory at the end; only what is well above the keeper's count is time hidden."""
_KILL_GRACE_S = 20.0
"""How long the keeper may take to report the end of a process that it was asked to kill; then the jail is lost."""


class JailBroken(Exception):
    """A run's process could not be prepared: a fault of this host or of ours."""


@dataclass(slots=True)
class Ending:
    """Everything that is known about one process that has ended."""

    report: Report
    frames: list[frames.Frame]
    """What its driver, or the program in its name, reported after the cell was ready."""
    garbage: str = ""
    """Set if what it reported is no frame: the program wrote to the report socket."""
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_flooded: bool = False
    """It wrote more than the limit."""
    stderr_flooded: bool = False
    wall_exceeded: bool = False
    oom_kills: int = 0
    """By the kernel, because the run met its limit of memory."""
    host_kills: int = 0
    """By the kernel, because the host, or a group above, had no memory left."""
    peak_mib: float = 0.0

    @property
    def flooded(self) -> bool:
        return self.stdout_flooded or self.stderr_flooded


def memory_file(name: str, content: bytes) -> int:
    """A descriptor of an anonymous file with this content, at its start."""
    fd = os.memfd_create(name)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@dataclass(slots=True)
class _Stream:
    """One pipe that is being drained."""

    fd: int
    limit: int
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    flooded: bool = False
    open: bool = True

    def drain(self) -> None:
        """Read what is there. Stops, for good, at the limit."""
        while self.open:
            try:
                part = os.read(self.fd, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                part = b""
            if not part:
                self.open = False
                return
            room = self.limit - self.size
            self.flooded = self.flooded or len(part) > room
            if room > 0:
                self.parts.append(part[:room])
                self.size += min(len(part), room)
            self.open = not self.flooded

    def content(self) -> bytes:
        return b"".join(self.parts)


class Execution:
    """One process in a jail, from its request to its ending."""

    def __init__(
        self,
        jail: Jail,
        group: Slot | None,
        role: str,
        *,
        program_fd: int,
        identity: Identity,
        stdin: bytes = b"",
        extra_fds: Sequence[int] = (),
        output_bytes: int,
        cpu_s: float,
        quiet: bool = False,
        ends: tuple[int, int] | None = None,
        kind: int = RUN,
    ) -> None:
        """Start it. All descriptors are copied and remain the caller's.

        ``quiet``: drop its output. ``ends``: its stdin and stdout, which lead elsewhere and are not read here.
        ``kind``: how (:mod:`adjudge_sandbox.supervisor.messages`); a further test by a stem has no report.
        """
        self._jail = jail
        self._group = group
        self._oom_before = group.oom_kills() if group else 0
        self._full_before = group.times_full() if group else 0
        self._cpu_before_s = group.cpu_s() if group else None
        self._cpu_limit_s = cpu_s
        self._next_count_at = time.monotonic() + _CPU_TICK_S
        self._used_before = 0
        if group:
            jail.join(group)
            self._used_before = group.reset_peak()
        reports = None if kind in (TEST, LAST) else socket.socketpair()
        (out_read, out_write), (err_read, err_write) = _output_pipe(quiet), _output_pipe(quiet)
        stdin_fd = memory_file("stdin", stdin) if ends is None else os.dup(ends[0])
        if ends is not None:
            os.dup2(ends[1], out_write)
        if identity.privileged and not quiet:
            for fd in (out_write, err_write, stdin_fd) if ends is None else (err_write,):
                os.fchown(fd, identity.uid, identity.gid)  # so that /dev/stdout can be opened
        try:
            request = {"role": role, "max_bytes": output_bytes}
            more = [reports[1].fileno(), program_fd, *extra_fds] if reports is not None else []
            jail.request(request, [stdin_fd, out_write, err_write, *more], kind)
        finally:
            for fd in (stdin_fd, out_write, err_write):
                os.close(fd)
            if reports is not None:
                reports[1].close()
        self._stdout = _Stream(out_read, output_bytes)
        self._stderr = _Stream(err_read, output_bytes)
        self._report_socket = reports[0] if reports is not None else None
        report_fd = self._report_socket.fileno() if self._report_socket is not None else -1
        self._report = _Stream(report_fd, output_bytes + _REPORT_SLACK_BYTES, open=report_fd >= 0)
        for stream in (self._stdout, self._stderr, self._report):
            if stream.open:
                os.set_blocking(stream.fd, False)
        self._parsed: list[frames.Frame] = []
        self._buffer = bytearray()
        self.garbage = ""
        self.report: Report | None = None
        self.wall_exceeded = False
        self._asked_to_kill_at: float | None = None

    @property
    def done(self) -> bool:
        return self.report is not None

    @property
    def dying(self) -> bool:
        """Has the keeper been asked to kill it?"""
        return self._asked_to_kill_at is not None

    def sources(self) -> list[int]:
        """Descriptors to poll."""
        streams = [stream.fd for stream in (self._stdout, self._stderr, self._report) if stream.open]
        return [self._jail.fileno(), *streams]

    def pump(self, ready: set[int]) -> None:
        """Handle what is readable. Raises :class:`~adjudge_sandbox.supervisor.jail.JailLost`."""
        if self._jail.fileno() in ready:
            self.report = self._jail.report()
        for stream in (self._stdout, self._stderr, self._report):
            if stream.fd in ready or self.done:
                stream.drain()
        self._parse()
        if self.report is None and self._is_over_cpu():
            self.kill()
        if self._stdout.flooded or self._stderr.flooded or self._report.flooded or self.garbage:
            self.kill()
        if self._asked_to_kill_at is not None and time.monotonic() - self._asked_to_kill_at > _KILL_GRACE_S:
            raise JailLost("a process does not die")

    @property
    def counts_cpu(self) -> bool:
        return self._cpu_before_s is not None

    def _is_over_cpu(self) -> bool:
        """By the count of the group, looked at now and then: what the keeper cannot see counts too."""
        if not self.counts_cpu or (now := time.monotonic()) < self._next_count_at:
            return False
        self._next_count_at = now + _CPU_TICK_S
        return self._counted_s() > self._cpu_limit_s * _CPU_SLACK + _CPU_SLACK_S

    def _counted_s(self) -> float:
        """CPU seconds so far by the count of its control group."""
        if self._group is None or self._cpu_before_s is None:
            return 0.0
        return (self._group.cpu_s() or 0.0) - self._cpu_before_s

    def kill(self) -> None:
        """Ask the keeper, once, to end the process. Its report follows."""
        if self._asked_to_kill_at is None and not self.done:
            self._asked_to_kill_at = time.monotonic()
            self._jail.ask_to_kill()

    def frame(self, *operations: str) -> frames.Frame | None:
        """The first frame reported with one of these operations."""
        return next((frame for frame in self._parsed if frame.header.get("op") in operations), None)

    def ending(self) -> Ending:
        """What became of it; once it is :attr:`done`. Closes everything."""
        assert self.report is not None
        if self._parsed and self._parsed[0].header.get("op") == "broken":  # later ones are the program's
            raise JailBroken(str(self._parsed[0].header["why"]))
        kills = self._group.oom_kills() - self._oom_before if self._group else 0
        full = bool(kills and self._group and self._group.was_full(self._full_before))
        peak_mib = self._group.peak_mib(self._used_before) if self._group else None
        counted_s = self._counted_s()
        hidden = counted_s > self.report.cpu_s * _CPU_SLACK + _CPU_SLACK_S
        return Ending(
            report=replace(self.report, cpu_s=counted_s) if hidden else self.report,
            frames=self._parsed[1:],
            garbage=self.garbage or ("too much" if self._report.flooded else ""),
            stdout=self._stdout.content(),
            stderr=self._stderr.content(),
            stdout_flooded=self._stdout.flooded,
            stderr_flooded=self._stderr.flooded,
            wall_exceeded=self.wall_exceeded,
            oom_kills=kills if full else 0,
            host_kills=0 if full else kills,
            peak_mib=peak_mib if peak_mib is not None else self.report.peak_mib,
        )

    def close(self) -> None:
        os.close(self._stdout.fd)
        os.close(self._stderr.fd)
        if self._report_socket is not None:
            self._report_socket.close()

    def _parse(self) -> None:
        if self.garbage or not self._report.parts:
            return
        for part in self._report.parts:
            self._buffer += part
        self._report.parts.clear()
        with contextlib.suppress(_Incomplete):
            while True:
                try:
                    self._parsed.append(self._next_frame())
                except frames.FrameError as error:
                    self.garbage = str(error)
                    return

    def _next_frame(self) -> frames.Frame:
        """Raises :class:`~adjudge_sandbox.frames.FrameError` for what no driver of ours would send."""
        if len(self._buffer) < _PREFIX_BYTES:
            raise _Incomplete
        if len(self._parsed) >= _MAX_FRAMES:
            raise frames.FrameError("too many frames")
        head, body = frames.parse_prefix(bytes(self._buffer[:_PREFIX_BYTES]), self._report.limit)
        start, end = _PREFIX_BYTES + head, _PREFIX_BYTES + head + body
        if len(self._buffer) < end:
            raise _Incomplete
        frame = frames.unpack(bytes(self._buffer[_PREFIX_BYTES:start]), bytes(self._buffer[start:end]))
        del self._buffer[:end]
        if not all(isinstance(frame.header.get(key, ""), str) for key in ("op", "detail", "why")):
            raise frames.FrameError("a frame of another make")
        return frame


class _Incomplete(Exception):
    pass


def _output_pipe(quiet: bool) -> tuple[int, int]:
    """Reading and writing end; with ``quiet`` what is written is gone and the reading end is at its end."""
    read, write = os.pipe()
    if quiet:
        os.dup2(null := os.open(os.devnull, os.O_WRONLY), write)
        os.close(null)
    return read, write


def wait_for(
    executions: Sequence[Execution], wall_s: float, look: Callable[[], None], *, tick_s: float = 3600.0
) -> None:
    """Pump until all are done. At ``wall_s`` those that are not are killed and marked.

    ``look()`` is called after each round, every ``tick_s`` at least, and may kill some of them.
    """
    deadline = time.monotonic() + wall_s
    while not all(execution.done for execution in executions):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            for execution in executions:
                if not execution.done:
                    execution.wall_exceeded = True
                    execution.kill()
        running = [execution for execution in executions if not execution.done]
        poll = select.poll()
        for execution in running:
            for fd in execution.sources():
                poll.register(fd, select.POLLIN)
        ticks = [tick_s, *(_KILL_TICK_S for execution in running if execution.dying)]
        timeout_s = min(left_s, *ticks, *(_CPU_TICK_S for execution in running if execution.counts_cpu))
        timeout_s = timeout_s if left_s > 0 else _KILL_TICK_S
        ready = {fd for fd, _ in poll.poll(timeout_s * 1000)}
        for execution in running:
            execution.pump(ready)
        look()
