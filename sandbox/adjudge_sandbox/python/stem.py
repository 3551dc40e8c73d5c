"""A stem, in its jail: compiles the program and forks a process for each test. It runs nothing of the program.

See :mod:`adjudge_sandbox.supervisor.stem` for why there is one. Everything that is the same for all tests is done
before the first fork; what a child does by itself is what has to be its own, with as few steps as it can: every page
that it writes to for the first time costs it microseconds.
"""

from __future__ import annotations

import os
import socket

from .. import frames
from ..kernel import namespaces as ns
from .process import REPORT_FD, Packed, reseed

__all__ = ["LAST_WORD", "TEST_WORD", "grow"]

TEST_WORD, LAST_WORD = b"t", b"l"
"""What the keeper sends with the descriptors of a further test, and of one after which no other comes."""
_COMPILED = frames.pack({"op": "code"})
_FDS_BYTES = socket.CMSG_SPACE(3 * 4)


def grow(program: Packed, scratch: str, control_fd: int) -> None:
    """Be a stem of a program that has been compiled. Returns in each process that is to run it.

    The first test's stdin, stdout and stderr are in their places; those of later ones arrive on ``control_fd``. The
    last test needs no stem any more, so the stem itself becomes its process.
    """
    os.write(REPORT_FD, _COMPILED)
    os.close(REPORT_FD)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=control_fd)
    ns.block_signals()
    word = TEST_WORD
    while word != LAST_WORD and ns.fork_sibling():
        os.closerange(0, 3)  # the next ones take their places
        word = control.recvmsg(1, _FDS_BYTES)[0]
        if not word or ns.has_blocked_signals():
            os._exit(1)  # nobody wants it any more; or a test has sent it signals
    os.write(control_fd, b"t")  # the kernel tells the keeper who writes it
    os.close(control.detach())
    if word != LAST_WORD:
        os.setsid()
    ns.set_dumpable(True)
    ns.unblock_signals()
    reseed()
    os.chdir(scratch)
    program.lay(scratch)
