"""The ``zygote`` backend: Python programs in processes forked from a warm interpreter, one jail for each answer.

::

    this process ── nursery (warm, never sees a payload) ── runner (one answer) ── jail ── init ── one child per run

The same machinery without the jail is the backend ``none``: resource limits and nothing else. It exists for hosts where
nothing can be isolated and nothing needs to be.

If the runner or the first process of a jail dies and we have not killed it, the whole answer is run once more in a new
one; a second loss is :class:`SandboxUnavailable`. Cancelling :meth:`ZygoteSandbox.run` kills the runner, and the kernel
kills the jail with it.
"""

from __future__ import annotations

import asyncio
import functools
import heapq
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .. import frames, values
from ..base import Examination, FunctionCall, Limits, Outcome, Program, Run, RunResult, Script
from ..errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage
from ..kernel import cgroups, rootfs
from ..nursery import Child, Nursery
from ..supervisor.examination import examiner_limits_of

__all__ = ["PRELOAD", "ZygoteSandbox"]

_log = logging.getLogger(__name__)

PRELOAD = [
    "abc",
    "array",
    "ast",
    "base64",
    "bisect",
    "builtins",
    "calendar",
    "cmath",
    "collections",
    "collections.abc",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "inspect",
    "io",
    "itertools",
    "json",
    "linecache",
    "locale",
    "logging",
    "math",
    "numbers",
    "operator",
    "os",
    "os.path",
    "pickle",
    "pprint",
    "queue",
    "random",
    "re",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "statistics",
    "string",
    "struct",
    "subprocess",
    "sys",
    "tempfile",
    "textwrap",
    "threading",
    "time",
    "timeit",
    "tokenize",
    "traceback",
    "types",
    "typing",
    "unicodedata",
    "unittest",
    "uuid",
    "warnings",
    "weakref",
    "zlib",
    "concurrent.futures",
    "multiprocessing",
]

_MAX_FRAME_BYTES = 1 << 30
_MARGIN_S = 120.0
_CLEAR_TICK_S = 0.02
_BIG_VALUE_BYTES = 1 << 16


class _Lost(Exception):
    """The runner or its jail died, and we did not kill it."""


