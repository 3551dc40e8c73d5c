"""The ``zygote`` backend: Python programs in processes forked from a warm interpreter, one jail for each answer.

::

    this process ── zygote (warm, in the root of all jails, never sees a payload) ── keeper ── one jail for each run
           └─────── nursery ── runner (one answer at a time) ── asks the zygote for keepers, and keepers for runs

There is a zygote for each profile of preloaded modules (:mod:`adjudge_sandbox.backends.profiles`), started when the
first program needs it; see :mod:`adjudge_sandbox.supervisor.jail` for how the processes hang together.

The same machinery without namespaces is the backend ``landlock``, for hosts that refuse them (a default container):
Landlock, a stricter system call filter, a user of its own for each place where the server runs as root. And without
those too it is the backend ``none``: resource limits and nothing else, for hosts where nothing needs to be isolated.

If a process of ours dies and we have not killed it, the whole answer is run once more by another runner; a second loss
is :class:`SandboxUnavailable`. Cancelling :meth:`ZygoteSandbox.run` kills the runner, and the keeper and its jail go
with it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from .. import frames, values
from ..base import Examination, FunctionCall, Interaction, Limits, Outcome, Program, Run, RunResult, Script
from ..errors import InvalidProgram, SandboxOverloaded, SandboxUnavailable
from ..kernel import cgroups, landlock, rootfs
from ..nursery import Nursery
from ..supervisor.examination import examiner_limits_of
from ..supervisor.jail import Identity
from .jail import Jailed, encode_python, encode_script
from .pairs import encode_examination, encode_interaction
from .pool import Runner, Runners, Slots
from .profiles import LIGHT, ONE_THREAD, PRELOAD, STDLIB, modules_of, profile_of

__all__ = ["PRELOAD", "ZygoteSandbox"]

_log = logging.getLogger(__name__)

_MARGIN_S = 120.0
_AFTER_A_LOSS_S = 0.1
_FIXED_BLOBS = 3  # stdout, stderr, the value
_BIG_VALUE_BYTES = 1 << 16


Walls = Literal["zygote", "landlock", "none"]


class _Lost(Exception):
    """The runner or its jail died, and we did not kill it."""


class ZygoteSandbox:
    """See the module. ``walls`` of ``landlock`` and ``none`` make it the backends of these names."""

    def __init__(self, walls: Walls = "zygote", *, preload: Sequence[str] = PRELOAD) -> None:
        self.name: str = walls
        self._isolated = walls == "zygote"
        self._preload = list(preload)
        self._nursery: Nursery | None = None
        self._groups: cgroups.Groups | None = None
        self._config: dict[str, Any] = {}
        self._slots: Slots | None = None
        self._runners: dict[str, Runners] = {}
        self._jailed: Jailed | None = None

    async def start(self) -> None:
        """Start the warm process and try one program. Does nothing if it has been started."""
        if self._nursery is not None:
            return
        self._groups = await asyncio.to_thread(cgroups.open_groups)
        try:
            shown = self._look_at_host()
            isolation = "jail" if self._isolated else self.name
            self._jailed = await asyncio.to_thread(Jailed, self._answer, shown, isolation)
        except OSError as error:
            raise SandboxUnavailable(str(error)) from error
        self._config = {
            "plan": shown if self._isolated else None,
            "confined": shown if self.name == "landlock" else None,
            "cgroups": self._groups.as_config(),
        }
        self._slots = Slots(self._groups)
        self._nursery = Nursery(
            "adjudge_sandbox.supervisor.runner:serve_answers",
            warm="adjudge_sandbox.supervisor.runner:warm",
            config=self._config,
            name="the nursery of the sandbox",
            env=_clean_environment(),
        )
        if self.name == "none":
            _log.warning("programs run WITHOUT ISOLATION: the sandbox is 'none'")
        try:
            usual = [self._runners_of(profile).start() for profile in (LIGHT, STDLIB)]
            await asyncio.gather(self._nursery.start(), *usual)
            await self._try_out()
        except BaseException:
            await self.stop()
            raise

    def _look_at_host(self) -> rootfs.Plan | None:
        """What programs see of the file system; ``None``: all of it. Raises ``OSError``."""
        if self.name == "none":
            return None
        if self.name == "landlock":
            check_landlock()
        return rootfs.plan()

    async def stop(self) -> None:
        """Kill all jails and helpers, and remove the control groups."""
        if self._slots is not None:
            self._slots.stop()
        if self._jailed is not None:
            await self._jailed.stop()
        nursery, self._nursery = self._nursery, None
        if nursery is not None:
            await nursery.stop()
        runners, self._runners = self._runners, {}
        for one in runners.values():
            await one.stop()
        groups, self._groups = self._groups, None
        if groups is not None:
            await asyncio.to_thread(groups.remove)

    def describe(self) -> dict[str, Any]:
        """What is in force, for `adjudge doctor`."""
        return {
            "backend": self.name,
            "namespaces": ["mount", "pid", "ipc", "uts", "net", "user"] if self._isolated else [],
            "seccomp": self.name != "none",
            "landlock": landlock.abi() if self.name == "landlock" else 0,
            "cgroup": self._groups.kind if self._groups else None,
            "cgroup_reason": self._groups.reason if self._groups else "",
            "uid": "nobody" if self._isolated or os.geteuid() == 0 else str(os.geteuid()),
            "languages": list(self.languages()),
            "preload": self._preload,
            "nursery_pid": self.nursery_pid,
            "zygote_pids": {name: runners.zygote_pid for name, runners in self._runners.items()},
            "slots": self._slots.count if self._slots is not None else 0,
        }

    @property
    def nursery_pid(self) -> int | None:
        """Pid of the process that runners are forked from."""
        return self._nursery.pid if self._nursery is not None else None

    @property
    def jailed(self) -> Jailed:
        """What builds and starts programs other than Python's. Raises :class:`SandboxUnavailable` before the start."""
        if self._jailed is None:
            raise SandboxUnavailable("the sandbox has not been started")
        return self._jailed

    def languages(self) -> tuple[str, ...]:
        """Python, by fork, and whatever else has a toolchain here."""
        return self._jailed.languages() if self._jailed is not None else ()

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        """See :meth:`adjudge_sandbox.base.Sandbox.run`."""
        if self._nursery is None or self._jailed is None:
            raise SandboxUnavailable("the sandbox has not been started")
        _check_limits(limits)
        if not self._jailed.is_loaded_here(program):
            return await self._jailed.run(program, runs, limits, stop_at_failure=stop_at_failure)
        if not runs:
            return []
        header, blobs = await _encode_runs(self._jailed, runs, limits)
        header["stop_at_failure"] = stop_at_failure
        profile = profile_of(program, runs)
        return await self._answer(encode_python(program), limits, header, blobs, profile=profile)

    async def _answer(
        self, source: bytes, limits: Limits, header: dict[str, Any], blobs: list[bytes], *, profile: str = LIGHT
    ) -> list[RunResult]:
        """All runs of one program, once more if its jail is lost."""
        if self._nursery is None:
            raise SandboxUnavailable("the sandbox has been stopped")
        runners = self._runners_of(profile)
        header = {**header, "limits": _limits_sent(limits)}
        slowest_s = 2 * (limits.wall_limit_s + examiner_limits_of(limits).cpu_s) + _MARGIN_S
        losses: list[str] = []
        for _ in range(2):
            if losses:
                await asyncio.sleep(_AFTER_A_LOSS_S)  # whoever dies of the same cause shall be dead when looked at
            runner, clean = await runners.take(fresh=bool(losses)), False
            try:
                results = await self._session(runner, header, [source, *blobs], slowest_s)
                clean = True
                return results
            except _Lost as error:
                losses.append(str(error))
                _log.warning("a jail was lost: %s", error)
            finally:
                runners.give_back(runner, clean=clean)
        raise SandboxUnavailable(f"the jail of this answer was lost twice: {'; '.join(losses)}")

    @staticmethod
    async def _session(runner: Runner, header: dict[str, Any], blobs: list[bytes], slowest_s: float) -> list[RunResult]:
        """One answer in one runner. Raises :class:`_Lost`."""
        results: list[RunResult] = []
        try:
            await runner.send(header, blobs)
            while True:
                async with asyncio.timeout(slowest_s):
                    frame = await runner.receive()
                match frame.header["op"]:
                    case "done":
                        return results
                    case "lost":
                        raise _Lost(f"jail: {frame.header['why']}")
                    case "refused":
                        raise SandboxUnavailable(f"no jail can be made: {frame.header['why']}")
                    case "killed":
                        raise SandboxUnavailable(f"{frame.header['why']}, twice")
                    case "overloaded":
                        raise SandboxOverloaded(f"the host is overloaded: {frame.header['why']}, twice")
                results.append(await _decode_result(frame))
        except (EOFError, OSError, TimeoutError) as error:
            raise _Lost(f"runner: {error!r}") from error

    def _runners_of(self, profile: str) -> Runners:
        """Those with a zygote that has imported what the profile names. It is started by the first who takes one."""
        if profile not in self._runners:
            assert self._nursery is not None
            assert self._slots is not None
            zygote = Nursery(
                "adjudge_sandbox.supervisor.zygote:serve",
                preload=modules_of(profile, self._preload),
                config=self._config,
                name=f"the zygote {profile!r} of the sandbox",
                env={**_clean_environment(), **ONE_THREAD},
                takes_over=True,
            )
            self._runners[profile] = Runners(self._nursery, zygote, self._slots)
        return self._runners[profile]

    async def _try_out(self) -> None:
        (result,) = await self.run(Program("print(6 * 7)"), [Script()], Limits())
        if result.stdout != b"42\n":
            raise SandboxUnavailable(
                f"a first program did not run: {result.outcome}, {result.detail} {result.stderr!r}"
            )


