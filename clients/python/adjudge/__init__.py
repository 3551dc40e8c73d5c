"""adjudge: rewards for reinforcement learning of language models, over HTTP.

::

    from adjudge import Client

    verdict = Client().verify(verifier="math", response="so \\\\boxed{4}", reference="4")
    verdict.reward, verdict.category          # 1.0, "correct"

A verdict is not a float: ``reward`` is a number if and only if ``status`` is ``"ok"``. See :mod:`adjudge.types` for the
words, :mod:`adjudge.errors` for what is raised, :mod:`adjudge.testing` for a server to test your own code against.

Importing this package costs little: names are loaded when they are first used, and the HTTP library at the first
request.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .async_client import AsyncClient
    from .batching import MicroBatcher
    from .client import Client
    from .errors import (
        AdjudgeError,
        AuthenticationFailed,
        ConfigurationError,
        ConnectionFailed,
        DeadlineExceeded,
        InvalidRequest,
        Overloaded,
        ProtocolError,
        ServerError,
        StatusError,
        VerdictFailed,
        reward_or_raise,
    )
    from .settings import Settings
    from .types import BatchReply, BatchRequest, Message, StreamItem, Task, TaskDefaults, Timing, Verdict

__all__ = [
    "AdjudgeError",
    "AsyncClient",
    "AuthenticationFailed",
    "BatchReply",
    "BatchRequest",
    "Client",
    "ConfigurationError",
    "ConnectionFailed",
    "DeadlineExceeded",
    "InvalidRequest",
    "Message",
    "MicroBatcher",
    "Overloaded",
    "ProtocolError",
    "ServerError",
    "Settings",
    "StatusError",
    "StreamItem",
    "Task",
    "TaskDefaults",
    "Timing",
    "Verdict",
    "VerdictFailed",
    "__version__",
    "reward_or_raise",
]

_HOMES = {
    "AsyncClient": "async_client",
    "Client": "client",
    "MicroBatcher": "batching",
    "Settings": "settings",
    **dict.fromkeys(
        ("BatchReply", "BatchRequest", "Message", "StreamItem", "Task", "TaskDefaults", "Timing", "Verdict"), "types"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
