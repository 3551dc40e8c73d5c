"""A repository as plain data: names and files, without its history.

Patches are applied to this, outside every box, by code that can be read; what a box gets is the outcome. Version
control folders are left out wherever they lie, so no answer can look up the future of its own repository.
"""

from __future__ import annotations

import base64
import binascii
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterable

from adjudge_sandbox.container.archives import check_name
from adjudge_sandbox.container.base import File
from adjudge_sandbox.errors import InvalidProgram

from ..errors import InvalidReference

__all__ = ["Tree", "checked_name", "from_archive", "from_tar", "in_history", "size_mib", "text_file"]

Tree = dict[str, File]
"""Relative name, ``/`` between folders -> file. Folders exist by the files in them."""

_HISTORY = frozenset({".git", ".hg", ".svn"})
_MAX_FILES = 200_000
_MAX_BYTES = 1 << 30
_UNPACKING = (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError)


def size_mib(tree: Tree) -> int:
    """What its files take in memory, each rounded up to a page."""
    return 1 + (sum(-(-len(file.data) // 4096) * 4096 for file in tree.values()) >> 20)


def from_archive(encoded: str) -> Tree:
    """A base64 text of a tar (compressed or not) or a zip. Raises :class:`InvalidReference`."""
    try:
        data = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidReference(f"The archive is not base64: {error}") from None
    try:
        return _from_zip(data) if data[:2] == b"PK" else from_tar(data, mode="r:*")
    except _UNPACKING as error:
        raise InvalidReference(f"The archive cannot be read: {error}") from None


def from_tar(data: bytes, *, below: str | None = None, mode: str = "r:") -> Tree:
    """The files of a tar archive; with ``below``, what lies in that folder of it.

    Devices and pipes are left out. Raises :class:`InvalidReference` for names that lead elsewhere.
    """
    tree: Tree = {}
    left = _MAX_BYTES
    prefix = f"{below}/" if below else ""
    with tarfile.open(fileobj=io.BytesIO(data), mode=mode) as archive:  # type: ignore[call-overload]
        for entry in archive:
            name = _plain(entry.name)
            if not name.startswith(prefix) or not _wanted(name := name[len(prefix) :]):
                continue
            executable = bool(entry.mode & 0o100)
            if entry.isreg():
                left = _charge(left, entry.size, len(tree))
                stream = archive.extractfile(entry)
                tree[checked_name(name)] = File(stream.read() if stream else b"", executable)
            elif entry.issym():
                tree[checked_name(name)] = File(link=entry.linkname)
            elif entry.islnk() and (target := _plain(entry.linkname)[len(prefix) :]) in tree:
                tree[checked_name(name)] = tree[target]
    return tree


def _from_zip(data: bytes) -> Tree:
    tree: Tree = {}
    left = _MAX_BYTES
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            name = _plain(entry.filename)
            if entry.is_dir() or not _wanted(name):
                continue
            left = _charge(left, entry.file_size, len(tree))
            with archive.open(entry) as stream:
                content = stream.read(entry.file_size + 1)
            tree[checked_name(name)] = File(content, bool(entry.external_attr >> 16 & 0o100))
    return tree


def _plain(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name.rstrip("/")


def _wanted(name: str) -> bool:
    return bool(name) and name != "." and not in_history(name.split("/"))


def in_history(parts: Iterable[str]) -> bool:
    """Does a path lead into a version control folder, in any spelling that a file system may take for one?"""
    return any(part.lower() in _HISTORY for part in parts)


def text_file(text: str) -> File:
    """A file that a data set gives as text; one that begins with ``#!`` is a program."""
    return File(text.encode("utf-8", "surrogatepass"), text.startswith("#!"))


def checked_name(name: str) -> str:
    """``name``, if it is a plain relative path. Raises :class:`InvalidReference`."""
    try:
        return check_name(name)
    except InvalidProgram as error:
        raise InvalidReference(str(error)) from None


def _charge(left: int, size: int, files: int) -> int:
    if size > left or files >= _MAX_FILES:
        raise InvalidReference(f"The repository has more than {_MAX_BYTES >> 20} MiB or {_MAX_FILES} files.")
    return left - size
