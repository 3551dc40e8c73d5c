"""Attending one command in a box: feed it, drain it, watch its clocks, and know when it is over.

The engine's own time-outs do not help: an ``exec`` whose client goes away goes on running in the container. So whoever
attends only says how the command ended; where that is a limit, the caller destroys the whole box. The end of a command
is the exit of its first process, and not the end of its output, which a process left behind could hold open for ever.

Everything here blocks and runs in a thread.
"""

from __future__ import annotations

import selectors
import ssl
import threading
import time
from typing import Any

from .base import Command, Ended
from .lifeline import Lifeline, Usage
from .streams import Demultiplexer, close_connection

__all__ = ["Attendance"]

_CHUNK = 1 << 16
_TICK_S = 0.1
_LOOK_EVERY_S = 0.5
_DRAIN_S = 0.5
_SETUP_S = 120.0
_LATE_SHARE = 0.15
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Attendance:
    """One command. :meth:`run` returns when it is over, or when it has to be ended by destroying its box."""

    def __init__(self, client: Any, lifeline: Lifeline, command: Command, mark: bytes, stop: threading.Event) -> None:
        self._client = client
        self._lifeline = lifeline
        self._command = command
        self._stop = stop
        self.output = Demultiplexer(mark, command.output_kib << 10, tail=command.tail)
        self.exit_status: int | None = None
        self.wall_s = 0.0
        self.usage = self._before = Usage()
        self._began = time.monotonic()
        self._started: float | None = None
        self._open = True
        self._next_look = 0.0
        self._ended: Ended | None = None
        self._late_s = 0.0

    @property
    def cpu_s(self) -> float:
        """Of this command alone."""
        return max(0.0, self.usage.cpu_s - self._before.cpu_s)

    @property
    def starved(self) -> bool:
        """Did this thread wake up so late, and the command compute so little, that both may have lacked a processor?"""
        return (
            self._ended is Ended.WALL
            and self._late_s > _LATE_SHARE * self._command.wall_s
            and self.cpu_s < self._command.cpu_s / 2
        )

    @property
    def memory_kills(self) -> int:
        """How many of its processes were killed for want of memory."""
        return self.usage.memory_kills - self._before.memory_kills

    def run(self, execution: str, payload: bytes) -> Ended | None:
        """How it ended; ``None`` if it was never started or had to be given up."""
        self.usage = self._before = self._lifeline.usage() or Usage()
        wrapped = self._client.exec_start(execution, socket=True)
        connection = getattr(wrapped, "_sock", wrapped)
        try:
            connection.setblocking(False)
            ended = self._attend(execution, connection, memoryview(payload))
        finally:
            close_connection(wrapped)
        now = time.monotonic()
        self.wall_s = now - (self._started or now)
        self._look()
        if ended is Ended.EXITED and self.exit_status != 0:
            if self.memory_kills:
                return Ended.MEMORY
            if self.cpu_s > self._command.cpu_s:
                return Ended.CPU
        return ended

    def _attend(self, execution: str, connection: Any, unsent: memoryview) -> Ended | None:
        with selectors.DefaultSelector() as selector:
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            selector.register(connection, both if unsent else selectors.EVENT_READ)
            while True:
                if self._open:
                    asked = time.monotonic()
                    if not selector.select(_TICK_S):
                        self._late_s += max(0.0, time.monotonic() - asked - 1.5 * _TICK_S)
                    self._receive(connection)
                    if unsent:
                        unsent = self._send(connection, unsent)
                        if not unsent:
                            selector.modify(connection, selectors.EVENT_READ)
                else:
                    time.sleep(0.01)
                if self._is_over(execution, connection):
                    return self._ended

    def _receive(self, connection: Any) -> bool:
        progress = False
        while True:
            try:
                data = connection.recv(_CHUNK)
            except _NOT_YET:
                return progress
            except OSError:
                data = b""
            if not data:
                self._open = False
                return progress
            progress = True
            self.output.feed(data)
            if self.output.started and self._started is None:
                self._started = time.monotonic()
            if len(data) < _CHUNK or self._flooded:
                return progress

    @staticmethod
    def _send(connection: Any, unsent: memoryview) -> memoryview:
        try:
            return unsent[connection.send(unsent[:_CHUNK]) :]
        except _NOT_YET:
            return unsent
        except OSError:
            return unsent[:0]

    @property
    def _flooded(self) -> bool:
        return not self._command.tail and (self.output.stdout.truncated or self.output.stderr.truncated)

    def _is_over(self, execution: str, connection: Any) -> bool:
        """Is it, and how did it end? ``_ended`` stays ``None`` for a command that was never started or is given up."""
        now = time.monotonic()
        if self._stop.is_set() or (self._started is None and now - self._began > _SETUP_S):
            return True
        if self._flooded:
            self._ended = Ended.OUTPUT
        elif self._started is not None and now - self._started > self._command.wall_s:
            self._ended = Ended.WALL
        elif now >= self._next_look or not self._open:
            self._next_look = now + _LOOK_EVERY_S
            if self._has_exited(execution):
                self._drain(connection)
                self._ended = Ended.EXITED if self.output.started else None
                return True
            self._look()
            if self._started is not None and self.cpu_s > self._command.cpu_s:
                self._ended = Ended.CPU
        return self._ended is not None

    def _has_exited(self, execution: str) -> bool:
        told = self._client.exec_inspect(execution)
        if told.get("Running") or told.get("ExitCode") is None:
            return False
        self.exit_status = told["ExitCode"]
        return True

    def _drain(self, connection: Any) -> None:
        """What the command had written before it ended and is still on its way."""
        until = time.monotonic() + _DRAIN_S
        while self._open and time.monotonic() < until and not self._flooded:
            if self._receive(connection):
                until = min(until + _DRAIN_S, self._began + self._command.wall_s + _SETUP_S)
            else:
                time.sleep(0.01)

    def _look(self) -> None:
        self.usage = self._lifeline.usage() or self.usage
