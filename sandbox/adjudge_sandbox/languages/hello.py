"""Does a language work here? Its first program, really built and run in the jail, for `adjudge doctor`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..base import Limits, Outcome, Program, Sandbox, Script
from ..errors import SandboxError
from .toolchains import Toolchains, how_to_get

__all__ = ["HELLO_INPUT", "HELLO_LIMITS", "HELLO_OUTPUT", "Finding", "describe", "try_out"]

HELLO_INPUT, HELLO_OUTPUT = b"21\n", b"42"
_VERSION_CHARS = 60
HELLO_LIMITS = Limits(cpu_s=10, wall_s=60, compile_cpu_s=60)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known about one language on this host."""

    language: str
    ok: bool
    detail: str
    """The toolchain's version, or what is wrong."""
    fix: str = ""
    """How to get it."""
    first_ms: float | None = None
    """Building and running the first program, where that was tried."""
    again_ms: float | None = None
    """Running it once more."""


async def describe(toolchains: Toolchains) -> list[Finding]:
    """Every language: its version here, or what to install. Runs version commands and nothing else."""
    found = toolchains.found()
    versions = await asyncio.gather(*(asyncio.to_thread(one.version) for one in found))
    here = [
        Finding(one.language.name, True, version[:_VERSION_CHARS]) for one, version in zip(found, versions, strict=True)
    ]
    missing = [Finding(one.name, False, "no toolchain", how_to_get(one)) for one in toolchains.missing()]
    return here + missing


async def try_out(sandbox: Sandbox, toolchains: Toolchains, names: Sequence[str] = ()) -> list[Finding]:
    """As :func:`describe`, but each language that is here builds and runs its first program, one after the other."""
    findings = [finding for finding in await describe(toolchains) if not names or finding.language in names]
    programs = {one.language.name: one.language.hello for one in toolchains.found()}
    return [await _try(sandbox, programs[finding.language], finding) if finding.ok else finding for finding in findings]


async def _try(sandbox: Sandbox, source: str, finding: Finding) -> Finding:
    took_ms: list[float] = []
    for _ in range(2):
        started = time.monotonic()
        try:
            (result,) = await sandbox.run(Program(source, finding.language), [Script(HELLO_INPUT)], HELLO_LIMITS)
        except SandboxError as error:
            return Finding(finding.language, False, f"{finding.detail}: {error}")
        took_ms.append((time.monotonic() - started) * 1000)
        if result.outcome is not Outcome.FINISHED or result.stdout.strip() != HELLO_OUTPUT:
            said = result.detail or f"its first program printed {result.stdout[:100]!r}"
            return Finding(finding.language, False, f"{finding.detail}: {said[:500]}")
    return Finding(finding.language, True, finding.detail, first_ms=took_ms[0], again_ms=took_ms[1])
