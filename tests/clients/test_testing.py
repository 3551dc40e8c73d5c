"""``FakeServer`` keeps to the wire contract, by a client that is not ours."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from adjudge import BatchReply, StreamItem, Verdict
from adjudge.testing import Failed, FakeServer


def post(server: FakeServer, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent = {"content-type": "application/json", **headers}
    request = urllib.request.Request(server.base_url + path, body, sent)
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def batch(*tasks: Any, **rest: Any) -> bytes:
    return json.dumps({"tasks": tasks, **rest}).encode()


def test_replies() -> None:
    with FakeServer() as server:
        status, headers, body = post(server, "/v1/verify", b'{"response": " 4", "reference": "4"}')
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert Verdict.model_validate_json(body).reward == 1.0
        tasks = [{"response": "4", "reference": "4"}, {"wrong": 1}, 3]
        reply = BatchReply.model_validate_json(post(server, "/v1/verify/batch", batch(*tasks))[2])
        assert [verdict.status for verdict in reply.verdicts] == ["ok", "invalid_task", "invalid_task"]
        _, headers, lines = post(server, "/v1/verify/batch", batch(*tasks), accept="application/x-ndjson")
        assert headers["Content-Type"] == "application/x-ndjson"
        items = [StreamItem.model_validate_json(line) for line in lines.splitlines()]
        assert [item.index for item in items] == [0, 1, 2]


def test_problems() -> None:
    with FakeServer(api_key="k") as server:
        server.fail_next(429, retry_after_s=3)
        status, headers, body = post(server, "/v1/verify", b'{"response": "4"}')
        assert (status, headers["Retry-After"], headers["Content-Type"]) == (429, "3", "application/problem+json")
        assert json.loads(body)["status"] == 429
        assert post(server, "/v1/verify", b'{"response": "4"}')[0] == 401
        assert post(server, "/v1/verify", b'{"response": "4"}', authorization="Bearer k")[0] == 200
        assert post(server, "/v1/verify", b"{")[0] == 422
        assert post(server, "/v2/verify", b"{}", authorization="Bearer k")[0] == 404


def test_the_function_of_the_test_decides() -> None:
    def judge(task: Any) -> Verdict:
        if task.text == "lost":
            raise Failed("unavailable", "gone fishing")
        return Verdict.scored(0.25, "partial")

    with FakeServer(judge) as server:
        tasks = [{"response": "lost", "id": 7}, {"response": [{"role": "assistant", "content": "x"}]}]
        verdicts = json.loads(post(server, "/v1/verify/batch", batch(*tasks, defaults={"verifier": "v"}))[2])[
            "verdicts"
        ]
        assert [verdict["reward"] for verdict in verdicts] == [None, 0.25]
        assert (verdicts[0]["id"], verdicts[0]["verifier"], verdicts[0]["reason"]) == (7, "v", "gone fishing")
        assert [request.path for request in server.requests] == ["/v1/verify/batch"]
        assert server.judged == tasks


def test_closing_twice_and_while_a_request_waits() -> None:
    import threading

    server = FakeServer()
    server.delay_next(60)

    def lost() -> None:
        with pytest.raises((OSError, urllib.error.URLError)):
            post(server, "/v1/verify", b'{"response": "4"}')

    waiting = threading.Thread(target=lost)
    waiting.start()
    while not server.requests:
        threading.Event().wait(0.01)
    server.close()
    server.close()
    waiting.join(20)
    assert not waiting.is_alive()
