"""Logs: one line per request, for people on a terminal and as JSON for machines, without the text of answers.

Everything goes to stderr, that of uvicorn and other libraries too. Whatever a caller passes, a key that could hold
an answer, a prompt, a reference or a secret is dropped, and a long value is cut: the rule holds for the call that
someone adds next year.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from .settings import Settings

__all__ = ["configure", "get_logger"]

_DROPPED = frozenset(
    {
        "answer", "api_key", "authorization", "body", "completion", "content", "expected", "extracted",
        "ground_truth", "input", "messages", "output", "password", "program", "prompt", "reference", "response",
        "responses", "row", "secret", "stderr", "stdin", "stdout", "task", "tasks", "text", "token",
    }
)  # fmt: skip
_MAX_CHARS = 500

EventDict = MutableMapping[str, Any]


def get_logger(name: str = "adjudge") -> structlog.typing.FilteringBoundLogger:
    """A logger: ``log.info("request", route="/v1/verify", code=200, ms=1.2)``. Works before :func:`configure` too."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(component=name)
    return logger


def configure(settings: Settings) -> None:
    """Set up structlog and the standard library's logging for this process."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    as_json = settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *_shared(),
            structlog.processors.format_exc_info,
            _renderer(as_json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    _configure_standard_logging(level, as_json)


def _shared() -> list[structlog.typing.Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_texts,
    ]


def _configure_standard_logging(level: int, as_json: bool) -> None:
    """Give the lines of libraries the same form."""
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_shared(), structlog.processors.format_exc_info],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(as_json)],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old.formatter, structlog.stdlib.ProcessorFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(level if level < logging.INFO else max(level, logging.WARNING))
    logging.getLogger("uvicorn.access").disabled = True


def _renderer(as_json: bool) -> structlog.typing.Processor:
    if as_json:
        return structlog.processors.JSONRenderer(default=repr, sort_keys=False)
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())


def _without_texts(logger: Any, method: str, event: EventDict) -> EventDict:
    for key in [key for key in event if key in _DROPPED]:
        del event[key]
    for key, value in event.items():
        if isinstance(value, str) and len(value) > _MAX_CHARS and key not in ("exception", "exc_info"):
            event[key] = value[:_MAX_CHARS] + "…"
    return event
