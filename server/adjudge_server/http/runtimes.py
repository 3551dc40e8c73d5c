"""Which languages run here, in which version: what Piston's clients ask for, and choose by."""

from __future__ import annotations

import asyncio
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.languages import table
from adjudge_sandbox.languages.toolchains import Found

__all__ = ["Runtime", "find_runtime", "runtimes_of"]

_UNKNOWN = "0.0.0"
_PATIENCE_S = 4.0
_DOTTED = re.compile(r"\d{1,9}(?:\.\d{1,9}){1,3}")
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,3}")
_SELECTOR = re.compile(r"\s*(\^|~|>=|<=|>|<|=|v)?\s*v?([\dxX*]{1,9}(?:\.[\dxX*]{1,9}){0,3})\s*")


@dataclass(frozen=True, slots=True)
class Runtime:
    """One language of this host."""

    language: str
    version: str
    aliases: tuple[str, ...]

    def shown(self) -> dict[str, Any]:
        return {"language": self.language, "version": self.version, "aliases": list(self.aliases)}


async def runtimes_of(sandbox: Sandbox | None, only: str | None = None) -> list[Runtime]:
    """What this sandbox runs, or one language of it; nothing without one."""
    names = [name for name in (sandbox.languages() if sandbox is not None else ()) if only in (None, name)]
    found = _toolchains(sandbox)
    versions = await asyncio.gather(*(_version(name, found.get(name)) for name in names))
    return [Runtime(name, version, _aliases(name)) for name, version in zip(names, versions, strict=True)]


def _toolchains(sandbox: Sandbox | None) -> dict[str, Found]:
    """Of a sandbox that starts programs of many languages."""
    jailed = getattr(sandbox, "jailed", None)
    return {found.language.name: found for found in jailed.toolchains.found()} if jailed is not None else {}


_asked: dict[str, str] = {}
"""Toolchain -> what it says of its version. Asking takes a second for some, so it is done once."""
_asking: set[str] = set()


def _ask(found: Found) -> None:
    _asked[found.identity] = found.version()


async def _version(name: str, found: Found | None) -> str:
    """Of one language. It stays unknown as long as its toolchain takes too long to say."""
    if name == "python":
        return platform.python_version()
    if found is None:
        return _UNKNOWN
    if found.identity not in _asking:
        _asking.add(found.identity)
        asyncio.get_running_loop().run_in_executor(None, _ask, found)
    until = time.monotonic() + _PATIENCE_S
    while found.identity not in _asked and time.monotonic() < until:  # noqa: ASYNC110 - a thread's, not the loop's
        await asyncio.sleep(0.02)
    said = _asked.get(found.identity, "")
    match = _DOTTED.search(said) or _NUMBERS.search(said)
    return match[0] if match else _UNKNOWN


def _aliases(name: str) -> tuple[str, ...]:
    known = table.find(name)
    return tuple(alias for alias in (*known[0].aliases, *known[0].standards) if alias != name) if known else ()


def find_runtime(runtimes: Sequence[Runtime], language: str, selector: str) -> Runtime | None:
    """The runtime of ``language`` whose version fits ``selector`` (``*``, ``3``, ``3.x``, ``^3.9``, ``>=3.8 <4``)."""
    return next((each for each in runtimes if each.language == language and _fits(each.version, selector)), None)


def _fits(version: str, selector: str) -> bool:
    if selector.strip() in ("", "*", "x", "latest"):
        return True
    have = _numbers(version)
    at, selector = 0, selector[:100]
    while at < len(selector):
        match = _SELECTOR.match(selector, at)
        if match is None or not _meets(have, match[1] or "", match[2]):
            return False
        at = match.end()
    return True


def _numbers(version: str) -> list[int]:
    match = _NUMBERS.search(version)
    return [int(part) for part in match[0].split(".")] if match else [0]


def _meets(have: list[int], operator: str, wanted: str) -> bool:
    parts = wanted.split(".")
    fixed = [int(part) for part in parts if part.isdigit()] if parts[0].isdigit() else []
    exact = next((index for index, part in enumerate(parts) if not part.isdigit()), len(parts))
    fixed = fixed[:exact]
    padded, target = _padded(have), _padded(fixed)
    if operator in (">", ">=", "<", "<="):
        return {
            ">": padded > target,
            ">=": padded >= target,
            "<": padded < target,
            "<=": padded <= target,
        }[operator]
    if operator == "^":
        leading = next((index for index, part in enumerate(target) if part), 0)
        return padded >= target and padded[: leading + 1] == target[: leading + 1]
    if operator == "~":
        return padded >= target and have[: min(2, len(fixed))] == fixed[:2]
    return have[: len(fixed)] == fixed


def _padded(numbers: list[int]) -> list[int]:
    return [*numbers, 0, 0, 0, 0][:4]
