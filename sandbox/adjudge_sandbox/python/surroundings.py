"""What test code does to the world around the program: capture what it prints, feed what it reads.

``capsys``, ``redirect_stdout``, ``patch("builtins.input", ...)`` and ``monkeypatch.setattr("sys.stdin", ...)`` act on
the process that the test runs in, and the program is in another one. So before each call the program's ``input``,
``print`` and standard input are made what they are here, and after each call what it has printed is printed here. Only
test code that speaks of such things pays for it.
"""

from __future__ import annotations

import builtins
import io
import re
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["SURROUNDING", "Captured", "Surroundings", "concern"]

SURROUNDING = ("capture", "printed", "patch", "feed")
"""The requests that this makes."""

_SPEAKS_OF_IT = re.compile(
    r"\b(?:capsys|capfd|capsysbinary|redirect_stdout|redirect_stderr|sys\.std(?:in|out|err)|builtins\.(?:input|print)"
    r"|__builtins__|setattr\((?:sys|builtins))\b"
)
_PATCHED = ("input", "print")
_MAX_STDIN_CHARS = 16 << 20

Ask = Callable[..., Any]


def concern(*texts: str) -> bool:
    """Does this test code look at, or change, what the program reads and prints?"""
    return any(_SPEAKS_OF_IT.search(text) for text in texts)


class Surroundings:
    """Keeps the two processes alike. ``ask`` sends a request to the program's."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._own = {name: getattr(builtins, name) for name in _PATCHED}
        self._sent: dict[str, Any] = dict(self._own)
        self._stdin: Any = sys.stdin
        ask("capture")

    def before(self) -> None:
        """Let the program meet what the test has set up."""
        for name in _PATCHED:
            current = getattr(builtins, name)
            if current is not self._sent[name]:
                self._sent[name] = current
                self._ask("patch", name, None if current is self._own[name] else _as_function(current))
        if sys.stdin is not self._stdin:
            self._stdin = sys.stdin
            self._ask("feed", _text_of(self._stdin))

    def after(self) -> None:
        """Print what the program has printed."""
        out, err = self._ask("printed")
        for text, stream in ((out, sys.stdout), (err, sys.stderr)):
            if text:
                stream.write(text)


def _as_function(target: Any) -> Callable[..., Any]:
    """A function and nothing more: a mock itself could be told by the program what it has seen."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return call


def _text_of(stream: Any) -> str:
    try:
        text = stream.read(_MAX_STDIN_CHARS)
    except Exception:  # noqa: BLE001 - pytest's own stand-in refuses to be read
        return ""
    return text if isinstance(text, str) else bytes(text).decode("utf-8", "replace")


class Captured:
    """The program's side: its standard streams in memory."""

    def __init__(self) -> None:
        self._streams: list[tuple[io.BytesIO, io.TextIOWrapper]] = []
        self._own = {name: getattr(builtins, name) for name in _PATCHED}

    def capture(self) -> None:
        for name in ("stdout", "stderr"):
            content = io.BytesIO()
            stream = io.TextIOWrapper(content, "utf-8", "backslashreplace", write_through=True)
            self._streams.append((content, stream))
            setattr(sys, name, stream)

    def printed(self) -> list[str]:
        """What has been written to each since it was last asked."""
        texts = []
        for content, _ in self._streams:
            texts.append(content.getvalue().decode("utf-8", "replace"))
            content.seek(0)
            content.truncate()
        return texts

    def patch(self, name: str, value: Any) -> None:
        if name in self._own:
            setattr(builtins, name, self._own[name] if value is None else value)

    def feed(self, text: str) -> None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass")), "utf-8", "surrogatepass")
