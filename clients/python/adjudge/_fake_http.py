"""The HTTP side of :class:`adjudge.testing.FakeServer`: the wire contract, and faults put into it."""

from __future__ import annotations

import json
import uuid
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from .types import StreamItem, Task, Verdict

if TYPE_CHECKING:
    from .testing import FakeServer, Fault, RecordedRequest

__all__ = ["Handler"]

PROBLEM = "application/problem+json"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # Headers and body go out in two writes; waiting between them would cost 40 ms each time.
    disable_nagle_algorithm = True

    @property
    def fake(self) -> FakeServer:
        fake: FakeServer = self.server.fake  # type: ignore[attr-defined]
        return fake

    def do_GET(self) -> None:
        self._record(None)
        if self.path == "/livez" or (self.path == "/readyz" and self.fake.ready):
            self._json(200, {"status": "ok"})
        elif self.path == "/readyz":
            self._problem(503, "The test says that this server is not ready.")
        elif self._authenticated():
            self._catalogue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            decoded = json.loads(body)
        except ValueError:
            self._problem(422, "The body is not JSON.")
            return
        request = self._record(decoded)
        fault = self.fake.fault_for(request)
        if (fault.delay_s and self.fake.closing.wait(fault.delay_s)) or fault.drop:
            self.close_connection = True
        elif fault.status_code is not None:
            self._problem(fault.status_code, "The test wants this to fail.", fault.headers, fault.problem)
        elif self._authenticated():
            self._judge(request, fault)

    def _judge(self, request: RecordedRequest, fault: Fault) -> None:
        if self.path == "/v1/verify":
            self._json(200, self._verdict(request.body, {}, fault).model_dump(mode="json"))
            return
        if self.path == "/v1/preflight":
            self._preflight(request)
            return
        if self.path not in ("/v1/verify/batch", "/v1/rows"):
            self._problem(404, f"This server has no {self.path}.")
            return
        defaults = request.body.get("defaults") or {}
        verdicts = (
            self._verdict(task, defaults, fault) for task in request.body.get("tasks", request.body.get("rows"))
        )
        if "application/x-ndjson" in self.headers.get("accept", ""):
            self._stream(verdicts, fault.break_after)
        else:
            self._json(200, {"verdicts": [verdict.model_dump(mode="json") for verdict in verdicts]})

    def _verdict(self, task: Any, defaults: dict[str, Any], fault: Fault) -> Verdict:
        from .testing import Failed

        if fault.status is not None:
            return Verdict.failed(fault.status, "as the test wants it")
        try:
            fields = _task_of_row(task) if isinstance(task, dict) and "row" in task else task
            checked = Task.model_validate({**defaults, **fields} if isinstance(fields, dict) else fields)
        except ValidationError as error:
            return Verdict.failed("invalid_task", str(error))
        try:
            verdict = self.fake.judge(checked)
        except Failed as failed:
            verdict = Verdict.failed(failed.status, failed.reason)
        return verdict.model_copy(update={"id": checked.id, "verifier": checked.verifier})

    def _preflight(self, request: RecordedRequest) -> None:
        """Everything is fine: this server knows no schemas."""
        count = len(request.body.get("tasks", [])) + len(request.body.get("rows", []))
        items = [{"index": index, "problem": None} for index in range(count)]
        self._json(200, {"summary": {"fine": count}, "items": items})

    def _stream(self, verdicts: Any, break_after: int | None) -> None:
        self._head(200, "application/x-ndjson", {"Transfer-Encoding": "chunked"})
        for index, verdict in enumerate(verdicts):
            if index == break_after:
                self.close_connection = True
                return
            line = StreamItem(index=index, verdict=verdict).model_dump_json().encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def _catalogue(self) -> None:
        name = self.path.removeprefix("/v1/verifiers/")
        found = [entry for entry in self.fake.verifiers if entry["name"] == name]
        if self.path == "/v1/verifiers":
            self._json(200, self.fake.verifiers)
        elif self.path == "/v1/recipes":
            self._json(200, self.fake.recipes)
        elif found:
            self._json(200, found[0])
        else:
            self._problem(404, f"This server has no {self.path}.")

    def _authenticated(self) -> bool:
        key = self.fake.api_key
        if key is None or self.headers.get("authorization") == f"Bearer {key}":
            return True
        self._problem(401, "The API key is missing or unknown.")
        return False

    def _record(self, body: Any) -> RecordedRequest:
        from .testing import RecordedRequest

        headers = {name.lower(): value for name, value in self.headers.items()}
        request = RecordedRequest(self.command, self.path, headers, body)
        self.fake.record(request)
        return request

    def _problem(
        self,
        status_code: int,
        detail: str,
        headers: dict[str, str] | None = None,
        members: dict[str, Any] | None = None,
    ) -> None:
        problem = {"type": "about:blank", "title": "Fake", "status": status_code, "detail": detail, **(members or {})}
        self._json(status_code, problem, PROBLEM, headers)

    def _json(
        self, status_code: int, value: Any, kind: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        body = json.dumps(value).encode()
        self._head(status_code, kind, {"Content-Length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def _head(self, status_code: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status_code)
        request_id = self.headers.get("x-request-id") or uuid.uuid4().hex
        for name, value in {"Content-Type": kind, "X-Request-Id": request_id, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests have their own output."""


def _task_of_row(item: dict[str, Any]) -> dict[str, Any]:
    """A task from the commonest layouts. The real server knows more of them."""
    row = item["row"]
    gold = next((row[key] for key in ("reference", "ground_truth", "solution", "answer") if key in row), None)
    return {"verifier": row.get("verifier", "fake"), "response": item.get("response", ""), "reference": gold}
