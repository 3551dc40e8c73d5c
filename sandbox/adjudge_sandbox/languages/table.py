"""The table of languages: what is known about each, independent of this host.

The data is ``table.toml``, beside this file, where every field is explained. Names and aliases are those that trainers,
data sets and other executors use; an alias such as ``c++17`` chooses the standard too.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

__all__ = ["Language", "Prepare", "Toolchain", "find", "languages"]


@dataclass(frozen=True, slots=True)
class Prepare:
    """What can be prepared for a toolchain (:mod:`adjudge_sandbox.languages.prepared`)."""

    command: tuple[str, ...]
    """Run in the folder that is to hold the result."""
    result: str
    """The file or folder that it makes."""
    flags: tuple[str, ...] = ()
    """Of the compile command, once it is there; ``{prepared}`` is its folder."""
    when: str = ""
    """Only for programs that hold this text."""
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def serves(self, contents: Iterable[bytes]) -> bool:
        """Would a program of these files use it?"""
        return not self.when or any(self.when.encode() in content for content in contents)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One way of building and running programs of a language. Fields as in ``table.toml``."""

    name: str
    needs: tuple[str, ...]
    source: str
    run: tuple[str, ...]
    version: tuple[str, ...]
    compile: tuple[str, ...] = ()
    project_file: str = ""
    project_compile: tuple[str, ...] = ()
    root_command: tuple[str, ...] = ()
    standard_check: tuple[str, ...] = ()
    prepare: Prepare | None = None
    shows: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mib: int = 16
    heap_reserve_mib: int = 0
    processes: int = 1
    compile_memory_mib: int = 256
    compile_processes: int = 32
    compile_cpu_s: float = 0.0
    address_space: bool = True
    memory_signs: tuple[str, ...] = ()
    compile_signs: tuple[str, ...] = ()
    compile_executes: bool = False
    compile_killed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """A language and its toolchains, best first."""

    name: str
    aliases: tuple[str, ...]
    extensions: tuple[str, ...]
    package: str
    """What Debian calls it; empty: it does not have it."""
    hello: str
    """A program that reads a number and prints its double (SQL: prints 42)."""
    toolchains: tuple[Toolchain, ...]
    standards: Mapping[str, str] = field(default_factory=dict)
    """Aliases that choose a standard."""
    standard: str = ""
    standard_fallback: str = ""
    website: str = ""


@functools.cache
def languages() -> tuple[Language, ...]:
    """All languages, in the order of the table."""
    text = resources.files("adjudge_sandbox.languages").joinpath("table.toml").read_text("utf-8")
    return tuple(_language(row) for row in tomllib.loads(text)["language"])


def _language(row: dict[str, Any]) -> Language:
    toolchains = tuple(_toolchain(toolchain) for toolchain in row.pop("toolchain"))
    return Language(**_tuples(row), toolchains=toolchains)


def _toolchain(row: dict[str, Any]) -> Toolchain:
    prepare = row.pop("prepare", None)
    return Toolchain(**_tuples(row), prepare=Prepare(**_tuples(prepare)) if prepare else None)


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def find(name: str) -> tuple[Language, str] | None:
    """The language of this name or alias, and the standard that the alias chooses (or ``""``)."""
    return _by_alias().get(name.strip().lower())


@functools.cache
def _by_alias() -> dict[str, tuple[Language, str]]:
    found: dict[str, tuple[Language, str]] = {}
    for language in languages():
        for alias in (language.name, *language.aliases):
            found[alias] = (language, "")
        for alias, standard in language.standards.items():
            found[alias] = (language, standard)
    return found
