"""Which backend this host gets.

====================== ===== ==========================================================================================
isolation              level what stands between a program and the host
====================== ===== ==========================================================================================
``none``                 0   resource limits
``landlock``             1   Landlock, a system call filter, resource limits: where namespaces are refused
``zygote``, ``jail``     2   namespaces, a root of its own, a system call filter, Landlock, control groups
``container``            2   a container of its own
====================== ===== ==========================================================================================

``zygote`` and ``jail`` are one backend: Python programs are forked from a warm interpreter, all others are started
afresh, behind the same walls.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

from .backends.zygote import Walls, ZygoteSandbox
from .base import Sandbox
from .errors import SandboxUnavailable

if TYPE_CHECKING:
    from .container.base import ContainerConfig
    from .container.pool import ContainerPool

__all__ = ["BACKENDS", "LEVELS", "open_sandbox"]

_log = logging.getLogger(__name__)

LEVELS = {"none": 0, "landlock": 1, "jail": 2, "zygote": 2, "container": 2}
"""Strength of each isolation that a result may name."""
BACKENDS: tuple[Walls, ...] = ("zygote", "landlock", "none")
"""Names that :func:`open_sandbox` knows beside ``auto``, strongest first."""


async def open_sandbox(
    backend: Walls | Literal["auto", "container"] = "auto",
    *,
    require: str = "none",
    allow_none: bool = False,
    container: ContainerConfig | None = None,
    boxes: ContainerPool | None = None,
) -> Sandbox:
    """Start a backend; with ``auto`` the strongest that works here.

    ``require`` names the level below which nothing will do. ``none`` isolates nothing and is taken only with
    ``allow_none``. ``container``: engine and image of the backend of that name; ``boxes``: a pool that it shares.

    Raises:
        SandboxUnavailable: nothing that is allowed works; the message says what is missing and how to mend it.
    """
    if require not in LEVELS:
        raise SandboxUnavailable(f"there is no isolation {require!r}; known: {', '.join(LEVELS)}")
    if backend not in ("auto", "container", *BACKENDS):
        raise SandboxUnavailable(f"there is no sandbox {backend!r}; known: auto, container, {', '.join(BACKENDS)}")
    if backend == "none" and not allow_none:
        raise SandboxUnavailable("the sandbox 'none' isolates nothing: it must also be allowed (sandbox.allow_none)")
    problems = []
    for name in BACKENDS if backend == "auto" else (backend,):
        if LEVELS[name] < LEVELS[require]:
            problems.append(f"{name!r} isolates less than {require!r}, which is required")
            continue
        if name == "none" and not allow_none:
            continue
        sandbox: Sandbox = _container(container, boxes) if name == "container" else ZygoteSandbox(name)
        try:
            await sandbox.start()
        except SandboxUnavailable as error:
            problems.append(f"{name}: {error}")
            continue
        if problems:
            _log.warning("the sandbox is only %r: %s", name, "; ".join(problems))
        return sandbox
    raise SandboxUnavailable("; ".join(problems) if backend == "container" else _explain(problems))


def _container(config: ContainerConfig | None, boxes: ContainerPool | None) -> Sandbox:
    from .backends.container import ContainerSandbox

    if config is None or not config.image:
        raise SandboxUnavailable("the sandbox 'container' needs the name of an image (sandbox.container_image)")
    return ContainerSandbox(config, boxes)


def _explain(problems: list[str]) -> str:
    """The problems, and the repairs that a look at this host suggests."""
    from .probe import probe

    fixes = [f"{finding.name}: {finding.detail}. {finding.fix}" for finding in probe() if not finding.ok]
    return "; ".join(problems) + (f" ({' '.join(fixes)})" if fixes else "")
