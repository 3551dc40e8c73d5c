"""The keeper: makes one jail after another, forks a run's process into each, watches it, cleans up after it.

It is a fork of the zygote that has become the first process of a pid namespace, in the root of all jails and in the
control groups of its place, which its children inherit. It reads requests from the runner and the kernel's word on its
children, and nothing else: no source, no input, no output passes through it.

A jail begins with a first process that does nothing (:func:`adjudge_sandbox.kernel.namespaces.clone_paused`); the run's
process is forked into its pid namespace and enters the others by itself. When that has ended, the first process is
killed, and the kernel kills everything else in the jail, before the report goes out if there is anything else. Tests
of one answer may share a jail, one after another: see :mod:`adjudge_sandbox.supervisor.stem`.

CPU time is that of all processes of the run together. The kernel's own limit (RLIMIT_CPU, set in
:mod:`adjudge_sandbox.supervisor.cell`) stands behind it, one second above.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time
import traceback
from typing import Any, NoReturn

from ..kernel import namespaces as ns
from ..kernel import rootfs
from . import cell
from .jail import NOBODY, Identity, JailSpec
from .messages import (
    END,
    JOIN,
    LAST,
    RUN,
    STEM,
    TEST,
    Report,
    mark_alive,
    pack_loss,
    pack_refusal,
    pack_report,
    pack_watched,
    quiet_ms,
    unpack_fds,
    unpack_run,
)
from .stem import Stem
from .watch import Watch, has_no_children, is_exiting, kill_tree

__all__ = ["keep", "sweep"]

_MAX_MESSAGE = 65536
_ANCILLARY_BYTES = socket.CMSG_SPACE(64)
_NAMESPACES = ns.NEW_PID | ns.NEW_NS | ns.NEW_IPC | ns.NEW_UTS
_NEVER_KILLED = b"-1000"
_FORK_TRIES = 2000
_SCRATCH = "/tmp"
_FORK_WAIT_MS = 2000.0
_ALL_KINDS = 0x40000000  # __WALL: children that do not end with SIGCHLD too


def keep(
    control: socket.socket, identity: Identity, plan: rootfs.Plan | None, confined: rootfs.Plan | None
) -> NoReturn:
    """Serve requests until the runner goes away. In a process of its own, forked for it."""
    try:
        os.setsid()  # signals to "my process group" must not reach the server
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as in any interpreter; inherited by every run
        if plan is not None:
            rootfs.mount_proc()
        else:
            ns.become_subreaper()
        cell.limit_ahead()
        # Nothing of it can be read or written through /proc. Below a user namespace that follows from the capabilities
        # that programs do not have, and this would keep out the keeper's own children, who enter its jails.
        ns.set_dumpable(plan is not None and not identity.privileged)
        _Keeper(control, identity, plan, confined).serve()
    except BaseException as error:  # noqa: BLE001 - whatever it was, it must not unwind into the zygote
        if not isinstance(error, OSError):
            traceback.print_exc()
        with contextlib.suppress(OSError):
            control.send(pack_refusal(str(error) or repr(error)))
    os._exit(1)


class _Keeper:
    """Every page that this process writes to between two forks costs a page fault, and there is nothing that costs it
    more: so for a run that stays within its limits it does as little as it can."""

    def __init__(
        self, control: socket.socket, identity: Identity, plan: rootfs.Plan | None, confined: rootfs.Plan | None
    ) -> None:
        self._control = control
        self._identity = identity
        self._plan = plan
        self._confined = confined
        self._first = 0
        """Pid of the first process of the present jail; 0 if there is none, or no isolation."""
        self._first_fd = -1
        self._own_fd = os.pidfd_open(os.getpid())
        self._own_mounts_fd = os.open("/proc/self/ns/mnt", os.O_RDONLY) if plan is not None else -1
        self._last_message = b""
        self._last_read: tuple[JailSpec, dict[str, Any]]
        """What it says: the requests of most runs are alike."""
        self._stem: Stem | None = None
        """Of the present jail, if it is kept for a further test."""
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)

    def serve(self) -> None:
        while True:
            message, ancillary, _, _ = self._control.recvmsg(_MAX_MESSAGE, _ANCILLARY_BYTES)
            if not message:
                self._end()
            fds = unpack_fds(ancillary[0][2]) if ancillary else ()
            if message[0] in (TEST, LAST):
                self._test(message, fds)
            elif message[0] in (RUN, STEM):
                self._end_stem()
                self._run(message, fds)
            elif message[0] == END:
                self._end_stem()
            elif message[0] == JOIN:
                _join(fds)
                for fd in fds:
                    os.close(fd)
            # a request to kill has crossed with the report of the run's end

    def _run(self, message: bytes, fds: tuple[int, ...]) -> None:
        started = time.monotonic()
        scratch = _SCRATCH if self._plan is not None else cell.make_scratch(self._identity)
        if self._plan is not None:
            self._first = ns.clone_paused(_NAMESPACES)
            self._first_fd = os.pidfd_open(self._first)
            ns.setns(self._first_fd, ns.NEW_PID)  # for children, until it is taken back
        spec, request = self._read(message)
        stem = Stem(self._control, cell.owner_inside(spec)) if message[0] == STEM else None
        pid = ns.plain_fork()
        if pid == 0:
            more = (stem.theirs.fileno(),) if stem is not None else ()
            cell.enter(request, (*fds, *more), spec, scratch, self._first_fd)
        if self._plan is not None:
            ns.setns(self._own_fd, ns.NEW_PID)
        for fd in fds:
            os.close(fd)
        if stem is not None:
            stem.forked(pid)
            self._watch_first_test(stem, message, started)
            return
        status, report = self._watch(message, pid, started, scratch, {self._first})
        if self._plan is None:
            self._kill_all()
            cell.remove_scratch(scratch)
            self._control.send(report)
        else:
            self._report(status, report)

    def _watch(
        self, message: bytes, pid: int, started: float, scratch: str, ours: set[int], before_s: float = 0.0
    ) -> tuple[int, bytes]:
        """Until the run's process has ended: its status and report.

        ``ours``: others in the jail. ``before_s``: CPU seconds of this process that are not the run's.
        """
        pidfd = os.pidfd_open(pid)
        self._poll.register(pidfd, select.POLLIN)
        over = self._poll.poll(quiet_ms(message, measured=self._confined is not None)) == [(pidfd, select.POLLIN)]
        self._poll.unregister(pidfd)
        os.close(pidfd)
        if over:
            _, status, usage = os.wait4(pid, 0)
            return status, pack_report(status, usage, started, before_s)
        spec, _ = self._read(message)
        watch = Watch(self._control, spec, pid, ours, started, scratch, before_s=before_s)
        if not watch.wait():
            self._end()
        return watch.status, watch.report()

    def _watch_first_test(self, stem: Stem, message: bytes, started: float) -> None:
        """Until then the stem itself is held to the limits: it compiles."""
        pid = stem.next_test(quiet_ms(message))
        if pid is None:
            watch = Watch(self._control, self._read(message)[0], stem.pid, {self._first}, started, _SCRATCH, stem)
            if not watch.wait():
                self._end()
            if watch.ended:
                stem.close()
                self._report(watch.status, watch.report())
                return
            pid = stem.next_test(_FORK_WAIT_MS)
        if pid:
            self._stem = stem
            self._watch_test(stem, pid, message, started)
            return
        stem.close()
        _, status, usage = os.wait4(stem.pid, 0)  # it has ended, and so has closed its socket, before any test
        self._report(status, pack_report(status, usage, started))

    def _test(self, message: bytes, fds: tuple[int, ...]) -> None:
        """A further test, by the stem."""
        started = time.monotonic()
        stem, pid, asked = self._stem, None, False
        if stem is not None and stem.begin(fds, last=message[0] == LAST):
            pid = stem.next_test(_FORK_WAIT_MS)
            asked = pid is None and self._is_asked()
        for fd in fds:
            os.close(fd)
        if stem is not None and pid:
            self._watch_test(stem, pid, message, started)
            return
        # The stem has been killed, or is kept from working: nothing of the test has run. Either the runner repeats it,
        # or its wall clock has run out already, for lack of a core.
        self._end_stem()
        wall_s = time.monotonic() - started
        self._control.send(pack_watched(Report(signal.SIGKILL, 0.0, wall_s, 0.0, "asked" if asked else "", 1.0)))

    def _is_asked(self) -> bool:
        """Has the runner asked to kill the test?"""
        try:
            if not self._control.recv(_MAX_MESSAGE, socket.MSG_DONTWAIT):
                self._end()
        except BlockingIOError:
            return False
        return True

    def _watch_test(self, stem: Stem, pid: int, message: bytes, started: float) -> None:
        ours, before_s = {self._first, stem.pid}, 0.0
        if pid == stem.pid:
            ours, before_s = {self._first}, stem.used_s
        status, report = self._watch(message, pid, started, _SCRATCH, ours, before_s)
        if message[0] != LAST and stem.renew(self._first, self._first_fd, self._own_mounts_fd):
            self._control.send(mark_alive(report))
        else:
            self._stem = None
            self._report(status, report)
            stem.close()

    def _end_stem(self) -> None:
        """Clear the jail that was kept for a further test, if there is one."""
        stem, self._stem = self._stem, None
        if stem is not None:
            stem.close()
            self._clear()

    def _report(self, status: int, report: bytes) -> None:
        if status & 0x7F == signal.SIGKILL and is_exiting(self._first):
            self._clear()
            self._control.send(pack_loss("the first process of a jail was killed"))
        elif has_no_children(self._first):
            self._control.send(report)  # and the jail, where nobody is left, ends while the runner works
            self._clear()
        else:
            self._clear()
            self._control.send(report)

    def _read(self, message: bytes) -> tuple[JailSpec, dict[str, Any]]:
        if message != self._last_message:
            limits, request = unpack_run(message)
            self._last_read = JailSpec(self._identity, self._plan, *limits, self._confined), request
            self._last_message = message
        return self._last_read

    def _kill_all(self) -> None:
        """Without a jail: whoever descends from this process, and everybody who is the program's own user."""
        if self._confined is not None and self._identity.privileged and self._identity.uid != NOBODY:
            for _ in range(_FORK_TRIES):
                with contextlib.suppress(BlockingIOError):
                    _kill_user(self._identity.uid)
                    break
                kill_tree(os.getpid())  # a bomb has used up all the processes that may be here: make room for one
                with contextlib.suppress(ChildProcessError):
                    while os.wait4(-1, os.WNOHANG)[0]:
                        pass
            else:
                raise OSError(errno.EAGAIN, "the processes of a program cannot be killed")
        with contextlib.suppress(ChildProcessError):
            while True:
                kill_tree(os.getpid())
                os.wait4(-1, 0)

    def _clear(self) -> None:
        """Kill everybody in the jail and wait until they are gone."""
        os.kill(-1, signal.SIGKILL)  # everybody in this keeper's pid namespace but itself
        os.close(self._first_fd)
        while os.waitpid(-1, _ALL_KINDS)[0] != self._first:
            pass  # it is waited for by the kernel until all others who are children of this process have been

    def _end(self) -> NoReturn:
        """The runner is gone. Everybody in this pid namespace ends with its first process."""
        if self._plan is None:
            self._kill_all()
        os._exit(0)


def sweep(identity: Identity, keepers: set[int], *, confined: bool) -> None:
    """In the zygote: kill what keepers that are gone have left behind, where no pid namespace has held it."""
    if confined and identity.privileged and identity.uid != NOBODY:
        _kill_user(identity.uid)
    kill_tree(os.getpid(), spared=keepers)


def _kill_user(uid: int) -> None:
    """Kill all processes of a user at once, which no race of forks escapes, by one that has become that user.

    Raises ``BlockingIOError`` where not even that one may be started.
    """
    pid = ns.plain_fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    with contextlib.suppress(OSError):  # where SIGCHLD is ignored, the kernel may have reaped it already
        fd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll()
        os.close(fd)
        os.waitpid(pid, os.WNOHANG)


def _join(fds: tuple[int, ...]) -> None:
    """Move into the control groups behind ``fds``. Where memory runs out there, a run is killed and not its keeper."""
    with contextlib.suppress(OSError):
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(fd, _NEVER_KILLED)
        finally:
            os.close(fd)
    for fd in fds:
        os.write(fd, b"0")
