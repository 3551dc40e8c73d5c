"""What makes compilers fast, prepared once: C++'s precompiled header, javac's class archive, Go's compiled library.

Reading ``bits/stdc++.h`` takes two seconds, loading it precompiled a quarter of that. What can be prepared is data
(``prepare`` in ``table.toml``): a few files of ours and a command. It is made by this server from nothing but the
toolchain and those files, once per toolchain and standard, in the background of the first program that would have used
it, and kept in a folder of ours that jails see read-only. No answer takes part in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping

from ..kernel.rootfs import Plan
from .recipe import Recipe
from .table import Prepare

__all__ = ["Prepared"]

_log = logging.getLogger(__name__)

_TIMEOUT_S = 300
_NICENESS = "5"
_KEY_CHARS = 32


class Prepared:
    """The folder of prepared things. One event loop."""

    def __init__(self, plan: Plan | None, *, mounted: bool = True) -> None:
        """Make or find the folder, and have jails show it. ``mounted``: they show it in a root of their own."""
        self._temporary: str | None = None
        self._folder = self._open_folder(lasting=mounted and plan is not None)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: set[str] = set()
        if plan is not None:
            plan["folders"].append(self._folder)

    def _open_folder(self, *, lasting: bool) -> str:
        """Below the user's cache folder, or a temporary one where that cannot be used.

        Programs that no wall holds might change what is there: for them it does not last.
        """
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(base, "adjudge", "toolchains")
        with contextlib.suppress(OSError):
            if lasting and os.path.isabs(folder):
                os.makedirs(folder, mode=0o755, exist_ok=True)
                what = os.stat(folder, follow_symlinks=False)
                ours = what.st_uid == os.geteuid() and not what.st_mode & 0o022 and stat.S_ISDIR(what.st_mode)
                if ours and os.access(folder, os.W_OK):
                    return os.path.realpath(folder)
        self._temporary = tempfile.mkdtemp(prefix="adjudge-toolchains-")
        os.chmod(self._temporary, 0o755)
        return os.path.realpath(self._temporary)

    def folder_for(self, recipe: Recipe) -> str:
        """Where the things for this program are; empty if there are none yet, and then somebody begins to make them."""
        prepare = recipe.found.toolchain.prepare
        if prepare is None or not prepare.serves(data for _, _, data in recipe.files):
            return ""
        command = recipe.command(prepare.command, 0)
        facts = json.dumps([recipe.found.identity, command, dict(prepare.files)])
        key = hashlib.sha256(facts.encode()).hexdigest()[:_KEY_CHARS]
        folder = os.path.join(self._folder, key)
        if os.path.exists(os.path.join(folder, prepare.result)):
            return folder
        if key not in self._tasks and key not in self._failed:
            task = self._tasks[key] = asyncio.ensure_future(self._make(prepare, command, folder, key))
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return ""

    async def ready(self) -> None:
        """Wait for what is being made."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def stop(self) -> None:
        for task in tuple(self._tasks.values()):
            task.cancel()
        await self.ready()
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)

    async def _make(self, prepare: Prepare, command: list[str], folder: str, key: str) -> None:
        """In a folder of its own, which is renamed when it is complete: half of it is never seen."""
        draft = tempfile.mkdtemp(prefix="draft-", dir=self._folder)
        process: asyncio.subprocess.Process | None = None
        try:
            await asyncio.to_thread(_lay, draft, {**prepare.files, prepare.result: ""})
            environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": draft, "LANG": "C.UTF-8"}
            for name, value in prepare.environment.items():
                environment[name] = value.replace("{draft}", draft)
            process = await asyncio.create_subprocess_exec(
                "nice", "-n", _NICENESS, *command, cwd=draft, env=environment,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            async with asyncio.timeout(_TIMEOUT_S):
                _, said = await process.communicate()
            if process.returncode or not await asyncio.to_thread(_publish, draft, prepare.result, folder):
                raise OSError(f"the command ended with status {process.returncode}: {said[-500:]!r}")
        except (OSError, TimeoutError) as error:
            self._failed.add(key)
            _log.warning("%s could not be prepared: %s", prepare.result, error)
        finally:
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()
            await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)


def _lay(folder: str, files: Mapping[str, str]) -> None:
    """Files with a text are written; of the others only the folder is made."""
    os.chmod(folder, 0o755)
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        if text:
            with open(path, "w") as file:
                file.write(text)


def _publish(draft: str, result: str, folder: str) -> bool:
    """Make readable and rename. Is there a result?"""
    if not os.path.exists(os.path.join(draft, result)):
        return False
    for parent, _, names in os.walk(draft):
        os.chmod(parent, 0o755)
        for name in names:
            os.chmod(os.path.join(parent, name), 0o644)
    os.rename(draft, folder)
    return True
