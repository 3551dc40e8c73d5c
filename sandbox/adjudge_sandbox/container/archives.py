"""Archives that travel between us and a box.

Into a box we send archives that we have built; every name in them has been checked. Out of a box comes what a hostile
program may have shaped: of it we take regular files whose names we asked for, up to a size, and nothing else, and we
never unpack it onto a disk.
"""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Collection, Mapping

from ..errors import InvalidProgram
from .base import File

__all__ = ["MAX_NAME_BYTES", "check_name", "pack", "unpack"]

MAX_NAME_BYTES = 1024
_MAX_PART_BYTES = 255


def check_name(name: str) -> str:
    """``name``, if it is a plain relative path. Raises :class:`InvalidProgram`."""
    parts = name.split("/")
    size = len(name.encode("utf-8", "surrogatepass"))
    if (
        not name
        or size > MAX_NAME_BYTES
        or any(part in ("", ".", "..") for part in parts)
        or any(ord(char) < 32 or ord(char) == 127 or 0xD800 <= ord(char) < 0xE000 for char in name)
        or any(len(part.encode("utf-8", "surrogatepass")) > _MAX_PART_BYTES for part in parts)
    ):
        raise InvalidProgram(f"{name[:100]!r} is not the name of a file in the program's own folder")
    return name


def pack(files: Mapping[str, File], *, inputs: Mapping[str, bytes], folder: str, control: str) -> bytes:
    """One archive to be unpacked at the root: ``files`` into ``folder``, ``inputs`` into ``control``.

    Raises :class:`InvalidProgram` for a name that leads elsewhere and for one that is both a file and a folder.
    """
    _check_no_file_is_a_folder(files)
    buffer = io.BytesIO()
    now = int(time.time())
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder_name in _folders_of(files):
            entry = tarfile.TarInfo(f"{folder.strip('/')}/{folder_name}")
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, now
            archive.addfile(entry)
        laid = [(f"{folder.strip('/')}/{check_name(name)}", file) for name, file in files.items()]
        laid += [(f"{control.strip('/')}/{check_name(name)}", File(data)) for name, data in inputs.items()]
        # Links come last, so that no file is ever laid through one.
        for name, file in sorted(laid, key=lambda pair: pair[1].link is not None):
            entry = tarfile.TarInfo(name)
            entry.mtime = now
            entry.mode = 0o755 if file.executable else 0o644
            if file.link is not None:
                entry.type, entry.linkname = tarfile.SYMTYPE, file.link
                archive.addfile(entry)
            else:
                entry.size = len(file.data)
                archive.addfile(entry, io.BytesIO(file.data))
    return buffer.getvalue()


def _folders_of(files: Mapping[str, File]) -> list[str]:
    folders: set[str] = set()
    for name in files:
        head = name.rpartition("/")[0]
        while head and head not in folders:
            folders.add(head)
            head = head.rpartition("/")[0]
    return sorted(folders)


def _check_no_file_is_a_folder(files: Mapping[str, File]) -> None:
    for folder in _folders_of(files):
        if folder in files:
            raise InvalidProgram(f"{folder[:100]!r} is the name of a file and of a folder")


def unpack(archive: bytes, wanted: Collection[str], *, max_bytes: int) -> dict[str, bytes]:
    """The regular files of ``archive`` whose names are ``wanted``. What is damaged or too large is left out."""
    found: dict[str, bytes] = {}
    left = max_bytes
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
            for entry in opened:
                name = entry.name.removeprefix("./")
                if name not in wanted or name in found or not entry.isreg() or entry.size > left:
                    continue
                stream = opened.extractfile(entry)
                data = stream.read(entry.size) if stream is not None else b""
                if len(data) == entry.size:
                    found[name] = data
                    left -= entry.size
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError):
        pass  # cut off at the size limit, most likely: what was whole has been kept
    return found
