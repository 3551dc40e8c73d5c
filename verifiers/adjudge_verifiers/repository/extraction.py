"""Finding the patch in a response.

In this order: fenced blocks that hold a diff (of several that touch the same file, the last counts); a diff without a
fence; search-and-replace blocks; whole files in blocks that are named, on their fence or on the line before it. Nothing
is applied here. Thinking blocks are removed first, and what was cut off is ``truncated``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..base import Extraction
from ..extract.tags import find_tags
from ..extract.thinking import strip_thinking
from . import diffs, edits

__all__ = ["Format", "find_patch"]

Format = Literal["auto", "diff", "search_replace", "files"]

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([^`\n]{0,400})$")
_DIFF_TAGS = frozenset({"diff", "patch", "udiff", "git", "gitdiff"})
_DIFF_SIGNS = ("diff --git ", "+++ ", "--- ", "@@")
_NOT_FILES = frozenset({"text", "txt", "console", "output", "shell", "bash", "sh"})


@dataclass(slots=True)
class _Fenced:
    info: str
    before: str
    """The last line before the fence that is not empty."""
    lines: list[str]
    closed: bool = False


def find_patch(response: str, form: Format = "auto") -> Extraction:
    """The patch of ``response``: text of a diff, or edits as :func:`.edits.dump` writes them.

    ``method`` says which: ``diff_fence``, ``raw_diff``, ``search_replace`` or ``files``.
    """
    text, open_thinking = strip_thinking(response)
    if open_thinking:
        return Extraction("truncated", method="thinking")
    lines = text.replace("\r\n", "\n").split("\n")
    fenced = _fenced(lines)
    # The signs are looked for first: most long responses have none, and reading a million short lines takes a second.
    finders = (("diff", _DIFF_SIGNS, _diff), ("search_replace", ("<<<<<",), _search_replace), ("files", (), _files))
    for name, signs, find in finders:
        if form not in ("auto", name) or (signs and not any(sign in text for sign in signs)):
            continue
        if (found := find(lines, fenced)) is not None:
            return found
    return Extraction("none")


def _fenced(lines: Sequence[str]) -> list[_Fenced]:
    """Fenced blocks. Inside a diff, a fence that is indented by its sign is a line of the diff."""
    found: list[_Fenced] = []
    current: _Fenced | None = None
    fence, before = "", ""
    for line in lines:
        if current is None:
            if (match := _FENCE.match(line)) is not None:
                fence = match.group(2)
                current = _Fenced(match.group(3).strip(), before, [])
                found.append(current)
            before = line if line.strip() else before
        elif line.startswith(fence) and not line.strip(fence[0] + " \t"):
            current.closed, current, before = True, None, ""
        else:
            current.lines.append(line)
    return found


def _diff(lines: Sequence[str], fenced: Sequence[_Fenced]) -> Extraction | None:
    blocks = [block for block in fenced if _is_diff(block)]
    if blocks:
        if not blocks[-1].closed:
            return Extraction("truncated", method="diff_fence")
        return Extraction("answered", "\n".join(_latest(blocks)).rstrip("\n") + "\n", "diff_fence")
    text = "\n".join(lines)
    for span in reversed(find_tags(text, ("patch", "diff", "answer"))):
        inner = span.content.strip("\n").split("\n")
        if diffs.looks_like_diff(inner):
            outcome: Literal["answered", "truncated"] = "answered" if span.closed else "truncated"
            return Extraction(outcome, "\n".join(inner) + "\n" if span.closed else "", "raw_diff")
    if fenced or not diffs.looks_like_diff(lines):
        return None
    begin = next(at for at, line in enumerate(lines) if line.startswith(("diff --git ", "--- ")))
    return Extraction("answered", "\n".join(lines[begin:]).rstrip("\n") + "\n", "raw_diff")


def _is_diff(block: _Fenced) -> bool:
    tag = block.info.split(" ")[0].lower()
    if tag in _DIFF_TAGS:
        return any(line.startswith(("@@", "--- ", "diff --git ")) for line in block.lines)
    return not tag and diffs.looks_like_diff(block.lines)


def _latest(blocks: Sequence[_Fenced]) -> list[str]:
    """The blocks' lines; a block is left out if a later one touches one of its files."""
    kept: list[list[str]] = []
    touched: set[str] = set()
    for block in reversed(blocks):
        names = {line.split("\t")[0].strip() for line in block.lines if line.startswith("+++ ")}
        if not names & touched:
            kept.insert(0, block.lines)
            touched |= names
    return [line for lines in kept for line in lines]


def _search_replace(lines: Sequence[str], fenced: Sequence[_Fenced]) -> Extraction | None:
    found, cut_off = edits.search_replace(lines)
    if cut_off:
        return Extraction("truncated", method="search_replace")
    return Extraction("answered", edits.dump(found), "search_replace") if found else None


def _files(lines: Sequence[str], fenced: Sequence[_Fenced]) -> Extraction | None:
    named = [(name, block) for block in fenced if (name := _name_of(block)) is not None]
    if not named:
        return None
    if not named[-1][1].closed:
        return Extraction("truncated", method="files")
    latest = {name: edits.Edit(name, None, "\n".join(block.lines)) for name, block in named}
    return Extraction("answered", edits.dump(list(latest.values())), "files")


def _name_of(block: _Fenced) -> str | None:
    """``python src/a.py``, ``python:src/a.py``, ``src/a.py``, or a name on the line before."""
    tag, _, rest = block.info.partition(" ")
    if tag.lower() in _NOT_FILES and not rest:
        return None
    for text in (rest, tag.partition(":")[2], tag):
        if text and (name := edits.file_name(text)) is not None:
            return name
    return edits.file_name(block.before) if block.before else None
