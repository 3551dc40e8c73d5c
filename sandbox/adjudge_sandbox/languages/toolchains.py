"""Which languages work on this host, and where their toolchains are.

A toolchain counts if each of its executables is found on the path and lies in a folder that a jail shows. Most lie in
``/usr``. One that does not (a compiler below a home folder) is shown too: its own folder, read-only, and nothing above
it. Nothing is executed to find this out but, for such a one, the command that says where its folder is.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import UnsupportedLanguage
from ..kernel.rootfs import Plan
from . import table
from .table import Language, Toolchain

__all__ = ["Found", "Toolchains", "how_to_get"]

_log = logging.getLogger(__name__)

_PATH = "/usr/local/bin:/usr/bin:/bin"
_TOO_BROAD = ("/", "/home", "/root", "/opt", "/srv", "/var", "/etc", "/tmp", "/mnt", "/media", "/run", "/dev", "/proc")
_ASK_TIMEOUT_S = 20
_NAME_CHARS = 60


@dataclass(slots=True)
class Found:
    """A language that works here."""

    language: Language
    toolchain: Toolchain
    executables: Mapping[str, str]
    """Name in the table -> path on this host."""
    identity: str
    """Changes when the toolchain does."""
    standard: str = field(default="")
    in_root: bool = False
    """Is it started in a root of jails, which shows some folders elsewhere?"""

    def version(self) -> str:
        """What it says of itself, in one line."""
        command = [
            self.executables.get(self.toolchain.version[0], self.toolchain.version[0]),
            *self.toolchain.version[1:],
        ]
        said = _ask(command, errors_too=True)
        lines = [line.strip() for line in said.splitlines() if line.strip() and "warning" not in line.lower()]
        return lines[0] if lines else "unknown"


class Toolchains:
    """Looked up once per server."""

    def __init__(self, plan: Plan | None, *, mounted: bool = True) -> None:
        """Look around, and add to ``plan`` what its jails must show besides. ``None``: programs see the host.

        ``mounted``: jails have a root of their own, in which a folder is open whatever lies above it on the host.
        """
        self._plan = plan
        self._mounted = mounted
        self._found: dict[str, Found] = {}
        self._missing: dict[str, Language] = {}
        for language in table.languages():
            found = next((it for one in language.toolchains if (it := self._look(language, one)) is not None), None)
            if found is None:
                self._missing[language.name] = language
            else:
                self._found[language.name] = found
                self._show(found.toolchain)

    def names(self) -> tuple[str, ...]:
        """Canonical names of what works."""
        return tuple(self._found)

    def found(self) -> tuple[Found, ...]:
        return tuple(self._found.values())

    def missing(self) -> tuple[Language, ...]:
        return tuple(self._missing.values())

    def find(self, name: str) -> tuple[Found, str]:
        """The toolchain of a language, and the standard that this name of it asks for.

        Raises:
            UnsupportedLanguage: there is none here; the message says which there are, or what to install.
        """
        known = table.find(name)
        if known is None:
            shown = ascii(name[:_NAME_CHARS])
            raise UnsupportedLanguage(f"there is no language {shown}; this host runs {', '.join(self._found)}")
        language, standard = known
        found = self._found.get(language.name)
        if found is None:
            raise UnsupportedLanguage(
                f"no toolchain for {language.name} is on this host ({how_to_get(language)}); "
                f"it runs {', '.join(self._found)}"
            )
        return found, standard or self._standard(found)

    @staticmethod
    def _standard(found: Found) -> str:
        """The default standard, or the fallback if this compiler does not know it. Asked once."""
        language, check = found.language, found.toolchain.standard_check
        if not found.standard and check:
            command = [part.replace("{standard}", language.standard) for part in check]
            command[0] = found.executables[command[0]]
            knows = subprocess.run(command, capture_output=True, timeout=_ASK_TIMEOUT_S, check=False).returncode == 0
            found.standard = language.standard if knows else language.standard_fallback
        return found.standard or language.standard

    def _look(self, language: Language, toolchain: Toolchain) -> Found | None:
        executables: dict[str, str] = {}
        for name in toolchain.needs:
            path = self._executable(name, toolchain)
            if path is None:
                return None
            executables[name] = path
        facts = [toolchain.name, *executables.values()]
        for path in executables.values():
            what = os.stat(path)
            facts += [os.path.realpath(path), str(what.st_size), str(what.st_mtime_ns)]
        identity = hashlib.sha256("\0".join(facts).encode()).hexdigest()
        return Found(language, toolchain, executables, identity, in_root=self._plan is not None and self._mounted)

    def _executable(self, name: str, toolchain: Toolchain) -> str | None:
        """Its path, if programs can reach it there."""
        if name == "python3":
            return sys.executable
        path = shutil.which(name, path=_PATH) or shutil.which(name)
        if path is not None and not self._mounted and not _anybody_may(path):
            return None
        if path is None or (self._plan is None and _anybody_may(path)):
            return path
        if self._plan is not None and self._shown(path) and self._shown(os.path.realpath(path)):
            return path
        return self._elsewhere(name, path, toolchain)

    def _elsewhere(self, name: str, path: str, toolchain: Toolchain) -> str | None:
        """An executable in a folder of its own toolchain, which from now on is shown."""
        command = toolchain.root_command
        asked = _ask([path, *command[1:]]).strip() if command and command[0] == name else ""
        real = os.path.realpath(path)
        if command and command[0] == name and not asked:
            return None  # it stands for a toolchain that it does not find: rustup's, in another home
        root = os.path.realpath(asked) if asked else os.path.dirname(os.path.dirname(real))
        path = os.path.join(root, "bin", name) if asked else real
        home = os.path.realpath(os.path.expanduser("~"))
        broad = root in _TOO_BROAD or root.count("/") < 2 or _is_inside(home, root) or _is_inside(os.getcwd(), root)
        if broad or not os.access(path, os.X_OK):
            _log.info("%s is at %s, which a jail cannot show", name, path)
            return None
        if self._plan is None:
            return path if _anybody_may(path) else None
        if not self._shown(root):
            self._plan["folders"].append(root)
        return path

    def _shown(self, path: str) -> bool:
        assert self._plan is not None
        links = (folder for folder in self._plan["links"])
        return any(_is_inside(path, folder) for folder in (*self._plan["folders"], *links))

    def _show(self, toolchain: Toolchain) -> None:
        """Configuration that it needs and that lies outside ``/usr``."""
        if self._plan is None:
            return
        for path in sorted(path for pattern in toolchain.shows for path in glob.glob(pattern)):
            kind = "folders" if os.path.isdir(path) else "files"
            if not self._shown(path) and path not in self._plan["files"]:
                (self._plan["folders"] if kind == "folders" else self._plan["files"]).append(path)


def how_to_get(language: Language) -> str:
    """What to do about a missing toolchain."""
    if language.package:
        return f"Debian: apt-get install {language.package}"
    return f"not packaged in Debian 12: {language.website}"


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _anybody_may(path: str) -> bool:
    """May every user of the host run this file, through all its folders?"""
    real = os.path.realpath(path)
    folder = os.path.dirname(real)
    while folder != "/":
        if not os.stat(folder).st_mode & 0o001:
            return os.geteuid() != 0 and os.access(real, os.X_OK)
        folder = os.path.dirname(folder)
    return bool(os.stat(real).st_mode & 0o001)


def _ask(command: list[str], *, errors_too: bool = False) -> str:
    """What a toolchain prints; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ASK_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    output = done.stdout + (done.stderr if errors_too else b"")
    return output.decode("utf-8", "replace") if done.returncode == 0 else ""
