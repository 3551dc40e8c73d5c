"""From a child of init to a cell: the last steps before a program runs.

In this order, because each step needs rights that a later one gives up: join the control group; get a mount and an ipc
namespace with a fresh ``/tmp``; put the descriptors in their places and close all others; set resource limits; become
nobody; give up all capabilities; go behind the system call filter. Then the driver, which is still our code, loads the
program.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import shutil
import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

from .. import frames
from ..kernel import namespaces as ns
from ..kernel import rootfs, seccomp
from ..python import driver

if TYPE_CHECKING:
    from .jail import JailSpec

__all__ = ["enter", "make_scratch", "remove_scratch"]

from ..python.process import REPORT_FD

_NOBODY = 65534
_STACK_BYTES = 112 << 20  # an interpreter started with the usual 8 MiB has room for 128 MiB
_OPEN_FILES = 256
_ADDRESS_SLACK_MIB = 1024


def enter(request: dict[str, Any], fds: list[int], spec: JailSpec, scratch: str) -> NoReturn:
    """Become the run that ``request`` describes. ``fds``: stdin, stdout, stderr, report, program, ..., groups."""
    report = fds[REPORT_FD]
    try:
        groups = request["groups"]
        for fd in fds[len(fds) - groups :]:
            os.write(fd, b"0")
        if spec.plan is not None:
            ns.unshare(ns.NEW_NS | ns.NEW_IPC)
            rootfs.mount_scratch(spec.scratch_mib, *_inside(spec))
        count = len(fds) - groups
        _place(fds[:count])
        report = REPORT_FD
        os.setsid()
        _limit(spec)
        _become_nobody(spec)
        os.write(REPORT_FD, frames.pack({"op": "ready"}))
    except BaseException as error:  # noqa: BLE001 - nothing has run yet: the cell is broken, and the runner must know
        with contextlib.suppress(OSError):
            os.write(report, frames.pack({"op": "broken", "why": f"{type(error).__name__}: {error}"}))
        os._exit(1)
    driver.drive(request, scratch, list(range(REPORT_FD + 2, count)))


def _inside(spec: JailSpec) -> tuple[int, int]:
    """Owner of /tmp as numbered in the user namespace of init."""
    return (spec.identity.uid, spec.identity.gid) if spec.identity.privileged else (_NOBODY, _NOBODY)


def _place(fds: list[int]) -> None:
    """Descriptor number i becomes ``fds[i]``; there are no others."""
    high = [os.dup2(fd, 100 + place) for place, fd in enumerate(fds)]
    for place, fd in enumerate(high):
        os.dup2(fd, place, inheritable=place < REPORT_FD)
    os.closerange(len(fds), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _limit(spec: JailSpec) -> None:
    cpu_s = math.ceil(spec.cpu_s) + 1
    limits = {
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: spec.scratch_mib << 20,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_CORE: 1,  # with 0 a host that pipes core dumps to a program would still be made to run it
        resource.RLIMIT_STACK: _STACK_BYTES,
        resource.RLIMIT_MEMLOCK: 64 << 10,
        resource.RLIMIT_MSGQUEUE: 64 << 10,
    }
    if not spec.grouped:
        others = 2 if spec.plan is not None else _count_processes(spec.identity.uid)
        limits[resource.RLIMIT_NPROC] = spec.processes + others
        limits[resource.RLIMIT_AS] = (spec.memory_mib + _ADDRESS_SLACK_MIB) << 20
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _become_nobody(spec: JailSpec) -> None:
    identity = spec.identity
    if identity.privileged:
        os.setgroups([])
        os.setresgid(identity.gid, identity.gid, identity.gid)
        os.setresuid(identity.uid, identity.uid, identity.uid)
    ns.set_dumpable(True)
    if spec.plan is None:
        return
    if identity.privileged:
        ns.unshare(ns.NEW_USER)
        ns.map_user(_NOBODY, identity.uid, identity.gid)
        ns.set_dumpable(True)
    ns.drop_capabilities()
    ns.forbid_new_privileges()
    seccomp.install(seccomp.build())


def make_scratch(spec: JailSpec) -> str:
    """The folder that a run may write to: /tmp of its own; without isolation a new folder in the host's."""
    if spec.plan is not None:
        return "/tmp"
    folder = tempfile.mkdtemp(prefix="adjudge-run-")
    if spec.identity.privileged:
        os.chown(folder, spec.identity.uid, spec.identity.gid)
    return folder


def remove_scratch(spec: JailSpec, folder: str) -> None:
    """Remove the folder of a run that was not isolated."""
    if spec.plan is None:
        shutil.rmtree(folder, ignore_errors=True)


def _count_processes(uid: int) -> int:
    """How many processes and threads this user has: a limit without a user namespace counts them all."""
    count = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count
