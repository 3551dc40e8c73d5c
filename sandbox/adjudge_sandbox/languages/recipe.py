"""What to do for one program: its files, the command that builds it, the command that runs it, and under which limits.

Everything here is worked out in the server, from the table and the request; nothing touches the host.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base import Limits, Program
from ..errors import InvalidProgram
from ..kernel import rootfs
from .archive import Content
from .classes import entry_of
from .names import check_files, total_bytes
from .toolchains import Found

__all__ = ["Recipe", "recipe_for"]

_COMPILE_SCRATCH_MIB = 512
_COMPILE_WALL, _COMPILE_WALL_S = 4.0, 60.0
_ADDRESS_SLACK_MIB = 1024
_BUILD_FILE = ".build.sh"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """See the module."""

    found: Found
    files: tuple[Content, ...]
    values: Mapping[str, str]
    """Of the placeholders."""
    sources: tuple[str, ...]
    build: tuple[str, ...]
    """Empty: there is nothing to build."""
    run: tuple[str, ...]
    source_bytes: bytes
    executes: bool
    """Does building it run code of its own?"""

    def key(self, extra: tuple[str, ...] = ()) -> str:
        """Equal for programs that build to the same thing."""
        digest = hashlib.sha256()
        head = [self.found.language.name, self.found.identity, self.values["standard"], *self.build, "\0", *extra]
        digest.update(json.dumps([head, [[name, mode, len(data)] for name, mode, data in self.files]]).encode())
        for _, _, data in self.files:
            digest.update(data)
        return digest.hexdigest()

    def command(self, parts: tuple[str, ...], heap_mib: int, prepared: str = "") -> list[str]:
        """A command of the table with everything filled in. ``prepared``: a folder, if there is one."""
        prepare = self.found.toolchain.prepare
        filled: list[str] = []
        for part in parts:
            if part == "{sources}":
                filled += self.sources
            elif part == "{extra}":
                if prepare is not None and prepared:
                    filled += [flag.replace("{prepared}", prepared) for flag in prepare.flags]
            else:
                filled.append(self._fill(part, heap_mib).replace("{prepared}", prepared))
        executables = self.found.executables
        path = executables.get(filled[0], filled[0])
        return [rootfs.shown_at(path) if self.found.in_root else path, *filled[1:]]

    def environment(self, heap_mib: int) -> dict[str, str]:
        return {name: self._fill(value, heap_mib) for name, value in self.found.toolchain.environment.items()}

    def _fill(self, part: str, heap_mib: int) -> str:
        for name, value in self.values.items():
            part = part.replace(f"{{{name}}}", value)
        return part.replace("{heap}", str(heap_mib))

    def build_limits(self, limits: Limits) -> Limits:
        """CPU time and memory are what limits a compiler; its wall clock is for one that waits for something."""
        toolchain = self.found.toolchain
        cpu_s = max(limits.compile_cpu_s, toolchain.compile_cpu_s)
        return Limits(
            cpu_s=cpu_s,
            memory_mib=max(limits.memory_mib, toolchain.compile_memory_mib),
            processes=max(limits.processes, toolchain.compile_processes, toolchain.processes),
            wall_s=_COMPILE_WALL * cpu_s + _COMPILE_WALL_S,
            scratch_mib=max(limits.scratch_mib, _COMPILE_SCRATCH_MIB),
            output_kib=1024,
        )

    def run_limits(self, limits: Limits, archive_bytes: int) -> Limits:
        """The task's, raised to what the runtime needs; the program's own files do not count as scratch."""
        toolchain = self.found.toolchain
        return replace(
            limits,
            memory_mib=max(limits.memory_mib, toolchain.memory_mib + toolchain.heap_reserve_mib),
            processes=max(limits.processes, toolchain.processes),
            scratch_mib=limits.scratch_mib + -(-archive_bytes // _MIB),
        )

    def heap_mib(self, limits: Limits) -> int:
        return limits.memory_mib - self.found.toolchain.heap_reserve_mib

    def address_mib(self, limits: Limits) -> int:
        """A limit of address space, for hosts without control groups; 0: none."""
        return limits.memory_mib + _ADDRESS_SLACK_MIB if self.found.toolchain.address_space else 0


def _home(path: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.realpath(path)))


def recipe_for(program: Program, found: Found, standard: str) -> Recipe:
    """Raises :class:`InvalidProgram` for file names that lead elsewhere, or for source that is not text."""
    toolchain = found.toolchain
    try:
        source = program.source.encode("utf-8")
    except UnicodeEncodeError:
        source = program.source.encode("utf-8", "replace")
    check_files(program.files)
    if total_bytes(program.files) > _COMPILE_SCRATCH_MIB * _MIB // 2:
        raise InvalidProgram("the files of the program are too large")
    entry = entry_of(program.source) if "{class}" in " ".join((toolchain.source, *toolchain.run)) else None
    main = toolchain.source.replace("{class}", entry.file if entry else "")
    files: dict[str, Content] = {name: (name, 0o644, bytes(data)) for name, data in program.files.items()}
    if program.source or main not in files:
        files[main] = (main, 0o644, source)
    others = [name for name in files if name != main and name.endswith(found.language.extensions)]
    homes = {f"home:{name}": _home(path) for name, path in found.executables.items()}
    values: dict[str, Any] = {"source": main, "standard": standard, "class": entry.main if entry else "", **homes}
    build = toolchain.compile
    if toolchain.project_file and toolchain.project_file in files:
        build = toolchain.project_compile
    if program.build is not None:
        files[_BUILD_FILE] = (_BUILD_FILE, 0o644, program.build.encode("utf-8", "replace"))
        build = ("/bin/sh", _BUILD_FILE)
    executes = toolchain.compile_executes or program.build is not None
    return Recipe(found, tuple(files.values()), values, (main, *others), build, toolchain.run, source, executes)
