"""Runners that wait for work: kept from answer to answer, because a fork and a new keeper cost more than most programs.

A runner is bound to the zygote that makes its jails. It is given one answer at a time; it is killed when an answer is
cancelled or lost, when its zygote has died, and after many answers.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import select
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import frames
from ..errors import SandboxUnavailable
from ..kernel import cgroups
from ..nursery import Child, Nursery

__all__ = ["Runner", "Runners", "Slots"]

_MAX_FRAME_BYTES = 1 << 30
_CHUNK = 1 << 18
_PREFIX_BYTES = 12
_MOST_ANSWERS = 1000
_MOST_IDLE = 2 * (os.cpu_count() or 1) + 2
_CLEAR_TICK_S = 0.02


class Slots:
    """Numbers for runners: each stands for control groups that nobody else has at the time."""

    def __init__(self, groups: cgroups.Groups) -> None:
        self._groups = groups
        self._free: list[int] = []
        self.count = 0
        self._clearing: set[asyncio.Future[None]] = set()

    def take(self) -> int:
        """The smallest free number, so that few control groups are ever made."""
        if self._free:
            return heapq.heappop(self._free)
        self.count += 1
        return self.count - 1

    def give_back(self, slot: int) -> None:
        """It is free again when nothing is left alive in its groups."""
        clearing = asyncio.ensure_future(self._clear(slot))
        self._clearing.add(clearing)
        clearing.add_done_callback(self._clearing.discard)

    async def _clear(self, slot: int) -> None:
        # the kernel tells nobody when a group becomes empty
        while not self._groups.clear(f"{slot}a", f"{slot}b"):  # noqa: ASYNC110
            await asyncio.sleep(_CLEAR_TICK_S)
        heapq.heappush(self._free, slot)

    def stop(self) -> None:
        for clearing in tuple(self._clearing):
            clearing.cancel()


@dataclass(slots=True)
class Runner:
    """One runner, and what it has sent that has not been read."""

    child: Child
    slot: int
    zygote_pid: int | None
    answers: int = 0
    _buffer: bytearray = field(default_factory=bytearray)

    def is_dead(self) -> bool:
        poll = select.poll()
        poll.register(self.child.pidfd, select.POLLIN)
        return bool(poll.poll(0))

    async def send(self, header: dict[str, Any], blobs: Sequence[bytes]) -> None:
        """Give it an answer to run. Raises ``OSError``."""
        await frames.send_async(self.child.sock, header, blobs)

    async def receive(self) -> frames.Frame:
        """The next frame. Raises ``EOFError``, ``OSError``, :class:`~adjudge_sandbox.frames.FrameError`."""
        await self._fill(_PREFIX_BYTES)
        head, body = frames.parse_prefix(bytes(self._buffer[:_PREFIX_BYTES]), _MAX_FRAME_BYTES)
        start, end = _PREFIX_BYTES + head, _PREFIX_BYTES + head + body
        await self._fill(end)
        frame = frames.unpack(bytes(self._buffer[_PREFIX_BYTES:start]), bytes(self._buffer[start:end]))
        del self._buffer[:end]
        return frame

    async def _fill(self, size: int) -> None:
        loop = asyncio.get_running_loop()
        while len(self._buffer) < size:
            part = await loop.sock_recv(self.child.sock, max(_CHUNK, min(size - len(self._buffer), 1 << 20)))
            if not part:
                raise EOFError("the runner is gone")
            self._buffer += part


class Runners:
    """The runners of one zygote."""

    def __init__(self, nursery: Nursery, zygote: Nursery, slots: Slots) -> None:
        self._nursery = nursery
        self._zygote = zygote
        self._slots = slots
        self._idle: list[Runner] = []

    @property
    def zygote_pid(self) -> int | None:
        return self._zygote.pid

    async def start(self) -> None:
        """Start the zygote. Raises :class:`SandboxUnavailable`."""
        await self._zygote.start()

    async def stop(self) -> None:
        for runner in self._idle:
            runner.child.close()
        self._idle.clear()
        await self._zygote.stop()

    async def take(self, *, fresh: bool = False) -> Runner:
        """A runner that lives, with a zygote that lives; ``fresh``: a new one. Raises :class:`SandboxUnavailable`."""
        await self._zygote.start()
        while self._idle and not fresh:
            runner = self._idle.pop()
            if runner.zygote_pid == self._zygote.pid and not runner.is_dead():
                return runner
            self._discard(runner)
        slot = self._slots.take()
        child = None
        try:
            zygote_pid = self._zygote.pid
            channel = self._zygote.channel()
            with channel:
                child = await self._nursery.spawn()
                child.sock.setblocking(False)
                socket.send_fds(child.sock, [f"{slot}".encode()], [channel.fileno()])
        except BaseException as error:
            if child is not None:
                child.close()
            self._slots.give_back(slot)
            if isinstance(error, OSError):
                raise SandboxUnavailable(f"a runner died at once: {error}") from error
            raise
        return Runner(child, slot, zygote_pid)

    def give_back(self, runner: Runner, *, clean: bool) -> None:
        """``clean``: it has served its answer and waits for the next."""
        runner.answers += 1
        if clean and runner.answers < _MOST_ANSWERS and len(self._idle) < _MOST_IDLE:
            self._idle.append(runner)
        else:
            self._discard(runner)

    def _discard(self, runner: Runner) -> None:
        runner.child.close()
        self._slots.give_back(runner.slot)
