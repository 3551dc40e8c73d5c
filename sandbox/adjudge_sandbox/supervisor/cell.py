"""From a child of the keeper to a cell: the last steps before a program runs.

In this order, because each step needs rights that a later one gives up: enter the namespaces of the jail; mount its
``/proc`` and a fresh ``/tmp``; put the descriptors in their places and close all others; set resource limits; become
nobody, in a user namespace of its own; give up all capabilities; go behind the system call filter. Then the driver,
which is still our code, loads the program.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import frames
from ..kernel import landlock, rootfs, seccomp
from ..kernel import namespaces as ns
from ..python import driver

if TYPE_CHECKING:
    from .jail import Identity, JailSpec

__all__ = ["enter", "limit_ahead", "make_scratch", "owner_inside", "remove_scratch"]

from ..python.process import REPORT_FD
from .stem import STEM_PID

_NOBODY = 65534
_STACK_BYTES = 112 << 20  # an interpreter started with the usual 8 MiB has room for 128 MiB
_OPEN_FILES = 256
_ADDRESS_SLACK_MIB = 1024
_READY = frames.pack({"op": "ready"})


def enter(request: dict[str, Any], fds: Sequence[int], spec: JailSpec, scratch: str, first_fd: int) -> NoReturn:
    """Become the run that ``request`` describes.

    ``fds``: stdin, stdout, stderr, report, program, ...; ``first_fd``: a pidfd of the first process of the jail.
    """
    report = fds[REPORT_FD]
    try:
        if spec.plan is not None:
            ns.setns(first_fd, ns.NEW_NS | ns.NEW_IPC | ns.NEW_UTS)
            rootfs.mount_proc()
            rootfs.mount_scratch(spec.scratch_mib, *owner_inside(spec))
        if spec.grouped and spec.identity.privileged:
            _be_first_to_go()
        _place(fds)
        report = REPORT_FD
        os.setsid()
        stem = request["role"] == "stem"
        _limit(spec, address_space=request["role"] != "exec", stem=stem)  # of other runtimes the launcher knows more
        _become_nobody(spec, scratch, stem=stem)
        os.write(REPORT_FD, _READY)
    except BaseException as error:  # noqa: BLE001 - nothing has run yet: the cell is broken, and the runner must know
        with contextlib.suppress(OSError):
            os.write(report, frames.pack({"op": "broken", "why": f"{type(error).__name__}: {error}"}))
        os._exit(1)
    driver.drive(request, scratch, list(range(REPORT_FD + 2, len(fds))))


def _be_first_to_go() -> None:
    """Where memory runs out, the kernel kills this process, and not the keeper, which has told it so."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(fd, b"0")
    os.close(fd)


def owner_inside(spec: JailSpec) -> tuple[int, int]:
    """Owner of /tmp as numbered in the user namespace of the keeper."""
    return (spec.identity.uid, spec.identity.gid) if spec.identity.privileged else (_NOBODY, _NOBODY)


def _place(fds: Sequence[int]) -> None:
    """Descriptor number i becomes ``fds[i]``; there are no others."""
    if min(fds) < len(fds):
        fds = [os.dup2(fd, 100 + place) for place, fd in enumerate(fds)]
    for place, fd in enumerate(fds):
        os.dup2(fd, place, place < REPORT_FD)
    ns.close_from(len(fds))


def limit_ahead() -> None:
    """In the keeper: the limits that are the same for all runs."""
    for kind, value in _SAME_FOR_ALL:
        _set_limit(kind, value)


def _limit(spec: JailSpec, *, address_space: bool, stem: bool) -> None:
    """``address_space``: where no control group limits memory, limit the size of each process."""
    _set_limit(resource.RLIMIT_CPU, math.ceil(spec.cpu_s) + 1)
    _set_limit(resource.RLIMIT_FSIZE, spec.scratch_mib << 20)
    if not spec.grouped:
        others = 0 if spec.plan is not None else _count_processes(spec.identity.uid)
        _set_limit(resource.RLIMIT_NPROC, spec.processes + others + stem)
        if address_space:
            _set_limit(resource.RLIMIT_AS, (spec.memory_mib + _ADDRESS_SLACK_MIB) << 20)


def _set_limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


_SAME_FOR_ALL = (
    (resource.RLIMIT_NOFILE, _OPEN_FILES),
    (resource.RLIMIT_CORE, 1),  # with 0 a host that pipes core dumps to a program would still be made to run it
    (resource.RLIMIT_STACK, _STACK_BYTES),
    (resource.RLIMIT_MEMLOCK, 64 << 10),
    (resource.RLIMIT_MSGQUEUE, 64 << 10),
)


def _become_nobody(spec: JailSpec, scratch: str, *, stem: bool) -> None:
    identity = spec.identity
    if identity.privileged:
        os.setgroups([])
        os.setresgid(identity.gid, identity.gid, identity.gid)
        os.setresuid(identity.uid, identity.uid, identity.uid)
    ns.set_dumpable(True)
    if spec.plan is None:
        ns.die_with_parent()
        if spec.confined is not None:
            ns.drop_capabilities()
            ns.forbid_new_privileges()
            landlock.restrict(rootfs.rules(spec.confined, scratch))
            seccomp.install(seccomp.build(alone=True, same_user=not identity.privileged))
        return
    if os.path.exists("/proc/self/uid_map"):  # else the host lets nobody mount a /proc, and the keeper's must do
        uid, gid = (identity.uid, identity.gid) if identity.privileged else (_NOBODY, _NOBODY)
        ns.unshare(ns.NEW_USER)
        ns.map_user(_NOBODY, uid, gid)
        ns.set_dumpable(True)
    ns.drop_capabilities()
    ns.forbid_new_privileges()
    seccomp.install(seccomp.build(stem=STEM_PID if stem else 0))


def make_scratch(identity: Identity) -> str:
    """The folder that a run without isolation may write to, in the host's /tmp. In a jail it is /tmp itself."""
    import tempfile  # not in the memory of every jail

    folder = tempfile.mkdtemp(prefix="adjudge-run-")
    if identity.privileged:
        os.chown(folder, identity.uid, identity.gid)
    return folder


def remove_scratch(folder: str) -> None:
    """Remove the folder of a run that was not isolated."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _count_processes(uid: int) -> int:
    """How many processes and threads this user has: a limit without a user namespace counts them all."""
    count = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count
