"""What a server holds and what this host holds because of it, counted from /proc: for the soak.

Everything is read from outside, so nothing has to be believed. What other programs of this host do at the same time is
left out as far as it can be told apart: processes are those below the server and those that have lost their parent
since the beginning; control groups are known by their name, temporary files by their folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Snapshot", "alive", "bystanders", "groups_of", "identities", "snapshot", "tree"]

_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_GROUP_PREFIX = "adjudge-"
_MAX_GROUP_DEPTH = 12


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return found


def tree(root: int) -> dict[int, int]:
    """Pids of ``root`` and of its descendants, with their depth; 0 is ``root``."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found, level, depth = {}, [root], 0
    while level:
        found.update(dict.fromkeys(level, depth))
        level, depth = [child for parent in level for child in children.get(parent, ())], depth + 1
    return found


def identities(pids: Iterator[int] | dict[int, int]) -> set[tuple[int, bytes]]:
    """Pids with their time of start: a number that is used again is not the same process."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            found.add((pid, Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19]))
    return found


def alive(known: set[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
    """Those that still run. A zombie is dead: it waits for its parent only."""
    found = set()
    for pid, start in known:
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[19] == start and fields[0] not in (b"Z", b"X"):
                found.add((pid, start))
    return found


def groups_of(server: int) -> set[str]:
    """Folders of control groups that a server of ours has made, in every hierarchy."""
    found = set()
    for root, folders, _ in os.walk("/sys/fs/cgroup"):
        if f"/{_GROUP_PREFIX}{server}-" in root:
            found.add(root)
        elif f"/{_GROUP_PREFIX}" in root or root.count("/") > _MAX_GROUP_DEPTH:
            folders.clear()
    return found


def bystanders() -> set[int]:
    """Children of process 1: what runs below them is not ours, if it was there before us."""
    return {pid for pid, parent in _parents().items() if parent == 1}


def _mine(server: int, others: set[int]) -> set[int]:
    """Processes below the server, and those below orphans that were not there at the beginning."""
    found = set(tree(server))
    for orphan in bystanders() - others:
        if not any(engine in _name(orphan) for engine in ("containerd", "dockerd")):
            found |= set(tree(orphan))
    return found


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counts at one moment."""

    descriptors: int
    processes: int
    threads: int
    zombies: int
    resident_mib: float
    mounts: int
    most_mounts_of_one: int
    groups: int
    namespaces: int
    temporary_files: int
    system_v: int
    by_process: dict[str, tuple[int, int, float]]
    """By what a process is: how many there are, their descriptors, their resident MiB."""

    def rows(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "by_process"}


def snapshot(server: int, others: set[int], scratch: str) -> Snapshot:
    """``others``: :func:`bystanders` at the beginning. ``scratch``: the server's folder for temporary files."""
    pids = tree(server)
    resident, by_process = 0.0, dict[str, tuple[int, int, float]]()
    descriptors = threads = zombies = most_mounts = 0
    for pid, depth in pids.items():
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{pid}/status").read_text(errors="replace")
            zombies += "\nState:\tZ" in status
            threads += len(os.listdir(f"/proc/{pid}/task"))
            opened = len(os.listdir(f"/proc/{pid}/fd"))
            descriptors += opened
            most_mounts = max(most_mounts, _lines(f"/proc/{pid}/mountinfo"))
            size = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")) / 1024
            resident += size
            name = f"{'  ' * depth}{_name(pid)}"
            count, fds, mib = by_process.get(name, (0, 0, 0.0))
            by_process[name] = count + 1, fds + opened, mib + size
    return Snapshot(
        descriptors=descriptors,
        processes=len(pids),
        threads=threads,
        zombies=zombies,
        resident_mib=round(resident, 1),
        mounts=_mounts(),
        most_mounts_of_one=most_mounts,
        groups=len(groups_of(server)),
        namespaces=_namespaces(_mine(server, others)),
        temporary_files=_files(scratch),
        system_v=sum(_lines(f"/proc/sysvipc/{kind}") - 1 for kind in ("shm", "msg", "sem")),
        by_process=by_process,
    )


def _lines(path: str) -> int:
    with contextlib.suppress(OSError):
        return Path(path).read_text().count("\n")
    return 0


def _name(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "?"
    words = [word for word in command.split("\0") if word]
    modules = [words[n + 1] for n, word in enumerate(words[:-1]) if word == "-m"]
    targets = [word.partition('"target": "')[2].partition('"')[0] for word in words if '"target": "' in word]
    return (targets or modules or words or ["?"])[0].rpartition("/")[2]


def _mounts() -> int:
    """Mounts of the host, without those of container engines."""
    engines = ("docker", "containerd", "overlay", "nsfs")
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sum(not any(name in line for name in engines) for line in lines)


def _namespaces(pids: set[int]) -> int:
    """Different namespaces that any of these processes is in."""
    seen = set()
    for pid in pids:
        for kind in _NAMESPACES:
            with contextlib.suppress(OSError):
                seen.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
    return len(seen)


def _files(scratch: str) -> int:
    count = sum(len(folders) + len(names) for _, folders, names in os.walk(scratch))
    with contextlib.suppress(OSError):
        count += len(os.listdir("/dev/shm"))
    return count
