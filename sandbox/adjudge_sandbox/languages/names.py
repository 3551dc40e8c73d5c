"""Names of files that a request lays into a run's folder or asks back: checked here, outside every jail.

The jail opens them relative to a folder that was made for this run, never following a link; this check says early, and
in a sentence, what could not work anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import InvalidProgram

__all__ = ["MAX_FILES", "check_files", "check_texts", "safe_name"]

MAX_FILES = 2000
_MAX_NAME_BYTES = 1024
_MAX_PART_BYTES = 255
_MAX_DEPTH = 16
_MAX_ARGS_BYTES = 128 << 10


def safe_name(name: str) -> str:
    """``name`` if it leads to a place below the folder it is laid into.

    Raises:
        InvalidProgram: it is absolute, empty, too long or too deep, or holds ``..``, ``.``, an empty part or a NUL.
    """
    shown = ascii(name[:100])
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidProgram(f"the file name {shown} is not Unicode text") from None
    parts = encoded.split(b"/")
    if not encoded or b"\0" in encoded:
        raise InvalidProgram(f"the file name {shown} is empty or holds a NUL character")
    if encoded.startswith(b"/"):
        raise InvalidProgram(f"the file name {shown} is absolute: names are relative to the program's folder")
    if any(part in (b"", b".", b"..") for part in parts):
        raise InvalidProgram(f"the file name {shown} has a part that is empty, '.' or '..'")
    if len(encoded) > _MAX_NAME_BYTES or any(len(part) > _MAX_PART_BYTES for part in parts):
        raise InvalidProgram(f"the file name {shown} is too long")
    if len(parts) > _MAX_DEPTH:
        raise InvalidProgram(f"the file name {shown} lies more than {_MAX_DEPTH} folders deep")
    return name


def check_files(names: Iterable[str]) -> None:
    """All safe, few enough, and none of them a folder of another. Raises :class:`InvalidProgram`."""
    known = {safe_name(name) for name in names}
    if len(known) > MAX_FILES:
        raise InvalidProgram(f"{len(known)} files are more than {MAX_FILES}")
    for name in known:
        parts = name.split("/")
        if any("/".join(parts[:count]) in known for count in range(1, len(parts))):
            raise InvalidProgram(f"{name[:100]!a} lies in a folder that is also a file")


def check_texts(args: Iterable[str], what: str) -> None:
    """Texts of a command line. Raises :class:`InvalidProgram`."""
    size = 0
    for text in args:
        if "\0" in text:
            raise InvalidProgram(f"{what} holds a NUL character")
        size += len(text) + 1
    if size > _MAX_ARGS_BYTES:
        raise InvalidProgram(f"{what} is longer than {_MAX_ARGS_BYTES} characters")


def total_bytes(files: Mapping[str, bytes]) -> int:
    """Size of all contents."""
    return sum(map(len, files.values()))
