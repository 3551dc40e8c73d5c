"""A nursery: a warm process that forks children on request.

Importing sympy takes half a second and a fork of a process that has imported it takes a few milliseconds, so what must
be killable is forked from a nursery. It runs :mod:`adjudge_sandbox.warm`, imports what it is told, and then
does nothing but fork: it is given no payload, so nothing of one child is ever found in the memory of the next.

Lifetimes are tied together by the kernel: the nursery dies with the process that started it, and its children with the
nursery (``PR_SET_PDEATHSIG``), whatever the signal. A nursery that dies is started again by the next :meth:`spawn`.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import SandboxUnavailable

__all__ = ["Child", "Nursery"]

_START_TIMEOUT_S = 60.0
_SPAWN_TIMEOUT_S = 15.0


@dataclass(slots=True)
class Child:
    """A forked process: its pid, a pidfd (readable once it is dead), and our end of its socket."""

    pid: int
    pidfd: int
    sock: socket.socket
    _closed: bool = field(default=False, repr=False)

    def kill(self) -> None:
        """SIGKILL, by pidfd, so that a reused pid is never hit."""
        if not self._closed:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def cpu_s(self) -> float | None:
        """CPU seconds that the process has used; ``None`` once it is gone."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # the kernel's clock id of a process's CPU time
        except OSError:
            return None

    def close(self) -> None:
        """Kill the process and give back both descriptors."""
        if not self._closed:
            self.kill()
            self._closed = True
            os.close(self.pidfd)
            self.sock.close()


class Nursery:
    """Starts and keeps the warm process, and asks it for children. One event loop at a time.

    ``target`` is ``"module:function"``; a child calls ``function(sock, config)`` and exits when that returns. ``warm``,
    named in the same way, is called once with ``config`` in the warm process, after the modules of ``preload``. ``env``
    is the environment of the warm process and of its children; by default this process's own. With ``takes_over`` the
    warm process itself calls ``function(control, config)``, which sends ``ready`` or what is wrong, and then serves
    those to whom :meth:`channel` has been handed.
    """

    def __init__(
        self,
        target: str,
        *,
        preload: Sequence[str] = (),
        warm: str | None = None,
        config: dict[str, Any] | None = None,
        name: str = "nursery",
        env: Mapping[str, str] | None = None,
        takes_over: bool = False,
    ) -> None:
        self._arguments = {
            "target": target,
            "preload": list(preload),
            "warm": warm,
            "config": config or {},
            "takes_over": takes_over,
        }
        self._name = name
        self._env = env
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """Pid of the warm process, if it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Start the warm process and wait until its imports are done. Raises :class:`SandboxUnavailable`."""
        async with self._lock:
            if self.pid is None or self._is_hung_up():
                await self._start()

    def channel(self) -> socket.socket:
        """A copy of this side's end of the socket to the warm process. Raises :class:`SandboxUnavailable`."""
        if self._control is None:
            raise SandboxUnavailable(f"{self._name} does not run")
        return self._control.dup()

    def _is_hung_up(self) -> bool:
        """Has the warm process closed its socket? It has when it is dead and asyncio has not heard of it."""
        if self._control is None:
            return True
        poll = select.poll()
        poll.register(self._control, select.POLLHUP)
        return bool(poll.poll(0))

    async def spawn(self) -> Child:
        """Fork one child. Restarts a dead nursery once; raises :class:`SandboxUnavailable` if that does not help."""
        spawning = asyncio.ensure_future(self._spawn())
        try:
            return await asyncio.shield(spawning)  # a fork cut off in the middle would answer the next request
        except asyncio.CancelledError:
            spawning.add_done_callback(_discard)
            raise

    async def _spawn(self) -> Child:
        async with self._lock:
            for attempt in (1, 2):
                if self.pid is None or self._control is None:
                    await self._start()
                try:
                    async with asyncio.timeout(_SPAWN_TIMEOUT_S):
                        return await self._fork()
                except (OSError, EOFError, TimeoutError) as error:
                    await self._kill()
                    if attempt == 2:
                        raise SandboxUnavailable(f"{self._name} cannot fork a child: {error!r}") from error
        raise AssertionError("unreachable")

    async def stop(self) -> None:
        """Kill the warm process and, with it, every child."""
        self._stopped = True
        async with self._lock:
            await self._kill()

    async def _start(self) -> None:
        if self._stopped:
            raise SandboxUnavailable(f"{self._name} has been stopped")
        await self._kill()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "adjudge_sandbox.warm",
                str(theirs.fileno()),
                json.dumps(self._arguments),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=self._env,
                start_new_session=False,
            )
            theirs.close()
            self._control = ours
            async with asyncio.timeout(_START_TIMEOUT_S):
                ready = await asyncio.get_running_loop().sock_recv(ours, 4096)
        except (OSError, TimeoutError) as error:
            theirs.close()
            await self._kill()
            raise SandboxUnavailable(f"{self._name} did not start: {error!r}") from error
        if ready != b"ready":
            await self._kill()
            raise SandboxUnavailable(f"{self._name} did not start: {ready.decode(errors='replace') or 'it exited'}")

    async def _fork(self) -> Child:
        assert self._control is not None
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._control, [b"fork"], [theirs.fileno()])
            theirs.close()
            reply, pidfd = await self._receive_pid(self._control)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        return Child(pid=int(reply), pidfd=pidfd, sock=ours)

    @staticmethod
    async def _receive_pid(control: socket.socket) -> tuple[bytes, int]:
        loop = asyncio.get_running_loop()
        while True:
            try:
                message, ancillary, _, _ = control.recvmsg(64, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                readable: asyncio.Future[None] = loop.create_future()
                loop.add_reader(control, _settle, readable)
                try:
                    await readable
                finally:
                    loop.remove_reader(control)
                continue
            if not message:
                raise EOFError("the nursery is gone")
            if not ancillary:
                raise OSError(message.decode(errors="replace"))
            return message, array.array("i", ancillary[0][2][:4])[0]

    async def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()  # before its socket closes: asyncio warns when it finds a child that has exited
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            await self._process.wait()
            self._process = None


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _discard(spawning: asyncio.Future[Child]) -> None:
    """The caller has gone: nobody wants this child."""
    if not spawning.cancelled() and spawning.exception() is None:
        spawning.result().close()
