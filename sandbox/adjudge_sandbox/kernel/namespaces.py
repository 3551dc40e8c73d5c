"""The kernel calls of a jail, by ctypes on the C library: clone, unshare, setns, mount, capabilities, prctl.

Each function is one call that raises ``OSError`` when the kernel refuses. Nothing here knows what a jail looks like;
that is :mod:`adjudge_sandbox.kernel.rootfs` and :mod:`adjudge_sandbox.supervisor.jail`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import signal
from typing import Any

__all__ = [
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_RDONLY",
    "MS_REC",
    "MS_REMOUNT",
    "NEW_IPC",
    "NEW_NET",
    "NEW_NS",
    "NEW_PID",
    "NEW_USER",
    "NEW_UTS",
    "become_subreaper",
    "block_signals",
    "clone_fork",
    "clone_paused",
    "close_from",
    "detach",
    "die_with_parent",
    "drop_capabilities",
    "forbid_new_privileges",
    "fork_sibling",
    "has_blocked_signals",
    "has_capability",
    "make_read_only",
    "map_user",
    "mount",
    "mount_bytes",
    "pivot_root",
    "plain_fork",
    "set_dumpable",
    "set_seccomp",
    "setns",
    "unblock_signals",
    "unshare",
    "warm",
]

NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 6, 7, 21
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_GET_TID_ADDRESS = 36, 38, 40
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

# system call numbers: (x86_64, aarch64)
_PIVOT_ROOT = (155, 41)
_MOUNT_SETATTR = (442, 442)
_CLOSE_RANGE = (436, 436)
_CLONE = (56, 220)

_CLONE_VM, _CLONE_PARENT, _CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x100, 0x8000, 0x200000, 0x1000000
_PAUSED_STACK_BYTES = 16384
_SIG_IGN = ctypes.c_void_p(1)


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapData(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


_CAP_HEADER = _CapHeader(_CAPABILITY_VERSION_3, 0)
_NO_CAPABILITIES = (_CapData * 2)()


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
    return libc


@functools.cache
def _architecture() -> int:
    """Column of a table of system call numbers."""
    try:
        return {"x86_64": 0, "aarch64": 1}[platform.machine()]
    except KeyError:
        raise OSError(f"no table of system calls for {platform.machine()}") from None


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _syscall(numbers: tuple[int, int], what: str, *arguments: Any) -> None:
    _check(_libc().syscall(ctypes.c_long(numbers[_architecture()]), *arguments), what)


def _prctl(option: int, value: int, what: str) -> None:
    _check(_libc().prctl(option, value, 0, 0, 0), what)


@functools.cache
def _locked_libc() -> Any:
    """For calls that fork: the interpreter's lock is held, and so the child holds it too."""
    return ctypes.PyDLL(None, use_errno=True)


def plain_fork() -> int:
    """As :func:`os.fork` in a process without threads, but nothing that modules have registered for forks is run.

    Half the cost of a fork of a warm interpreter are those functions. They put right what other threads may have held.
    """
    pid: int = _locked_libc().fork()
    _check(pid, "fork")
    return pid


def clone_fork(flags: int) -> int:
    """As :func:`plain_fork`, with the child in the new namespaces that ``flags`` name."""
    zero = ctypes.c_long(0)
    number = ctypes.c_long(_CLONE[_architecture()])
    pid: int = _locked_libc().syscall(number, ctypes.c_long(flags | signal.SIGCHLD), zero, zero, zero, zero)
    _check(pid, "clone")
    return pid


def fork_sibling() -> int:
    """As :func:`plain_fork`, but the child is one of this process's parent, which alone can wait for it."""
    pid: int = _locked_libc().syscall(*_sibling_arguments())
    _check(pid, "clone")
    return pid


@functools.cache
def _sibling_arguments() -> tuple[ctypes.c_long, ...]:
    """The kernel writes the child's number where the C library keeps it, if it says where that is."""
    flags, address = _CLONE_PARENT | signal.SIGCHLD, ctypes.c_ulong(0)
    if _libc().prctl(_PR_GET_TID_ADDRESS, ctypes.addressof(address), 0, 0, 0) == 0:
        flags |= _CLONE_CHILD_CLEARTID | _CLONE_CHILD_SETTID
    rest = [0, 0, address.value, 0] if _architecture() == 0 else [0, 0, 0, address.value]
    return tuple(map(ctypes.c_long, (_CLONE[_architecture()], flags, *rest)))


@functools.cache
def _paused_parts() -> tuple[Any, Any, Any]:
    """clone(3), the address of pause(3), and the top of a stack for it."""
    libc = _locked_libc()
    stack = ctypes.create_string_buffer(_PAUSED_STACK_BYTES)
    _kept.append(stack)
    top = (ctypes.addressof(stack) + _PAUSED_STACK_BYTES) & ~63
    return libc.clone, ctypes.cast(libc.pause, ctypes.c_void_p), ctypes.c_void_p(top)


_kept: list[Any] = []


def clone_paused(flags: int) -> int:
    """A child in new namespaces that shares this process's memory and does nothing but wait for a signal.

    It costs a tenth of a fork, because no page table is copied. It runs one function of the C library, ``pause``, and
    never comes back from it. Its orphans are reaped by the kernel. It may be made while an earlier one is still dying,
    not while one lives: they have one stack.
    """
    clone, pause, top = _paused_parts()
    libc = _locked_libc()
    libc.signal(signal.SIGCHLD, _SIG_IGN)  # inherited: the kernel reaps its orphans
    pid: int = clone(pause, top, flags | _CLONE_VM | signal.SIGCHLD, None)
    _check(pid, "clone")
    libc.signal(signal.SIGCHLD, None)
    return pid


