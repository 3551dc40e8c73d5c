"""Landlock: a process gives up its own rights to files, TCP and other processes, without any privilege.

What the kernel offers depends on its version (the ABI); what an older one does not know is left out, and
:func:`abi` says how much there is. A rule is bound to a folder or file, so a ruleset is made where the paths are known:
just before it is put in force. It holds for the process and everything that it starts, for ever.

Not restricted by Landlock: looking at names and metadata (``stat``), ``chdir``, UDP, sockets with a path. The system
call filter has to deal with those.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Rules", "abi", "restrict", "warm"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_FIRST_VERSION = (1 << 13) - 1
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_MAKE_DEVICES = 1 << 6 | 1 << 11
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1


class _RulesetAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("handled_access_fs", "handled_access_net", "scoped")]


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


@dataclass(frozen=True, slots=True)
class Rules:
    """What remains allowed. A path that does not exist is skipped."""

    read: tuple[str, ...] = ()
    """Read and execute, below these folders or these files."""
    write: tuple[str, ...] = ()
    """Everything but making devices."""
    use: tuple[str, ...] = ()
    """Read and write what is there: devices."""


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def warm() -> None:
    """Load the C library's handle before the fork that needs it."""
    _libc()
    abi()


def _syscall(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return result


@functools.cache
def abi() -> int:
    """Version of Landlock in this kernel; 0 if there is none, or if it is switched off."""
    with contextlib.suppress(OSError):
        return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return 0


def _handled(version: int) -> int:
    later = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE))
    return _OF_FIRST_VERSION | sum(right for since, right in later if version >= since)


def restrict(rules: Rules, *, net: bool = True, scope: bool = True) -> None:
    """Keep only what ``rules`` allow; with ``net`` no TCP at all; with ``scope`` no signals and no abstract sockets to
    processes outside. ``no_new_privs`` must be set before. Raises ``OSError`` where there is no Landlock."""
    version = abi()
    handled = _handled(version)
    attributes = _RulesetAttr(
        handled_access_fs=handled,
        handled_access_net=_BIND_TCP | _CONNECT_TCP if net and version >= 4 else 0,
        scoped=_SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if scope and version >= 6 else 0,
    )
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        _allow(ruleset, rules.read, handled & (_EXECUTE | _READ_FILE | _READ_DIR))
        _allow(ruleset, rules.write, handled & ~_MAKE_DEVICES)
        _allow(ruleset, rules.use, handled & (_READ_FILE | _WRITE_FILE | _TRUNCATE))
        _syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            allowed = rights if _is_folder(fd) else rights & _ON_FILES
            rule = _PathBeneathAttr(allowed_access=allowed, parent_fd=fd)
            _syscall(
                _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0)
            )
        finally:
            os.close(fd)


def _is_folder(fd: int) -> bool:
    return os.fstat(fd).st_mode & 0o170000 == 0o040000
