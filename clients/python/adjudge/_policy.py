"""What the clients decide without doing any input or output: headers, errors, deadlines, retries.

A request is tried again when it may yet succeed: no connection, 408, 409, 429 and every 5xx, unless the server says
otherwise (header ``x-should-retry`` first, then ``retryable`` in the problem). The pause doubles from 0.5 s to 8 s,
less up to a quarter at random, or is what ``Retry-After`` asks for up to 120 s. A pause that would outlast the call's
deadline ends the call at once with :class:`DeadlineExceeded`, which has the last failure as its cause.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from ._version import __version__
from .errors import (
    AdjudgeError,
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    ServerError,
    StatusError,
)
from .settings import Settings

__all__ = ["Deadline", "Reply", "Retry", "error_from_reply", "headers_for", "is_worth_retrying"]

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
JITTER = 0.25
LONGEST_RETRY_AFTER_S = 120.0
LONGEST_DEADLINE_S = 86_400.0
RETRIED_STATUS_CODES = frozenset({408, 409, 429})

# Its own source of randomness: drawing from the global one would change the seeded runs of the program we live in.
_random = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply of the server. Header names are in lower case."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes


class Deadline:
    """The moment at which a call must be over. Infinitely many seconds mean that there is none."""

    __slots__ = ("_end", "timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def left_s(self) -> float | None:
        """Seconds left, ``None`` for no limit. Raises :class:`DeadlineExceeded` when none are left."""
        if math.isinf(self._end):
            return None
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise self.exceeded()
        return left_s

    def exceeded(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"The call was not over within its deadline of {self.timeout_s:g} s. "
            "Raise timeout_s of the client (ADJUDGE_TIMEOUT_S), or send less at a time."
        )


class Retry:
    """The tries of one request, under the deadline of the call that it belongs to."""

    def __init__(self, max_retries: int, deadline: Deadline) -> None:
        self.deadline = deadline
        self._max_retries = max_retries
        self._used = 0

    def reset(self) -> None:
        """The last try got somewhere, so that the next failure is a first one again."""
        self._used = 0

    def pause_s(self, error: AdjudgeError) -> float:
        """Seconds to wait before the next try. Raises ``error`` itself if there is to be none."""
        if self._used >= self._max_retries or not is_worth_retrying(error):
            raise error
        asked_s = error.retry_after_s if isinstance(error, StatusError) else None
        pause_s = _backoff_s(self._used) if asked_s is None else min(asked_s, LONGEST_RETRY_AFTER_S)
        left_s = self.deadline.left_s()
        if left_s is not None and left_s <= pause_s:
            raise self.deadline.exceeded() from error
        self._used += 1
        return pause_s


def _backoff_s(tries: int) -> float:
    longest_s = min(FIRST_PAUSE_S * 2.0 ** min(tries, 30), LONGEST_PAUSE_S)
    return longest_s * (1.0 - JITTER * _random.random())


def is_worth_retrying(error: AdjudgeError) -> bool:
    """May the same request succeed if it is sent again?"""
    if not isinstance(error, StatusError):
        return isinstance(error, ConnectionFailed)
    said = error.problem.get("retryable")
    if isinstance(said, bool):
        return said
    return error.status_code in RETRIED_STATUS_CODES or error.status_code >= 500


def headers_for(settings: Settings, request_id: str, left_s: float | None, *, accept: str) -> dict[str, str]:
    """The headers of one request."""
    headers = {
        "accept": accept,
        "content-type": "application/json",
        "user-agent": f"adjudge-python/{__version__}",
        "x-request-id": request_id,
    }
    if settings.api_key is not None:
        headers["authorization"] = f"Bearer {settings.api_key}"
    if left_s is not None:
        headers["adjudge-deadline-s"] = f"{min(max(left_s, 0.001), LONGEST_DEADLINE_S):.3f}"
    return headers


def error_from_reply(reply: Reply) -> AdjudgeError:
    """The exception for a reply that is no success. Bodies that are not ours (a proxy's page) are shown in part."""
    problem = _problem(reply)
    request_id = reply.headers.get("x-request-id") or _text(problem.get("request_id")) or None
    detail = _text(problem.get("detail")) or _text(problem.get("title")) or _excerpt(reply.body)
    message = f"{reply.status_code}: {detail}" if detail else f"The server answered {reply.status_code}."
    if 200 <= reply.status_code < 400:
        return ProtocolError(
            f"{message} (status {reply.status_code} is no answer of adjudge; is base_url right?)", request_id=request_id
        )
    return _class_for(reply.status_code)(
        message,
        status_code=reply.status_code,
        problem=problem,
        request_id=request_id,
        retry_after_s=_retry_after_s(reply.headers),
    )


def _class_for(status_code: int) -> type[StatusError]:
    if status_code in (401, 403):
        return AuthenticationFailed
    if status_code == 429:
        return Overloaded
    return ServerError if status_code >= 500 else InvalidRequest


def _problem(reply: Reply) -> dict[str, Any]:
    try:
        body = json.loads(reply.body)
    except (ValueError, RecursionError):
        body = None
    problem: dict[str, Any] = body if isinstance(body, dict) else {}
    said = reply.headers.get("x-should-retry", "").strip().lower()
    if said in ("true", "false"):
        problem["retryable"] = said == "true"
    return problem


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _excerpt(body: bytes) -> str:
    return " ".join(body[:300].decode("utf-8", "replace").split())


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds asked for by ``retry-after-ms`` or ``retry-after`` (seconds or a date); ``None`` if there is none."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None
