"""What this machine gives us: cores and memory that we may use, not those it has.

A container with a quota of two cores on a machine of 64 reports 64 to the naive; sixty-four workers on two cores would
make every time limit a lie.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

__all__ = ["memory_mib", "usable_cores"]

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Cores that this process may use: its affinity mask, capped by the cgroup's CPU quota (rounded up)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def _cpu_quota() -> float | None:
    """Cores of the cgroup's quota (version 2, then version 1); ``None`` if there is none."""
    words = _read(_CGROUP / "cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
        return int(words[0]) / int(words[1])
    quota = _read(_CGROUP / "cpu" / "cpu.cfs_quota_us")
    period = _read(_CGROUP / "cpu" / "cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        return int(quota) / int(period)
    return None


def memory_mib() -> int | None:
    """Memory that this process may use: what the machine has, capped by the cgroup's limit."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    for path in (_CGROUP / "memory.max", _CGROUP / "memory" / "memory.limit_in_bytes"):
        limit = _read(path)
        if limit.isdigit():
            total = min(total, int(limit))
    return total // 2**20


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
