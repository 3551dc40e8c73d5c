"""Both clients against a real little server: verdicts, retries, broken streams, deadlines.

Every call of the asynchronous client runs in an event loop of its own, as some trainers do it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge import AsyncClient, Client, Task, Verdict, errors
from adjudge.testing import Failed, FakeServer, Fault, compare_text


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge._policy.FIRST_PAUSE_S", 0.01)


class Asking:
    """One of the clients behind the same blocking face; iterators become lists."""

    def __init__(self, kind: type, base_url: str) -> None:
        self.kind, self.base_url = kind, base_url

    def __call__(self, method: str, *args: Any, client_options: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        client = self.kind(base_url=self.base_url, **(client_options or {}))
        if self.kind is Client:
            with client:
                result = getattr(client, method)(*args, **kwargs)
                return list(result) if inspect.isgenerator(result) else result

        async def once() -> Any:
            async with client:
                result = getattr(client, method)(*args, **kwargs)
                return [item async for item in result] if inspect.isasyncgen(result) else await result

        return asyncio.run(once())


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


@pytest.fixture(params=[Client, AsyncClient], ids=["blocking", "async"])
def ask(request: pytest.FixtureRequest, server: FakeServer) -> Asking:
    return Asking(request.param, server.base_url)


def tasks(number: int) -> list[dict[str, Any]]:
    return [{"id": i, "response": str(i % 3), "reference": "1"} for i in range(number)]


def right(number: int) -> list[float]:
    return [1.0 if i % 3 == 1 else 0.0 for i in range(number)]


def test_verify_by_fields_by_task_and_by_both(ask: Asking, server: FakeServer) -> None:
    assert ask("verify", verifier="fake", response="4", reference="4").reward == 1.0
    assert ask("verify", Task(verifier="fake", response="5", reference="4")).category == "wrong_answer"
    assert ask("verify", {"response": "5", "reference": "4"}, response="4", id="x").id == "x"
    assert server.requests[0].body == {"verifier": "fake", "response": "4", "reference": "4"}


def test_verify_many_gives_each_index_once(ask: Asking, server: FakeServer) -> None:
    found = ask("verify_many", iter(tasks(100)), batch_size=7, defaults={"verifier": "fake"})
    assert sorted(index for index, _ in found) == list(range(100))
    assert all(verdict.id == index and verdict.verifier == "fake" for index, verdict in found)
    assert len(server.requests) == 15


def test_order_on_request(ask: Asking) -> None:
    found = ask("verify_many", tasks(50), batch_size=3, ordered=True)
    assert [index for index, _ in found] == list(range(50))
    assert ask("rewards", tasks(50), batch_size=3) == right(50)
    assert [verdict.id for verdict in ask("verdicts", tasks(5))] == list(range(5))


def test_nothing_to_do(ask: Asking, server: FakeServer) -> None:
    assert ask("verify_many", []) == ask("rewards", []) == []
    assert server.requests == []


def test_rows(ask: Asking, server: FakeServer) -> None:
    rows = [({"ground_truth": "4"}, "4"), {"row": {"answer": "4"}, "response": "5", "id": 1}]
    verdicts = dict(ask("verify_rows", rows, format="verl", defaults={"metadata": {"run": 1}}))
    assert [verdicts[0].reward, verdicts[1].reward] == [1.0, 0.0]
    assert server.requests[0].body["format"] == "verl"
    assert server.requests[0].body["defaults"] == {"metadata": {"run": 1}}
    with pytest.raises(TypeError, match="pair"):
        ask("verify_rows", ["4"])


def test_a_bad_task_spoils_only_itself(ask: Asking, server: FakeServer) -> None:
    mixed = [*tasks(2), {"id": "nan", "response": "1", "reference": float("nan")}, {"nonsense": 1}]
    verdicts = ask("verdicts", mixed)
    assert [verdict.status for verdict in verdicts] == ["ok", "ok", "invalid_task", "invalid_task"]
    assert verdicts[2].id == "nan"
    assert len(server.judged) == 3, "what cannot be said in JSON is not sent"


def test_catalogue_and_readiness(ask: Asking, server: FakeServer) -> None:
    assert ask("verifiers")[0]["name"] == "fake"
    assert ask("verifier", "fake")["lane"] == "inline"
    assert ask("recipes") == {}
    assert ask("preflight", tasks(2), rows=[{"answer": "4"}])["summary"] == {"fine": 3}
    with pytest.raises(errors.ConfigurationError):
        ask("preflight", [{"reference": float("nan")}])
    with pytest.raises(errors.InvalidRequest) as caught:
        ask("verifier", "nothing")
    assert caught.value.status_code == 404
    for name in ("", "../readyz", "a b", "ü"):
        with pytest.raises(errors.ConfigurationError):
            ask("verifier", name)
    assert ask("ready") is True
    server.ready = False
    assert ask("ready") is False
    threading.Timer(0.3, setattr, (server, "ready", True)).start()
    assert ask("ready", wait_s=30) is True


def test_no_server(ask: Asking, server: FakeServer) -> None:
    server.close()
    with pytest.raises(errors.ConnectionFailed, match="adjudge serve"):
        ask("verify", response="4", client_options={"max_retries": 0})
    assert ask("ready") is False


@pytest.mark.parametrize("status_code", [408, 409, 429, 500, 503])
def test_refusals_are_tried_again(ask: Asking, server: FakeServer, status_code: int) -> None:
    server.fail_next(status_code, times=2, retry_after_s=0)
    assert ask("verify", response="4", reference="4").reward == 1.0
    server.fail_next(status_code, times=2, retry_after_s=0)
    assert ask("rewards", tasks(3)) == right(3)
    assert len(server.requests) == 6
    assert len({request.headers["x-request-id"] for request in server.requests[:3]}) == 1


def test_tries_are_limited(ask: Asking, server: FakeServer) -> None:
    server.fail_next(503, times=9, retry_after_s=0)
    with pytest.raises(errors.ServerError) as caught:
        ask("rewards", tasks(3), client_options={"max_retries": 3})
    assert len(server.requests) == 4
    assert caught.value.retryable
    assert caught.value.request_id


def test_no_try_when_the_server_says_so(ask: Asking, server: FakeServer) -> None:
    server.fail_next(503, x_should_retry="false")
    with pytest.raises(errors.ServerError):
        ask("verify", response="4")
    assert len(server.requests) == 1


def test_wrong_key(ask: Asking, server: FakeServer) -> None:
    server.api_key = "secret"
    with pytest.raises(errors.AuthenticationFailed):
        ask("rewards", tasks(3))
    assert ask("rewards", tasks(3), client_options={"api_key": "secret"}) == right(3)


def test_a_broken_stream_costs_only_the_rest(ask: Asking, server: FakeServer) -> None:
    server.break_next(4)
    server.break_next(0)
    assert ask("rewards", tasks(10)) == right(10)
    sent = [[task["id"] for task in request.tasks] for request in server.requests]
    assert sent == [list(range(10)), list(range(4, 10)), list(range(4, 10))]


def test_progress_starts_the_count_of_tries_anew(ask: Asking, server: FakeServer) -> None:
    server.break_next(1, times=4)
    assert ask("rewards", tasks(6), client_options={"max_retries": 1}) == right(6)
    assert len(server.judged) == 6 + 5 + 4 + 3 + 2


def test_a_dropped_connection_is_tried_again(ask: Asking, server: FakeServer) -> None:
    server.drop_next(2)
    assert ask("verify", response="4", reference="4").reward == 1.0


def until_error(items: Iterator[tuple[int, Verdict]]) -> tuple[list[int], errors.AdjudgeError | None]:
    found: list[int] = []
    try:
        for index, _ in items:
            found.append(index)
    except errors.AdjudgeError as error:
        return found, error
    return found, None


def test_what_was_found_before_the_error_is_not_lost(server: FakeServer) -> None:
    server.break_next(4)
    server.fail_next(400)
    with Client(base_url=server.base_url) as client:
        found, error = until_error(client.verify_many(tasks(10)))
    assert isinstance(error, errors.InvalidRequest)
    assert found == [0, 1, 2, 3]


def test_one_batch_fails_and_those_in_flight_are_finished(server: FakeServer) -> None:
    server.fail_next(400)
    with Client(base_url=server.base_url, max_concurrency=2) as client:
        found, error = until_error(client.verify_many(tasks(40), batch_size=4))
    assert isinstance(error, errors.InvalidRequest)
    assert len(found) == 4 * (len(server.requests) - 1)


def test_failed_verdicts_are_asked_for_again(ask: Asking, server: FakeServer) -> None:
    tries: dict[Any, int] = {}

    def judge(task: Task) -> Verdict:
        tries[task.id] = tries.get(task.id, 0) + 1
        if task.id == 1 and tries[task.id] < 3:
            raise Failed("overloaded")
        if task.id == 2:
            raise Failed("verifier_error")
        return compare_text(task)

    server.judge = judge
    verdicts = ask("verdicts", tasks(4))
    assert [verdict.status for verdict in verdicts] == ["ok", "ok", "verifier_error", "ok"]
    assert tries == {0: 1, 1: 3, 2: 1, 3: 1}
    tries.clear()
    assert ask("verify", id=1, response="1", reference="1").reward == 1.0
    assert tries == {1: 3}


def test_a_failed_verdict_is_better_than_none(ask: Asking, server: FakeServer) -> None:
    server.queue(Fault(status="unavailable"), times=100)
    options = {"max_retries": 1}
    assert [verdict.status for verdict in ask("verdicts", tasks(2), client_options=options)] == ["unavailable"] * 2
    assert ask("verify", response="1", client_options=options).status == "unavailable"
    assert len(server.requests) == 4
    assert ask("verify", response="1", client_options={"retry_failed": False}).status == "unavailable"
    assert ask("rewards", tasks(2), client_options={"retry_failed": False}) == [None, None]
    assert len(server.requests) == 6
    short = {"timeout_s": 0.4, "max_retries": 9}
    assert ask("verify", response="1", client_options=short).status == "unavailable"
    assert ask("rewards", tasks(2), client_options=short) == [None, None]


def test_too_large_requests_are_halved(ask: Asking, server: FakeServer) -> None:
    server.fail_next(413, times=2)
    assert ask("rewards", tasks(8)) == right(8)
    assert [len(request.tasks) for request in server.requests] == [8, 4, 2, 2, 2, 2]
    server.fail_next(413, times=1)
    assert ask("verdicts", tasks(1))[0].status == "invalid_task"


def test_a_task_that_the_server_cannot_parse_spoils_only_itself(ask: Asking, server: FakeServer) -> None:
    refuse = Fault(400, problem={"type": "urn:adjudge:invalid-json"})
    server.queue_if(lambda request: any(task["id"] == 5 for task in request.tasks), refuse)
    statuses = [verdict.status for verdict in ask("verdicts", tasks(32))]
    assert statuses == ["invalid_task" if i == 5 else "ok" for i in range(32)]
    assert len(server.requests) < 16


def test_deadline(ask: Asking, server: FakeServer) -> None:
    for call in (("verify", {"response": "1"}), ("rewards", tasks(2)), ("verifiers",)):
        server.delay_next(30)
        if call == ("verifiers",):
            server.fail_next(500)
            continue
        started = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded, match="timeout_s"):
            ask(*call, client_options={"timeout_s": 0.3})
        assert time.monotonic() - started < 20
    assert 0 < float(server.requests[0].headers["adjudge-deadline-s"]) <= 0.3


def test_deadline_in_the_middle_of_a_stream(ask: Asking, server: FakeServer) -> None:
    def judge(task: Task) -> Verdict:
        if task.id == 3:
            server.closing.wait(30)
        return compare_text(task)

    server.judge = judge
    with pytest.raises(errors.DeadlineExceeded):
        ask("rewards", tasks(6), client_options={"timeout_s": 0.5})


def test_no_deadline(ask: Asking, server: FakeServer) -> None:
    assert ask("rewards", tasks(2), client_options={"timeout_s": float("inf")}) == right(2)
    assert "adjudge-deadline-s" not in server.requests[0].headers


def test_another_kind_of_server(ask: Asking, server: FakeServer) -> None:
    with pytest.raises(errors.InvalidRequest):
        Asking(ask.kind, server.base_url + "/elsewhere")("rewards", tasks(2))


def test_errors_of_the_callers_own_generator_come_through(ask: Asking) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from tasks(3)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ask("verify_many", broken(), batch_size=2)


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"status":"ok","reward":null}', b'{"verdicts": 1', b"\xff"])
def test_replies_that_are_not_ours(body: bytes) -> None:
    import httpx2

    def handler(request: httpx2.Request) -> httpx2.Response:
        kind = request.headers["accept"] if request.url.host == "x" else "text/html"
        return httpx2.Response(200, content=body + b"\n", headers={"content-type": kind})

    for base_url in ("http://x", "http://proxy"):
        with Client(base_url=base_url, transport=httpx2.MockTransport(handler), max_retries=0) as client:
            with pytest.raises(errors.ProtocolError):
                client.verify(response="1")
            with pytest.raises(errors.ProtocolError if body or base_url != "http://x" else errors.ConnectionFailed):
                client.rewards(tasks(1))
            if body != b"[]":
                with pytest.raises(errors.ProtocolError):
                    client.verifiers()


@pytest.mark.parametrize("index", [-1, 1, "x"])
def test_verdicts_for_tasks_that_were_not_sent(index: Any) -> None:
    import json

    import httpx2

    line = json.dumps({"index": index, "verdict": compare_text(Task(response="1")).model_dump()}).encode() + b"\n"

    def handler(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=line, headers={"content-type": "application/x-ndjson"})

    client = Client(base_url="http://x", transport=httpx2.MockTransport(handler))
    with client, pytest.raises(errors.ProtocolError):
        client.rewards(tasks(1))
