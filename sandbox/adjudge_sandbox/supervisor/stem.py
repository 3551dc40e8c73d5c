"""The keeper's side of a stem: the process in a jail from which the tests of one answer are forked.

A run of its own jail costs what entering it costs: namespaces, mounts, users, the filter, the program's text and code.
So for an answer with several tests one process, the stem, goes through all of that, compiles the program, and then does
nothing but fork: each child runs the program with the input of one test. The stem runs nothing of the program. It is
not dumpable, tracing is refused, signals but two are blocked; the two, SIGKILL and SIGSTOP, a test can send to it and
gains nothing: a jail whose stem has died is cleared, and one that has been stopped is told to go on.

The children are the keeper's, not the stem's (``CLONE_PARENT``), which therefore watches, kills and waits for them as
for any other run. It is told their numbers by the kernel (``SCM_CREDENTIALS``), so nothing that a test's process could
say is believed. The last test is run by the stem itself.

No two tests meet. After a test its jail is used again only if nobody is left in it but its first process and the stem,
and if nothing is left in ``/tmp`` and ``/dev/shm`` but the program's own file, which is removed; else the whole jail is
killed and the next test gets another one. What no process holds and no file is, System V and POSIX IPC, the filter of
such a jail refuses, and so it does calls that would leave a mark on the stem: limits and scheduling of process 2. What
a test can still tell from its surroundings are counters of the kernel's: the next number of a process or of a file.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
from collections.abc import Sequence

from ..kernel import namespaces as ns
from ..python.process import FILE_NAME
from ..python.stem import LAST_WORD, TEST_WORD
from .watch import clock_s, has_no_children

__all__ = ["STEM_PID", "Stem"]

STEM_PID = 2
"""Its number in its jail."""
_MOST_TESTS = 500
"""The stem's own CPU time has a limit too."""
_FOLDERS = ("/tmp", "/dev/shm")
_FOLDER_MODE, _ONE_FILE = 0o40755, 2
_CREDENTIALS = struct.Struct("3i")
_ANCILLARY_BYTES = socket.CMSG_SPACE(_CREDENTIALS.size)


class Stem:
    """One stem, and the socket to it."""

    def __init__(self, control: socket.socket, owner: tuple[int, int]) -> None:
        """Before it is forked; ``control``: the keeper's socket to the runner, which is listened to as well.

        ``owner``: that of /tmp.
        """
        self.pid = 0
        self.used_s = 0.0
        """CPU seconds that it had used when it was told to become the last test."""
        self._owner = owner
        self._folders: list[int] = []
        """Descriptors of /tmp and /dev/shm of the jail."""
        self.sock, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._tests = 1
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)
        self._fd = self.sock.fileno()
        self._poll.register(self._fd, select.POLLIN)

    def forked(self, pid: int) -> None:
        """In the keeper."""
        self.pid = pid
        self.theirs.close()

    def begin(self, fds: Sequence[int], *, last: bool) -> bool:
        """Have it fork, or be, the next test, with copies of ``fds`` as stdin, stdout and stderr. Is it alive?"""
        self._tests += 1
        if last:
            self.used_s = clock_s(self.pid)
        try:
            socket.send_fds(self.sock, [LAST_WORD if last else TEST_WORD], list(fds))
        except OSError:
            return False
        return True

    def next_test(self, timeout_ms: float) -> int | None:
        """The pid of the test's process; 0: the stem has gone; ``None``: the time is over, or the runner has spoken."""
        if any(fd == self._fd for fd, _ in self._poll.poll(timeout_ms)):
            with contextlib.suppress(OSError):
                word, ancillary, _, _ = self.sock.recvmsg(1, _ANCILLARY_BYTES)
                if word and ancillary:
                    pid: int = _CREDENTIALS.unpack_from(ancillary[0][2])[0]
                    return pid
            return 0
        return None

    def has_spoken(self) -> bool:
        """Is there a word of a test's process, or the end of the socket?"""
        try:
            self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def renew(self, first: int, first_fd: int, own_fd: int) -> bool:
        """After a test: make the jail as if it had not been, if that is as simple as it mostly is.

        ``own_fd``: the keeper's own mount namespace.
        """
        if self._tests >= _MOST_TESTS or not self._is_alone(first):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
        if not self._folders:
            ns.setns(first_fd, ns.NEW_NS)
            try:
                self._folders = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in _FOLDERS]
            finally:
                ns.setns(own_fd, ns.NEW_NS)
        return all(map(self._is_restored, self._folders))

    def _is_restored(self, folder: int) -> bool:
        """Nobody runs in the jail by now, so nothing moves; and no name is followed."""
        disk = os.fstatvfs(folder)
        if disk.f_files - disk.f_ffree > _ONE_FILE:
            return False
        if disk.f_files - disk.f_ffree == _ONE_FILE:
            with contextlib.suppress(OSError):  # another name, or a folder
                os.unlink(FILE_NAME, dir_fd=folder)
        now = os.fstat(folder)
        if (now.st_mode, now.st_uid, now.st_gid) != (_FOLDER_MODE, *self._owner) or os.listxattr(folder):
            return False
        os.utime(folder)
        return not os.listdir(folder)

    def _is_alone(self, first: int) -> bool:
        """The keeper's children are the two, the first process has none, and the stem lives.

        Whoever else there is in the jail descends from one of these: orphans are the first process's.
        """
        try:
            fd = os.open("/proc/thread-self/children", os.O_RDONLY)
        except OSError:
            return False
        ours = os.read(fd, 256)
        os.close(fd)
        return (
            ours.split() == [b"%d" % first, b"%d" % self.pid]
            and has_no_children(first)
            and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        )

    def close(self) -> None:
        self.sock.close()
        for fd in self._folders:
            os.close(fd)
