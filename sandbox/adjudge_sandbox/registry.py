"""Which backend this host gets."""

from __future__ import annotations

import logging

from .backends.zygote import ZygoteSandbox
from .base import Sandbox
from .errors import SandboxUnavailable

__all__ = ["BACKENDS", "open_sandbox"]

_log = logging.getLogger(__name__)

BACKENDS = ("zygote", "none")
"""Names that :func:`open_sandbox` knows, strongest first."""


async def open_sandbox(*, require: str | None = None, allow_none: bool = False) -> Sandbox:
    """Start the strongest backend that works here.

    ``require`` names the backend that it must be. ``none`` isolates nothing and is taken only if it is required or
    nothing else works, and only with ``allow_none``.

    Raises:
        SandboxUnavailable: nothing that is allowed works; the message says what is missing and how to mend it.
    """
    if require is not None and require not in BACKENDS:
        raise SandboxUnavailable(f"there is no sandbox {require!r}; known: {', '.join(BACKENDS)}")
    if require == "none" and not allow_none:
        raise SandboxUnavailable("the sandbox 'none' isolates nothing: it must also be allowed (sandbox.allow_none)")
    problem = ""
    if require != "none":
        sandbox = ZygoteSandbox()
        try:
            await sandbox.start()
            return sandbox
        except SandboxUnavailable as error:
            problem = _explain(error)
    if require == "zygote" or not allow_none:
        raise SandboxUnavailable(problem)
    if problem:
        _log.warning("no isolation is possible: %s", problem)
    sandbox = ZygoteSandbox(isolated=False)
    await sandbox.start()
    return sandbox


def _explain(error: SandboxUnavailable) -> str:
    """The error, and the first repair that a look at this host suggests."""
    from .probe import probe

    fixes = [f"{finding.name}: {finding.detail}. {finding.fix}" for finding in probe() if not finding.ok]
    return f"{error} ({' '.join(fixes)})" if fixes else str(error)
