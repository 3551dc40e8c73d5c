"""What a run's process does with the program: the part of our code that runs beside it, and so decides nothing.

Roles: ``script`` runs it as ``__main__``; ``stem`` does that in a fork for each test; ``call`` calls one function and
sends the value; ``serve`` answers the calls of an examiner; ``examine`` is the examiner itself, in a jail of its own;
``exec`` starts a program that is not Python (:mod:`adjudge_sandbox.languages.launch`). Everything the driver needs is
imported before the jail is made, because the jail does not hold this package.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
import traceback
import types
from typing import Any, NoReturn

from .. import frames
from ..kernel import namespaces as ns
from ..languages.launch import launch, supervise
from .call import call
from .process import ARCHIVE_AT, PROGRAM_FD, REPORT_FD, Packed, allow_for_our_frames, lay_files, load, settle_in
from .stem import grow

__all__ = ["drive"]


def drive(request: dict[str, Any], scratch: str, extra_fds: list[int]) -> NoReturn:
    """Run the role that ``request`` names and end the process. Never returns, never unwinds."""
    role = request["role"]
    report = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=REPORT_FD)
    try:
        if role == "exec":
            launch(report, scratch, PROGRAM_FD, ARCHIVE_AT, extra_fds[0])
        settle_in(scratch, seeds=role != "stem")
        if role == "stem":
            ns.set_dumpable(False)
            program = Packed.read(scratch)
            code = program.compile(report)
            names = _prepare_main(program.file, [])
            report.detach()
            grow(program, scratch, extra_fds[0])
            _run_main(code, names)
        elif role == "script":
            _script(report, scratch, extra_fds)
        elif role == "call":
            call(report, load(report, scratch), extra_fds[0])
        elif role == "serve":
            from .candidate import serve

            serve(report, load(report, scratch), extra_fds[0], request["max_bytes"])
        elif role == "examine":
            from .examiner import examine

            os.close(PROGRAM_FD)
            examine(report, *extra_fds)
    except BaseException:  # noqa: BLE001 - a fault of the driver; it must not unwind into the keeper
        traceback.print_exc()
    os._exit(1)


def _script(report: socket.socket, scratch: str, extra_fds: list[int]) -> NoReturn:
    """Run the program as ``python solution.py`` would. Its report is closed before it starts."""
    loaded = load(report, scratch)
    args: list[str] = []
    if extra_fds:
        args = _follow_order(report, scratch, frames.receive_file(extra_fds[0]))
    report.close()
    names = _prepare_main(loaded.file, args)
    _run_main(loaded.code, names)


def _prepare_main(file: str, args: list[str]) -> dict[str, Any]:
    """Make ``__main__`` what it is to be; gives its names."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=file, __builtins__=sys.modules["builtins"], __cached__=None)
    module.__spec__ = None
    sys.modules["__main__"] = module
    sys.argv[:] = [file, *args]
    sys.orig_argv[:] = [sys.executable, file, *args]
    allow_for_our_frames()  # as many as there will be in _run_main
    return module.__dict__


def _run_main(code: types.CodeType, names: dict[str, Any]) -> NoReturn:
    status = 0
    try:
        exec(code, names)  # noqa: S102 - in the jail
    except SystemExit as stop:
        status = _exit_status(stop)
    except BaseException as error:  # noqa: BLE001 - as the interpreter does
        status = _uncaught(error)
    _end(status)


def _follow_order(report: socket.socket, scratch: str, order: frames.Frame) -> list[str]:
    """Lay the run's files; if some are to be brought back, go on in a child of a process that waits for its end.

    Gives the program's arguments.
    """
    lay_files(order.header["files"], order.blobs, scratch)
    if order.header["fetch"]:
        root = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        supervise(report, order.header, root)
        os.close(root)
    args: list[str] = order.header["args"]
    return args


def _exit_status(stop: SystemExit) -> int:
    """What ``python`` makes of ``sys.exit(code)``."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def _uncaught(error: BaseException) -> int:
    """Report an uncaught exception as the interpreter would, by the hook that the program may have set."""
    trace = error.__traceback__
    trace = trace.tb_next if trace is not None else None  # without the driver's own frame
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except SystemExit as stop:
        return _exit_status(stop) or 1
    except BaseException:  # noqa: BLE001 - a broken hook does not make the program end well
        traceback.print_exc()
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 1


def _end(status: int) -> NoReturn:
    """The interpreter's own farewell: wait for threads, run exit handlers, flush."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is None or getattr(stream, "closed", False):
            continue
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 - as the interpreter: a failing flush is exit status 120
            status = status or 120
    os._exit(status)
