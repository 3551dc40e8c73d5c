"""What happens to every request, as plain ASGI: request id, log line and metrics; API key; size limit; draining."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import re
import secrets
import time
from base64 import b64decode
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..logs import get_logger
from ..metrics import Metrics
from ..settings import Settings
from .problems import problem_response

__all__ = ["Authentication", "BodyLimit", "RequestContext", "request_facts"]

_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_DRAIN_S = 10.0
_DRAIN_BYTES = 1 << 30
_OPEN = {"/livez", "/readyz", "/health"}

request_facts: contextvars.ContextVar[dict[str, object]] = contextvars.ContextVar("request_facts")
"""What a route adds to its request's log line: counts, never text of a task."""


class RequestContext:
    """Outermost: request ids in and out, log line, metrics; refuses when draining; a bug of ours becomes a 500."""

    def __init__(self, app: ASGIApp, metrics: Metrics, draining: Callable[[], bool]) -> None:
        self.app = app
        self.metrics = metrics
        self.draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        wanted = Headers(scope=scope).get("x-request-id", "")
        request_id = wanted if _ID.fullmatch(wanted) else f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        facts: dict[str, object] = {}
        token = request_facts.set(facts)
        started = time.monotonic()
        status = 500
        status_sent = False

        async def send_with_id(message: Message) -> None:
            nonlocal status, status_sent
            if message["type"] == "http.response.start":
                status_sent = True
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            if self.draining() and scope["path"] not in _OPEN:
                reply = problem_response("draining", "This server is shutting down; ask another one.", request_id)
                await reply(scope, receive, send_with_id)
            else:
                await self.app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = 499  # gone while it was sending its body; nobody is left to answer
        except Exception as error:
            get_logger().error("http.bug", request_id=request_id, exc_info=error)
            if status_sent:
                raise
            detail = "This is a bug of ours; the server's log has more under the request id."
            await problem_response("internal-error", detail, request_id)(scope, receive, send_with_id)
        finally:
            request_facts.reset(token)
            self._log(scope, request_id, status, time.monotonic() - started, facts)

    def _log(self, scope: Scope, request_id: str, status: int, seconds: float, facts: dict[str, object]) -> None:
        route = getattr(scope.get("route"), "path", None) or "unmatched"
        self.metrics.http_requests.labels(route, status).inc()
        self.metrics.http_duration.labels(route).observe(seconds)
        level = "debug" if route in _OPEN or route == "/metrics" else "info"
        getattr(get_logger(), level)(
            "http.request",
            request_id=request_id,
            method=scope["method"],
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            key=scope["state"].get("key_name"),
            **facts,
        )


class Authentication:
    """Asks for ``Authorization: Bearer KEY``. Trainers' own clients, which send no headers, may use ``?key=KEY``, or a
    URL ``http://:KEY@host/...``."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.settings.api_keys or scope["path"] in _OPEN:
            await self.app(scope, receive, send)
            return
        name = self.settings.key_name(_presented(scope))
        if name is None:
            reply = problem_response(
                "unauthenticated",
                "Send 'Authorization: Bearer KEY' with a key of this server (SDK: api_key= or ADJUDGE_API_KEY).",
                scope["state"]["request_id"],
            )
            await reply(scope, receive, send)
            return
        scope["state"]["key_name"] = name
        await self.app(scope, receive, send)


def _presented(scope: Scope) -> str:
    scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    if scheme.lower() == "basic":
        return _password(key)
    if scope["path"].startswith("/compat/"):
        query: bytes = scope["query_string"]
        return parse_qs(query.decode("latin-1")).get("key", [""])[0]
    return ""


def _password(credentials: str) -> str:
    """Of ``Basic``: what a client sends whose URL is ``http://:KEY@host/``, the only header that some can be given."""
    try:
        return b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


class BodyLimit:
    """Stops reading a body at ``limits.max_body_mib`` and answers 413, whatever Content-Length says."""

    def __init__(self, app: ASGIApp, max_mib: int) -> None:
        self.app = app
        self.max_mib = max_mib
        self.max_bytes = max_mib * 1024 * 1024

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and len(declared) < 20 and int(declared) > self.max_bytes:
            await self._refuse(scope, receive, send)
            return
        seen = 0
        started = more = False

        async def receive_counted() -> Message:
            nonlocal seen, more
            message = await receive()
            if message["type"] == "http.request":
                more = message.get("more_body", False)
                seen += len(message.get("body", b""))
                if seen > self.max_bytes:
                    raise _TooLarge
            return message

        async def send_noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive_counted, send_noting)
        except _TooLarge:
            if started:
                raise
            await self._refuse(scope, receive, send, more=more)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, more: bool = True) -> None:
        """Read on for a while before answering: a client that is still writing would see a reset, not the reply."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                drained = 0
                while more and drained < _DRAIN_BYTES:
                    message = await receive()
                    drained += len(message.get("body", b""))
                    more = message.get("more_body", False)
        reply = problem_response(
            "body-too-large",
            f"A body may have {self.max_mib} MiB (limits.max_body_mib). Send fewer tasks at a time.",
            scope["state"]["request_id"],
            limit_mib=self.max_mib,
        )
        reply.headers["Connection"] = "close"
        await reply(scope, receive, send)


class _TooLarge(Exception):
    """The body has grown past the limit."""
