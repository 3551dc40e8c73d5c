"""The first process of a jail: forks one child per run, watches its CPU time, cleans up after it.

It reads requests from the runner and the kernel's word on its children, and nothing else: no source, no input, no
output passes through it. When the child that a run started has ended, everything else in the jail is killed and reaped
before the report goes out, so that the next run meets nobody.

CPU time is that of all processes of the run together. The kernel's own limit (RLIMIT_CPU, set in
:mod:`adjudge_sandbox.supervisor.cell`) stands behind it, one second above.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NoReturn

from ..kernel import namespaces as ns
from . import cell

if TYPE_CHECKING:
    from .jail import JailSpec

__all__ = ["Report", "serve"]

_MAX_MESSAGE = 65536
_MAX_FDS = 16
_LONGEST_TICK_S, _SHORTEST_TICK_S, _MEMORY_TICK_S = 0.25, 0.005, 0.02
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PF_EXITING = 0x4  # of include/linux/sched.h; in /proc/PID/stat since 2.6
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Report:
    """How one run's process ended."""

    status: int
    """As :func:`os.waitpid` gives it."""
    cpu_s: float
    wall_s: float
    peak_mib: float
    killed: str
    """Why init killed it: ``cpu``, ``memory``, ``asked``; empty if it ended by itself."""


def serve(control: socket.socket, spec: JailSpec) -> NoReturn:
    """Serve requests until the runner goes away."""
    while True:
        message, fds, _, _ = socket.recv_fds(control, _MAX_MESSAGE, _MAX_FDS)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if request["op"] != "run":
            continue  # a request to kill that crossed with the report of the run's end
        ns.die_with_parent()  # the parent is the runner only from the first request on
        scratch = cell.make_scratch(spec)
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            control.close()
            cell.enter(request, fds, spec, scratch)
        for fd in fds:
            os.close(fd)
        report = _Watch(control, spec, pid, started).report()
        cell.remove_scratch(spec, scratch)
        control.send(json.dumps(asdict(report)).encode())


class _Watch:
    """Waits for one run's process to end."""

    def __init__(self, control: socket.socket, spec: JailSpec, pid: int, started: float) -> None:
        self._control = control
        self._spec = spec
        self._pid = pid
        self._started = started
        self._status: int | None = None
        self._reaped_cpu_s = 0.0
        self._peak_mib = 0.0
        self._killed = ""

    def report(self) -> Report:
        pidfd = os.pidfd_open(self._pid)
        try:
            self._wait(pidfd)
        finally:
            os.close(pidfd)
        wall_s = time.monotonic() - self._started
        with contextlib.suppress(ChildProcessError):
            while True:
                self._kill_everything()
                self._record(*os.wait4(-1, 0))
        assert self._status is not None
        return Report(self._status, self._reaped_cpu_s, wall_s, self._peak_mib, self._killed)

    def _wait(self, pidfd: int) -> None:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while self._status is None:
            ready = {fd for fd, _ in poll.poll(self._tick_s() * 1000)}
            if self._control.fileno() in ready:
                if not self._control.recv(_MAX_MESSAGE):
                    os._exit(0)
                self._kill("asked")
            self._reap_the_dead()

    def _tick_s(self) -> float:
        """Seconds until the next look; kills the run if it is over a limit."""
        elapsed = time.monotonic() - self._started
        parallel = max(1, os.cpu_count() or 1)
        if elapsed * parallel < self._spec.cpu_s and self._spec.grouped:
            return min(_LONGEST_TICK_S, max(_SHORTEST_TICK_S, self._spec.cpu_s / parallel - elapsed))
        used_s, resident_mib = self._look()
        if used_s > self._spec.cpu_s:
            self._kill("cpu")
        elif not self._spec.grouped and resident_mib > self._spec.memory_mib:
            self._kill("memory")
        if self._killed:
            return _SHORTEST_TICK_S
        longest = _LONGEST_TICK_S if self._spec.grouped else _MEMORY_TICK_S
        return min(longest, max(_SHORTEST_TICK_S, (self._spec.cpu_s - used_s) / parallel))

    def _look(self) -> tuple[float, float]:
        """CPU seconds and resident MiB of everything that the run has started."""
        ticks, pages, seen = 0, 0, False
        for pid in self._descendants():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
                seen = True
                pages += max(0, int(fields[21]) - _own_pages())
        used_s = ticks / _TICKS_PER_S if seen else _clock_s(self._pid)
        return self._reaped_cpu_s + used_s, pages * _PAGE_BYTES / (1 << 20)

    def _descendants(self) -> list[int]:
        """In a pid namespace everybody but init; without one whoever is in the child's tree."""
        if self._spec.plan is None:
            return [pid for child in _children(os.getpid()) for pid in _tree(child)]
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        return []

    def _kill(self, why: str) -> None:
        self._reap_the_dead()
        if self._status is not None or _is_exiting(self._pid):
            return  # it was faster, and how it ended is its own doing (or that of somebody outside)
        self._killed = self._killed or why
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _kill_everything(self) -> None:
        if self._spec.plan is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # everybody in this pid namespace but its first process
            return
        for pid in {child for root in _children(os.getpid()) for child in _tree(root)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _reap_the_dead(self) -> None:
        """Orphans too: a dead process that nobody reaps counts against the limit of processes."""
        with contextlib.suppress(ChildProcessError):
            while (dead := os.wait4(-1, os.WNOHANG))[0]:
                self._record(*dead)

    def _record(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        self._reaped_cpu_s += usage.ru_utime + usage.ru_stime
        self._peak_mib = max(self._peak_mib, usage.ru_maxrss / 1024)
        if pid == self._pid:
            self._status = status


def _is_exiting(pid: int) -> bool:
    """Is this process on its way out? Its sockets close, and so others hear of it, before it can be waited for."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return bool(int(file.read().rpartition(b")")[2].split()[6]) & _PF_EXITING)
    return False


def _own_pages() -> int:
    """Pages that a process forked from this one has from its birth."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def _clock_s(pid: int) -> float:
    """CPU seconds of one process by the kernel's clock of that process."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


def _tree(pid: int) -> list[int]:
    found, queue = [], [pid]
    while queue:
        found.append(current := queue.pop())
        queue.extend(_children(current))
    return found
