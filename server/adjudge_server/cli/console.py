"""Where output goes: results to stdout, everything about the work to stderr, tables no wider than the terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

__all__ = ["Progress", "console", "print_json", "progress", "table"]

_PIPE_WIDTH = 160


def console(*, stderr: bool = False) -> Console:
    """A console for stdout or stderr as it is now."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table with ``columns``, those in ``right`` aligned to the right."""
    made = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def print_json(value: Any, *, stderr: bool = False) -> None:
    """``value`` as indented JSON."""
    print(json.dumps(value, indent=2, default=str), file=sys.stderr if stderr else sys.stdout)


class Progress(Protocol):
    """Told about every piece of work that is done."""

    def __call__(self, done: int, note: str) -> None: ...


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Progress]:
    """A bar on a terminal, one line per second elsewhere; on stderr."""
    if sys.stderr.isatty():
        with _bar(what, total) as bar:
            yield bar
    else:
        yield _Lines(what, total)


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with RichProgress(*columns, TimeRemainingColumn(), console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


class _Lines:
    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._of = "" if total is None else f"/{total}"
        self._next = time.monotonic() + 1.0

    def __call__(self, done: int, note: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0
            print(f"{self._what}: {done}{self._of} {note}".rstrip(), file=sys.stderr, flush=True)
