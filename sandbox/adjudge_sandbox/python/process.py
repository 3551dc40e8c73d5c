"""Making a forked process look like a fresh interpreter, and loading the program into it.

The first run of an answer compiles the source and sends the code object up before anything of the answer has run; later
runs get source and code. So an answer is compiled once, by a process that the limits hold, and never by ours.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import io
import marshal
import os
import random
import socket
import struct
import sys
import types
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import frames
from ..languages import archive

__all__ = [
    "ARCHIVE_AT",
    "FILE_NAME",
    "PROGRAM_FD",
    "REPORT_FD",
    "Loaded",
    "Packed",
    "allow_for_our_frames",
    "flush",
    "is_alone",
    "lay_files",
    "load",
    "module_of",
    "module_of_test",
    "pack_program",
    "pack_source",
    "reseed",
    "settle_ahead",
    "settle_in",
]

REPORT_FD, PROGRAM_FD = 3, 4
"""The report socket to the runner, and the program text. 0, 1 and 2 are the program's own."""
FILE_NAME = "solution.py"
_LENGTH = struct.Struct(">I")
_ALONE, _WITH_FILES = b"1", b"+"
ARCHIVE_AT = _LENGTH.size
"""Where in the program descriptor that begins which the server sent."""
_MAX_DETAIL = 1500
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def pack_source(source: bytes, files: Mapping[str, bytes]) -> bytes:
    """A Python program as the runner is given it: its source, and the files that lie beside it."""
    if not files:
        return _ALONE + source
    return _WITH_FILES + frames.pack({"files": list(files)}, [source, *files.values()])


def is_alone(packed: bytes) -> bool:
    """Is it one source, without files beside it?"""
    return packed.startswith(_ALONE)


def pack_program(packed: bytes, code: bytes) -> bytes:
    """Contents of the program descriptor: what the server sent, and the code object if it has been compiled."""
    return _LENGTH.pack(len(packed)) + packed + code


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program ready to run."""

    code: types.CodeType
    file: str


class _Settled:
    """What the zygote has done once for all its descendants: every page that a run need not write is time saved."""

    scratch = ""
    streams: tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper] | None = None


def settle_ahead(scratch: str) -> None:
    """In the zygote: what :func:`settle_in` would otherwise do for every run, as far as it is the same for all."""
    os.umask(0o022)
    sys.path[:] = [path for path in sys.path if path and _is_library(path)]
    _settle_folder(scratch)
    _Settled.scratch = scratch
    _Settled.streams = _make_streams_ahead()


def settle_in(scratch: str, *, seeds: bool = True) -> None:
    """Make this process look like a fresh interpreter in ``scratch``; ``seeds``: with random numbers of its own."""
    os.chdir(scratch)
    if scratch != _Settled.scratch:
        _settle_folder(scratch)
    try:
        os.lseek(0, 0, os.SEEK_CUR)
        sys.stdin, sys.stdout, sys.stderr = _Settled.streams or _make_streams()
    except OSError:  # not a file: the streams made ahead believe that they can seek
        sys.stdin, sys.stdout, sys.stderr = _make_streams()
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    if seeds:
        reseed()
    gc.enable()


def reseed() -> None:
    """No two processes draw the same random numbers."""
    random.seed()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()


def _settle_folder(scratch: str) -> None:
    os.environ.clear()
    os.environ.update(_ENVIRONMENT, HOME=scratch, TMPDIR=scratch)
    if _Settled.scratch:
        sys.path.remove(_Settled.scratch)
    sys.path.insert(0, scratch)
    sys.path_importer_cache.clear()


def _make_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    """The standard streams as the interpreter makes them at its start."""
    error = open(2, "wb", closefd=False)  # noqa: SIM115
    return (
        io.TextIOWrapper(open(0, "rb", closefd=False), "utf-8", "strict"),
        io.TextIOWrapper(open(1, "wb", closefd=False), "utf-8", "strict"),
        io.TextIOWrapper(error, "utf-8", "backslashreplace", line_buffering=True),
    )


def _make_streams_ahead() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    """They remember whether they can seek, so what they are made on is what a script will have: file and pipes."""
    saved = [os.dup(fd) for fd in (0, 1, 2)]
    read, write = os.pipe()
    file = os.memfd_create("stdin")
    try:
        for place, fd in enumerate((file, write, write)):
            os.dup2(fd, place)
        return _make_streams()
    finally:
        for place, fd in enumerate(saved):
            os.dup2(fd, place)
        for fd in (*saved, read, write, file):
            os.close(fd)


def _is_library(path: str) -> bool:
    """A folder of the interpreter, not of this package or of the server."""
    return any(path.startswith(prefix.rstrip("/") + "/") for prefix in (sys.prefix, sys.base_prefix))


class Packed:
    """What lies in the program descriptor."""

    def __init__(self, packed: bytes, code: bytes, scratch: str) -> None:
        self._source, self._names, self._files = _unpack_source(packed)
        self._marshalled = code
        self.file = os.path.join(scratch, FILE_NAME)
        self.code: types.CodeType | None = None

    @classmethod
    def read(cls, scratch: str) -> Packed:
        """It, and close the descriptor."""
        text = os.pread(PROGRAM_FD, os.fstat(PROGRAM_FD).st_size, 0)
        os.close(PROGRAM_FD)
        length = _LENGTH.unpack_from(text)[0]
        return cls(text[ARCHIVE_AT : ARCHIVE_AT + length], text[ARCHIVE_AT + length :], scratch)

    def lay(self, scratch: str) -> None:
        """Its source, for tracebacks and ``inspect``, and the files beside it."""
        fd = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        rest = memoryview(self._source)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.close(fd)
        if self._files:
            lay_files(self._names, self._files, scratch)

    def compile(self, report: socket.socket) -> types.CodeType:
        """Ends the process, after telling why, if that is not possible."""
        self.code = _compile(report, self._source, self.file)
        return self.code

    def loaded(self, report: socket.socket) -> Loaded:
        """With its code object, which is sent up if it did not come along."""
        if self.code is None and self._marshalled:
            self.code = marshal.loads(self._marshalled)
        elif self.code is None:
            frames.send(report, {"op": "code"}, [marshal.dumps(self.compile(report))])
        assert self.code is not None
        return Loaded(self.code, self.file)


def load(report: socket.socket, scratch: str) -> Loaded:
    """The compiled program; its source also lies in ``scratch``."""
    program = Packed.read(scratch)
    program.lay(scratch)
    return program.loaded(report)


def _unpack_source(packed: bytes) -> tuple[bytes, list[str], list[bytes]]:
    if packed.startswith(_ALONE):
        return packed[len(_ALONE) :], [], []
    frame = frames.from_bytes(packed[len(_WITH_FILES) :])
    return frame.blobs[0], frame.header["files"], frame.blobs[1:]


def lay_files(names: Sequence[str], contents: Sequence[bytes], scratch: str) -> None:
    """Write files into the folder of the run, before anything of the program has run."""
    root = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        archive.lay(names, contents, root)
    finally:
        os.close(root)
    importlib.invalidate_caches()


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
