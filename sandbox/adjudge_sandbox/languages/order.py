"""The order of a run, made by the runner, and what the runner makes of how the run ended.

An order travels to the jail in a descriptor of its own, because it may be large; it holds nothing but what the program
may see. In the runner's own request the same things are called ``args``, ``names`` (of the files, whose contents are
the byte strings), ``fetch``, and for programs that are started and not loaded ``command``, ``environment`` and so on.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Any

from .. import frames
from ..base import Limits, Outcome
from ..outcome import MAX_DETAIL, Result, judge_process
from ..supervisor.execution import Ending, JailBroken

__all__ = ["MAX_ARCHIVE_BYTES", "compiler_was_killed", "fetched_files", "judge_exec", "pack_order"]

MAX_ARCHIVE_BYTES = 30 << 20
"""What a compiler may leave: a little less than a runner reads from one process."""
_SIGN_BYTES = 8000
_LAST_BYTES = 1 << 16
_SHELL_KILLED = 128 + signal.SIGKILL
_JVM_HAS_NO_MEMORY = b"#\n# There is insufficient memory for the Java Runtime Environment to continue."


def pack_order(
    run: dict[str, Any], contents: Sequence[bytes], *, isolated: bool, grouped: bool, max_bytes: int
) -> bytes:
    """The order for ``run``; empty for a script that asks for nothing but its input.

    ``grouped``: does a control group limit its memory, so that its address space need not be?
    """
    if run["kind"] == "script" and not (run["args"] or run["names"] or run["fetch"]):
        return b""
    header = {
        "args": run["args"],
        "files": run["names"],
        "fetch": run["fetch"],
        "collect": run.get("collect", False),
        "max_bytes": MAX_ARCHIVE_BYTES if run.get("collect") else max_bytes,
        "isolated": isolated,
        "command": [*run.get("command", ()), *run["args"]],
        "environment": run.get("environment", {}),
        "address_mib": 0 if grouped else run.get("address_mib", 0),
    }
    return frames.pack(header, contents)


def fetched_files(ending: Ending) -> dict[str, dict[str, bytes]]:
    """``{"files": ...}`` if the process that waits beside the program has sent some."""
    frame = next((frame for frame in ending.frames if frame.header.get("op") == "files"), None)
    names = frame.header.get("names") if frame is not None else None
    if frame is None or ending.garbage or not isinstance(names, list) or len(names) != len(frame.blobs):
        return {}
    if not all(isinstance(name, str) for name in names):
        return {}
    return {"files": dict(zip(names, frame.blobs, strict=True))}


def judge_exec(ending: Ending, limits: Limits, memory_signs: Sequence[str]) -> Result:
    """The outcome of a program that was started. ``memory_signs``: what its runtime prints when its heap is full.

    Raises:
        JailBroken: it was never started, and not because of what it consists of.
    """
    refusal = next((frame for frame in ending.frames if frame.header.get("op") == "not_started"), None)
    if refusal is not None:
        detail = str(refusal.header.get("detail", ""))[:MAX_DETAIL]
        if not refusal.header.get("own"):
            raise JailBroken(detail)
        return Result(Outcome.COMPILE_ERROR, detail)
    result = judge_process(ending, limits)
    if result is None:
        return Result(Outcome.FINISHED, exit_status=0)
    sign = _sign(memory_signs, ending.stderr)
    if sign and result.outcome in (Outcome.RAISED, Outcome.SIGNALLED):
        detail = f"needed more than {limits.memory_mib} MiB of memory ({sign})"
        return Result(Outcome.MEMORY_LIMIT, detail, result.exit_status, result.signal)
    return result


def compiler_was_killed(ending: Ending, result: Result, killed_signs: Sequence[str]) -> bool:
    """Was one of the processes below a compiler killed, or refused memory by the host?

    The compiler itself then ends with an ordinary status. ``killed_signs``: expressions for what its stderr looks like,
    such as no source can bring about; where a shell starts the compiler, its exit status says it.
    """
    if result.outcome is not Outcome.RAISED or ending.oom_kills:
        return False
    if result.exit_status == _SHELL_KILLED or ending.stdout.startswith(_JVM_HAS_NO_MEMORY):
        return True
    return any(re.search(sign.encode(), ending.stderr[-_LAST_BYTES:]) for sign in killed_signs)


def _sign(signs: Sequence[str], stderr: bytes) -> str:
    edges = stderr[:_SIGN_BYTES] + b"\n" + stderr[-_SIGN_BYTES:]
    return next((sign for sign in signs if sign.encode() in edges), "")
