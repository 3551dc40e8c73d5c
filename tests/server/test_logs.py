"""Logs: one line each, the same form for libraries, and never the text of an answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from adjudge_server import logs
from adjudge_server.settings import Settings


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_one_json_line_per_event_without_texts(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings(log_format="json"))
    log = logs.get_logger()
    with structlog.contextvars.bound_contextvars(request_id="r1"):
        log.info("request", route="/v1/verify", ms=1.5, response="SECRET", prompt="SECRET", reference={"a": "SECRET"})
    log.warning("odd\nname", text="SECRET", why="x" * 10_000, lone="\udc80", line="a\nb")
    log.debug("not shown")
    first, second = map(json.loads, lines(capsys))
    assert {key: first[key] for key in ("event", "route", "ms", "request_id", "level")} == {
        "event": "request",
        "route": "/v1/verify",
        "ms": 1.5,
        "request_id": "r1",
        "level": "info",
    }
    assert "SECRET" not in json.dumps([first, second])
    assert second["line"] == "a\nb"
    assert len(second["why"]) < 600


def test_libraries_log_in_the_same_form_and_uvicorn_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings(log_format="json", log_level="info"))
    logs.configure(Settings(log_format="json", log_level="info"))  # twice: no line may come twice
    logging.getLogger("uvicorn.access").info("GET /")
    logging.getLogger("uvicorn.error").info("Started")
    logging.getLogger("some.library").warning("value %d", 3)
    (line,) = map(json.loads, lines(capsys))
    assert (line["event"], line["logger"], line["level"]) == ("value 3", "some.library", "warning")


def test_exceptions_keep_their_traceback_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings(log_format="json"))
    try:
        raise ValueError("boom")
    except ValueError:
        logs.get_logger().exception("failed")
        logging.getLogger("library").exception("failed too")
    for line in map(json.loads, lines(capsys)):
        assert "ValueError: boom" in line["exception"]


def test_console_form_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings(log_format="console", log_level="debug"))
    logs.get_logger().debug("shown", answer="SECRET", code=200)
    (line,) = lines(capsys)
    assert "shown" in line
    assert "code=200" in line
    assert "SECRET" not in line
    assert "\x1b" not in line


def test_auto_is_json_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(Settings())
    logs.get_logger().info("event")
    assert json.loads(lines(capsys)[0])["event"] == "event"
