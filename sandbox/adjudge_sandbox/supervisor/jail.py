"""One jail: new namespaces, a root of its own, and a trusted first process that forks one child per run.

::

    runner ── fork ── maker ── unshare ── fork ── init (pid 1 of the jail)
                        └ exits                     └ fork per run ── cell.enter ── the program

The runner holds a :class:`Jail`. Killing its first process kills everything in it, whatever it forked, and everything
dies in the same way when the runner does. The runner asks over one socket: each request names a role and carries the
descriptors that the child shall have; each report says how the child ended and what it used. Init
(:mod:`adjudge_sandbox.supervisor.init`) keeps the rights that it needs for making a fresh ``/tmp`` for every run, and
is given nothing that an answer wrote.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn

from ..kernel import namespaces as ns
from ..kernel import rootfs
from . import init

__all__ = ["NOBODY", "Identity", "Jail", "JailLost", "JailRefused", "JailSpec"]

NOBODY = 65534
_FIRST_UID = 1_700_000_000
_NAMESPACES = ns.NEW_NS | ns.NEW_PID | ns.NEW_IPC | ns.NEW_UTS | ns.NEW_NET
_MAX_MESSAGE = 65536


class JailRefused(Exception):
    """The kernel refuses a part of the jail; the message says which."""


class JailLost(Exception):
    """The jail's first process died, and the runner did not kill it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the program is outside its jail. Inside it is always nobody (65534)."""

    uid: int
    gid: int
    privileged: bool
    """May this process make namespaces without a user namespace, and change its user?"""

    @classmethod
    def of_slot(cls, number: int, *, isolated: bool = True) -> Identity:
        """As root a user of its own for each slot, so that limits per user are not shared; else this very user.

        Without isolation root remains root if nobody else can read the interpreter.
        """
        if os.geteuid() != 0 or (not isolated and not _is_readable_by_all(os.__file__)):
            return cls(os.geteuid(), os.getegid(), False)
        if isolated and not ns.has_capability(ns.CAP_SYS_ADMIN):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            ns.set_dumpable(True)
            return cls(NOBODY, NOBODY, False)
        uid = _FIRST_UID + number
        return cls(uid, uid, True) if _is_mapped(uid) else cls(NOBODY, NOBODY, True)


def _is_readable_by_all(path: str) -> bool:
    """May anybody read this file, through all its folders?"""
    real = os.path.realpath(path)
    folders = [os.path.dirname(real)]
    while folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))
    return bool(os.stat(real).st_mode & 0o004) and all(os.stat(folder).st_mode & 0o001 for folder in folders)


def _is_mapped(uid: int) -> bool:
    """Does this user exist in our own user namespace?"""
    with open("/proc/self/uid_map") as ranges:
        return any(int(first) <= uid < int(first) + int(size) for first, _, size in map(str.split, ranges))


@dataclass(frozen=True, slots=True)
class JailSpec:
    """Everything about a jail that is known before its first run."""

    identity: Identity
    plan: rootfs.Plan | None
    """``None``: no isolation at all, resource limits only."""
    cpu_s: float
    memory_mib: int
    processes: int
    scratch_mib: int
    grouped: bool
    """Are memory and processes limited by control groups?"""


class Jail:
    """The runner's side of one jail."""

    def __init__(self, spec: JailSpec) -> None:
        """Fork it. Raises :class:`JailRefused`, :class:`JailLost`."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        maker = os.fork()
        if maker == 0:
            self._control.close()
            _make(theirs, spec)
        theirs.close()
        os.waitpid(maker, 0)
        born = self._receive()
        self.pid = int(born["pid"])
        self._pidfd = os.pidfd_open(self.pid)

    def fileno(self) -> int:
        """Readable when a report waits or the jail is gone."""
        return self._control.fileno()

    def request(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start a run, with copies of ``fds``. Raises :class:`JailLost`."""
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
        except OSError as error:
            raise JailLost(str(error)) from error

    def ask_to_kill(self) -> None:
        """End the run that is going on; its report follows."""
        self.request({"op": "kill"}, [])

    def report(self) -> init.Report:
        """The next report. Raises :class:`JailLost`, :class:`JailRefused`."""
        return init.Report(**self._receive())

    def close(self) -> None:
        """Kill everything in the jail."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        os.close(self._pidfd)
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _receive(self) -> dict[str, Any]:
        try:
            message = self._control.recv(_MAX_MESSAGE)
        except OSError as error:
            raise JailLost(str(error)) from error
        if not message:
            raise JailLost("its first process is gone")
        received: dict[str, Any] = json.loads(message)
        if "refused" in received:
            raise JailRefused(received["refused"])
        return received


def _make(control: socket.socket, spec: JailSpec) -> NoReturn:
    """In the maker: leave the namespaces, fork init, exit. Never returns."""
    status = 1
    try:
        _keep_only(control.fileno())
        os.setsid()  # signals to "my process group" from inside must not reach the server
        if spec.plan is not None:
            uid, gid = os.geteuid(), os.getegid()
            ns.unshare(_NAMESPACES if spec.identity.privileged else _NAMESPACES | ns.NEW_USER)
            if not spec.identity.privileged:
                ns.map_user(NOBODY, uid, gid)
        pid = os.fork()
        if pid == 0:
            _become_init(control, spec)
        control.send(json.dumps({"pid": pid}).encode())
        status = 0
    except BaseException as error:  # noqa: BLE001 - whatever it was, it must not unwind into the runner
        _refuse(control, error)
    os._exit(status)


def _keep_only(fd: int) -> None:
    """Close what belongs to the runner, its line to the server above all."""
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))


def _become_init(control: socket.socket, spec: JailSpec) -> NoReturn:
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)  # which pid 1 ignores when it comes from inside
        if spec.plan is not None:
            rootfs.build(spec.plan)
        else:
            ns.become_subreaper()
        ns.set_dumpable(False)  # nothing of init can be read or written through /proc
        init.serve(control, spec)
    except BaseException as error:  # noqa: BLE001 - as above
        _refuse(control, error)
    os._exit(1)


def _refuse(control: socket.socket, error: BaseException) -> None:
    if not isinstance(error, OSError):
        traceback.print_exc()
    with contextlib.suppress(OSError):
        control.send(json.dumps({"refused": str(error) or repr(error)}).encode())
