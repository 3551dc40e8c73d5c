"""What is retried, after which pause, and what a reply becomes as an exception: no input or output here."""

from __future__ import annotations

import email.utils
import json
import math
import time
from typing import Any

import pytest

from adjudge import errors
from adjudge._policy import Deadline, Reply, Retry, error_from_reply, headers_for
from adjudge.settings import Settings


def refused(status_code: int, headers: dict[str, str] | None = None, body: Any = None) -> errors.AdjudgeError:
    encoded = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    return error_from_reply(Reply(status_code, headers or {}, encoded))


@pytest.mark.parametrize(
    ("status_code", "kind"),
    [
        (400, errors.InvalidRequest),
        (401, errors.AuthenticationFailed),
        (403, errors.AuthenticationFailed),
        (404, errors.InvalidRequest),
        (413, errors.InvalidRequest),
        (418, errors.InvalidRequest),
        (422, errors.InvalidRequest),
        (429, errors.Overloaded),
        (500, errors.ServerError),
        (503, errors.ServerError),
        (302, errors.ProtocolError),
    ],
)
def test_class_follows_from_status(status_code: int, kind: type[errors.AdjudgeError]) -> None:
    assert type(refused(status_code)) is kind


def test_error_carries_the_problem() -> None:
    problem = {"type": "urn:x", "title": "Too many", "detail": "Send less.", "request_id": "abc", "retryable": False}
    error = refused(429, {"retry-after": "3"}, problem)
    assert isinstance(error, errors.Overloaded)
    assert "Send less." in str(error)
    assert (error.status_code, error.request_id, error.retry_after_s) == (429, "abc", 3.0)
    assert error.problem["type"] == "urn:x"


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[" * 9999, b"\xff\xfe", b"[1]", b'"x"', b"null"])
def test_bodies_of_others_are_no_crash(body: bytes) -> None:
    error = refused(502, {}, body)
    assert isinstance(error, errors.ServerError)
    assert len(str(error)) < 400


@pytest.mark.parametrize("status_code", [408, 409, 429, 500, 502, 503, 504, 599])
def test_retried(status_code: int) -> None:
    Retry(1, Deadline(60)).pause_s(refused(status_code))


@pytest.mark.parametrize("status_code", [400, 401, 403, 404, 405, 413, 415, 422])
def test_not_retried(status_code: int) -> None:
    error = refused(status_code)
    with pytest.raises(errors.StatusError) as caught:
        Retry(5, Deadline(60)).pause_s(error)
    assert caught.value is error


@pytest.mark.parametrize(
    ("headers", "problem", "expected"),
    [
        ({"x-should-retry": "false"}, {}, False),
        ({"x-should-retry": "true"}, {"retryable": False}, True),
        ({}, {"retryable": False}, False),
        ({}, {"retryable": "perhaps"}, True),
    ],
)
def test_the_server_has_the_last_word(headers: dict[str, str], problem: dict[str, Any], expected: bool) -> None:
    retry = Retry(1, Deadline(60))
    if expected:
        assert retry.pause_s(refused(503, headers, problem)) > 0
    else:
        with pytest.raises(errors.ServerError):
            retry.pause_s(refused(503, headers, problem))


def test_connection_errors_are_retried_and_protocol_errors_are_not() -> None:
    assert Retry(1, Deadline(60)).pause_s(errors.ConnectionFailed("gone")) > 0
    for error in (errors.ProtocolError("what?"), errors.ConfigurationError("no"), errors.DeadlineExceeded("late")):
        with pytest.raises(type(error)):
            Retry(1, Deadline(60)).pause_s(error)


def test_pause_doubles_up_to_8_s_less_a_quarter() -> None:
    retry = Retry(12, Deadline(math.inf))
    for tries in range(12):
        longest = min(0.5 * 2**tries, 8.0)
        assert 0.75 * longest <= retry.pause_s(errors.ConnectionFailed("gone")) <= longest
    with pytest.raises(errors.ConnectionFailed):
        retry.pause_s(errors.ConnectionFailed("gone"))


def test_global_randomness_is_left_alone() -> None:
    import random

    random.seed(1)
    state = random.getstate()
    Retry(1, Deadline(60)).pause_s(errors.ConnectionFailed("gone"))
    assert random.getstate() == state


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0"}, 0, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25, 0.25),
        ({"retry-after": "9999"}, 120, 120),
        ({"retry-after": "nonsense"}, 0.3, 0.5),
        ({"retry-after": "nan"}, 0.3, 0.5),
        ({"retry-after": "-3"}, 0.3, 0.5),
        ({"retry-after": "in 30 s"}, 5, 31),
        ({"retry-after": "in -30 s"}, 0, 0),
    ],
)
def test_retry_after(headers: dict[str, str], low: float, high: float) -> None:
    said = headers.get("retry-after", "")
    if said.startswith("in "):  # a date: counted from now, and not from when the tests were collected
        seconds = float(said.split()[1])
        headers = {"retry-after": email.utils.formatdate(time.time() + seconds, usegmt=True)}
    assert low <= Retry(1, Deadline(600)).pause_s(refused(429, headers)) <= high


