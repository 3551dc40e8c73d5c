"""Memory and process limits by control groups, version 1 or 2, where this process may make them; CPU time is counted.

The server makes one group for itself at its start and a numbered child group for every program that runs at once.
Groups are used again and again: a removed memory group lingers in the kernel until the last page charged to it is gone,
so making one per run would grow without end. Groups of servers that died are removed at the next start.

Where no group can be made, limits are resource limits of each process plus a look at the resident memory now and then,
and ``describe()`` of the sandbox says ``rlimits``.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from . import namespaces as ns

__all__ = ["Groups", "Slot", "open_groups", "slot"]

_MOUNT = "/sys/fs/cgroup"
_PREFIX = "adjudge-"
_REMOVE_TRIES, _REMOVE_PAUSE_S = 100, 0.02
_ALMOST = 1 << 20
_numbers = itertools.count()  # several sandboxes of one process have groups of their own


@dataclass(frozen=True, slots=True)
class Groups:
    """Where this server's groups are. ``folders`` is empty for ``rlimits``."""

    kind: str
    """``v1``, ``v2`` or ``rlimits``."""
    folders: dict[str, str]
    """Controller to folder: ``{"memory": ..., "pids": ...}``; both the same folder in version 2. In version 1 also
    ``cpuacct`` where the host has it."""
    reason: str = ""
    """Why it is no better than ``rlimits``."""

    def as_config(self) -> dict[str, Any]:
        return {"kind": self.kind, "folders": self.folders}

    def remove(self) -> None:
        """Remove the groups of this server, killing what is left in them. Waits a little for the dying."""
        for folder in set(self.folders.values()):
            for _ in range(_REMOVE_TRIES):
                _remove(folder)
                if not os.path.exists(folder):
                    break
                time.sleep(_REMOVE_PAUSE_S)

    def clear(self, *names: str) -> bool:
        """Kill what is left in these slots; are they empty now?"""
        empty = True
        for folder in set(self.folders.values()):
            for name in names:
                empty = _kill_all(os.path.join(folder, name)) and empty
        return empty


@dataclass(frozen=True, slots=True)
class Slot:
    """One numbered group with its limits set."""

    kind: str
    memory: str
    pids: str
    cpu: str
    memory_mib: int

    def open_procs(self) -> list[int]:
        """Descriptors; a process that writes ``0`` to each of them has moved into the slot."""
        folders = dict.fromkeys(filter(None, (self.memory, self.pids, self.cpu)))
        return [os.open(f"{folder}/cgroup.procs", os.O_WRONLY) for folder in folders]

    def cpu_s(self) -> float | None:
        """CPU seconds of everything that ever ran here; ``None`` where the kernel does not count them.

        The processes themselves cannot say: a child that nobody waits for (``SIGCHLD`` ignored) is in no sum.
        """
        with contextlib.suppress(OSError, ValueError, IndexError):
            if self.kind == "v1":
                return int(_look(f"{self.cpu}/cpuacct.usage")) / 1e9 if self.cpu else None
            return int(_look(f"{self.memory}/cpu.stat").split()[1]) / 1e6
        return None

    def oom_kills(self) -> int:
        """How often the kernel has killed a process here for lack of memory, ever."""
        name = "memory.oom_control" if self.kind == "v1" else "memory.events"
        _, _, count = _look(f"{self.memory}/{name}").partition(b"\noom_kill ")
        return int(count.split()[0]) if count else 0

    def times_full(self) -> int:
        """How often this group's own limit was what an allocation failed for, ever. Version 2 counts that."""
        if self.kind == "v1":
            return 0
        _, _, count = _look(f"{self.memory}/memory.events").partition(b"\noom ")
        return int(count.split()[0]) if count else 0

    def was_full(self, before: int) -> bool:
        """Has it met its own limit since :meth:`reset_peak`, and :meth:`times_full` gave ``before``?

        The kernel kills processes here, and counts that here, for lack of memory in a group above or of the whole host
        too.
        """
        if self.kind != "v1":
            return self.times_full() > before
        name = "memory.memsw.max_usage_in_bytes" if _swaps() else "memory.max_usage_in_bytes"
        with contextlib.suppress(OSError, ValueError):
            return int(_look(f"{self.memory}/{name}")) > (self.memory_mib << 20) - _ALMOST
        return True

    def reset_peak(self) -> int:
        """Gives what is used now, by nobody: files that earlier runs have read and that the kernel keeps at hand."""
        if self.kind != "v1":
            return 0
        with contextlib.suppress(OSError, ValueError):
            os.pwrite(_kept(f"{self.memory}/memory.max_usage_in_bytes"), b"0", 0)
            return int(_look(f"{self.memory}/memory.max_usage_in_bytes"))
        return 0

    def peak_mib(self, before: int) -> float | None:
        """Most memory used since :meth:`reset_peak` gave ``before``; ``None`` where the kernel cannot say."""
        if self.kind != "v1":
            return None
        with contextlib.suppress(OSError, ValueError, KeyError):
            peak = int(_look(f"{self.memory}/memory.max_usage_in_bytes"))
            if peak > (self.memory_mib << 20) - _ALMOST:  # such files have made room
                lines = (line.split() for line in _look(f"{self.memory}/memory.stat").splitlines())
                stat = {name: int(count) for name, count in lines}
                before = stat[b"cache"] - stat[b"shmem"]
            return max(0, peak - before) / (1 << 20)
        return None


