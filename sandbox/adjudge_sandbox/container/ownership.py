"""Whose box is it, and is that process still alive?

Every container carries labels that name the process that made it: host, process namespace, pid, start time. A server
that starts asks the engine for all containers with such labels and removes those whose process has ended. A process
that cannot be looked up from here (an engine shared by several hosts) counts as alive until the container's own time to
live is over.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

__all__ = ["OWNER", "is_orphan", "labels_of"]

OWNER = "adjudge.owner"
_PLACE, _PID, _STARTED, _EXPIRES = "adjudge.place", "adjudge.pid", "adjudge.started", "adjudge.expires"
_GRACE_S = 60.0


def labels_of(time_to_live_s: float, *, owner: str | None = None) -> dict[str, str]:
    """The labels of a container that this process makes now."""
    pid = os.getpid()
    return {
        OWNER: owner or secrets.token_hex(8),
        _PLACE: _place(),
        _PID: str(pid),
        _STARTED: _start_time(pid) or "",
        _EXPIRES: str(int(time.time() + time_to_live_s + _GRACE_S)),
    }


def is_orphan(labels: Mapping[str, str]) -> bool:
    """Has the process that made this container ended?"""
    if OWNER not in labels:
        return False
    expires = labels.get(_EXPIRES, "")
    if not expires.isdigit() or time.time() > int(expires):
        return True
    if labels.get(_PLACE) != _place():
        return False
    pid = labels.get(_PID, "")
    return not pid.isdigit() or _start_time(int(pid)) != labels.get(_STARTED)


def _place() -> str:
    """This boot of this host, and this namespace of pids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"unknown/{os.uname().nodename}"


def _start_time(pid: int) -> str | None:
    """Field 22 of /proc/pid/stat; ``None`` for a process that has ended. Its name may hold spaces and brackets."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None