def check_landlock() -> None:
    """Raises ``OSError`` where Landlock cannot hold programs."""
    version = landlock.abi()
    if not version:
        raise OSError("this kernel has no Landlock, or it is switched off (CONFIG_SECURITY_LANDLOCK, lsm=landlock,...)")
    identity = Identity.of_runner(0, isolated=False)
    if not identity.privileged and identity.uid == 0:
        raise OSError(
            f"programs would run as root, because no other user can read the interpreter ({sys.base_prefix}) or root "
            "may not change its user here: install Python where everybody can read it, or run the server as a user"
        )
    if not identity.privileged and version < _ABI_WITH_SIGNALS:
        raise OSError(
            f"programs would run as this very user, and Landlock of this kernel (version {version}) cannot keep them "
            f"from sending signals: run the server as root, or use Linux 6.12 (version {_ABI_WITH_SIGNALS})"
        )


_ABI_WITH_SIGNALS = 6


@functools.lru_cache(maxsize=64)
def _limits_sent(limits: Limits) -> dict[str, Any]:
    return asdict(limits)


_LEAST = Limits(cpu_s=0.01, wall_s=0.01, memory_mib=16, processes=1, output_kib=1, scratch_mib=1, compile_cpu_s=0.01)


@functools.lru_cache(maxsize=64)
def _check_limits(limits: Limits) -> None:
    """Raises :class:`InvalidProgram` for limits under which nothing can run."""
    for name, smallest in asdict(_LEAST).items():
        given = getattr(limits, name)
        if given is not None and not smallest <= given < float("inf"):
            raise InvalidProgram(f"the limit {name} is {given}; it must be at least {smallest}")


