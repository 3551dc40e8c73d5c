"""The runner's side of the jails, and how processes hang together.

::

    server ── zygote (warm, in the root of all jails; never sees a payload)
       │        └ keeper (one for each place where a program runs at a time; first process of a pid namespace)
       │             ├ first process of a jail (user, pid, mount, ipc and uts namespaces of one run)
       │             └ the run's process: fork, cell.enter, the program; or a stem, and the tests forked from it
       └─ nursery ── runner (one answer at a time) ── a socket to each of its keepers

A runner asks the zygote for a keeper, and the keeper for runs, over one socket: each request names a role and carries
the descriptors that the run's process shall have; each report says how it ended and what it used. A runner holds what
an answer wrote, so no jail descends from it: zygote and keepers are given descriptors and never read them.

Everything ends with what it depends on, whatever the signal: a keeper when its socket closes, all processes of its pid
namespace with it, every keeper with the zygote, and the zygote with the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from dataclasses import asdict, dataclass
from typing import Any

from ..kernel import namespaces as ns
from ..kernel import rootfs
from ..kernel.cgroups import Slot
from .messages import END, JOIN, KILL, RUN, Report, pack_run, unpack_answer

__all__ = ["NOBODY", "Identity", "Jail", "JailLost", "JailRefused", "JailSpec", "Report", "connect"]

NOBODY = 65534
_FIRST_UID = 1_700_000_000
_MAX_MESSAGE = 65536


class JailRefused(Exception):
    """The kernel refuses a part of the jail; the message says which."""


class JailLost(Exception):
    """A process of ours in or around the jail died, and the runner did not kill it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the program is outside its jail. Inside it is always nobody (65534)."""

    uid: int
    gid: int
    privileged: bool
    """May this process make namespaces without a user namespace, and change its user?"""

    @classmethod
    def of_runner(cls, pid: int, *, isolated: bool = True) -> Identity:
        """As root a user of its own (and the next one, for a second jail) for each runner; else this very user.

        By its pid, which no other runner of the host has, not one of another server either: limits per user are shared
        with nobody, and to kill all that a user runs (:mod:`.keeper`) kills nothing else.

        Without isolation root remains root if nobody else can read the interpreter.
        """
        if os.geteuid() != 0 or (not isolated and not (_is_readable_by_all(os.__file__) and _may_change_user())):
            return cls(os.geteuid(), os.getegid(), False)
        if isolated and not ns.has_capability(ns.CAP_SYS_ADMIN):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            ns.set_dumpable(True)
            return cls(NOBODY, NOBODY, False)
        uid = _FIRST_UID + 2 * pid
        return cls(uid, uid, True) if _is_mapped(uid) else cls(NOBODY, NOBODY, True)


def _may_change_user() -> bool:
    return ns.has_capability(ns.CAP_SETUID) and ns.has_capability(ns.CAP_SETGID)


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
    """The root of the jails; ``None``: no namespaces."""
    cpu_s: float
    memory_mib: int
    processes: int
    scratch_mib: int
    grouped: bool
    """Are memory and processes limited by control groups?"""
    confined: rootfs.Plan | None = None
    """Without namespaces: what Landlock lets a program see. ``None``: no isolation at all, resource limits only."""

    def limits(self) -> tuple[float, int, int, int, bool]:
        """What a keeper is told with every request."""
        return self.cpu_s, self.memory_mib, self.processes, self.scratch_mib, self.grouped


class _Keepers:
    """The keepers of this runner that serve nobody at the moment, and the way to new ones."""

    def __init__(self) -> None:
        self.zygote: socket.socket | None = None
        self.idle: dict[Identity, list[_Keeper]] = {}


_keepers = _Keepers()


def connect(zygote: socket.socket) -> None:
    """Have the jails of this runner made by the zygote behind this socket."""
    _keepers.zygote = zygote


class _Keeper:
    """One keeper: its socket, and a descriptor that kills it."""

    def __init__(self, identity: Identity, *, isolated: bool) -> None:
        """Have it made. Raises :class:`JailRefused`, :class:`JailLost`."""
        if _keepers.zygote is None:
            raise JailRefused("no zygote is connected")
        self.identity = identity
        self._isolated = isolated
        self.group: Slot | None = None
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"identity": asdict(identity), "isolated": isolated}
        try:
            with theirs:
                socket.send_fds(_keepers.zygote, [json.dumps(request).encode()], [theirs.fileno()])
            message, fds, _, _ = socket.recv_fds(self.sock, _MAX_MESSAGE, 1)
        except OSError as error:
            self.sock.close()
            raise JailLost(f"the zygote is gone: {error}") from error
        if not fds:
            self.sock.close()
            if message:
                raise JailRefused(unpack_answer(message)[2])
            raise JailLost("the zygote is gone")
        self.pidfd = fds[0]

    def kill(self) -> None:
        """It and everything below it. Without a pid namespace the zygote has to look for what is left."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.pidfd)
        self.sock.close()
        if not self._isolated and _keepers.zygote is not None:
            with contextlib.suppress(OSError):
                _keepers.zygote.send(json.dumps({"sweep": asdict(self.identity)}).encode())


