"""One container: made, used for one answer, destroyed.

Its main process reads its standard input, which is attached to this process (:mod:`.lifeline`): if this process dies,
in whatever way, the engine closes that input, the main process ends, and the engine removes the container with
everything in it (a dead man's switch). It also ends by itself after its time to live. Commands run beside it under
another uid, so none of them can touch it.

Walls: no network, read-only root, all capabilities dropped, no new privileges, the engine's default seccomp filter,
uid of nobody, limits of memory (without swap), processes and processors; /tmp, /dev/shm and the working folder are in
memory. The engine keeps no log.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import SandboxError, SandboxUnavailable
from . import archives
from .attendance import Attendance
from .base import Command, CommandResult, ContainerConfig, Ended, Shape
from .engine import Engine
from .lifeline import KEEPER, KEEPER_SCRIPT, Lifeline
from .streams import read_all

__all__ = ["Box", "LostBox"]

_KEEPER = "65533:65533"
_NOBODY = "65534:65534"
_CONTROL = "/box"
_INODES_PER_MIB = 512
_MAX_OPEN_FILES = 1024
_FETCH_MARGIN = 1 << 20
_FETCH_S = 60.0

_ENTER = r"""
mark=$1 folder=$2 cpu=$3; shift 3
kill -9 -1 2>/dev/null
{ rm -rf -- "$folder"/..?* "$folder"/.[!.]* "$folder"/* /tmp/..?* /tmp/.[!.]* /tmp/* /dev/shm/* /box/*; } 2>/dev/null
[ -z "$(ls -A "$folder" /box 2>/dev/null | grep -v ':$' | grep .)" ] || { echo 'the folder is not empty' >&2; exit 1; }
tar -xmf - -C / || exit 1
cd "$folder" || exit 1
ulimit -c 0
ulimit -St "$cpu" && ulimit -Ht $((cpu + 1)) || exit 1
unset OLDPWD PWD HOSTNAME
printf %s "$mark" >&2
exec "$@" </box/stdin
"""
_LEAVE = 'kill -9 -1 2>/dev/null; cd "$1" || exit 1; shift; exec tar -cf - -- "$@" 2>/dev/null'


class LostBox(SandboxUnavailable):
    """The box is not there any more, or a command could not be started in it; nothing was judged."""


class Box:
    """A running container. ``used`` is set by its first command."""

    def __init__(self, engine: Engine, identity: str, lifeline: Lifeline, shape: Shape) -> None:
        self._engine = engine
        self.identity = identity
        self._lifeline = lifeline
        self._shape = shape
        self.made = time.monotonic()
        self.used = False
        self.clean = True
        """Can another run of the same answer use it?"""

    @classmethod
    async def make(
        cls, engine: Engine, config: ContainerConfig, image: str, shape: Shape, labels: Mapping[str, str]
    ) -> Box:
        """Create and start one. Raises :class:`SandboxUnavailable`, :class:`InvalidProgram` (no such image)."""

        def make(client: Any) -> Box:
            created = client.create_container(**_description(client, config, image, shape, labels))
            identity = created["Id"]
            lifeline = None
            try:
                lifeline = Lifeline(client.attach_socket(identity, params={"stdin": 1, "stdout": 1, "stream": 1}))
                client.start(identity)
            except BaseException:
                if lifeline is not None:
                    lifeline.close()
                with contextlib.suppress(Exception):
                    client.remove_container(identity, force=True, v=True)
                raise
            return cls(engine, identity, lifeline, shape)

        return await engine.call(make)

    async def run(self, command: Command) -> CommandResult:
        """Run one command. Raises :class:`LostBox`; the box must then be destroyed, as after any limit."""
        self.used = True
        payload = await asyncio.to_thread(
            archives.pack,
            command.files,
            inputs={"stdin": command.stdin},
            folder=self._shape.folder,
            control=_CONTROL,
        )
        mark = secrets.token_hex(16)
        stop = threading.Event()

        def attend(client: Any) -> tuple[Ended | None, Attendance]:
            limit = str(max(1, math.ceil(command.cpu_s)))
            argv = ["sh", "-c", _ENTER, "sh", mark, self._shape.folder, limit, *command.argv]
            execution = client.exec_create(
                self.identity, argv, stdin=True, user=_NOBODY, environment=_environment(command.env)
            )["Id"]
            attendance = Attendance(client, self._lifeline, command, mark.encode(), stop)
            return attendance.run(execution, payload), attendance

        self.clean = False
        try:
            ended, attendance = await self._engine.stream(attend)
        except SandboxUnavailable as error:
            raise LostBox(str(error)) from error
        finally:
            stop.set()
        if ended is None:
            complaint = attendance.output.before.decode("utf-8", "replace").strip()
            raise LostBox(f"a command could not be started in its container: {complaint or 'no answer'}"[:500])
        self.clean = ended is Ended.EXITED
        files = await self._fetch(command) if command.fetch and ended is Ended.EXITED else {}
        return _result(ended, attendance, files)

    async def _fetch(self, command: Command) -> dict[str, bytes]:
        """What the command left. All its processes are killed first, so that nobody shapes what is being read."""
        names = [archives.check_name(name) for name in command.fetch]
        limit = (command.fetch_kib << 10) + _FETCH_MARGIN + 2048 * len(names)

        def read(client: Any) -> bytes:
            argv = ["sh", "-c", _LEAVE, "sh", self._shape.folder, *(f"./{name}" for name in names)]
            execution = client.exec_create(self.identity, argv, user=_NOBODY)["Id"]
            wrapped = client.exec_start(execution, socket=True)
            return read_all(wrapped, limit, _FETCH_S)

        try:
            archive = await self._engine.call(read)
        except SandboxError as error:
            raise LostBox(f"files could not be brought back: {error}") from error
        return await asyncio.to_thread(archives.unpack, archive, set(names), max_bytes=command.fetch_kib << 10)

    async def destroy(self) -> None:
        """Kill everything in it and remove it. Never raises for a box that is gone."""

        def remove(client: Any) -> None:
            # NotFound, or "removal is already in progress": both are what we want
            with contextlib.suppress(Exception):
                client.remove_container(self.identity, force=True, v=True)

        self.clean = False
        try:
            with contextlib.suppress(SandboxError):
                await self._engine.call(remove)
        finally:
            self._lifeline.close()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    return {"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", **extra}


def _result(ended: Ended, attendance: Attendance, files: Mapping[str, bytes]) -> CommandResult:
    output = attendance.output
    return CommandResult(
        ended=ended,
        exit_status=attendance.exit_status,
        stdout=output.stdout.bytes(),
        stderr=output.stderr.bytes(),
        stdout_truncated=output.stdout.truncated,
        stderr_truncated=output.stderr.truncated,
        files=files,
        cpu_s=attendance.cpu_s,
        wall_s=attendance.wall_s,
        peak_memory_mib=attendance.usage.peak_memory_mib or None,
        starved=attendance.starved,
    )


def _description(
    client: Any, config: ContainerConfig, image: str, shape: Shape, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments of the engine's ``create``."""
    host = client.create_host_config(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=f"{shape.memory_mib}m",
        memswap_limit=f"{shape.memory_mib}m",
        pids_limit=shape.processes + 8,  # the keeper's, and those that start a command
        nano_cpus=int(config.cpus * 1e9),
        tmpfs=_file_systems(shape),
        shm_size=f"{shape.scratch_mib}m",
        ipc_mode="private",
        init=True,
        auto_remove=True,
        log_config={"Type": "none", "Config": {}},
        runtime=config.runtime,
    )
    # The SDK's own helper for ulimits wants its own class; the engine wants this.
    host["Ulimits"] = [
        {"Name": "nofile", "Soft": _MAX_OPEN_FILES, "Hard": _MAX_OPEN_FILES},
        {"Name": "core", "Soft": 0, "Hard": 0},
    ]
    return {
        "image": image,
        "entrypoint": KEEPER,
        "command": [str(int(config.time_to_live_s)), KEEPER_SCRIPT],
        "user": _KEEPER,
        "stdin_open": True,
        "hostname": "sandbox",
        "network_disabled": True,
        "working_dir": shape.folder,
        "healthcheck": {"test": ["NONE"]},
        "labels": dict(labels),
        "host_config": host,
    }


def _file_systems(shape: Shape) -> dict[str, str]:
    def options(mib: int, rest: Sequence[str]) -> str:
        return ",".join([f"size={mib}m", f"nr_inodes={mib * _INODES_PER_MIB}", "exec", *rest])

    return {
        "/tmp": options(shape.scratch_mib, ["mode=1777"]),
        shape.folder: options(shape.folder_mib, ["uid=65534", "gid=65534", "mode=0755"]),
        _CONTROL: options(shape.folder_mib, ["uid=65534", "gid=65534", "mode=0700"]),
    }
