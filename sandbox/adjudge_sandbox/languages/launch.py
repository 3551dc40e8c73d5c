"""Starting a program that is not Python, in the jail: our last steps before ``execve``, and our eyes after its end.

The order of a run (a frame in a descriptor of its own) says what to lay beside the program, what command to start, and
which files to bring back. Without files to bring back this process becomes the program. Otherwise it forks: the child
becomes the program, and this process, which holds the report socket, waits for it, ends whatever else still runs, reads
the files and sends them. It then ends as the program did, so that nobody outside sees a difference.

The program has the same user as the process that waits for it, and may kill it. Then no files arrive, and the run ends
by that signal: nothing is gained. It cannot read or change it: the process is not dumpable and tracing is refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .. import frames
from ..kernel import namespaces as ns
from . import archive

__all__ = ["launch", "supervise"]

BOX = "box"
"""The folder below the scratch folder that programs run in."""
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
_CANNOT_START = 127


def launch(report: socket.socket, scratch: str, program_fd: int, offset: int, order_fd: int) -> NoReturn:
    """Lay out the folder and become the program."""
    order = frames.receive_file(order_fd)
    header = order.header
    box = os.path.join(scratch, BOX)
    os.umask(0o022)
    try:
        os.mkdir(box, 0o755)
        root = os.open(box, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        archive.lay_archive(program_fd, offset, root)
        archive.lay(header["files"], order.blobs, root)
    except OSError as error:
        refuse(report, f"its files could not be laid out: {error.strerror}", laid=False)
    os.close(program_fd)
    os.chdir(box)
    environment = {**_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch, **_filled(header["environment"], scratch)}
    command = [part.replace("{scratch}", scratch) for part in header["command"]]
    if header["fetch"] or header["collect"]:
        supervise(report, header, root)
    _become(report, command, environment, header["address_mib"])


def _filled(environment: Mapping[str, str], scratch: str) -> dict[str, str]:
    return {name: value.replace("{scratch}", scratch) for name, value in environment.items()}


def _become(report: socket.socket, command: Sequence[str], environment: dict[str, str], address_mib: int) -> NoReturn:
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if address_mib:
        resource.setrlimit(resource.RLIMIT_AS, (address_mib << 20, address_mib << 20))
    if not os.path.isabs(command[0]):
        _make_executable(command[0])
    try:
        os.execve(command[0], list(command), environment)
    except OSError as error:
        ours = os.path.isabs(command[0]) and error.errno != errno.E2BIG
        refuse(report, f"{os.path.basename(command[0])} could not be started: {error.strerror}", laid=not ours)


def _make_executable(name: str) -> None:
    """Some walls keep a linker from doing that by the name of the file."""
    with contextlib.suppress(OSError):
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.fchmod(fd, 0o755)
        finally:
            os.close(fd)


def refuse(report: socket.socket, why: str, *, laid: bool) -> NoReturn:
    """The program has not been started. ``laid``: because of what it consists of, not because of this host."""
    with contextlib.suppress(OSError):
        frames.send(report, {"op": "not_started", "detail": why, "own": laid})
    os._exit(_CANNOT_START)


def supervise(report: socket.socket, order: Mapping[str, Any], root: int) -> None:
    """Fork. Returns in the child, which is to be the program; the parent sends what ``order`` asks for and ends."""
    ns.set_dumpable(False)
    pid = os.fork()
    if pid == 0:
        ns.set_dumpable(True)
        report.close()
        return
    status = 1
    try:
        for fd in (0, 1, 2):
            os.close(fd)  # a pipe whose reader has gone, or whose writer has not, is the program's matter
        _, waited = os.waitpid(pid, 0)
        status = os.waitstatus_to_exitcode(waited)
        if order["isolated"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)  # everybody here but the first process and this one: nothing moves any more
        _send_files(report, order, root)
    finally:
        _end_like(status)


def _send_files(report: socket.socket, order: Mapping[str, Any], root: int) -> None:
    try:
        if order["collect"]:
            packed = archive.pack(archive.collect_all(root, order["max_bytes"]))
            frames.send(report, {"op": "files", "names": [""]}, [packed])
            return
        found = archive.collect(order["fetch"], root, order["max_bytes"])
        frames.send(report, {"op": "files", "names": [name for name, _, _ in found]}, [data for _, _, data in found])
    except (archive.TooMuch, OSError, MemoryError) as error:
        with contextlib.suppress(OSError):
            frames.send(report, {"op": "no_files", "detail": str(error)})


def _end_like(status: int) -> NoReturn:
    """Exit, or be killed, as the program was."""
    if status < 0:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -status)
        os._exit(_CANNOT_START)
    os._exit(status)
