"""What the sandbox raises: never the program's fault.

::

    SandboxError
    ├── SandboxUnavailable      no jail can be made, or it was killed from outside    retry later
    │   └── SandboxOverloaded   the host has too few cores free to run programs       retry later
    ├── UnsupportedLanguage     no toolchain for this language on this host           the task's fault
    └── InvalidProgram          the request cannot be run (a value that is not plain data, a NUL in a name)
"""

from __future__ import annotations

__all__ = ["InvalidProgram", "SandboxError", "SandboxOverloaded", "SandboxUnavailable", "UnsupportedLanguage"]


class SandboxError(Exception):
    """Root of everything that the sandbox raises."""


class SandboxUnavailable(SandboxError):
    """No jail could be made, or it was lost from outside; the program was not judged."""


class SandboxOverloaded(SandboxUnavailable):
    """A program waited for a core until its wall clock ran out, twice; it was not judged."""


class UnsupportedLanguage(SandboxError):
    """This host cannot run the language; the message names those it can."""


class InvalidProgram(SandboxError):
    """The request itself cannot be run; the message says why."""
