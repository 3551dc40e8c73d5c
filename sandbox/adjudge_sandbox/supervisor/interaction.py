"""The runner's side of an interaction: two programs in two jails, whose pipes lead directly to each other.

::

    answer    stdout ──────► stdin    interactor
              stdin  ◄────── stdout

Nothing of ours stands between them, so that a conversation costs what it costs the two of them. The input, the expected
answer and the interactor's text go into the second jail only. When one of the two has ended, the other meets the end of
its input; when both wait, the wall clock ends both. Each is judged by its own limits; who is to blame is for whoever
asked to say, who is given both results.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..base import Limits
from ..languages.order import fetched_files, judge_exec, pack_order
from ..outcome import Result, judge_script, killed_from_outside
from ..python.process import pack_program
from .examination import Place
from .execution import Ending, Execution, memory_file, wait_for

__all__ = ["run_interaction"]

_OPEN_TO_BOTH = 0o666  # the two are different users, and each may open /dev/stdin and /dev/stdout


def run_interaction(
    candidate: Place,
    partner: Place,
    program_fd: int,
    run: dict[str, Any],
    contents: Sequence[bytes],
    *,
    isolated: bool,
    compiles: bool,
) -> tuple[Result, Ending, bool]:
    """Run it. ``contents``: the interactor's package, then its files.

    Returns the result of the answer, with (result, ending) of the interactor as ``more["partner"]``; how the answer's
    process ended; and whether something outside has interfered.
    """
    package, *files = contents
    with contextlib.ExitStack() as resources:
        packed_fd = memory_file("interactor", pack_program(package, b""))
        resources.callback(os.close, packed_fd)
        (to_partner, from_candidate), (to_candidate, from_partner) = pairs = os.pipe(), os.pipe()
        try:
            for fd in (to_partner, to_candidate):
                os.fchmod(fd, _OPEN_TO_BOTH)
            ends = (to_candidate, from_candidate)
            answer = _start(resources, candidate, run["own"], program_fd, (), ends, isolated)
            ends = (to_partner, from_partner)
            other = _start(resources, partner, run["partner"], packed_fd, files, ends, isolated)
        finally:
            for fd in (fd for pair in pairs for fd in pair):
                os.close(fd)  # so that each side meets the end of its input when the other has ended
        wait_for([answer, other], candidate.limits.wall_limit_s, lambda: None)
        endings = answer.ending(), other.ending()
    own = _judge(endings[0], run["own"], candidate.limits, compiles=compiles)
    limits = replace(partner.limits, wall_s=candidate.limits.wall_limit_s)
    theirs = _judge(endings[1], run["partner"], limits, compiles=True)
    theirs.more.update(fetched_files(endings[1]))
    own.more["partner"] = theirs, endings[1]
    interfered = killed_from_outside(endings[0], own) or killed_from_outside(endings[1], theirs)
    return own, endings[0], interfered


def _start(
    resources: contextlib.ExitStack,
    place: Place,
    how: dict[str, Any],
    program_fd: int,
    files: Sequence[bytes],
    ends: tuple[int, int],
    isolated: bool,
) -> Execution:
    """One side, with ``ends`` as its stdin and stdout."""
    output_bytes = place.limits.output_kib << 10
    order = pack_order(how, files, isolated=isolated, grouped=place.group is not None, max_bytes=output_bytes)
    extra_fds = []
    if order:
        extra_fds.append(memory_file("order", order))
        resources.callback(os.close, extra_fds[0])
    execution = place.start(how["kind"], program_fd, extra_fds, output_bytes, ends=ends)
    resources.callback(execution.close)
    return execution


def _judge(ending: Ending, how: dict[str, Any], limits: Limits, *, compiles: bool) -> Result:
    if how["kind"] == "exec":
        return judge_exec(ending, limits, how["memory_signs"])
    return judge_script(ending, limits, compiles=compiles)
