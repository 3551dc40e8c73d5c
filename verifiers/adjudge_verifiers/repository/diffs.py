"""Reading unified diffs, as ``git diff`` and ``diff -u`` write them and as models do.

The text is read once, line by line; nothing of it is trusted. What a diff asks for that a patch of source files has no
need of is refused: binary patches, symbolic links, submodules. Two liberties of models are taken, both of which
``git apply`` has too: the counts of a hunk's header may be wrong (the hunk then ends where the next header begins), and
an empty line stands for an empty line of context. A hunk's header may also lack its line numbers; its place must then
be unambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["BadPatch", "FilePatch", "Hunk", "looks_like_diff", "parse"]

_MAX_FILES = 2000
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_BARE_HUNK = re.compile(r"@@(?: \.\.\.)?(?: @@)?\s*(?:$|[^-\s])")
_GIT = re.compile(r'diff --git ("?a/.*) ("?b/.*)')
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_REFUSED_MODES = {"120000": "a symbolic link", "160000": "a submodule"}


class BadPatch(Exception):
    """The patch cannot be read or does not fit; the message says where."""


@dataclass(slots=True)
class Hunk:
    """``old`` lines to be replaced by ``new`` ones. Lines are bytes without their end."""

    start: int | None
    """Number of the first old line, from 1; of the line before, if there is none; ``None`` if not said."""
    old: list[bytes] = field(default_factory=list)
    new: list[bytes] = field(default_factory=list)
    old_ends: bool = True
    """Does the last old line end with a newline?"""
    new_ends: bool = True


@dataclass(slots=True)
class FilePatch:
    """What happens to one file. ``old`` or ``new`` is ``None`` for a file that is made or deleted."""

    old: str | None
    new: str | None
    hunks: list[Hunk] = field(default_factory=list)
    executable: bool | None = None
    copy: bool = False


def looks_like_diff(lines: Sequence[str]) -> bool:
    """Does a patch begin at one of these lines?"""
    return any(_begins_file(lines, index) for index in range(len(lines)))


def parse(text: str) -> list[FilePatch]:
    """All files of the patch, in order. Raises :class:`BadPatch`.

    Text between the patches of two files, and after the last hunk, is passed over.
    """
    lines = text.replace("\r\n", "\n").split("\n") if "\r\n" in text else text.split("\n")
    found: list[FilePatch] = []
    at = 0
    while at < len(lines):
        if not _begins_file(lines, at):
            at += 1
            continue
        patch, at = _file(lines, at)
        found.append(patch)
        if len(found) > _MAX_FILES:
            raise BadPatch(f"it touches more than {_MAX_FILES} files")
    if not found:
        raise BadPatch("it holds no header of a file (--- and +++)")
    return found


def _begins_file(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if line.startswith("diff --git "):
        return True
    return line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _file(lines: list[str], at: int) -> tuple[FilePatch, int]:
    patch = FilePatch(None, None)
    named = False
    if lines[at].startswith("diff --git "):
        match = _GIT.fullmatch(lines[at])
        if match:
            patch.old, patch.new = (_path(part, strip=True) for part in match.groups())
        at, named = _extended(lines, at + 1, patch)
    if at + 1 < len(lines) and lines[at].startswith("--- ") and lines[at + 1].startswith("+++ "):
        old, new = _header_name(lines[at]), _header_name(lines[at + 1])
        strip = all(name is None or name.startswith(prefix) for name, prefix in ((old, "a/"), (new, "b/")))
        patch.old, patch.new = (name[2:] if strip and name is not None else name for name in (old, new))
        at += 2
    while at < len(lines) and lines[at].startswith("@@"):
        hunk, at = _hunk(lines, at)
        patch.hunks.append(hunk)
    if patch.old is None and patch.new is None:
        raise BadPatch(f"line {at}: a file has no name")
    if not named and not patch.hunks:
        raise BadPatch(f"line {at}: {(patch.new or '')[:100]!r} is named but not changed")
    return patch, at


def _extended(lines: list[str], at: int, patch: FilePatch) -> tuple[int, bool]:
    """The lines between ``diff --git`` and ``---``. Do they by themselves say what happens?"""
    said = False
    while at < len(lines):
        word, _, rest = lines[at].partition(" ")
        line = lines[at]
        if line.startswith(("new file mode ", "new mode ")):
            mode = line.rpartition(" ")[2]
            if mode in _REFUSED_MODES:
                raise BadPatch(f"line {at + 1}: it makes {_REFUSED_MODES[mode]}")
            patch.executable = mode == "100755"
            patch.old = None if line.startswith("new file") else patch.old
            said = True
        elif line.startswith("deleted file mode "):
            patch.new, said = None, True
        elif line.startswith(("rename from ", "copy from ")):
            patch.old, patch.copy, said = _path(line.split(" ", 2)[2], strip=False), word == "copy", True
        elif line.startswith(("rename to ", "copy to ")):
            patch.new, said = _path(line.split(" ", 2)[2], strip=False), True
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise BadPatch(f"line {at + 1}: it changes a binary file")
        elif word not in ("old", "index", "similarity", "dissimilarity") or not rest:
            break
        at += 1
    return at, said


def _header_name(line: str) -> str | None:
    name = line[4:].split("\t", 1)[0].rstrip()
    return None if name == "/dev/null" else _path(name, strip=False)


def _path(name: str, *, strip: bool) -> str:
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        raw = _ESCAPE.sub(_unescape, name[1:-1].encode("utf-8", "surrogatepass"))
        name = raw.decode("utf-8", "replace")
    return name[2:] if strip else name


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    return bytes([_ESCAPED[code] if code in _ESCAPED else int(code, 8) & 0xFF])


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header is at ``at``: by its counts if they fit, else up to the next header."""
    match = _HUNK.match(lines[at])
    if match is None:
        if not _BARE_HUNK.match(lines[at]):
            raise BadPatch(f"line {at + 1}: not a header of a hunk: {lines[at][:80]!r}")
        return _read(Hunk(None), lines, at + 1, _extent(lines, at + 1))
    start, old_count, _, new_count = (None if part is None else int(part) for part in match.groups())
    by_counts = _by_counts(lines, at + 1, 1 if old_count is None else old_count, 1 if new_count is None else new_count)
    end = by_counts if by_counts is not None else _extent(lines, at + 1)
    return _read(Hunk(start), lines, at + 1, end)


