"""Our side of the Docker engine: blocking calls in threads of our own, and their errors in our words.

The SDK blocks, so no call of it is ever made on the event loop. Short calls and long-lived streams have pools of their
own: a stream that takes half an hour must not keep a kill waiting. Each thread has its own client, because the SDK's is
not made to be shared.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..errors import InvalidProgram, SandboxUnavailable
from .base import ContainerConfig

__all__ = ["Engine"]

T = TypeVar("T")

_CALL_TIMEOUT_S = 120
_CALL_THREADS = 8


class Engine:
    """The engine that ``config`` names. Nothing is connected before :meth:`start`."""

    def __init__(self, config: ContainerConfig) -> None:
        self._config = config
        self._local = threading.local()
        self._docker: Any = None
        self._base_url = ""
        self._version = ""
        self._calls: ThreadPoolExecutor | None = None
        self._streams: ThreadPoolExecutor | None = None
        self._clients: list[Any] = []
        self.info: dict[str, Any] = {}

    async def start(self) -> None:
        """Connect. Raises :class:`SandboxUnavailable` saying what is missing."""
        try:
            self._docker = importlib.import_module("docker")
        except ImportError:
            raise SandboxUnavailable(
                "containers need the Docker SDK for Python: pip install 'adjudge[container]'"
            ) from None
        self._calls = ThreadPoolExecutor(_CALL_THREADS, thread_name_prefix="adjudge-engine")
        self._streams = ThreadPoolExecutor(self._config.max_boxes + 2, thread_name_prefix="adjudge-box")
        try:
            self.info = await self.call(lambda client: client.info())
        except SandboxUnavailable:
            self.close()
            raise
        self._check_runtime()

    def _check_runtime(self) -> None:
        runtime, known = self._config.runtime, sorted(self.info.get("Runtimes") or {})
        if runtime is not None and runtime not in known:
            self.close()
            raise SandboxUnavailable(f"the engine has no runtime {runtime!r}; it has {', '.join(known)}")

    def close(self) -> None:
        """Forget the connection. Threads end when what they do has ended."""
        for pool in (self._calls, self._streams):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        self._calls = self._streams = None
        clients, self._clients = self._clients, []
        for client in clients:
            client.close()

    async def call(self, function: Callable[[Any], T]) -> T:
        """``function(client)`` in a thread. Raises :class:`SandboxUnavailable`, :class:`InvalidProgram`."""
        if self._calls is None:
            raise SandboxUnavailable("the container engine has not been started")
        return await asyncio.get_running_loop().run_in_executor(self._calls, self._with_client, function)

    async def stream(self, function: Callable[[Any], T]) -> T:
        """Like :meth:`call`, for what takes as long as a program runs."""
        if self._streams is None:
            raise SandboxUnavailable("the container engine has not been started")
        return await asyncio.get_running_loop().run_in_executor(self._streams, self._with_client, function)

    def _with_client(self, function: Callable[[Any], T]) -> T:
        with self._translated():
            client = getattr(self._local, "client", None)
            if client is None:
                client = self._local.client = self._connect()
            return function(client)

    def _connect(self) -> Any:
        if not self._base_url:
            environment = self._docker.utils.kwargs_from_env()
            self._base_url = self._config.engine_url or environment.get("base_url") or "unix:///var/run/docker.sock"
            self._tls = environment.get("tls") if not self._config.engine_url else None
        self._knock()
        # Not version="auto": a client whose constructor asks and fails leaves its connection open.
        client = self._client(self._version or "1.41")
        try:
            if not self._version:
                self._version = client.version(api_version=False)["ApiVersion"]
                client.close()
                client = self._client(self._version)
        except BaseException:
            client.close()
            raise
        self._clients.append(client)
        return client

    def _knock(self) -> None:
        """Raises ``OSError`` if nobody listens on a local socket, of which the SDK would leave one open."""
        scheme, _, path = self._base_url.partition("://")
        if scheme in ("unix", "http+unix"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocking:
                knocking.connect(path)

    def _client(self, version: str) -> Any:
        options: dict[str, Any] = {"tls": self._tls} if self._tls else {}
        return self._docker.APIClient(base_url=self._base_url, version=version, timeout=_CALL_TIMEOUT_S, **options)

    _tls: Any = None

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        errors = self._docker.errors
        try:
            yield
        except errors.ImageNotFound as error:
            raise InvalidProgram(f"the engine has no such image: {error.explanation}") from error
        except errors.DockerException as error:
            raise SandboxUnavailable(f"the container engine: {error}"[:500]) from error
        except OSError as error:  # requests' exceptions are of this kind too
            raise SandboxUnavailable(f"the container engine does not answer: {error}"[:500]) from error