class ZygoteSandbox:
    """See the module. ``isolated=False`` makes it the backend ``none``."""

    def __init__(self, *, isolated: bool = True, preload: Sequence[str] = PRELOAD) -> None:
        self.name = "zygote" if isolated else "none"
        self._isolated = isolated
        self._preload = list(preload)
        self._nursery: Nursery | None = None
        self._groups: cgroups.Groups | None = None
        self._plan: rootfs.Plan | None = None
        self._free: list[int] = []
        self._slots = 0
        self._clearing: set[asyncio.Future[None]] = set()

    async def start(self) -> None:
        """Start the warm process and try one program. Does nothing if it has been started."""
        if self._nursery is not None:
            return
        self._groups = await asyncio.to_thread(cgroups.open_groups)
        try:
            self._plan = rootfs.plan() if self._isolated else None
        except OSError as error:
            raise SandboxUnavailable(str(error)) from error
        config = {"plan": self._plan, "cgroups": self._groups.as_config()}
        self._nursery = Nursery(
            "adjudge_sandbox.supervisor.runner:run_answer",
            preload=self._preload,
            warm="adjudge_sandbox.supervisor.runner:warm",
            config=config,
            name="the nursery of the sandbox",
            env=_clean_environment(),
        )
        if not self._isolated:
            _log.warning("programs run WITHOUT ISOLATION: the sandbox is 'none'")
        try:
            await self._nursery.start()
            await self._try_out()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Kill all jails and helpers, and remove the control groups."""
        for clearing in tuple(self._clearing):
            clearing.cancel()
        nursery, self._nursery = self._nursery, None
        if nursery is not None:
            await nursery.stop()
        groups, self._groups = self._groups, None
        if groups is not None:
            await asyncio.to_thread(groups.remove)

    def describe(self) -> dict[str, Any]:
        """What is in force, for `adjudge doctor`."""
        return {
            "backend": self.name,
            "namespaces": ["mount", "pid", "ipc", "uts", "net", "user"] if self._isolated else [],
            "seccomp": self._isolated,
            "cgroup": self._groups.kind if self._groups else None,
            "cgroup_reason": self._groups.reason if self._groups else "",
            "uid": "nobody" if self._isolated or os.geteuid() == 0 else os.geteuid(),
            "languages": ["python"],
            "preload": self._preload,
            "nursery_pid": self.nursery_pid,
            "slots": self._slots,
        }

    @property
    def nursery_pid(self) -> int | None:
        """Pid of the warm process."""
        return self._nursery.pid if self._nursery is not None else None

    def languages(self) -> tuple[str, ...]:
        """Python only."""
        return ("python",)

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        """See :meth:`adjudge_sandbox.base.Sandbox.run`."""
        if program.language not in ("python", "python3", "py"):
            raise UnsupportedLanguage(f"no backend here runs {program.language[:50]!r}; this one runs python")
        if self._nursery is None:
            raise SandboxUnavailable("the sandbox has not been started")
        _check_limits(limits)
        if not runs:
            return []
        header, blobs = _encode_runs(runs)
        header["stop_at_failure"] = stop_at_failure
        source = program.source.encode("utf-8", "surrogatepass")
        slowest_s = 2 * (limits.wall_limit_s + examiner_limits_of(limits).cpu_s) + _MARGIN_S
        losses = []
        for _ in range(2):
            slot, clean = self._take_slot(), False
            try:
                results = await self._session(slot, source, limits, header, blobs, slowest_s)
                clean = True
                return results
            except _Lost as error:
                losses.append(str(error))
                _log.warning("a jail was lost: %s", error)
            finally:
                self._give_back(slot, clean=clean)
        raise SandboxUnavailable(f"the jail of this answer was lost twice: {'; '.join(losses)}")

    async def _session(
        self, slot: int, source: bytes, limits: Limits, header: dict[str, Any], blobs: list[bytes], slowest_s: float
    ) -> list[RunResult]:
        """One answer in one runner. Raises :class:`_Lost`."""
        if self._nursery is None:
            raise SandboxUnavailable("the sandbox has been stopped")
        child = await self._nursery.spawn()
        try:
            child.sock.setblocking(False)
            await frames.send_async(child.sock, {"limits": asdict(limits), "slot": slot}, [source])
            await frames.send_async(child.sock, header, blobs)
            return await self._results(child, slowest_s)
        except (EOFError, OSError, TimeoutError) as error:
            raise _Lost(f"runner: {error!r}") from error
        finally:
            child.close()

    @staticmethod
    async def _results(child: Child, slowest_s: float) -> list[RunResult]:
        results: list[RunResult] = []
        while True:
            async with asyncio.timeout(slowest_s):
                frame = await frames.receive_async(child.sock, _MAX_FRAME_BYTES)
            operation = frame.header["op"]
            if operation == "done":
                return results
            if operation == "lost":
                raise _Lost(f"jail: {frame.header['why']}")
            if operation == "refused":
                raise SandboxUnavailable(f"no jail can be made: {frame.header['why']}")
            results.append(await _decode_result(frame))

    async def _try_out(self) -> None:
        (result,) = await self.run(Program("print(6 * 7)"), [Script()], Limits())
        if result.stdout != b"42\n":
            raise SandboxUnavailable(
                f"a first program did not run: {result.outcome}, {result.detail} {result.stderr!r}"
            )

    def _take_slot(self) -> int:
        """The smallest free number, so that few control groups are ever made."""
        if self._free:
            return heapq.heappop(self._free)
        self._slots += 1
        return self._slots - 1

    def _give_back(self, slot: int, *, clean: bool) -> None:
        """A slot whose runner was killed is free again when nothing is left alive in its groups."""
        if clean:
            heapq.heappush(self._free, slot)
            return
        clearing = asyncio.ensure_future(self._clear(slot))
        self._clearing.add(clearing)
        clearing.add_done_callback(self._clearing.discard)

    async def _clear(self, slot: int) -> None:
        # the kernel tells nobody when a group becomes empty
        while self._groups is not None and not self._groups.clear(f"{slot}a", f"{slot}b"):  # noqa: ASYNC110
            await asyncio.sleep(_CLEAR_TICK_S)
        heapq.heappush(self._free, slot)


def _check_limits(limits: Limits) -> None:
    """Raises :class:`InvalidProgram` for limits under which nothing can run."""
    least = Limits(cpu_s=0.01, wall_s=0.01, memory_mib=16, processes=1, output_kib=1, scratch_mib=1)
    for name, smallest in asdict(least).items():
        given = getattr(limits, name)
        if given is not None and not smallest <= given < float("inf"):
            raise InvalidProgram(f"the limit {name} is {given}; it must be at least {smallest}")


def _clean_environment() -> dict[str, str]:
    """The nursery's environment: jailed processes can read it, so nothing of the server's is in it."""
    kept = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TZ")
    return {"LANG": "C.UTF-8", **{name: os.environ[name] for name in kept if name in os.environ}}


def _encode_runs(runs: Sequence[Run]) -> tuple[dict[str, Any], list[bytes]]:
    """Raises :class:`InvalidProgram` for a value that is not plain data."""
    described: list[dict[str, Any]] = []
    blobs: list[bytes] = []
    for run in runs:
        match run:
            case Script(stdin):
                described.append({"kind": "script", "blobs": 1})
                blobs.append(bytes(stdin))
            case FunctionCall(function, args, kwargs):
                try:
                    blobs.append(values.encode((tuple(args), dict(kwargs))))
                except (values.NotPlain, values.TooLarge) as error:
                    raise InvalidProgram(f"an argument of {function[:100]!r} cannot be sent: {error}") from error
                described.append({"kind": "call", "blobs": 1, "function": function})
            case Examination(test, setup, bind):
                described.append({"kind": "examination", "blobs": 2, "bind": bind})
                blobs += [setup.encode("utf-8", "surrogatepass"), test.encode("utf-8", "surrogatepass")]
    return {"runs": described}, blobs


async def _decode_result(frame: frames.Frame) -> RunResult:
    header, (stdout, stderr, encoded) = frame.header, frame.blobs
    outcome, detail, value = Outcome(header["outcome"]), header["detail"], None
    if header["has_value"]:
        try:
            big = len(encoded) > _BIG_VALUE_BYTES
            decode = functools.partial(values.decode, encoded, max_containers=values.MAX_CONTAINERS)
            value = await asyncio.to_thread(decode) if big else decode()
        except values.Malformed as error:
            outcome, detail = Outcome.BAD_VALUE, f"the returned value is malformed: {error}"
    return RunResult(
        outcome=outcome,
        detail=detail,
        exit_status=header["exit_status"],
        signal=header["signal"],
        stdout=stdout,
        stderr=stderr,
        value=value,
        cpu_ms=header["cpu_ms"],
        wall_ms=header["wall_ms"],
        peak_memory_mib=header["peak_memory_mib"],
    )
