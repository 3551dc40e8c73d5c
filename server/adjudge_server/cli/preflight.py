"""``adjudge preflight``: check a data set before a run.

The lines are those of ``adjudge verify``. A line without a response asks whether the verifier's own gold answer would
score; one with a response says that this is the gold answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, ConfigFile, Setting, load
from .verify import Files

if TYPE_CHECKING:
    from ..preflight import PreflightItem
    from ..settings import Settings
    from .lines import Item

__all__ = ["preflight"]

_WINDOW = 1000
_SHOWN = 40


def preflight(
    files: Files,
    verifier: Annotated[str | None, typer.Option(help="Verifier of tasks that name none.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe of tasks that name none.")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="Lines are rows of a data set in this format; `auto` looks.")
    ] = None,
    config: ConfigFile = None,
    set_: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Check a data set: does each reference parse, and does its gold answer score as correct?

    Exit code 1 if a line has a problem.
    """
    from .lines import Defaults, count_lines, read_items

    settings = load(config, set_)
    total = count_lines(files)
    items = read_items(files, Defaults(verifier, recipe, format_))
    report = asyncio.run(_run(settings, items, total))
    _show(report, as_json)
    raise typer.Exit(0 if report["lines"] and not report["problems"] else 1)


async def _run(settings: Settings, items: Iterator[Item], total: int | None) -> dict[str, Any]:
    from .console import progress

    counts: Counter[str] = Counter()
    problems: list[dict[str, Any]] = []
    done = 0
    with progress("checking", total) as tick:
        async for line, found in _check(settings, items):
            done += 1
            problem = (line.problem and "unreadable_line") or (found.problem if found else None)
            reason = line.problem or (found.reason if found else "")
            counts[problem or "fine"] += 1
            if problem:
                gold = found.gold if found else None
                problems.append({"where": line.where, "problem": problem, "reason": reason, "gold": gold})
            tick(done, f"{len(problems)} with a problem")
    return {"lines": done, "counts": dict(sorted(counts.items())), "problems": problems}


async def _check(settings: Settings, items: Iterator[Item]) -> AsyncIterator[tuple[Item, PreflightItem | None]]:
    from ..preflight import preflight_tasks
    from .judges import local_judge

    async with local_judge(settings) as judge:
        while window := list(islice(items, _WINDOW)):
            readable = []
            for item in window:
                if item.problem:
                    yield item, None
                else:
                    readable.append(item)
            tasks = [judge.read(_with_response(item)) for item in readable]
            async for found in preflight_tasks(judge.engine, tasks):
                yield readable[found.index], found


def _with_response(item: Item) -> Item:
    """A task needs a response to be one; an empty one asks for the gold answer."""
    for body in (item.task, item.row):
        if body is not None:
            body.setdefault("response", "")
    return item


def _show(report: dict[str, Any], as_json: bool) -> None:
    from rich.text import Text

    from .console import console, print_json, table

    if as_json:
        print_json(report)
        return
    out = console()
    if report["problems"]:
        made = table("Problems", "line", "problem", "reason")
        for found in report["problems"][:_SHOWN]:
            made.add_row(Text(found["where"]), found["problem"], Text(found["reason"][:400]))
        out.print(made)
        if len(report["problems"]) > _SHOWN:
            out.print(f"... and {len(report['problems']) - _SHOWN} more")
    counts = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
    out.print(f"{report['lines']} lines: {counts or 'nothing to check'}")
