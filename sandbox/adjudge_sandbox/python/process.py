"""Making a forked process look like a fresh interpreter, and loading the program into it.

The first run of an answer compiles the source and sends the code object up before anything of the answer has run; later
runs get source and code. So an answer is compiled once, by a process that the limits hold, and never by ours.
"""

from __future__ import annotations

import gc
import importlib.machinery
import io
import marshal
import os
import random
import signal
import socket
import struct
import sys
import types
import warnings
from dataclasses import dataclass

from .. import frames

__all__ = [
    "PROGRAM_FD",
    "REPORT_FD",
    "Loaded",
    "allow_for_our_frames",
    "flush",
    "load",
    "module_of",
    "module_of_test",
    "pack_program",
    "settle_in",
]

REPORT_FD, PROGRAM_FD = 3, 4
"""The report socket to the runner, and the program text. 0, 1 and 2 are the program's own."""
FILE_NAME = "solution.py"
_LENGTH = struct.Struct(">I")
_MAX_DETAIL = 1500
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def pack_program(source: bytes, code: bytes) -> bytes:
    """Contents of the program descriptor."""
    return _LENGTH.pack(len(source)) + source + code


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program ready to run."""

    code: types.CodeType
    file: str


def settle_in(scratch: str) -> None:
    """Make this process look like a fresh interpreter in ``scratch``."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(scratch)
    os.umask(0o022)
    os.environ.clear()
    os.environ.update(_ENVIRONMENT, HOME=scratch, TMPDIR=scratch)
    sys.path[:] = [scratch, *(path for path in sys.path if path and _is_library(path))]
    sys.path_importer_cache.clear()
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), "utf-8", "strict")  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), "utf-8", "strict")  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False),  # noqa: SIM115
        "utf-8",
        "backslashreplace",
        line_buffering=True,
    )
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))
    random.seed()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()
    gc.enable()


def _is_library(path: str) -> bool:
    """A folder of the interpreter, not of this package or of the server."""
    return any(path.startswith(prefix.rstrip("/") + "/") for prefix in (sys.prefix, sys.base_prefix))


def load(report: socket.socket, scratch: str) -> Loaded:
    """The compiled program; its source also lies in ``scratch``, for tracebacks and ``inspect``."""
    file = os.path.join(scratch, FILE_NAME)
    size = os.fstat(PROGRAM_FD).st_size
    text = os.pread(PROGRAM_FD, size, 0)
    os.close(PROGRAM_FD)
    length = _LENGTH.unpack_from(text)[0]
    source, code = text[_LENGTH.size : _LENGTH.size + length], text[_LENGTH.size + length :]
    with open(file, "wb") as copy:
        copy.write(source)
    if code:
        return Loaded(marshal.loads(code), file)
    compiled = _compile(report, source, file)
    frames.send(report, {"op": "code"}, [marshal.dumps(compiled)])
    return Loaded(compiled, file)


def _compile(report: socket.socket, source: bytes, file: str) -> types.CodeType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = source.decode("utf-8").removeprefix("\ufeff")
            return compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        detail = f"{type(error).__name__}: {message}{where}"
        frames.send(report, {"op": "compile_error", "detail": detail[:_MAX_DETAIL]})
        os._exit(1)


def module_of(loaded: Loaded, name: str) -> types.ModuleType:
    """An empty module for the program, known to ``import``."""
    module = types.ModuleType(name)
    module.__dict__.update(__file__=loaded.file, __builtins__=sys.modules["builtins"])
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=loaded.file)
    sys.modules[name] = module
    return module


def flush() -> None:
    """Flush what the program printed, whatever it has put in place of the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 - the program's own streams
            continue


def allow_for_our_frames() -> None:
    """The program's recursion limit counts from its own first frame, not from ours."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(1000 + depth)


def module_of_test() -> types.ModuleType:
    """An empty ``__main__`` for test code."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=sys.modules["builtins"])
    sys.modules["__main__"] = module
    sys.argv[:] = ["test.py"]
    return module