def setns(fd: int, flags: int) -> None:
    """Enter those namespaces of the process behind the pidfd ``fd`` that ``flags`` name."""
    _check(_libc().setns(fd, flags), "setns")


def close_from(first: int) -> None:
    """Close every descriptor from ``first`` on."""
    try:
        _syscall(_CLOSE_RANGE, "close_range", ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0))
    except OSError:  # Linux before 5.9
        for name in os.listdir("/proc/self/fd"):
            if int(name) >= first:
                with contextlib.suppress(OSError):
                    os.close(int(name))


def unshare(flags: int) -> None:
    """Leave the namespaces named by ``flags`` for new ones."""
    _check(_libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2)."""
    kind_bytes, data_bytes = kind.encode() if kind else None, data.encode() if data else None
    mount_bytes(os.fsencode(source), os.fsencode(target), kind_bytes, flags, data_bytes)


def mount_bytes(source: bytes, target: bytes, kind: bytes | None, flags: int, data: bytes | None) -> None:
    """:func:`mount` with everything encoded, for what is done in every run."""
    if _libc().mount(source, target, kind, flags, data) < 0:
        _check(-1, f"mount {os.fsdecode(kind or b'bind')} on {os.fsdecode(target)}")


def make_read_only(target: str) -> None:
    """Make a bind mount and all mounts below it read-only, without set-uid programs and devices."""
    attributes = _MountAttr(attr_set=_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV)
    path = os.fsencode(target)
    try:
        _syscall(
            _MOUNT_SETATTR,
            f"mount_setattr {target}",
            _AT_FDCWD,
            path,
            ctypes.c_uint(_AT_RECURSIVE),
            ctypes.byref(attributes),
            ctypes.c_size_t(ctypes.sizeof(attributes)),
        )
    except OSError:  # Linux before 5.12: the flags that the mount already has may be locked and must be repeated
        kept = os.statvfs(target).f_flag & (os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME)
        mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | _as_mount_flags(kept))


def _as_mount_flags(flags: int) -> int:
    pairs = {os.ST_NOEXEC: MS_NOEXEC, os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048, os.ST_RELATIME: 1 << 21}
    return sum(bit for known, bit in pairs.items() if flags & known)


def detach(target: str) -> None:
    """Unmount ``target`` lazily."""
    _check(_libc().umount2(os.fsencode(target), _MNT_DETACH), f"umount {target}")


def pivot_root(new_root: str) -> None:
    """Make the mount point ``new_root`` the root and drop the old one."""
    os.chdir(new_root)
    _syscall(_PIVOT_ROOT, "pivot_root", b".", b".")
    detach(".")
    os.chdir("/")


def map_user(inside: int, outside_uid: int, outside_gid: int) -> None:
    """In a new user namespace: let ``outside_uid`` (this process's own) be ``inside``, and nobody else anybody."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside} {outside_uid} 1"),
        ("gid_map", f"{inside} {outside_gid} 1"),
    ):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def has_capability(number: int) -> bool:
    """Is this capability in the effective set of the process?"""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> number & 1)
    return False


def drop_capabilities() -> None:
    """Give up every capability, also those that a program executed later could have gained."""
    prctl = _libc().prctl
    for number in range(_LAST_CAPABILITY + 1):
        if prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # the first number that this kernel does not know
    _check(_libc().capset(ctypes.byref(_CAP_HEADER), ctypes.byref(_NO_CAPABILITIES)), "capset")


def forbid_new_privileges() -> None:
    """No program executed from here on gains a privilege, whatever its file says."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "no_new_privs")


def set_dumpable(on: bool) -> None:
    """May processes of the same user read this one's memory and descriptors through /proc?"""
    _prctl(_PR_SET_DUMPABLE, int(on), "dumpable")


def block_signals() -> None:
    """All that can be, but for SIGCONT. The interpreter's own function costs a hundred page faults after a fork."""
    libc = _libc()
    libc.sigfillset(_blocked)
    libc.sigdelset(_blocked, signal.SIGCONT)
    _check(libc.sigprocmask(signal.SIG_SETMASK, _blocked, None), "sigprocmask")


def unblock_signals() -> None:
    """All."""
    _libc().sigprocmask(signal.SIG_SETMASK, _none, None)


def has_blocked_signals() -> bool:
    """Has somebody sent one that is blocked?"""
    _libc().sigpending(_pending)
    return _pending.raw != _none.raw


_SIGNAL_SET_BYTES = 128
_blocked, _pending, _none = (ctypes.create_string_buffer(_SIGNAL_SET_BYTES) for _ in range(3))


def become_subreaper() -> None:
    """Become the parent of orphaned descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, "child_subreaper")


def die_with_parent() -> None:
    """Be killed when the parent dies."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, "pdeathsig")


def set_seccomp(option: int, mode: int, program: int) -> None:
    """Install the filter at the address ``program``; see :mod:`adjudge_sandbox.kernel.seccomp`."""
    _check(_libc().prctl(option, mode, program, 0, 0), "seccomp")


def warm() -> None:
    """Load the C library's handles before the fork that needs them."""
    _libc()
    _architecture()
    with contextlib.suppress(AttributeError):
        _paused_parts()
