"""Edits that are not diffs: search-and-replace blocks, and whole files in named blocks.

Both are turned into one list of :class:`Edit` where they are found in the response, and travel from there as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from adjudge_sandbox.container.base import File

from .apply import check_path
from .diffs import BadPatch
from .tree import Tree

__all__ = ["Edit", "apply_edits", "dump", "file_name", "load", "search_replace"]

_MAX_EDITS = 2000
_MAX_BYTES = 64 << 20
_OPENING = re.compile(r"<{5,9} ?(?:SEARCH|ORIGINAL)\s*$")
_DIVIDER = re.compile(r"={5,9}\s*$")
_CLOSING = re.compile(r">{5,9} ?(?:REPLACE|UPDATED)\s*$")
_NAME = re.compile(r"[\w@+.\-][\w@+.\- /\\()\[\]]{0,300}")
_LABEL = re.compile(r"^(?:file ?name|file|path)\s*[:=]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edit:
    """In ``path``, replace ``search`` by ``replacement``; without ``search``, this is the whole file."""

    path: str
    search: str | None
    replacement: str


def dump(edits: Sequence[Edit]) -> str:
    """As text, for the extraction."""
    return json.dumps([asdict(edit) for edit in edits], ensure_ascii=False)


def load(text: str) -> list[Edit]:
    """What :func:`dump` has written."""
    return [Edit(**row) for row in json.loads(text)]


def file_name(line: str) -> str | None:
    """The file that a heading names: ``### src/a.py``, ``**`a.py`**``, ``File: a.py``; ``None`` if it is prose."""
    if len(line) > 400:
        return None
    name = _LABEL.sub("", line.strip().strip("#*`:/ \t")).strip("*`: \t")
    last = name.rpartition("/")[2]
    if not _NAME.fullmatch(name) or " " in name or "." not in last.strip("."):
        return None
    return name


def search_replace(lines: Sequence[str]) -> tuple[list[Edit], bool]:
    """All blocks ``<<<<<<< SEARCH`` ... ``=======`` ... ``>>>>>>> REPLACE``, and whether the last one is cut off.

    A block's file is named on the line before it (a fence may stand between), or is that of the block before.
    """
    edits: list[Edit] = []
    path: str | None = None
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if not _OPENING.match(line):
            if line and not line.startswith(("```", "~~~")):
                path = file_name(line) or path
            continue
        search, at = _until(lines, at, _DIVIDER)
        replacement, at = _until(lines, at, _CLOSING) if search is not None else (None, at)
        if search is None or replacement is None:
            return edits, True
        edits.append(Edit(path or "", "\n".join(search), "\n".join(replacement)))
    return edits, False


def _until(lines: Sequence[str], at: int, end: re.Pattern[str]) -> tuple[list[str] | None, int]:
    begin = at
    while at < len(lines):
        if end.match(lines[at].strip()):
            return list(lines[begin:at]), at + 1
        at += 1
    return None, at


def apply_edits(tree: Tree, edits: Sequence[Edit]) -> Tree:
    """A new tree. Raises :class:`BadPatch`; what is searched must be there exactly once, in whole lines."""
    if len(edits) > _MAX_EDITS:
        raise BadPatch(f"it makes more than {_MAX_EDITS} edits")
    result = dict(tree)
    links = {name for name, file in tree.items() if file.link is not None}
    written = 0
    for edit in edits:
        if not edit.path:
            raise BadPatch("an edit names no file")
        check_path(edit.path, links)
        if any(folder in result for folder in _folders(edit.path)):
            raise BadPatch(f"{edit.path!r:.100} lies in a folder that is a file")
        old = result.get(edit.path, File())
        data = _edited(old.data, edit, exists=edit.path in result)
        result[edit.path] = replace(old, data=data)
        written += len(data)
        if written > _MAX_BYTES:
            raise BadPatch(f"it writes more than {_MAX_BYTES >> 20} MiB")
    return result


def _folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _edited(data: bytes, edit: Edit, *, exists: bool) -> bytes:
    new = edit.replacement.encode("utf-8", "surrogatepass")
    if edit.search is None:
        return new + b"\n" if new and not new.endswith(b"\n") else new
    search = edit.search.encode("utf-8", "surrogatepass")
    if not search.strip():
        if exists and data.strip():
            raise BadPatch(f"in {edit.path!r:.100}: nothing to search for")
        return new + b"\n" if new else b""
    if not exists:
        raise BadPatch(f"there is no file {edit.path!r:.100}")
    text = b"\n" + data + (b"" if data.endswith(b"\n") else b"\n")
    wanted = b"\n" + search + b"\n"
    at = text.find(wanted)
    if at < 0:
        raise BadPatch(f"in {edit.path!r:.100}: the lines to replace are not there")
    if text.find(wanted, at + 1) >= 0:
        raise BadPatch(f"in {edit.path!r:.100}: the lines to replace are there more than once")
    return (text[:at] + b"\n" + new + (b"\n" if new else b"") + text[at + len(wanted) :])[1:]
