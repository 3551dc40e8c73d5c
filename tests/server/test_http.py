"""The HTTP API: bodies, errors, limits, streaming, keys, draining."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from adjudge_server.http.middleware import RequestContext
from adjudge_server.metrics import Metrics

RIGHT = {"verifier": "exact_match", "response": "yes", "reference": "yes"}
WRONG = {**RIGHT, "response": "no"}


def problem(reply: Any, status: int, slug: str) -> dict[str, Any]:
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = reply.json()
    assert body["type"] == f"urn:adjudge:{slug}"
    assert body["status"] == status
    assert body["request_id"] == reply.headers["x-request-id"]
    assert body["detail"]
    return body


def test_one_task(client: TestClient) -> None:
    reply = client.post("/v1/verify", json={**RIGHT, "id": "a"})
    assert reply.status_code == 200
    verdict = reply.json()
    assert (verdict["id"], verdict["status"], verdict["reward"], verdict["correct"]) == ("a", "ok", 1.0, True)
    assert set(verdict) == {
        *("id", "status", "reward", "correct", "category", "parts", "flags", "extracted", "reason", "evidence"),
        *("verifier", "version", "cached", "isolation", "trust", "timing"),
    }


def test_a_batch_keeps_its_order_and_its_good_tasks(client: TestClient) -> None:
    tasks = [RIGHT, {"response": 5}, "nonsense", WRONG, {**RIGHT, "verifier": "exactmatch", "id": 7}, {**RIGHT, "x": 1}]
    verdicts = client.post("/v1/verify/batch", json={"tasks": tasks}).json()["verdicts"]
    assert [verdict["status"] for verdict in verdicts] == ["ok", *["invalid_task"] * 2, "ok", *["invalid_task"] * 2]
    assert [verdict["reward"] for verdict in verdicts] == [1.0, None, None, 0.0, None, None]
    assert verdicts[4]["id"] == 7
    assert "exact_match" in verdicts[4]["reason"]
    assert "'x'" in verdicts[5]["reason"]


def test_defaults_fill_what_tasks_leave_out(client: TestClient) -> None:
    body = {
        "defaults": {"verifier": "exact_match", "reference": "YES", "options": {"ignore_case": True}},
        "tasks": [{"response": "yes"}, {"response": "yes", "options": {"ignore_case": False}}, {"response": "no"}],
    }
    verdicts = client.post("/v1/verify/batch", json=body).json()["verdicts"]
    assert [verdict["reward"] for verdict in verdicts] == [1.0, 0.0, 0.0]


def test_streaming_brings_every_index_once(client: TestClient) -> None:
    tasks = [RIGHT, {"response": 5}] * 20 + [{"verifier": "test_cpu", "response": str(i)} for i in range(20)]
    reply = client.post("/v1/verify/batch", json={"tasks": tasks}, headers={"Accept": "application/x-ndjson"})
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert sorted(line["index"] for line in lines) == list(range(60))
    assert {line["verdict"]["status"] for line in lines} == {"ok", "invalid_task"}


def test_empty_batches_are_fine(client: TestClient) -> None:
    assert client.post("/v1/verify/batch", json={"tasks": []}).json() == {"verdicts": []}
    streamed = client.post("/v1/verify/batch", json={"tasks": []}, headers={"Accept": "application/x-ndjson"})
    assert streamed.text == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"response": NaN}',
        b'{"response": Infinity}',
        b'{"response": "\\ud800"}',
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"[" * 100_000,
        b'{"response": "\xff\xfe"}',
        b'{"reference": ' + b"9" * 5000 + b"}",
    ],
)
@pytest.mark.parametrize("path", ["/v1/verify", "/v1/verify/batch", "/v1/rows", "/v1/preflight", "/compat/slime"])
def test_what_is_not_json_is_a_400(client: TestClient, path: str, body: bytes) -> None:
    url = f"{path}?verifier=exact_match" if path.startswith("/compat") else path
    reply = client.post(url, content=body, headers={"Content-Type": "application/json"})
    problem(reply, 400, "invalid-json")


@pytest.mark.parametrize(
    "value", ["a\u0000b", "\U0010ffff", "9" * 4000, 10**400, -(10**400), 1e308, [[[[[]]]]], {"": {}}]
)
def test_odd_values_get_a_verdict(client: TestClient, value: Any) -> None:
    for name in ("exact_match", "numeric", "math", "multiple_choice"):
        for task in ({"reference": value, "response": "1"}, {"reference": "1", "response": str(value)[:4000]}):
            reply = client.post("/v1/verify", json={"verifier": name, **task})
            assert reply.status_code == 200, reply.text
            assert reply.json()["status"] in ("ok", "invalid_task", "verifier_timeout")


def test_wrong_shapes_say_what_to_change(client: TestClient) -> None:
    assert "response" in problem(client.post("/v1/verify", json={}), 422, "invalid-request")["detail"]
    assert (
        "verifer"
        in problem(client.post("/v1/verify", json={**RIGHT, "verifer": "m"}), 422, "invalid-request")["detail"]
    )
    problem(client.post("/v1/verify", json=[RIGHT]), 422, "invalid-request")
    problem(client.post("/v1/verify/batch", json={"tasks": {}}), 422, "invalid-request")
    problem(client.post("/v1/verify/batch", json=[RIGHT]), 422, "invalid-request")
    problem(client.post("/v1/rows", json={"rows": [], "format": "verll"}), 422, "invalid-request")


def test_other_media_types_are_refused(client: TestClient) -> None:
    reply = client.post("/v1/verify", content=b"a=1", headers={"Content-Type": "application/x-www-form-urlencoded"})
    problem(reply, 415, "unsupported-media-type")


def test_paths_and_methods(client: TestClient) -> None:
    problem(client.get("/v1/verifyy"), 404, "not-found")
    problem(client.get("/v1/verify"), 405, "method-not-allowed")
    assert "'math'" in problem(client.get("/v1/verifiers/maths"), 404, "not-found")["detail"]


def test_limits_are_named(make_app: Callable[..., Any]) -> None:
    app = make_app(limits={"max_body_mib": 1, "max_tasks": 3, "max_response_chars": 100})
    with TestClient(app, raise_server_exceptions=False) as client:
        big = json.dumps({**RIGHT, "response": "y" * (2 << 20)}).encode()
        assert "max_body_mib" in problem(client.post("/v1/verify", content=big), 413, "body-too-large")["detail"]

        def pieces() -> Iterator[bytes]:
            for start in range(0, len(big), 65536):
                yield big[start : start + 65536]

        reply = client.post("/v1/verify", content=pieces(), headers={"Content-Type": "application/json"})
        problem(reply, 413, "body-too-large")
        assert (
            "max_tasks"
            in problem(client.post("/v1/verify/batch", json={"tasks": [RIGHT] * 4}), 422, "too-many-tasks")["detail"]
        )
        long = client.post("/v1/verify", json={**RIGHT, "response": "y" * 101})
        assert "max_response_chars" in problem(long, 422, "response-too-long")["detail"]


def test_request_ids(client: TestClient) -> None:
    assert client.get("/livez", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert client.get("/livez", headers={"X-Request-Id": "bad id;"}).headers["x-request-id"].startswith("req_")


def test_keys(make_app: Callable[..., Any]) -> None:
    with TestClient(make_app(api_keys=["alice=s3cret", "other"]), raise_server_exceptions=False) as client:
        assert problem(client.post("/v1/verify", json=RIGHT), 401, "unauthenticated")
        assert client.post("/v1/verify", json=RIGHT, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.post("/v1/verify?key=s3cret", json=RIGHT).status_code == 401, "URL keys are for /compat only"
        for key in ("s3cret", "other"):
            assert (
                client.post("/v1/verify", json=RIGHT, headers={"Authorization": f"Bearer {key}"}).json()["reward"] == 1
            )
        sample = {"response": "yes", "label": "yes"}
        assert client.post("/compat/slime?verifier=exact_match&key=s3cret", json=sample).json() == 1.0
        assert client.post("/compat/slime?verifier=exact_match&key=x", json=sample).status_code == 401
        assert client.get("/livez").status_code == client.get("/readyz").status_code == 200


def test_draining(make_app: Callable[..., Any]) -> None:
    with TestClient(make_app(), raise_server_exceptions=False) as client:
        client.app.state.engine.draining = True  # type: ignore[attr-defined]
        check_draining(client)


def check_draining(client: TestClient) -> None:
    reply = client.post("/v1/verify", json=RIGHT)
    assert problem(reply, 503, "draining")["retryable"]
    assert reply.headers["retry-after"]
    assert client.get("/readyz").status_code == 503
    assert client.get("/livez").status_code == 200


def test_overload_is_a_429(make_app: Callable[..., Any]) -> None:
    import concurrent.futures

    slow = {"verifier": "test_sandbox", "options": {"seconds": 0.4}}
    with TestClient(make_app(lanes={"sandbox_slots": 1, "sandbox_queue": 1}), raise_server_exceptions=False) as client:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda n: client.post("/v1/verify", json={**slow, "response": str(n)}), range(6)))
        refused = [reply for reply in replies if reply.status_code != 200]
        assert refused
        for reply in refused:
            assert problem(reply, 429, "overloaded")["retryable"]
            assert reply.headers["retry-after"]


def test_deadline_header(client: TestClient) -> None:
    slow = {"verifier": "test_sandbox", "response": "x", "options": {"seconds": 9}, "timeout_s": 60}
    reply = client.post("/v1/verify", json=slow, headers={"Adjudge-Deadline-S": "0.2"})
    assert reply.json()["status"] == "cancelled"
    problem(client.post("/v1/verify", json=slow, headers={"Adjudge-Deadline-S": "soon"}), 422, "invalid-request")


def test_catalogue(client: TestClient) -> None:
    cards = {card["name"]: card for card in client.get("/v1/verifiers").json()}
    assert {"exact_match", "numeric", "multiple_choice", "math", "format", "length", "code"} <= set(cards)
    for card in cards.values():
        assert card["description"]
        assert card["options_schema"]["type"] == "object"
        if not card["name"].startswith("test_"):
            assert card["examples"], card["name"]
    assert client.get("/v1/verifiers/math").json() == cards["math"]
    assert client.get("/v1/recipes").json() == {}


def test_metrics(client: TestClient) -> None:
    client.post("/v1/verify", json=RIGHT)
    client.post("/v1/verify", json={**RIGHT, "verifier": "secret-name-of-mine"})
    text = client.get("/metrics").text
    assert re.search(r'adjudge_requests_total\{outcome="correct",verifier="exact_match"\} [1-9]', text)
    assert re.search(r'adjudge_failures_total\{kind="invalid_task",verifier="unknown"\} [1-9]', text)
    assert 'adjudge_queue_depth{lane="cpu"}' in text
    assert "secret-name-of-mine" not in text


def test_preflight(client: TestClient) -> None:
    body = {
        "tasks": [
            {"verifier": "math", "reference": "1/2", "id": "fine"},
            {"verifier": "exact_match", "reference": "yes", "response": "no", "id": "gold"},
            {"verifier": "multiple_choice", "reference": {"answer": "Z", "options": ["a", "b"]}, "id": "unusable"},
            {"verifier": "length", "id": "unknown"},
        ]
    }
    reply = client.post("/v1/preflight", json=body)
    assert reply.status_code == 200, reply.text
    problems = {item["id"]: item["problem"] for item in reply.json()["items"]}
    assert problems["fine"] is None
    assert problems["gold"] == "gold_not_rewarded"
    assert problems["unusable"] == "reference_unusable"
    assert reply.json()["summary"]["fine"] == 1


def test_rows(client: TestClient) -> None:
    row = {"data_source": "openai/gsm8k", "prompt": [], "reward_model": {"style": "rule", "ground_truth": "18"}}
    body = {
        "rows": [
            {"row": row, "response": "so it is\n#### 18", "id": 1},
            {"row": row, "response": "so it is\n#### 19"},
            {"row": {**row, "data_source": "nobody/knows"}, "response": "18"},
            {"row": {"strange": True}, "response": "18"},
            5,
        ]
    }
    verdicts = client.post("/v1/rows", json=body).json()["verdicts"]
    assert [verdict["status"] for verdict in verdicts] == ["ok", "ok", *["invalid_task"] * 3]
    assert [verdict["reward"] for verdict in verdicts] == [1.0, 0.0, None, None, None]
    assert verdicts[0]["id"] == 1


def test_rows_may_name_their_judge(client: TestClient) -> None:
    row = {"data_source": "nobody/knows", "reward_model": {"ground_truth": "yes"}}
    body = {"rows": [{"row": row, "response": "yes"}], "defaults": {"verifier": "exact_match"}}
    assert client.post("/v1/rows", json=body).json()["verdicts"][0]["reward"] == 1.0


@pytest.mark.parametrize("stream", [False, True])
def test_work_ends_when_the_client_goes(live_server: str, stream: bool) -> None:
    """A program that sleeps holds its slot no longer than somebody waits for it."""
    sleeper = "```python\nimport time\ntime.sleep(60)\n```"
    reference = {"tests": [{"stdin": "", "stdout": "x"}]}
    code = {"verifier": "code", "reference": reference, "options": {"cpu_s": 30}}
    tasks = [{**code, "response": sleeper.replace("60", str(60 + n))} for n in range(6)]
    headers = {"Accept": "application/x-ndjson"} if stream else {}
    with httpx2.Client(base_url=live_server, timeout=0.7) as client, pytest.raises(httpx2.ReadTimeout):
        client.post("/v1/verify/batch", json={"tasks": tasks}, headers=headers)
    for _ in range(100):
        if 'adjudge_inflight{lane="sandbox"} 0.0' in httpx2.get(f"{live_server}/metrics").text:
            return
        time.sleep(0.1)
    pytest.fail("the slots are still held")


def test_openapi_names_every_body(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method == "post":
                content = operation["requestBody"]["content"]["application/json"]["schema"]
                assert content["$ref"].rsplit("/", 1)[1] in schemas, path
            assert "default" in operation["responses"]


async def test_a_client_that_goes_while_it_sends_is_no_bug() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    metrics, sent = Metrics(), []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/verify", "headers": [], "query_string": b""}
    await RequestContext(app, metrics, lambda: False)(scope, receive, send)
    assert sent == []
    assert b'"499"' in metrics.render()