def slot(config: dict[str, Any], name: str, memory_mib: int, processes: int) -> Slot | None:
    """Set up the slot ``name``; ``None`` for ``rlimits``. Raises ``OSError``."""
    if config["kind"] == "rlimits":
        return None
    folders = {controller: os.path.join(folder, name) for controller, folder in config["folders"].items()}
    for folder in folders.values():
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
    bytes_ = str(memory_mib << 20)
    memory, pids = folders["memory"], folders["pids"]
    if config["kind"] == "v1":
        _limit_v1_memory(memory, bytes_)
    else:
        _write(f"{memory}/memory.max", bytes_)
        with contextlib.suppress(OSError):
            _write(f"{memory}/memory.swap.max", "0")
    _write(f"{pids}/pids.max", str(processes))
    return Slot(config["kind"], memory, pids, folders.get("cpuacct", ""), memory_mib)


def _limit_v1_memory(folder: str, bytes_: str) -> None:
    """The limit with swap may never be below the one without, so the order depends on the direction."""
    both = [f"{folder}/memory.limit_in_bytes", f"{folder}/memory.memsw.limit_in_bytes"]
    if not os.path.exists(both[1]):
        both.pop()
    for path in (*both, *both[:1]):
        with contextlib.suppress(OSError):
            _write(path, bytes_)
    if int(_read(both[0])) > int(bytes_) + (1 << 20):
        with contextlib.suppress(OSError):
            _write(f"{folder}/memory.force_empty", "0")
        _write(both[0], bytes_)


def open_groups() -> Groups:
    """Make this server's groups, as well as the host allows, after removing those of servers that are gone."""
    if os.geteuid() == 0 and not ns.has_capability(ns.CAP_SYS_ADMIN):
        return Groups("rlimits", {}, "root without CAP_SYS_ADMIN: jails are made by nobody, who may not use groups")
    reasons = []
    for attempt in (_open_v1, _open_v2):
        try:
            return attempt()
        except OSError as error:
            reasons.append(str(error))
    return Groups("rlimits", {}, "; ".join(reasons))


def _own_paths() -> dict[str, str]:
    """Controller (``""`` for version 2) to this process's own group."""
    paths = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _own_name() -> str:
    return f"{_PREFIX}{os.getpid()}-{_start_time(os.getpid())}-{next(_numbers)}"


def _start_time(pid: int) -> str:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19]


