"""One query on the databases of a reference, in a jail that holds nothing but the two."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.types import Category
from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Sandbox, Script

from ..errors import Abstained
from ..sandboxed import sandbox_failures
from .reference import Database
from .rows import Cell, Table

__all__ = ["Failed", "Ran", "run_query"]

_FAULTS: dict[str, tuple[Category, str]] = {
    "syntax": ("compile_error", "The query cannot be understood"),
    "runtime": ("runtime_error", "The query fails"),
    "deadline": ("time_limit", "The query takes too long"),
    "several": ("wrong_format", "There is more than one statement"),
    "nothing": ("wrong_format", "There is no query"),
    "forbidden": ("wrong_format", "Only reading is allowed"),
}
_OUTCOMES: dict[Outcome, Category] = {
    Outcome.TIME_LIMIT: "time_limit",
    Outcome.MEMORY_LIMIT: "memory_limit",
    Outcome.OUTPUT_LIMIT: "output_limit",
    Outcome.SIGNALLED: "runtime_error",
}


@dataclass(frozen=True, slots=True)
class Failed:
    """The query gave no rows. ``kind`` is ``database`` if that was not its fault."""

    kind: str
    category: Category
    reason: str
    isolation: str


@dataclass(frozen=True, slots=True)
class Ran:
    """The rows on each database."""

    tables: list[Table]
    isolation: str


@functools.cache
def _program() -> Program:
    return Program(Path(__file__).with_name("jailed.py").read_text(encoding="utf-8"))


async def run_query(
    sandbox: Sandbox, query: str, databases: list[Database], limits: Limits, max_rows: int
) -> Ran | Failed:
    """The rows on each database, or the first failure. Raises :class:`Abstained` if our own program fails."""
    runs = [Script(_request(query, database, limits, max_rows) + database.content) for database in databases]
    with sandbox_failures():
        results = await sandbox.run(_program(), runs, limits, stop_at_failure=True)
    tables: list[Table] = []
    for result in results:
        table = _table(result)
        if isinstance(table, Failed):
            return table
        tables.append(table)
    return Ran(tables, results[0].isolation)


def _request(query: str, database: Database, limits: Limits, max_rows: int) -> bytes:
    request = {
        "query": query,
        "script": database.file is None,
        "max_rows": max_rows,
        "deadline_s": 0.9 * limits.cpu_s,
    }
    return json.dumps(request).encode() + b"\n"


def _table(result: RunResult) -> Table | Failed:
    if result.outcome is not Outcome.FINISHED:
        category = _OUTCOMES.get(result.outcome)
        if category is None:
            raise Abstained(f"The program that runs queries failed: {result.outcome.value}: {result.detail}")
        return Failed("limit", category, f"The query was stopped: {result.detail}.", result.isolation)
    try:
        reply = json.loads(result.stdout)
        if "fault" in reply:
            return _failed(str(reply["fault"]), str(reply["detail"]), result)
        if reply["more"]:
            return Failed("rows", "output_limit", "The query gives too many rows.", result.isolation)
        rows = [tuple(_cell(cell) for cell in row) for row in reply["rows"]]
        return Table(int(reply["columns"]), rows)
    except (ValueError, KeyError, TypeError) as error:
        raise Abstained(f"The program that runs queries wrote what it should not: {error!r}") from None


def _failed(kind: str, detail: str, result: RunResult) -> Failed:
    category, what = _FAULTS.get(kind, ("runtime_error", "The database is unusable"))
    return Failed(kind, category, f"{what}: {detail[:300]}.", result.isolation)


def _cell(value: Any) -> Cell:
    if isinstance(value, dict):
        return bytes.fromhex(value["blob"])
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(type(value).__name__)