class Jail:
    """The runner's side of the jails of one answer: a keeper, with limits.

    Each run gets a new jail, but for tests that are forked from one stem (:mod:`adjudge_sandbox.supervisor.stem`).
    """

    def __init__(self, spec: JailSpec) -> None:
        """Raises :class:`JailRefused`, :class:`JailLost`."""
        self._limits = spec.limits()
        self.has_stem = False
        """Can a further test be forked in the last run's jail?"""
        self._keeper = _take_keeper(spec)
        self._running = False

    def fileno(self) -> int:
        """Readable when a report waits or the keeper is gone."""
        return self._keeper.sock.fileno()

    def join(self, group: Slot) -> None:
        """Have all runs take place in this control group. Raises :class:`JailLost`."""
        if self._keeper.group == group:
            return
        procs = group.open_procs()
        try:
            self._send(bytes([JOIN]), procs)
        finally:
            for fd in procs:
                os.close(fd)
        self._keeper.group = group

    def request(self, request: dict[str, Any], fds: list[int], kind: int = RUN) -> None:
        """Start a run, with copies of ``fds``. Raises :class:`JailLost`."""
        self._running = True
        self.has_stem = False
        self._send(pack_run(self._limits, request, kind), fds)

    def ask_to_kill(self) -> None:
        """End the run that is going on; its report follows."""
        self._send(bytes([KILL]), [])

    def report(self) -> Report:
        """The next report. Raises :class:`JailLost`, :class:`JailRefused`."""
        try:
            message = self._keeper.sock.recv(_MAX_MESSAGE)
        except OSError as error:
            raise JailLost(str(error)) from error
        if not message:
            raise JailLost("its keeper is gone")
        report, lost, refused = unpack_answer(message)
        if report is None:
            raise JailRefused(refused) if refused else JailLost(lost)
        self._running = False
        self.has_stem = report.stem
        return report

    def close(self) -> None:
        """Let the keeper serve others; or, if a run is going on, kill it and everything in its jail."""
        if self.has_stem and not self._running:
            with contextlib.suppress(JailLost):
                self._send(bytes([END]), [])
        if self._running:
            self._keeper.kill()
        else:
            _keepers.idle.setdefault(self._keeper.identity, []).append(self._keeper)

    def _send(self, message: bytes, fds: list[int]) -> None:
        try:
            socket.send_fds(self._keeper.sock, [message], fds)
        except OSError as error:
            self._running = True
            raise JailLost(str(error)) from error


def _take_keeper(spec: JailSpec) -> _Keeper:
    """One that waits for work, or a new one."""
    idle = _keepers.idle.get(spec.identity, [])
    while idle:
        keeper = idle.pop()
        try:
            keeper.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return keeper  # it lives
        except OSError:
            pass
        keeper.kill()  # it has died, or has spoken out of turn
    return _Keeper(spec.identity, isolated=spec.plan is not None)
