"""Answers of several files.

The files come as fenced blocks that say their name (behind the language: ```` ```python title=a/b.py ````, ``a/b.py``,
``file=a/b.py``; in a comment on the block's first line; or on the line above the fence), or as one JSON object of names
and texts. A block without a name is the main file, if no other block is.

The files that the reference gives are laid over them: an answer cannot bring its own tests or its own build files.
"""

from __future__ import annotations

import json
import re

from adjudge_sandbox.base import Program

from ..base import Extraction
from ..errors import InvalidTask
from ..extract.code import Block, blocks
from ..extract.thinking import strip_thinking
from .literals import parse_json
from .parts import Project, checked_path, contents

__all__ = ["files_of", "find_files", "program_of_project"]

_MAX_FILES = 256
_NAME = r"[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){0,15}"
_FILE = rf"(?:\./)?({_NAME}\.\w{{1,12}}|(?:{_NAME}/)?(?:Makefile|Dockerfile|CMakeLists\.txt))"
_INFO = re.compile(rf"""(?:(?:title|file|filename|path|name)[ \t]*[=:][ \t]*)?["'`]?{_FILE}["'`]?""", re.IGNORECASE)
_COMMENT = re.compile(
    r"[ \t]*(?:\#|//|--|;|%|/\*|<!--)[ \t]*(?:(?:file|filename|path|title)[ \t]*:?[ \t]*)?"
    rf"[`\"']?{_FILE}[`\"']?[ \t]*(?:\*/|-->)?[ \t]*",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    rf"[#*> \t-]{{0,20}}(?:\d{{1,3}}[.)][ \t]*)?[*]{{0,2}}(?:(?:file|filename|path)[ \t]*:?[ \t]*)?"
    rf"[*`\"']{{0,4}}{_FILE}[*`\"']{{0,4}}[ \t]*:?[*]{{0,2}}[ \t]*",
    re.IGNORECASE,
)
_LINE_CHARS = 300


def find_files(response: str, project: Project, *, allow_unclosed: bool = False) -> Extraction:
    """The files of ``response`` as JSON text of names and texts."""
    text, open_thinking = strip_thinking(response)
    if open_thinking:
        return Extraction("truncated", method="thinking")
    whole = _as_object(text)
    if whole is not None:
        return Extraction("answered", _dumped(whole), "json")
    found = blocks(text)
    if found and not found[-1].closed and not allow_unclosed:
        return Extraction("truncated", method="files")
    if len(found) == 1 and (inner := _as_object(found[0].code)) is not None:
        return Extraction("answered", _dumped(inner), "json")
    files: dict[str, str] = {}
    nameless: list[str] = []
    for block in found:
        name = _name_of(block)
        if name is None:
            nameless.append(block.code)
        else:
            files[name] = block.code
    if project.main not in files and nameless:
        files[project.main] = nameless[-1]
    if len(files) > _MAX_FILES or not any(code.strip() for code in files.values()):
        return Extraction("none", method="files")
    return Extraction("answered", _dumped(files), "files")


def _dumped(files: dict[str, str]) -> str:
    return json.dumps(files, sort_keys=True)


def _as_object(text: str) -> dict[str, str] | None:
    """``{"a.py": "..."}``, also below a key ``files``."""
    stripped = text.strip()
    if not stripped.startswith("{") or not stripped.endswith("}"):
        return None
    try:
        value = parse_json(stripped)
    except ValueError:
        return None
    if isinstance(value, dict) and isinstance(value.get("files"), dict):
        value = value["files"]
    if not (isinstance(value, dict) and value) or len(value) > _MAX_FILES:
        return None
    return value if all(isinstance(name, str) and isinstance(code, str) for name, code in value.items()) else None


def _name_of(block: Block) -> str | None:
    """The file that a block says it is."""
    for word in block.info.replace(",", " ").split():
        if (match := _INFO.fullmatch(word)) is not None:
            return match.group(1)
    first = block.code.split("\n", 1)[0][:_LINE_CHARS]
    match = _COMMENT.fullmatch(first) or _ABOVE.fullmatch(block.above)
    return match.group(1) if match is not None else None


def files_of(text: str, project: Project) -> dict[str, str]:
    """The files of an extracted answer; text that is no object of files is the main file."""
    return _as_object(text) or {project.main: text}


def program_of_project(text: str, project: Project, language: str, *, needs_main: bool = True) -> Program | None:
    """The program to run; ``None`` if the answer lacks the main file and it is needed.

    Names that lead out of the folder are dropped: nothing that the tests use can be there.
    """
    files: dict[str, bytes] = {}
    for name, code in files_of(text, project).items():
        try:
            files[checked_path(name.removeprefix("./"))] = code.encode("utf-8", "surrogatepass")
        except ValueError:
            continue
    files |= contents(project.files)
    if project.run is not None:
        return Program(project.run, "bash", files, project.build)
    if project.main not in files:
        return None if needs_main else Program("", language, files, project.build)
    try:
        source = files[project.main].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise InvalidTask(f"The project's main file {project.main!r} is no text.") from None
    if language != "python":  # Python's other files may import the main one
        del files[project.main]
    return Program(source, language, files, project.build)