def _by_counts(lines: list[str], at: int, old: int, new: int) -> int | None:
    """Where the hunk ends by its counts; ``None`` if they cannot be right."""
    while old > 0 or new > 0:
        if at >= len(lines):
            return None
        sign = lines[at][:1]
        if sign in (" ", ""):
            old, new = old - 1, new - 1
        elif sign == "-":
            old -= 1
        elif sign == "+":
            new -= 1
        elif sign != "\\":
            return None
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        at += 1
    if old < 0 or new < 0:
        return None
    follows = lines[at][:1] if at < len(lines) else ""
    if follows in ("+", "-", " ") and not _begins_file(lines, at) and lines[at].rstrip() != "--":
        return None
    return at


def _extent(lines: list[str], at: int) -> int:
    """Where the hunk ends if its counts are wrong. Empty lines at its end belong to the text around it."""
    end = at
    while at < len(lines) and lines[at][:1] in ("", " ", "+", "-", "\\") and not _begins_file(lines, at):
        at += 1
        if lines[at - 1]:
            end = at
    return end


def _read(hunk: Hunk, lines: list[str], at: int, end: int) -> tuple[Hunk, int]:
    last = ""
    for line in lines[at:end]:
        sign, text = line[:1], line[1:].encode("utf-8", "surrogatepass")
        if sign == "\\":
            hunk.old_ends &= last not in (" ", "-", "")
            hunk.new_ends &= last not in (" ", "+", "")
            continue
        if sign in (" ", "", "-"):
            hunk.old.append(text)
        if sign in (" ", "", "+"):
            hunk.new.append(text)
        last = sign
    if not hunk.old and not hunk.new:
        raise BadPatch(f"line {at}: a hunk is empty")
    return hunk, end
