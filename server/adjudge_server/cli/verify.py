"""``adjudge verify``: judge the lines of files, write the verdicts, and say how it went.

The exit code is for scripts: 0 if every line got what it expects (an ``ok`` verdict, unless the line says otherwise), 1
if one did not, 2 if the command was used wrongly.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, ConfigFile, Setting, Url, load
from .problems import UsageProblem

if TYPE_CHECKING:
    from adjudge.types import Verdict

    from .lines import Item
    from .summary import Summary

__all__ = ["verify"]

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="JSONL files (`.gz` too), or `-` for stdin.")]


def verify(
    files: Files,
    url: Url = None,
    api_key: Annotated[str | None, typer.Option(help="Key for --url. Default: $ADJUDGE_API_KEY.")] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="Write the verdicts as JSONL to this file, or to stdout with `-`. Default: `-` if stdout is not a "
            "terminal and --json is not given.",
            show_default=False,
        ),
    ] = None,
    verifier: Annotated[str | None, typer.Option(help="Verifier of tasks that name none.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe of tasks that name none.")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="Lines are rows of a data set in this format; `auto` looks.")
    ] = None,
    config: ConfigFile = None,
    set_: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Judge the answers in JSONL files and print a table of the verdicts.

    A line is a task, `{"task": {...}}`, or `{"row": {...}, "response": "..."}` with a data set's row as it is. Beside
    it, `"expect": {"reward": 1.0, ...}` says what must come out. Exit code 1 if a verdict is not `ok` or not as
    expected.
    """
    from .lines import Defaults, count_lines, read_items
    from .summary import Summary

    if verifier and recipe:
        raise UsageProblem("give --verifier or --recipe, not both")
    settings = load(config, set_)
    if out is None and not as_json and not sys.stdout.isatty():
        out = "-"
    total = count_lines(files)
    items = read_items(files, Defaults(verifier, recipe, format_))
    summary = Summary()
    with _writer(out) as stream:
        asyncio.run(_run(items, total, summary, stream, settings, url, api_key))
    summary.show(as_json=as_json, stderr=out == "-")
    raise typer.Exit(0 if summary.fine else 1)


async def _run(
    items: Iterator[Item],
    total: int | None,
    summary: Summary,
    stream: IO[str] | None,
    settings: Any,
    url: str | None,
    api_key: str | None,
) -> None:
    from .console import progress
    from .judges import local_judge, remote_judge, run_windows

    done = not_ok = 0
    started = 0.0

    def tick(verdict: Verdict) -> None:
        nonlocal done, not_ok
        done += 1
        not_ok += not verdict.ok
        rate = done / max(time.monotonic() - started, 1e-6)
        report(done, f"{rate:,.0f}/s" + (f", {not_ok} not ok" if not_ok else ""))

    context = remote_judge(url, api_key) if url else local_judge(settings)
    with progress("judging", total) as report:
        async with context as judge:
            started = time.monotonic()  # the engine's own start is no part of the rate
            async for item, verdict in run_windows(judge, items, tick):
                summary.add(item, verdict)
                if stream is not None:
                    stream.write(_record(item, verdict) + "\n")
            summary.seconds = time.monotonic() - started


def _record(item: Item, verdict: Verdict | None) -> str:
    """One line of the output: where the task was, then the verdict's own keys."""
    if verdict is None:
        return json.dumps({"where": item.where, "problem": item.problem})
    return json.dumps({"where": item.where, **verdict.model_dump(mode="json")})


@contextlib.contextmanager
def _writer(out: str | None) -> Iterator[IO[str] | None]:
    if out is None or out == "-":
        yield None if out is None else sys.stdout
        return
    try:
        with Path(out).open("w", encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        if error.filename != out:
            raise
        raise UsageProblem(f"--out {out} cannot be written: {error.strerror}") from error
