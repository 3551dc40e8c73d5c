"""The main process of a box, and our line to it.

It is a shell that reads lines from its standard input, which is attached to this process, and answers each with what
the kernel has counted for the box: CPU time, memory, processes killed for want of it. The engine's own figures come
once a second; these come at once, and without starting a process, which a program that has used up its processes would
not leave room for. When its input ends, because we closed it or because we are dead, it ends, and the box with it.
"""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass
from typing import Any

from .streams import Demultiplexer, close_connection

__all__ = ["KEEPER", "KEEPER_SCRIPT", "Lifeline", "Usage"]

KEEPER_SCRIPT = r"""
show() { [ -r "$2" ] && while read -r key value; do echo "$1.$key=$value"; done <"$2"; }
cd /sys/fs/cgroup
while read -r number; do
  show cpu cpu.stat; show peak memory.peak; show used memory.current; show memory memory.events
  show cpuacct cpuacct/cpuacct.usage; show peak memory/memory.max_usage_in_bytes
  show memory memory/memory.oom_control
  echo "end.$number=."
done 2>/dev/null
"""
KEEPER = ["sh", "-c", 'command -v timeout >/dev/null && exec timeout -s KILL "$0" sh -c "$1"; exec sh -c "$1"']
"""The entry point of a box; its arguments are the seconds to live and :data:`KEEPER_SCRIPT`."""

_PATIENCE_S = 3.0
_FIELD = re.compile(rb"^(\w+)\.(\w+)=(\S*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the kernel has counted for a box since its start; 0 where it does not count."""

    cpu_s: float = 0.0
    peak_memory_mib: float = 0.0
    memory_kills: int = 0

    @classmethod
    def parse(cls, told: bytes) -> Usage:
        """From the lines of the keeper: control groups of version 1 or 2."""
        found = {(group, key): value for group, key, value in _FIELD.findall(told)}
        cpu_s = 0.0
        peak = 0
        for (group, key), value in found.items():
            if group == b"cpu" and key == b"usage_usec":
                cpu_s = _number(value) / 1e6
            elif group == b"cpuacct":
                cpu_s = _number(key) / 1e9
            elif group in (b"peak", b"used"):
                peak = max(peak, _number(key))
        return cls(cpu_s, peak / (1 << 20), _number(found.get((b"memory", b"oom_kill"), b"0")))


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 20 else 0


class Lifeline:
    """The connection to a box's main process. Used by one thread at a time."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped
        self._connection = getattr(wrapped, "_sock", wrapped)
        self._lock = threading.Lock()
        self._number = 0

    def usage(self) -> Usage | None:
        """What the box has used so far; ``None`` if it does not say so in time."""
        with self._lock, contextlib.suppress(OSError):
            self._number += 1
            answer = Demultiplexer(b"", 1 << 16, tail=True)
            answer.started = True
            end = f"end.{self._number}=.".encode()
            self._connection.settimeout(_PATIENCE_S)
            self._connection.sendall(f"{self._number}\n".encode())
            while end not in (told := answer.stdout.bytes()):
                data = self._connection.recv(1 << 16)
                if not data:
                    return None
                answer.feed(data)
            return Usage.parse(told)
        return None

    def close(self) -> None:
        """Let go: the box ends."""
        close_connection(self._wrapped)
