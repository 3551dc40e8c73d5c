"""What the SDK raises.

::

    AdjudgeError
    ├── ConfigurationError          yours: a setting of the client is missing or wrong
    ├── ConnectionFailed            the server could not be reached, or the connection broke        retryable
    ├── DeadlineExceeded            the call's own deadline passed                                  not retried
    ├── ProtocolError               the reply is not what adjudge sends (a proxy? another server?)  not retried
    ├── StatusError                 the server answered with a problem
    │   ├── InvalidRequest          400, 404, 405, 413, 415, 422: change the request
    │   ├── AuthenticationFailed    401, 403: change the key
    │   ├── Overloaded              429: come back after ``retry_after_s``                          retryable
    │   └── ServerError             5xx: 503 is retryable, the others are ours to mend
    └── VerdictFailed               raised by ``reward_or_raise``: this task has no reward

A verdict whose status is not ``ok`` is data, not an exception; it is raised only by a caller who asks for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .types import Verdict

__all__ = [
    "AdjudgeError",
    "AuthenticationFailed",
    "ConfigurationError",
    "ConnectionFailed",
    "DeadlineExceeded",
    "InvalidRequest",
    "Overloaded",
    "ProtocolError",
    "ServerError",
    "StatusError",
    "VerdictFailed",
    "reward_or_raise",
]


class AdjudgeError(Exception):
    """Root of everything that the SDK raises on purpose."""

    retryable: bool = False

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


class ConfigurationError(AdjudgeError):
    """A setting of the client is missing or wrong. The message names the setting."""


class ConnectionFailed(AdjudgeError):
    """The server could not be reached, or the connection broke before the reply was whole."""

    retryable = True


class DeadlineExceeded(AdjudgeError):
    """The deadline of this call passed. The server drops the work when the connection closes."""


class ProtocolError(AdjudgeError):
    """The reply is not one that adjudge sends."""


class StatusError(AdjudgeError):
    """The server answered with a problem (RFC 9457)."""

    def __init__(
        self,
        message: str,
        *,
        status_code: int,
        problem: dict[str, Any] | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, request_id=request_id)
        self.status_code = status_code
        self.problem = problem or {}
        self.retry_after_s = retry_after_s


class InvalidRequest(StatusError):
    """The request cannot be served as it is; the message says what to change."""


class AuthenticationFailed(StatusError):
    """The API key is missing, unknown, or not allowed to do this."""


class Overloaded(StatusError):
    """The server has no room for this request now."""

    retryable = True


class ServerError(StatusError):
    """The server failed. Only a 503 is worth another try."""

    @property
    def retryable(self) -> bool:  # type: ignore[override]
        return self.status_code in (502, 503, 504)


class VerdictFailed(AdjudgeError):
    """A task has no reward, and the caller asked for one."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.status}: {verdict.reason}")
        self.verdict = verdict

    @property
    def retryable(self) -> bool:  # type: ignore[override]
        return self.verdict.retryable


def reward_or_raise(verdict: Verdict) -> float:
    """The reward of ``verdict``; raises :class:`VerdictFailed` if it has none."""
    if verdict.reward is None:
        raise VerdictFailed(verdict)
    return verdict.reward
