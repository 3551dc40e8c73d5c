"""The two output streams of a command in a box, as the engine sends them: frames of 8 bytes of header and data.

Output is read as fast as it comes, whatever the command does, and kept up to a limit: its beginning, or its end where
that tells more. The first bytes of stderr are a mark that we wrote ourselves when everything was laid ready; without it
the command has not been started, and nothing of what follows is its doing.
"""

from __future__ import annotations

import contextlib
import struct
import time
from typing import Any

__all__ = ["Demultiplexer", "Kept", "close_connection", "read_all"]

_HEADER = struct.Struct(">BxxxI")
_STDERR = 2
_MAX_COMPLAINT = 4096


class Kept:
    """What is kept of one stream."""

    def __init__(self, limit: int, *, tail: bool) -> None:
        self._limit = limit
        self._tail = tail
        self._data = bytearray()
        self.truncated = False

    def add(self, data: memoryview) -> None:
        """Keep what fits."""
        if not self._tail:
            room = self._limit - len(self._data)
            self._data += data[:room]
            self.truncated |= len(data) > room
            return
        self._data += data
        if len(self._data) > 2 * self._limit:  # cutting at each write would be quadratic
            self._cut()

    def _cut(self) -> None:
        if len(self._data) > self._limit:
            self.truncated = True
            del self._data[: len(self._data) - self._limit]

    def bytes(self) -> bytes:
        """All that is kept."""
        if self._tail:
            self._cut()
        return bytes(self._data)


class Demultiplexer:
    """Takes the engine's bytes as they come and tells stdout from stderr."""

    def __init__(self, mark: bytes, limit: int, *, tail: bool = False) -> None:
        self.stdout = Kept(limit, tail=tail)
        self.stderr = Kept(limit, tail=tail)
        self._mark = mark
        self._before = bytearray()
        self._header = bytearray()
        self._stream = 0
        self._left = 0
        self.started = False
        """Has the mark been seen?"""

    @property
    def before(self) -> bytes:
        """What was said on stderr instead of the mark: why the command could not be started."""
        return bytes(self._before)

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            if self._left == 0:
                missing = _HEADER.size - len(self._header)
                self._header += view[:missing]
                view = view[missing:]
                if len(self._header) == _HEADER.size:
                    self._stream, self._left = _HEADER.unpack(self._header)
                    self._header.clear()
                continue
            part, view = view[: self._left], view[self._left :]
            self._left -= len(part)
            self._take(part)

    def _take(self, part: memoryview) -> None:
        if self._stream != _STDERR:
            self.stdout.add(part)  # it may overtake the mark: these are two pipes
            return
        if not self.started:
            if len(self._before) > _MAX_COMPLAINT:
                return
            self._before += part[:_MAX_COMPLAINT]
            at = self._before.find(self._mark)
            if at < 0:
                return
            self.started = True
            rest = bytes(self._before[at + len(self._mark) :]) + bytes(part[_MAX_COMPLAINT:])
            self._before.clear()
            part = memoryview(rest)
        self.stderr.add(part)


def read_all(wrapped: Any, limit: int, timeout_s: float) -> bytes:
    """What a trusted command of ours writes to stdout, up to ``limit`` bytes. Blocks. Raises ``OSError``."""
    connection = getattr(wrapped, "_sock", wrapped)
    output = Demultiplexer(b"", limit)
    until = time.monotonic() + timeout_s
    try:
        while not output.stdout.truncated:
            connection.settimeout(max(0.01, until - time.monotonic()))
            data = connection.recv(1 << 16)
            if not data:
                break
            output.feed(data)
        return output.stdout.bytes()
    finally:
        close_connection(wrapped)


def close_connection(wrapped: Any) -> None:
    """Close a connection that the SDK has handed over, whose socket stays open as long as its wrapper or response."""
    for part in (getattr(wrapped, "_response", None), wrapped, getattr(wrapped, "_sock", None)):
        if part is not None:
            with contextlib.suppress(OSError, ValueError):  # closed already, as a part of the one before
                part.close()