def _open_v1() -> Groups:
    own = _own_paths()
    folders: dict[str, str] = {}
    for controller in ("memory", "pids"):
        parent = f"{_MOUNT}/{controller}{own.get(controller, '')}".rstrip("/")
        if controller not in own or not os.path.isdir(parent):
            raise OSError(f"version 1: no {controller} controller")
        _remove_stale(parent)
        folders[controller] = os.path.join(parent, _own_name())
        try:
            os.makedirs(folders[controller], exist_ok=True)
        except OSError as error:
            raise OSError(f"version 1: {error.strerror} in {parent}") from error
    with contextlib.suppress(OSError):
        parent = f"{_MOUNT}/cpuacct{own['cpuacct']}".rstrip("/") if "cpuacct" in own else ""
        if os.path.isdir(parent):
            _remove_stale(parent)
            os.makedirs(folder := os.path.join(parent, _own_name()), exist_ok=True)
            folders["cpuacct"] = folder
    groups = Groups("v1", folders)
    _try_out(groups)
    return groups


def _open_v2() -> Groups:
    own = _own_paths()
    parent = f"{_MOUNT}{own.get('', '')}".rstrip("/")
    if not os.path.exists(f"{parent}/cgroup.controllers"):
        raise OSError("version 2: not mounted on /sys/fs/cgroup")
    missing = {"memory", "pids"} - set(_read(f"{parent}/cgroup.controllers").split())
    if missing:
        raise OSError(f"version 2: {' and '.join(sorted(missing))} not delegated to {parent}")
    _remove_stale(parent)
    folder = os.path.join(parent, _own_name())
    try:
        os.makedirs(folder, exist_ok=True)
        _enable_v2(parent)
        _write(f"{folder}/cgroup.subtree_control", "+memory +pids")
    except OSError as error:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        raise OSError(f"version 2: {error.strerror} in {parent}") from error
    groups = Groups("v2", {"memory": folder, "pids": folder})
    _try_out(groups)
    return groups


def _enable_v2(parent: str) -> None:
    """Let children of ``parent`` be limited. A group with processes of its own may not: if it is ours alone, move."""
    try:
        _write(f"{parent}/cgroup.subtree_control", "+memory +pids")
    except OSError:
        if _pids(parent) != [os.getpid()]:
            raise
        leaf = f"{parent}/{_PREFIX}server"
        os.makedirs(leaf, exist_ok=True)
        _write(f"{leaf}/cgroup.procs", str(os.getpid()))
        _write(f"{parent}/cgroup.subtree_control", "+memory +pids")


def _try_out(groups: Groups) -> None:
    """Set a limit once, so that what cannot work fails here and not in the first run."""
    try:
        slot(groups.as_config(), "try", 64, 8)
    except OSError:
        groups.remove()
        raise
    for folder in set(groups.folders.values()):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(folder, "try"))


def _remove_stale(parent: str) -> None:
    for name in os.listdir(parent):
        pid, _, rest = name.removeprefix(_PREFIX).partition("-")
        if not name.startswith(_PREFIX) or not pid.isdigit():
            continue
        with contextlib.suppress(OSError):
            if _start_time(int(pid)) == rest.partition("-")[0]:
                continue
        _remove(os.path.join(parent, name))


def _remove(folder: str) -> None:
    for name in _subfolders(folder):
        _kill_all(os.path.join(folder, name))
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(folder, name))
    _kill_all(folder)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _subfolders(folder: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _kill_all(folder: str) -> bool:
    """SIGKILL everything in a group; is it empty?"""
    pids = _pids(folder)
    if not pids:
        return True
    with contextlib.suppress(OSError):
        _write(f"{folder}/cgroup.kill", "1")
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return not _pids(folder)


def _pids(folder: str) -> list[int]:
    try:
        return [int(line) for line in _read(f"{folder}/cgroup.procs").split() if line != "0"]
    except OSError:
        return []


@functools.cache
def _swaps() -> bool:
    """Does this host put memory on disk?"""
    return len(_read("/proc/swaps").splitlines()) > 1


@functools.cache
def _kept(path: str) -> int:
    """A descriptor of a group's file that stays open: opening costs more than reading, and every run reads."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _look(path: str) -> bytes:
    return os.pread(_kept(path), 4096, 0)


def _read(path: str) -> str:
    with open(path, errors="replace") as file:  # a process may call itself anything
        return file.read()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
