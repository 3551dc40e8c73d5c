"""Applying a patch to a tree: every old line must be there, letter for letter; only its place may have moved.

A hunk is looked for where its header says, then ever further away, as ``git apply`` does; without line numbers it must
fit in exactly one place. There is no fuzz. Paths that leave the repository, lead through a link or into version control
are refused. Work is counted, so that no patch takes more than a moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from adjudge_sandbox.container.archives import check_name
from adjudge_sandbox.container.base import File
from adjudge_sandbox.errors import InvalidProgram

from .diffs import BadPatch, FilePatch, Hunk
from .tree import Tree, in_history

__all__ = ["EscapingPatch", "apply_patch", "check_path"]

_MAX_WORK = 20_000_000
_MAX_BYTES = 64 << 20


class EscapingPatch(BadPatch):
    """The patch reaches for a file that is no file of the repository."""


class _Work:
    def __init__(self) -> None:
        self.left = _MAX_WORK

    def charge(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise BadPatch("it takes too long to find where its hunks belong")


def apply_patch(tree: Tree, patches: Sequence[FilePatch]) -> Tree:
    """A new tree. Raises :class:`BadPatch`; ``tree`` is never changed."""
    result = dict(tree)
    links = {name for name, file in tree.items() if file.link is not None}
    work, written = _Work(), 0
    for patch in patches:
        for name in {patch.old, patch.new} - {None}:
            check_path(name or "", links)
        written += _apply_file(result, patch, work)
        if written > _MAX_BYTES:
            raise BadPatch(f"it writes more than {_MAX_BYTES >> 20} MiB")
    return result


def check_path(name: str, links: set[str]) -> None:
    """Raises :class:`EscapingPatch` for a name that is not a place in the repository."""
    try:
        parts = check_name(name).split("/")
    except InvalidProgram as error:
        raise EscapingPatch(str(error)) from None
    if in_history(parts):
        raise EscapingPatch(f"{name[:100]!r} lies in a version control folder")
    if links and any("/".join(parts[:count]) in links for count in range(1, len(parts) + 1)):
        raise EscapingPatch(f"{name[:100]!r} is or leads through a symbolic link")


def _apply_file(tree: Tree, patch: FilePatch, work: _Work) -> int:
    old = _source(tree, patch)
    data = old.data
    if patch.hunks:
        data = _apply_hunks(data, patch.hunks, patch.old or patch.new or "", work)
    executable = old.executable if patch.executable is None else patch.executable
    if patch.new is None:
        if data:
            raise BadPatch(f"{patch.old!r:.100} is deleted, but the patch does not hold all of its lines")
        del tree[patch.old or ""]
        return 0
    if patch.old is not None and patch.old != patch.new and not patch.copy:
        del tree[patch.old]
    _check_place(tree, patch.new)
    tree[patch.new] = replace(old, data=data, executable=executable)
    return len(data)


def _source(tree: Tree, patch: FilePatch) -> File:
    if patch.old is None:
        existing = tree.get(patch.new or "")
        if existing is not None and existing.data:
            raise BadPatch(f"{patch.new!r:.100} is to be made, but it is there already")
        return File()
    if patch.old not in tree:
        raise BadPatch(f"there is no file {patch.old!r:.100}")
    if patch.new is not None and patch.new != patch.old and patch.new in tree:
        raise BadPatch(f"{patch.new!r:.100} is there already")
    return tree[patch.old]


def _check_place(tree: Tree, name: str) -> None:
    """A new file must not lie in a folder that is a file."""
    head = name.rpartition("/")[0]
    while head:
        if head in tree:
            raise BadPatch(f"{head!r:.100} is a file, not a folder")
        head = head.rpartition("/")[0]


def _apply_hunks(data: bytes, hunks: list[Hunk], name: str, work: _Work) -> bytes:
    lines, ends = data.split(b"\n"), True
    if lines[-1]:
        ends = False
    else:
        lines.pop()
    result: list[bytes] = []
    at, moved = 0, 0
    for number, hunk in enumerate(hunks, 1):
        place = _place(lines, ends, hunk, at, moved, work)
        if place is None:
            raise BadPatch(f"hunk {number} of {name!r:.100} does not fit: its lines are not there")
        if hunk.start is not None and hunk.old:
            moved = place - (hunk.start - 1)
        result += lines[at:place]
        result += hunk.new
        at = place + len(hunk.old)
        if at == len(lines) and (hunk.new or hunk.old):
            ends = hunk.new_ends if hunk.new else True
    result += lines[at:]
    text = b"\n".join(result)
    return text + b"\n" if result and ends else text


def _place(lines: list[bytes], ends: bool, hunk: Hunk, least: int, moved: int, work: _Work) -> int | None:
    """Where the hunk's old lines are, at ``least`` or behind it; ``None`` if nowhere, or nobody can say where."""
    if not hunk.old:
        place = len(lines) if hunk.start is None else hunk.start + moved
        return place if least <= place <= len(lines) else None
    places = (place for place in _candidates(lines, hunk, least, moved, work) if _ends_alike(lines, ends, hunk, place))
    found = next(places, None)
    if found is not None and hunk.start is None and next(places, None) is not None:
        return None
    return found


def _ends_alike(lines: list[bytes], ends: bool, hunk: Hunk, place: int) -> bool:
    """A hunk that says that the file ends without a newline fits nowhere else."""
    return hunk.old_ends or (place + len(hunk.old) == len(lines) and not ends)


def _candidates(lines: list[bytes], hunk: Hunk, least: int, moved: int, work: _Work) -> Iterator[int]:
    """Places where all old lines are, the nearest to the expected one first."""
    size = len(hunk.old)
    last = len(lines) - size
    expected = least if hunk.start is None else max(least, min(hunk.start - 1 + moved, last))
    first = hunk.old[0]
    for distance in range(max(last - expected, expected - least) + 1):
        work.charge(16)  # a step of ours costs as much as many lines compared
        for place in (expected + distance, expected - distance) if distance else (expected,):
            if least <= place <= last and lines[place] == first:
                work.charge(size)
                if lines[place : place + size] == hunk.old:
                    yield place
