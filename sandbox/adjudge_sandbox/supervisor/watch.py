"""Watching one run from its keeper: its end, its CPU time, and at a wall stop what it had been waiting for."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from .messages import Report, pack_watched

if TYPE_CHECKING:
    from .jail import JailSpec
    from .stem import Stem

__all__ = ["Watch", "clock_s", "has_no_children", "is_exiting", "kill_tree"]

_MAX_MESSAGE = 65536
_LONGEST_TICK_S, _SHORTEST_TICK_S, _MEMORY_TICK_S = 0.25, 0.005, 0.02
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PF_EXITING = 0x4  # of include/linux/sched.h; in /proc/PID/stat since 2.6
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CORES = max(1, os.cpu_count() or 1)


class Watch:
    """One run's process, until it has ended."""

    def __init__(
        self,
        control: socket.socket,
        spec: JailSpec,
        pid: int,
        ours: Collection[int],
        started: float,
        scratch: str,
        stem: Stem | None = None,
        before_s: float = 0.0,
    ) -> None:
        """``ours``: pids of those in the jail who are none of the run's. ``scratch``: where the run may write.

        ``stem``: the process that is watched, until it has forked the run's. ``before_s``: CPU seconds of the watched
        process that are not the run's.
        """
        self._control = control
        self._spec = spec
        self._pid = pid
        self._ours = {os.getpid(), *ours}
        self._stem = stem
        self._started = started
        self._status: int | None = None
        self._wall_s = 0.0
        self._before_s = before_s
        self._reaped_cpu_s = 0.0
        self._seen_cpu_s: dict[int, float] = {}
        self._peak_mib = 0.0
        self._killed = ""
        self._scratch = scratch
        self._free_at_first = _free_mib(scratch) if spec.confined is not None else ()
        self._runnable_s = self._asked_after_s = 0.0

    def wait(self) -> bool:
        """Until the process has ended, or the stem has forked another. ``False``: the runner has gone."""
        pidfd = os.pidfd_open(self._pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        if self._stem is not None:
            poll.register(self._stem.sock, select.POLLIN)
        try:
            while self._status is None and not (self._stem is not None and self._stem.has_spoken()):
                ready = {fd for fd, _ in poll.poll(self._tick_s() * 1000)}
                if self._control.fileno() in ready:
                    if not self._control.recv(_MAX_MESSAGE):
                        return False
                    self._asked_after_s = self._asked_after_s or time.monotonic() - self._started
                    self._runnable_s = self._runnable_s or self._most_runnable_s()
                    self._kill("asked")
                if pidfd in ready and self._asked_after_s:
                    # what a task waits is counted when it gets a core, so only now; without what it waited to die
                    dying_s = time.monotonic() - self._started - self._asked_after_s
                    self._runnable_s = max(self._runnable_s, _runnable_s(self._pid) - dying_s)
                self._reap_the_dead()
        finally:
            os.close(pidfd)
        self._wall_s = time.monotonic() - self._started
        return True

    @property
    def ended(self) -> bool:
        """Else the stem has forked the run's process, or is about to end."""
        return self._status is not None

    @property
    def status(self) -> int:
        """As :func:`os.waitpid` gives it."""
        assert self._status is not None
        return self._status

    def report(self) -> bytes:
        assert self._status is not None
        cpu_s = self._used_s(0.0)
        share = self._runnable_s / self._asked_after_s if self._asked_after_s else 0.0
        return pack_watched(Report(self._status, cpu_s, self._wall_s, self._peak_mib, self._killed, share))

    def _tick_s(self) -> float:
        """Seconds until the next look; kills the run if it is over a limit."""
        elapsed = time.monotonic() - self._started
        if elapsed * _CORES < self._spec.cpu_s and self._spec.grouped and self._spec.confined is None:
            return min(_LONGEST_TICK_S, max(_SHORTEST_TICK_S, self._spec.cpu_s / _CORES - elapsed))
        used_s, resident_mib = self._look()
        if used_s > self._spec.cpu_s:
            self._kill("cpu")
        elif not self._spec.grouped and resident_mib > self._spec.memory_mib:
            self._kill("memory")
        elif self._spec.confined is not None and self._has_written_too_much():
            self._kill("files")
        if self._killed:
            return _SHORTEST_TICK_S
        watched = not self._spec.grouped or self._spec.confined is not None
        longest = _MEMORY_TICK_S if watched else _LONGEST_TICK_S
        return min(longest, max(_SHORTEST_TICK_S, (self._spec.cpu_s - used_s) / _CORES))

    def _look(self) -> tuple[float, float]:
        """CPU seconds and resident MiB of everything that the run has started."""
        pages, alive_s, alive = 0, 0.0, False
        for pid in self._descendants():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                own, waited_for = (sum(map(int, fields[at : at + 2])) / _TICKS_PER_S for at in (11, 13))
                self._seen_cpu_s[pid] = own
                alive_s, alive = alive_s + own + waited_for, True
                pages += max(0, int(fields[21]) - _own_pages())
        if not alive:
            self._seen_cpu_s[self._pid] = alive_s = clock_s(self._pid)
        return self._used_s(alive_s), pages * _PAGE_BYTES / (1 << 20)

    def _used_s(self, alive_s: float) -> float:
        """Two sums, neither of which counts a second twice; the larger is nearer the truth.

        What those alive used, with the children that they waited for, and what the dead used who were reaped here. And
        what every process that was ever seen used by itself: one that nobody waited for is in no sum of its parent's.
        """
        return max(0.0, max(self._reaped_cpu_s + alive_s, sum(self._seen_cpu_s.values())) - self._before_s)

    def _has_written_too_much(self) -> bool:
        """Counts files only when the disk has become as much fuller, by whomever: /tmp has no limit of its own here."""
        free = _free_mib(self._scratch)
        if all(now > then - self._spec.scratch_mib for now, then in zip(free, self._free_at_first, strict=True)):
            return False
        return _size_mib(self._scratch) > self._spec.scratch_mib

    def _most_runnable_s(self) -> float:
        """How long that task which had most to do ran or waited for a core.

        Not the sum of all tasks: those of one program could wait for each other.
        """
        most_s = 0.0
        for pid in self._descendants():
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    most_s = max(most_s, _runnable_s(pid, task))
        return most_s

    def _descendants(self) -> list[int]:
        """Everybody in this pid namespace who is not ours; without one, whoever is in the child's tree."""
        if self._spec.plan is None:
            return [pid for child in _children_of(os.getpid()) for pid in _tree(child)]
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in self._ours]
        return []

    def _kill(self, why: str) -> None:
        self._reap_the_dead()
        if self._status is not None or is_exiting(self._pid):
            return  # it was faster, and how it ended is its own doing (or that of somebody outside)
        self._killed = self._killed or why
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _reap_the_dead(self) -> None:
        """Without isolation orphans too: a dead process that nobody reaps counts against the limit of processes."""
        with contextlib.suppress(ChildProcessError):
            while (dead := os.wait4(self._pid if self._spec.plan is not None else -1, os.WNOHANG))[0]:
                self._record(*dead)

    def _record(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        self._reaped_cpu_s += usage.ru_utime + usage.ru_stime
        self._peak_mib = max(self._peak_mib, usage.ru_maxrss / 1024)
        if pid == self._pid:
            self._status = status


def is_exiting(pid: int) -> bool:
    """Is this process on its way out? Its sockets close, and so others hear of it, before it can be waited for.

    All of its threads have to be: the first one may leave on its own, and the process lives on.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        threads = os.listdir(f"/proc/{pid}/task")
        return bool(threads) and all(_is_exiting(pid, thread) for thread in threads)
    return False


def _is_exiting(pid: int, thread: str) -> bool:
    gone = contextlib.suppress(FileNotFoundError, ProcessLookupError)
    with gone, open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
        return bool(int(file.read().rpartition(b")")[2].split()[6]) & _PF_EXITING)
    return True  # it has gone since


def has_no_children(pid: int) -> bool:
    """Is that certain?"""
    try:
        fd = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY)
    except OSError:
        return False
    children = os.read(fd, 1)
    os.close(fd)
    return not children


def _children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


def kill_tree(root: int, spared: Collection[int] = ()) -> None:
    """SIGKILL all descendants of a process, as far as they can be found, but for some children and theirs."""
    for pid in {found for child in _children_of(root) if child not in spared for found in _tree(child)}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _tree(pid: int) -> list[int]:
    found, queue = [], [pid]
    while queue:
        found.append(current := queue.pop())
        queue.extend(_children_of(current))
    return found


def _runnable_s(pid: int, task: str = "") -> float:
    """Seconds that a task ran or waited for a core; 0 where the kernel does not count them."""
    path = f"/proc/{pid}/task/{task}/schedstat" if task else f"/proc/{pid}/schedstat"
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        ran_ns, waited_ns, _ = file.read().split()
        return (int(ran_ns) + int(waited_ns)) / 1e9
    return 0.0


def _free_mib(folder: str) -> tuple[float, ...]:
    """What is free on the disk of this folder, in its blocks, and in its inodes as if each stood for a page."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize / (1 << 20), disk.f_ffree * _PAGE_BYTES / (1 << 20)


def _size_mib(folder: str) -> float:
    """Of all files below a folder. Links are not followed: whoever runs there may put any."""
    size = 0
    for _, folders, names, fd in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *names):
            with contextlib.suppress(OSError):
                size += max(_PAGE_BYTES, 512 * os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks)
    return size / (1 << 20)


def _own_pages() -> int:
    """Pages that a process forked from this one has from its birth."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def clock_s(pid: int) -> float:
    """CPU seconds of one process by the kernel's clock of that process."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0
