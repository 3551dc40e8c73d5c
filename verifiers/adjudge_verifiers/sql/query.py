"""The verifier ``sql``: does the query give the rows that the right query gives?"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from adjudge.types import Category, Verdict
from adjudge_sandbox.base import Limits, Sandbox

from ..base import Call, Context, Example, Extraction, Options, Verifier
from ..errors import InvalidTask
from ..extract.code import Pick
from ..registry import register
from .examples import EXAMPLES
from .reference import SqlReference
from .rows import Rule, Table, column_credit, difference
from .running import Failed, run_query
from .text import find_query, is_ordered

__all__ = ["Sql", "SqlOptions"]

_KEPT_CELLS = 200_000
_NO_QUERY: dict[str, tuple[Category, str]] = {
    "none": ("no_answer", "The response holds no query."),
    "truncated": ("truncated", "The query's block is never closed: the response was cut off."),
}


class SqlOptions(Options):
    """How the query is found and run, and how rows are compared."""

    rule: Literal["bag", "set", "ordered", "auto"] = Field(
        default="bag",
        description="`bag`: the same rows, as often, in any order; `set`: the same rows (BIRD); `ordered`; `auto`: "
        "`ordered` if the right query has an ORDER BY of its own, else `bag` (Spider).",
    )
    any_column_order: bool = Field(default=False, description="The columns may stand in another order (Spider).")
    tolerance: float = Field(default=1e-9, ge=0, le=1, description="Relative and absolute, of numbers.")
    scoring: Literal["exact", "columns"] = Field(
        default="exact",
        description="`columns`: rows that differ get 0.8 c²/(columns expected x columns given), where c columns have "
        "the right values.",
    )
    pick: Pick = Field(default="last_tagged", description="Which fenced block is the query.")
    bare: bool = Field(default=True, description="Without any fence, take what begins with SELECT, WITH or VALUES.")
    allow_unclosed: bool = Field(default=False, description="Take a last block without a closing fence for whole.")
    max_rows: int = Field(default=10_000, ge=1, le=200_000, description="A query with more rows is stopped.")
    cpu_s: float = Field(default=10.0, gt=0, le=120, description="CPU seconds of a query on one database.")
    memory_mib: int = Field(default=512, ge=16, le=16_384)

    def limits(self, databases: int, largest: int, timeout_s: float) -> Limits:
        """Of each run: two queries run on each of ``databases``, the ``largest`` having so many bytes."""
        wall_s = min(Limits(self.cpu_s).wall_limit_s, timeout_s / (2.2 * databases))
        cpu_s = min(self.cpu_s, 0.7 * wall_s)  # so that a slow query meets its own limit before the verifier's
        scratch_mib = 64 + (3 * largest >> 20)
        return Limits(cpu_s, wall_s, self.memory_mib + (2 * largest >> 20), 32, 16_384, scratch_mib)


@register
class Sql(Verifier[SqlReference, SqlOptions]):
    """Does the SQL query in the response give the same rows as the right query, on every given database?

    Each query runs in a jail of its own, on a read-only SQLite database, under a deadline; only plain rows come out and
    are compared outside. One statement that reads is allowed: several statements, writes, ATTACH, PRAGMA and extensions
    are ``wrong_format``. A right query that fails, and a database that cannot be opened, are ``invalid_task``.

    Not judged: dialects other than SQLite's. Queries that agree on the given databases count as equal; several
    databases tell more of them apart. An empty result is flagged ``empty_result``, because many queries give one.
    """

    name = "sql"
    version = "1"
    lane = "sandbox"
    Reference = SqlReference
    Options = SqlOptions
    source = "Execution match of Spider (arXiv 1809.08887) and BIRD (arXiv 2305.03111)"
    examples: ClassVar[tuple[Example, ...]] = EXAMPLES
    timeout_s: ClassVar[float] = 300.0

    def extract(self, response: str, options: SqlOptions) -> Extraction:
        return find_query(response, options.pick, bare=options.bare, allow_unclosed=options.allow_unclosed)

    def gold(self, reference: SqlReference, options: SqlOptions) -> str | None:
        return f"```sql\n{reference.query}\n```"

    async def verify(self, call: Call[SqlReference, SqlOptions], ctx: Context) -> Verdict:
        options, reference = call.options, call.reference
        extraction = call.extraction or self.extract(call.response, options)
        if extraction.outcome != "answered":
            category, reason = _NO_QUERY.get(extraction.outcome, _NO_QUERY["none"])
            return _verdict(0.0, category, reason, "")
        sandbox, query = ctx.sandbox, extraction.text
        largest = max(len(database.content) for database in reference.databases)
        limits = options.limits(len(reference.databases), largest, call.timeout_s or self.timeout_s)
        gold = await _gold(sandbox, reference, limits, options.max_rows)
        got = await run_query(sandbox, query, reference.databases, limits, options.max_rows)
        if isinstance(got, Failed):
            return _failed(got, query)
        return _compared(gold, got.tables, reference, options, query, got.isolation)


async def _gold(sandbox: Sandbox, reference: SqlReference, limits: Limits, max_rows: int) -> list[Table]:
    """The rows of the right query, run where no answer is."""
    known = reference.tables.get(max_rows)
    if known is not None:
        return known
    found = await run_query(sandbox, reference.query, reference.databases, limits, max_rows)
    if isinstance(found, Failed):
        what = "The database cannot be used" if found.kind == "database" else "The right query itself cannot be used"
        hint = " Raise max_rows." if found.kind == "rows" else ""
        raise InvalidTask(f"{what}: {found.reason}{hint}")
    if sum(table.cells for table in found.tables) <= _KEPT_CELLS:
        reference.tables[max_rows] = found.tables
    return found.tables


def _failed(got: Failed, query: str) -> Verdict:
    if got.kind == "database":
        raise InvalidTask(got.reason)
    flags = ["forbidden_statement"] if got.kind == "forbidden" else []
    return _verdict(0.0, got.category, got.reason, query, flags, got.isolation)


def _auto(query: str) -> Rule:
    return "ordered" if is_ordered(query) else "bag"


def _compared(
    gold: list[Table], got: list[Table], reference: SqlReference, options: SqlOptions, query: str, isolation: str
) -> Verdict:
    rule: Rule = _auto(reference.query) if options.rule == "auto" else options.rule
    complaints = [
        difference(one, other, rule, options.tolerance, any_column_order=options.any_column_order)
        for one, other in zip(gold, got, strict=True)
    ]
    evidence: dict[str, object] = {"rule": rule, "rows": [len(table.rows) for table in got], "columns": got[0].columns}
    flags = ["empty_result"] if not any(table.rows for table in gold) else []
    failed = next((index for index, complaint in enumerate(complaints) if complaint), None)
    if failed is None:
        return _verdict(1.0, "correct", "The rows are the expected ones.", query, flags, isolation, evidence)
    where = f"Database {failed + 1} of {len(gold)}: " if len(gold) > 1 else ""
    reward = 0.0
    if options.scoring == "columns":
        scores = [
            column_credit(one, other) if complaint else 1.0
            for one, other, complaint in zip(gold, got, complaints, strict=True)
        ]
        reward = min(scores)
    category: Category = "partial" if reward > 0 else "wrong_answer"
    return _verdict(reward, category, f"{where}{complaints[failed]}", query, flags, isolation, evidence)


def _verdict(
    reward: float,
    category: Category,
    reason: str,
    query: str,
    flags: list[str] | None = None,
    isolation: str | None = None,
    evidence: dict[str, object] | None = None,
) -> Verdict:
    return Verdict.scored(
        reward,
        category,
        reason,
        parts={"accuracy": float(category == "correct"), "score": reward},
        flags=flags,
        extracted=query,
        evidence=evidence,
        isolation=isolation,
    )
