"""The contract of boxes: a throw-away machine in which the commands of one answer are run.

A :class:`Command` brings all its files with it and says which to bring back; nothing of one answer is ever seen by
another. How a command ended is told by :class:`Ended`, and everything in it is the command's own doing; what is ours is
raised (:mod:`adjudge_sandbox.errors`). Verifiers that need more than one program and its input, such as repository
tests, are written against :class:`Boxes` and know nothing of the engine behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

__all__ = ["Boxes", "Command", "CommandResult", "ContainerConfig", "Ended", "File", "Shape"]


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """Which engine, which image, how many boxes."""

    image: str = ""
    """For programs whose task names none."""
    engine_url: str | None = None
    """``unix:///var/run/docker.sock``, ``tcp://host:2375``; ``None``: DOCKER_HOST, else the usual socket."""
    runtime: str | None = None
    """``runsc`` for gVisor; ``None`` is the engine's own."""
    warm: int = 1
    """Boxes that stand ready for each image and shape that was asked for lately."""
    max_boxes: int = 4
    """In use at once; more wait."""
    cpus: float = 1.0
    time_to_live_s: float = 7200.0
    """A box ends by itself after this time, whatever becomes of this process."""
    pull: bool = False
    """May images be fetched from a registry?"""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a box may use. Boxes of one image and shape are interchangeable before they are used."""

    memory_mib: int = 512
    processes: int = 64
    scratch_mib: int = 64
    """Of /tmp and of /dev/shm, each."""
    folder: str = "/work"
    """Where files are laid and commands run: a file system in memory, empty in a fresh box."""
    folder_mib: int = 64


@dataclass(frozen=True, slots=True)
class File:
    """One file of a command: its bytes, or where a symbolic link leads."""

    data: bytes = b""
    executable: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """Run ``argv`` in the box's folder."""

    argv: Sequence[str]
    stdin: bytes = b""
    files: Mapping[str, File] = field(default_factory=dict)
    """Relative names, laid into the folder before the start. The folder is empty otherwise."""
    env: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = 20.0
    cpu_s: float = 5.0
    """Of all its processes together."""
    output_kib: int = 4096
    """Of stdout and of stderr, each."""
    fetch: Sequence[str] = ()
    """Regular files to bring back: relative names. One that is not there is missing in the result."""
    fetch_kib: int = 16_384
    """Of all of them together; what goes beyond is missing in the result."""
    tail: bool = False
    """Too much output: keep its end and let the command go on, instead of ending it."""


class Ended(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did. ``exit_status`` is 128 + n for one that was killed by signal n, as a shell says it."""

    ended: Ended
    exit_status: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_memory_mib: float | None = None
    starved: bool = False
    """It met its wall clock, but this host was so busy that it may have been waiting for a processor."""


class Boxes(Protocol):
    """Runs commands in fresh boxes. One object serves many concurrent callers."""

    name: str
    """What holds them, for the verdict's ``isolation``."""

    async def run(self, image: str, shape: Shape, command: Command) -> CommandResult:
        """Run one command in a box that nothing has used, and destroy the box.

        Raises:
            InvalidProgram: no such image, or a name of a file leads elsewhere.
            SandboxUnavailable: no box could be made, or it was lost twice.
            SandboxOverloaded: it was starved, twice.
        """
        ...

    async def folder_of(self, image: str, folder: str, *, max_mib: int = 512) -> bytes:
        """``folder`` of an image as a tar archive. Nothing of the image is run.

        Raises:
            InvalidProgram: no such image or folder, or it is larger.
        """
        ...
