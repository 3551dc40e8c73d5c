"""Examining the host for ``adjudge doctor``: each check really tries the thing, and names the fix if it fails."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import platform
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from .host import memory_mib, usable_cores
from .settings import Settings

if TYPE_CHECKING:
    from adjudge_sandbox.base import Sandbox

__all__ = ["Check", "examine_host"]

_LIBRARIES = ("math-verify", "sympy", "pydantic", "fastapi", "uvicorn", "uvloop", "httptools", "sqlalchemy")
_MIN_PYTHON = (3, 11)
_MIN_MEMORY_MIB = 1024


class Check(BaseModel):
    """One finding. A ``warning`` limits what the server can do, a ``failure`` keeps it from its work."""

    name: str
    state: Literal["ok", "warning", "failure"]
    detail: str
    fix: str = ""


def examine_host(settings: Settings) -> list[Check]:
    """Every check, in the order in which one would mend things."""
    return [
        _python(),
        _machine(),
        *_libraries(),
        *_sandbox(settings),
        _store(settings),
        _port(settings),
    ]


def _python() -> Check:
    detail = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    good = sys.version_info >= _MIN_PYTHON
    return Check(
        name="python",
        state="ok" if good else "failure",
        detail=detail,
        fix="" if good else "Install Python 3.11 or later.",
    )


def _machine() -> Check:
    memory = memory_mib()
    cores = usable_cores()
    detail = f"{platform.system()} {platform.release()} {platform.machine()}, {cores} usable cores of {os.cpu_count()}"
    detail += f", {memory} MiB of memory" if memory else ""
    if memory is not None and memory < _MIN_MEMORY_MIB * cores:
        fix = f"Each core's workers want about {_MIN_MEMORY_MIB} MiB: lower lanes.cpu_workers and lanes.sandbox_slots."
        return Check(name="machine", state="warning", detail=detail, fix=fix)
    return Check(name="machine", state="ok", detail=detail)


def _libraries() -> Iterator[Check]:
    missing, found = [], []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if found:
        yield Check(name="libraries", state="ok", detail=", ".join(found))
    if missing:
        fix = "pip install 'adjudge[server]'"
        yield Check(name="libraries", state="failure", detail=f"not installed: {', '.join(missing)}", fix=fix)


def _sandbox(settings: Settings) -> Iterator[Check]:
    from adjudge_sandbox.probe import probe

    if not settings.sandbox.enabled:
        yield Check(name="sandbox", state="warning", detail="switched off", fix="Set sandbox.enabled = true.")
        return
    for finding in probe():
        yield Check(
            name=f"sandbox: {finding.name}",
            state="ok" if finding.ok else "warning",
            detail=finding.detail,
            fix="" if finding.ok else finding.fix,
        )
    yield from asyncio.run(_run_programs(settings))


async def _run_programs(settings: Settings) -> list[Check]:
    """Open the sandbox that the settings ask for, and run the first program of every language in it."""
    from adjudge_sandbox.errors import SandboxError

    from .engine.executors import open_wanted

    try:
        sandbox = await open_wanted(settings.sandbox)
    except SandboxError as error:
        return [Check(name="sandbox", state="failure", detail="no program can be run in isolation", fix=str(error))]
    try:
        return [await _run_a_program(sandbox), *await _languages(sandbox)]
    finally:
        await sandbox.stop()


async def _run_a_program(sandbox: Sandbox) -> Check:
    from adjudge_sandbox.base import Limits, Program, Script
    from adjudge_sandbox.errors import SandboxError

    try:
        (result,) = await sandbox.run(Program("print(6 * 7)"), [Script()], Limits())
    except SandboxError as error:
        return Check(name="sandbox", state="failure", detail=f"{sandbox.name} cannot run a program", fix=str(error))
    if result.stdout.strip() != b"42":
        detail = f"{sandbox.name} ran a program wrongly: {result.outcome} {result.detail}"
        return Check(name="sandbox", state="failure", detail=detail, fix="See the warnings above.")
    detail = f"{sandbox.name}: ran a program in {result.wall_ms:.0f} ms"
    if sandbox.name in ("zygote", "container"):
        return Check(name="sandbox", state="ok", detail=detail)
    return Check(name="sandbox", state="warning", detail=detail, fix="Allow namespaces: see the warnings above.")


async def _languages(sandbox: Sandbox) -> list[Check]:
    """One line for each language: its version and what a program costs, or what to install."""
    from adjudge_sandbox.backends.zygote import ZygoteSandbox
    from adjudge_sandbox.languages.hello import try_out

    if not isinstance(sandbox, ZygoteSandbox):
        return [Check(name="languages", state="ok", detail=", ".join(sandbox.languages()))]
    checks = []
    for found in await try_out(sandbox, sandbox.jailed.toolchains):
        took = "" if found.first_ms is None else f"; first run {found.first_ms:.0f} ms, again {found.again_ms:.0f} ms"
        state: Literal["ok", "warning"] = "ok" if found.ok else "warning"
        fix = "" if found.ok else found.fix or "Its toolchain is here, but does not work in a jail."
        checks.append(Check(name=f"language: {found.language}", state=state, detail=found.detail + took, fix=fix))
    return checks


def _store(settings: Settings) -> Check:
    """Can a verdict be recorded? Connects to the database, or finds out whether its file could be made."""
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    if not settings.store.enabled:
        return Check(name="store", state="ok", detail="switched off")
    try:
        url = sa.make_url(settings.store.resolved_url())
        shown = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite" and url.database:
            return _store_file(Path(url.database), shown)
        engine = sa.create_engine(url)
        try:
            with engine.connect():
                pass
        finally:
            engine.dispose()
    except (ValueError, ImportError, SQLAlchemyError) as error:
        reason = str(error).partition("\n")[0][:300]
        fix = "Verdicts are given, but not recorded. Correct store.url, or set store.enabled = false."
        return Check(name="store", state="warning", detail=reason, fix=fix)
    return Check(name="store", state="ok", detail=shown)


def _store_file(path: Path, shown: str) -> Check:
    """Opens the file if it is there, else makes and removes one where its first missing folder would be made."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        if path.exists():
            with path.open("r+b"):
                pass
        else:
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        unwritable = path if path.exists() else folder
        fix = f"Make {unwritable} writable for this user, or set store.url, or store.enabled = false."
        return Check(name="store", state="warning", detail=f"{shown}: {error.strerror}", fix=fix)
    return Check(name="store", state="ok", detail=shown)


def _port(settings: Settings) -> Check:
    where = f"{settings.host} port {settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
    except OSError as error:
        fix = "Another server may be running there already. Choose with --port or --host."
        return Check(name="port", state="warning", detail=f"{where}: {error.strerror or error}", fix=fix)
    return Check(name="port", state="ok", detail=f"{where} is free")
