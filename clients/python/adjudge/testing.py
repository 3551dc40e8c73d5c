"""``FakeServer``: an adjudge server for your own tests, with verdicts and failures that you choose.

It is a real HTTP server on a free port of 127.0.0.1, in a thread, made of the standard library only::

    from adjudge import Client, Verdict
    from adjudge.testing import FakeServer

    with FakeServer(lambda task: Verdict.scored(1.0, "correct")) as server:
        with Client(base_url=server.base_url) as client:
            assert client.rewards([{"verifier": "math", "response": "4"}]) == [1.0]
        server.fail_next(503, times=2)        # the client tries again
        assert server.requests[0].path == "/v1/verify/batch"

Without a function it compares ``response`` with ``reference`` as text. A task that is no valid
:class:`adjudge.Task`, or a function that raises :class:`Failed`, becomes a verdict without a reward, as on the real
server.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from ._fake_http import Handler
from .types import Failure, Task, Verdict

__all__ = ["Failed", "FakeServer", "Fault", "RecordedRequest", "compare_text"]


class Failed(Exception):
    """Raise it in a verdict function: the task gets no reward, but this status."""

    def __init__(self, status: Failure, reason: str = "as the test wants it") -> None:
        super().__init__(reason)
        self.status: Failure = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it came. Header names are in lower case; ``body`` is decoded JSON, ``None`` without a body."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def tasks(self) -> list[Any]:
        """The tasks of this request: of a batch, of rows, or the single one."""
        if not isinstance(self.body, dict):
            return []
        return list(self.body.get("tasks") or self.body.get("rows") or [self.body])


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request."""

    status_code: int | None = None
    """Answer with a problem of this status."""
    headers: dict[str, str] = field(default_factory=dict)
    problem: dict[str, Any] = field(default_factory=dict)
    """Members of the problem: ``type``, ``detail``, ``retryable``, ..."""
    delay_s: float = 0.0
    """Wait before anything is answered."""
    drop: bool = False
    """Close the connection without an answer."""
    break_after: int | None = None
    """Close the connection after this many lines of a streamed answer."""
    status: Failure | None = None
    """Give every task of the request this status, and no reward."""


def compare_text(task: Task) -> Verdict:
    """``response`` and ``reference`` are the same text, spaces around them aside."""
    right = task.text.strip() == str(task.reference).strip()
    return Verdict.scored(1.0 if right else 0.0, "correct" if right else "wrong_answer")


class FakeServer:
    """See the module docstring. Use it as a context manager, or call :meth:`close`."""

    def __init__(self, judge: Callable[[Task], Verdict] = compare_text, *, api_key: str | None = None) -> None:
        self.judge = judge
        self.api_key = api_key
        self.ready = True
        """What ``GET /readyz`` says."""
        self.recipes: dict[str, dict[str, Any]] = {}
        self.verifiers: list[dict[str, Any]] = [
            {"name": "fake", "version": "1", "lane": "inline", "description": "Asks the function of the test."}
        ]
        self.requests: list[RecordedRequest] = []
        self.connections = 0
        """How many connections were opened so far."""
        self._faults: deque[Fault] = deque()
        self._rules: list[tuple[Callable[[RecordedRequest], bool], Fault]] = []
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="fake-adjudge", daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def judged(self) -> list[Any]:
        """Every task that was sent so far, in the order of arrival; a task that was sent twice is there twice."""
        posted = [request for request in list(self.requests) if request.method == "POST"]
        return [task for request in posted for task in request.tasks]

    def fail_next(
        self, status_code: int, times: int = 1, *, retry_after_s: float | None = None, **headers: str
    ) -> None:
        """Answer the next requests with a problem. ``headers`` have ``_`` for ``-``: ``x_should_retry="false"``."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if retry_after_s is not None:
            sent["Retry-After"] = f"{retry_after_s:g}"
        self.queue(Fault(status_code=status_code, headers=sent), times)

    def drop_next(self, times: int = 1) -> None:
        """Close the connection of the next requests without an answer."""
        self.queue(Fault(drop=True), times)

    def delay_next(self, delay_s: float, times: int = 1) -> None:
        """Let the next requests wait."""
        self.queue(Fault(delay_s=delay_s), times)

    def break_next(self, after: int, times: int = 1) -> None:
        """Break the next streamed answers after this many verdicts."""
        self.queue(Fault(break_after=after), times)

    def queue(self, fault: Fault, times: int = 1) -> None:
        """Let the next ``times`` POST requests suffer ``fault``, after what is queued already."""
        with self._lock:
            self._faults.extend([fault] * times)

    def queue_if(self, concerns: Callable[[RecordedRequest], bool], fault: Fault) -> None:
        """Let every POST request that ``concerns`` holds for suffer ``fault``, from now on."""
        with self._lock:
            self._rules.append((concerns, fault))

    def fault_for(self, request: RecordedRequest) -> Fault:
        """Used by the HTTP side."""
        with self._lock:
            if self._faults:
                return self._faults.popleft()
            return next((fault for concerns, fault in self._rules if concerns(request)), Fault())

    def record(self, request: RecordedRequest) -> None:
        """Used by the HTTP side."""
        with self._lock:
            self.requests.append(request)

    def close(self) -> None:
        """Stop, closing every connection."""
        if not self.closing.is_set():
            self.closing.set()
            self._http.shutdown()
            self._thread.join()
            self._http.close_connections()
            self._http.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Http(ThreadingHTTPServer):
    """One thread per connection; all of them end in ``server_close``."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], fake: FakeServer) -> None:
        self.fake = fake
        self._open: set[Any] = set()
        self._guard = threading.Lock()
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
            self.fake.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        import socket

        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients of tests go away as they please."""
