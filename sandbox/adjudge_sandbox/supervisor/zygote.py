"""The zygote: a warm process in the root of all jails that forks keepers.

It has imported what programs import, has built the file system that they see and moved into it, and sits in a network
namespace without a network; all of that is done once and inherited. It is given no payload: a request names a user and
carries one end of a socket, which it passes on to a new keeper without reading it. It runs no program.

Two processes: the one that was started does the imports, unshares and waits; its child is the first process of a pid
namespace, so that whatever becomes of it, everything below is killed by the kernel.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

from ..kernel import landlock, rootfs, seccomp
from ..kernel import namespaces as ns
from ..python.process import settle_ahead
from .jail import NOBODY, Identity
from .keeper import keep, sweep
from .messages import pack_refusal
from .stem import STEM_PID

__all__ = ["serve"]

_MAX_MESSAGE = 4096
_OWN_NAMESPACES = ns.NEW_NS | ns.NEW_PID | ns.NEW_IPC | ns.NEW_UTS | ns.NEW_NET


def serve(control: socket.socket, config: dict[str, Any]) -> NoReturn:
    """Serve until the server goes away. Takes over the process that the nursery has started."""
    try:
        if threading.active_count() > 1 or len(os.listdir("/proc/self/task")) > 1:
            raise OSError("a preloaded module has started threads, and a process with threads must not fork")
        plan: rootfs.Plan | None = config["plan"]
        confined: rootfs.Plan | None = config["confined"]
        ns.warm()
        if plan is None:
            ns.become_subreaper()  # of what a killed keeper leaves behind
        if confined is not None:
            for same_user in (False, True):
                seccomp.build(alone=True, same_user=same_user)
            landlock.warm()
        if plan is not None:
            seccomp.build()
            seccomp.build(stem=STEM_PID)
            _move_in(control, plan)
    except OSError as error:
        control.send(str(error).encode())
        os._exit(1)
    ns.set_dumpable(False)
    settle_ahead("/tmp")
    gc.collect()
    gc.freeze()  # what is warm stays shared: no collection in a child writes to its pages
    gc.disable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are reaped by the kernel
    control.send(b"ready")
    keepers: set[int] = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, _MAX_MESSAGE, 1)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if "sweep" in request:
            sweep(Identity(**request["sweep"]), keepers, confined=confined is not None)
            continue
        keepers.add(_fork_keeper(control, request, fds[0], plan, confined))
        os.close(fds[0])


def _move_in(control: socket.socket, plan: rootfs.Plan) -> None:
    """Become the first process of new namespaces, in the root of all jails. The process that called waits for it."""
    identity, uid, gid = Identity.of_runner(0), os.geteuid(), os.getegid()
    ns.unshare(_OWN_NAMESPACES if identity.privileged else _OWN_NAMESPACES | ns.NEW_USER)
    if not identity.privileged:
        ns.map_user(NOBODY, uid, gid)
    pid = os.fork()
    if pid:
        control.close()
        os.waitpid(pid, 0)
        os._exit(1)
    ns.die_with_parent()
    os.setsid()
    rootfs.build(plan)
    _find_moved_folders()


def _find_moved_folders() -> None:
    """What of the interpreter's folders the root shows elsewhere (an environment below /tmp) is imported from there."""
    sys.path[:] = map(rootfs.shown_at, sys.path)
    sys.path_importer_cache.clear()
    sys.prefix, sys.exec_prefix = rootfs.shown_at(sys.prefix), rootfs.shown_at(sys.exec_prefix)
    sys.executable = rootfs.shown_at(sys.executable)
    for module in tuple(sys.modules.values()):
        folders = getattr(module, "__path__", None)
        if isinstance(folders, list):
            folders[:] = map(rootfs.shown_at, folders)


def _fork_keeper(
    control: socket.socket, request: dict[str, Any], fd: int, plan: rootfs.Plan | None, confined: rootfs.Plan | None
) -> int:
    """Fork it; tell the runner, over the keeper's own socket, with a descriptor that can kill it."""
    parent = os.getpid()
    theirs = socket.socket(fileno=os.dup(fd))
    pid = 0
    try:
        pid = ns.clone_fork(ns.NEW_PID | ns.NEW_NS) if plan is not None else ns.plain_fork()
        if pid == 0:
            ns.die_with_parent()
            if plan is None and os.getppid() != parent:
                os._exit(1)
            control.close()
            os.close(fd)
            keep(theirs, Identity(**request["identity"]), plan, confined)
        pidfd = os.pidfd_open(pid)
        socket.send_fds(theirs, [b"{}"], [pidfd])
        os.close(pidfd)
    except OSError as error:
        with contextlib.suppress(OSError):
            theirs.send(pack_refusal(str(error)))
    finally:
        theirs.close()
    return pid
