"""Files as bytes: laying them into a folder, and collecting them from one that a hostile program has written to.

Both happen inside the jail, as the jailed user. Nothing here follows a link: every step of a path is opened relative to
the descriptor of its folder with ``O_NOFOLLOW``, so that a program which swaps a folder for a link while its files are
collected gains an error and no more. What is collected is regular files only; a FIFO or a device is never opened for
longer than it takes to see what it is.

An archive is a frame (:mod:`adjudge_sandbox.frames`): ``{"files": [[name, mode], ...]}`` and the contents.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from .. import frames

__all__ = ["Content", "TooMuch", "collect", "collect_all", "lay", "lay_archive", "pack"]

Content = tuple[str, int, bytes]
"""Name, mode (of which only the executable bit counts), bytes."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_PREFIX_BYTES = 12  # of a frame
_MAX_DEPTH = 40
_MAX_ENTRIES = 20_000


class TooMuch(Exception):
    """More, or larger, files than may be collected."""


def pack(files: Sequence[Content]) -> bytes:
    """The archive of these files."""
    return frames.pack({"files": [[name, mode] for name, mode, _ in files]}, [content for _, _, content in files])


def lay_archive(fd: int, offset: int, root: int) -> None:
    """Unpack the archive at ``offset`` of ``fd`` into the folder ``root``, without reading it into memory."""
    header, at = _read_header(fd, offset)
    for (name, mode), size in zip(header["files"], header["_blobs"], strict=True):
        with _created(root, name, mode) as target:
            sent = 0
            while sent < size:
                sent += os.sendfile(target, fd, at + sent, size - sent)
        at += size


def _read_header(fd: int, offset: int) -> tuple[dict[str, Any], int]:
    """The header of the frame at ``offset``, and where its contents begin."""
    head, _ = frames.parse_prefix(os.pread(fd, _PREFIX_BYTES, offset), frames.NO_LIMIT)
    start = offset + _PREFIX_BYTES
    header: dict[str, Any] = json.loads(os.pread(fd, head, start))
    return header, start + head


def lay(names: Sequence[str], contents: Sequence[bytes], root: int) -> None:
    """Write files into the folder ``root``; one that is there already is replaced."""
    for name, content in zip(names, contents, strict=True):
        with _created(root, name, 0o644, replace=True) as target:
            view = memoryview(content)
            while view:
                view = view[os.write(target, view) :]


@contextlib.contextmanager
def _created(root: int, name: str, mode: int, *, replace: bool = False) -> Iterator[int]:
    *folders, last = name.split("/")
    folder = os.dup(root)
    try:
        for part in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        if replace:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(last, dir_fd=folder)
        target = os.open(last, _WRITE, 0o755 if mode & 0o100 else 0o644, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        yield target
    finally:
        os.close(target)


def collect(names: Sequence[str], root: int, max_bytes: int) -> list[Content]:
    """The regular files of these names that are there and, together, take no more than ``max_bytes``."""
    found = []
    for name in names:
        with contextlib.suppress(OSError, TooMuch):
            mode, content = _read(root, name.split("/"), max_bytes)
            max_bytes -= len(content)
            found.append((name, mode, content))
    return found


def _read(root: int, parts: Sequence[str], max_bytes: int) -> tuple[int, bytes]:
    """Raises :class:`OSError`, :class:`TooMuch`."""
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        fd = os.open(parts[-1], _READ, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        return _read_regular(fd, max_bytes)
    finally:
        os.close(fd)


def _read_regular(fd: int, max_bytes: int) -> tuple[int, bytes]:
    what = os.fstat(fd)
    if not stat.S_ISREG(what.st_mode):
        raise OSError("not a regular file")
    if what.st_size > max_bytes:
        raise TooMuch(f"{what.st_size} bytes")
    content, left = [], max_bytes + 1
    while left and (part := os.read(fd, min(left, _CHUNK))):
        content.append(part)
        left -= len(part)
    if not left:
        raise TooMuch(f"more than {max_bytes} bytes")
    return what.st_mode & 0o777, b"".join(content)


def collect_all(root: int, max_bytes: int) -> list[Content]:
    """Every regular file below ``root``. Raises :class:`TooMuch`, :class:`OSError`."""
    found: list[Content] = []
    entries, pending = 0, [("", os.dup(root), 0)]
    try:
        while pending:
            prefix, folder, depth = pending.pop()
            try:
                for name in sorted(os.listdir(folder)):
                    entries += 1
                    if entries > _MAX_ENTRIES or depth > _MAX_DEPTH:
                        raise TooMuch("too many files")
                    kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                    if stat.S_ISDIR(kind):
                        pending.append((f"{prefix}{name}/", os.open(name, _FOLDER, dir_fd=folder), depth + 1))
                    elif stat.S_ISREG(kind):
                        mode, content = _read(folder, [name], max_bytes)
                        max_bytes -= len(content)
                        found.append((prefix + name, mode, content))
            finally:
                os.close(folder)
    finally:
        for _, folder, _ in pending:
            os.close(folder)
    return found
