"""The warm process of a nursery (:mod:`adjudge_sandbox.nursery`): ``python -m adjudge_sandbox.warm``.

It imports little by itself, because all that it holds is in every process that descends from it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

__all__ = ["die_with_parent", "main"]

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the one that forked it dies."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _resolve(path: str) -> Any:
    module, _, function = path.partition(":")
    return getattr(importlib.import_module(module), function)


def _serve(control: socket.socket, arguments: dict[str, Any]) -> NoReturn:
    target = _resolve(arguments["target"])
    for name in arguments["preload"]:
        importlib.import_module(name)
    if arguments["warm"]:
        _resolve(arguments["warm"])(arguments["config"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches the whole group; the parent decides
    if arguments["takes_over"]:
        target(control, arguments["config"])
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    gc.collect()
    gc.freeze()  # what is warm stays shared: no collection in a child writes to its pages
    control.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            os._exit(0)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent()
            if os.getppid() != parent:
                os._exit(1)
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run_child(target, socket.socket(fileno=fds[0]), arguments["config"])
        for fd in fds:
            os.close(fd)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            control.send(f"the child died at once: {error}".encode())
            continue
        socket.send_fds(control, [str(pid).encode()], [pidfd])
        os.close(pidfd)


def _run_child(target: Any, sock: socket.socket, config: dict[str, Any]) -> NoReturn:
    status = 1
    try:
        target(sock, config)
        status = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        status = 0  # the parent went away; nobody is left to tell
    except BaseException:  # noqa: BLE001 - whatever it was, it must not unwind into the nursery's loop
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> NoReturn:
    die_with_parent()
    fd = int(sys.argv[1])
    os.closerange(3, fd)  # uvloop passes on what is inheritable: uvicorn's listening socket is
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))
    control = socket.socket(fileno=fd)
    _serve(control, json.loads(sys.argv[2]))


if __name__ == "__main__":
    main()