def test_a_pause_beyond_the_deadline_ends_the_call() -> None:
    error = refused(429, {"retry-after": "60"})
    with pytest.raises(errors.DeadlineExceeded) as caught:
        Retry(5, Deadline(5)).pause_s(error)
    assert caught.value.__cause__ is error


def test_headers() -> None:
    with_key = headers_for(Settings(api_key="k"), "id1", 1.5, accept="application/json")
    assert with_key["authorization"] == "Bearer k"
    assert with_key["adjudge-deadline-s"] == "1.500"
    assert with_key["x-request-id"] == "id1"
    without = headers_for(Settings(), "id1", None, accept="application/json")
    assert not {"authorization", "adjudge-deadline-s"} & set(without)


def test_settings_come_from_the_environment() -> None:
    env = {
        "ADJUDGE_BASE_URL": "https://h:1/p/",
        "ADJUDGE_API_KEY": "k",
        "ADJUDGE_TIMEOUT_S": "2.5",
        "ADJUDGE_MAX_RETRIES": "0",
    }
    settings = Settings.resolve(environ=env)
    assert settings == Settings("https://h:1/p", "k", 2.5, 0)
    assert Settings.resolve(environ=env, timeout_s=9, max_retries=4, base_url="http://x").timeout_s == 9
    assert Settings.resolve(environ={}).base_url == "http://127.0.0.1:8080"
    assert "secret" not in repr(Settings(api_key="secret"))


@pytest.mark.parametrize(
    ("arguments", "env", "named"),
    [
        ({}, {"ADJUDGE_TIMEOUT_S": "soon"}, "ADJUDGE_TIMEOUT_S"),
        ({}, {"ADJUDGE_MAX_RETRIES": "2.5"}, "ADJUDGE_MAX_RETRIES"),
        ({"timeout_s": 0}, {}, "timeout_s"),
        ({"timeout_s": math.nan}, {}, "timeout_s"),
        ({"max_retries": -1}, {}, "max_retries"),
        ({"max_concurrency": 0}, {}, "max_concurrency"),
        ({"base_url": "localhost:8080"}, {}, "base_url"),
        ({"base_url": "http://"}, {}, "base_url"),
        ({"base_url": "http://h:x"}, {}, "base_url"),
        ({"base_url": "ftp://h"}, {}, "base_url"),
        ({"base_url": "http://h/?a=1"}, {}, "base_url"),
        ({"api_key": "a\nb"}, {}, "api_key"),
        ({"api_key": "ключ"}, {}, "api_key"),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, Any], env: dict[str, str], named: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=named):
        Settings.resolve(environ=env, **arguments)