def _clean_environment() -> dict[str, str]:
    """The nursery's environment: jailed processes can read it, so nothing of the server's is in it."""
    kept = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TZ")
    return {"LANG": "C.UTF-8", **{name: os.environ[name] for name in kept if name in os.environ}}


async def _encode_runs(jailed: Jailed, runs: Sequence[Run], limits: Limits) -> tuple[dict[str, Any], list[bytes]]:
    """Raises :class:`InvalidProgram` for a value that is not plain data."""
    described: list[dict[str, Any]] = []
    blobs: list[bytes] = []
    for run in runs:
        match run:
            case Script():
                script, contents = encode_script(run)
                described.append(script)
                blobs += contents
            case FunctionCall(function, args, kwargs):
                try:
                    blobs.append(values.encode((tuple(args), dict(kwargs))))
                except (values.NotPlain, values.TooLarge) as error:
                    raise InvalidProgram(f"an argument of {function[:100]!r} cannot be sent: {error}") from error
                described.append({"kind": "call", "blobs": 1, "function": function})
            case Examination():
                examination, contents = encode_examination(run)
                described.append(examination)
                blobs += contents
            case Interaction():
                interaction, contents = await encode_interaction(jailed, run, limits)
                described.append(interaction)
                blobs += contents
    return {"runs": described}, blobs


async def _decode_result(frame: frames.Frame) -> RunResult:
    header = frame.header
    count = _FIXED_BLOBS + len(header["files"])
    result = await _decode_one(header, frame.blobs[:count])
    if "partner" in header:
        return replace(result, partner=await _decode_one(header["partner"], frame.blobs[count:]))
    return result


async def _decode_one(header: dict[str, Any], blobs: list[bytes]) -> RunResult:
    stdout, stderr, encoded, *fetched = blobs
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
        stdout_truncated=header["truncated"][0],
        stderr_truncated=header["truncated"][1],
        ended_early=header["ended_early"],
        tampering=header["tampering"],
        isolation=header["isolation"],
        files=dict(zip(header["files"], fetched, strict=True)),
    )
