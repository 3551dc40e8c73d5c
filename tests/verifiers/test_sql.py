"""The verifier ``sql``: the worked examples, refused statements, rules of comparison, and hostile queries."""

from __future__ import annotations

import base64
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adjudge.types import Verdict
from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context, Example
from adjudge_verifiers.errors import InvalidReference, Unavailable, boundary
from adjudge_verifiers.sql.query import Sql, SqlOptions
from adjudge_verifiers.sql.reference import SqlReference
from adjudge_verifiers.sql.rows import Rule, Table, column_credit, difference
from adjudge_verifiers.sql.text import find_query, is_ordered

in_sandbox = pytest.mark.asyncio(loop_scope="module")
SCRIPT = """
CREATE TABLE t (i INTEGER, f REAL, s TEXT, b BLOB);
INSERT INTO t VALUES (1, 0.5, 'a', x'00ff'), (2, NULL, 'é', NULL), (3, 1e300, '', x'');
CREATE VIEW v AS SELECT i FROM t;
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def judge(sandbox: Sandbox | None, query: str, reference: Any, **options: Any) -> Verdict:
    with boundary("verifier 'sql'") as outcome:
        try:
            checked = SqlReference.model_validate(reference)
        except ValidationError as error:
            raise InvalidReference(str(error)) from None
        response = query if "```" in query else f"```sql\n{query}\n```"
        return await Sql().verify(Call(response, checked, SqlOptions.model_validate(options)), Context(sandbox))
    assert outcome.failure is not None
    return outcome.failure


@in_sandbox
@pytest.mark.parametrize("example", Sql.examples, ids=range(len(Sql.examples)))
async def test_examples(sandbox: Sandbox, example: Example) -> None:
    with boundary("verifier 'sql'") as outcome:
        options = SqlOptions.model_validate(example.options)
        call = Call(example.response, SqlReference.model_validate(example.reference), options)
        verdict = await Sql().verify(call, Context(sandbox))
    verdict = outcome.failure or verdict
    assert (verdict.status, verdict.reward) == (example.status, example.reward), verdict
    assert example.category is None or verdict.category == example.category, verdict
    assert not verdict.ok or set(verdict.parts) == {"accuracy", "score"}


@in_sandbox
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
async def test_a_database_file(sandbox: Sandbox, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "db.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.executescript(SCRIPT)
    connection.close()
    reference = {"query": "SELECT * FROM t", "database": base64.b64encode(path.read_bytes()).decode()}
    right = await judge(sandbox, "SELECT i, f, s, b FROM t ORDER BY i DESC", reference)
    assert (right.reward, right.evidence["rows"]) == (1.0, [3]), right
    wrong = await judge(sandbox, "SELECT i, f, s, hex(b) FROM t", reference)
    assert wrong.category == "wrong_answer"


@in_sandbox
@pytest.mark.parametrize(
    ("query", "category"),
    [
        ("SELECT i FROM t; SELECT i FROM t", "wrong_format"),
        ("DELETE FROM t", "wrong_format"),
        ("INSERT INTO t (i) VALUES (1) RETURNING i", "wrong_format"),
        ("WITH x AS (SELECT 1) DELETE FROM t", "wrong_format"),
        ("ATTACH ':memory:' AS m", "wrong_format"),
        ("PRAGMA table_info(t)", "wrong_format"),
        ("SELECT name FROM pragma_table_info('t')", "wrong_format"),
        ("SELECT load_extension('x')", "wrong_format"),
        ("CREATE TABLE u (i)", "wrong_format"),
        ("VACUUM INTO '/tmp/x'", "wrong_format"),
        ("BEGIN", "wrong_format"),
        ("-- nothing", "compile_error"),
        ("SELECT i FROM", "compile_error"),
        ("SELECT j FROM t", "compile_error"),
        ("SELECT i FROM t WHERE i = ?", "compile_error"),
        ("SELECT abs(-9223372036854775808)", "runtime_error"),
        ("SELECT zeroblob(1000000000)", "runtime_error"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", "output_limit"),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", "time_limit"),
        ("SELECT replace(hex(zeroblob(7000000)), '0', 'x') FROM t, t, t", "output_limit"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "compile_error"),
        ("SELECT i FROM t WHERE s LIKE '" + "%a" * 2000 + "'", "wrong_answer"),
    ],
    ids=lambda text: text[:40],
)
async def test_what_is_refused_or_stopped(sandbox: Sandbox, query: str, category: str) -> None:
    verdict = await judge(sandbox, query, {"query": "SELECT i FROM t WHERE i > 1", "script": SCRIPT}, cpu_s=1.0)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict
    assert verdict.category in (category, "memory_limit"), verdict
    if category == "wrong_format":
        forbidden = verdict.flags == ["forbidden_statement"]
        assert forbidden == (verdict.reason.startswith("Only reading")), verdict


@in_sandbox
async def test_several_databases(sandbox: Sandbox) -> None:
    other = "CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (5), (6)"
    reference = {"query": "SELECT max(i) FROM t", "databases": [{"script": SCRIPT}, {"script": other}]}
    assert (await judge(sandbox, "SELECT i FROM t ORDER BY i DESC LIMIT 1", reference)).reward == 1.0
    lucky = await judge(sandbox, "SELECT 3", reference)
    assert lucky.reward == 0.0
    assert lucky.reason.startswith("Database 2 of 2")


@in_sandbox
async def test_the_data_sets_faults(sandbox: Sandbox) -> None:
    for reference in (
        {"query": "SELECT j FROM t", "script": SCRIPT},
        {"query": "DELETE FROM t", "script": SCRIPT},
        {"query": "SELECT 1", "script": "CREATE TABLE"},
        {"query": "SELECT 1", "script": "ATTACH 'x.db' AS x"},
        {"query": "SELECT 1", "database": base64.b64encode(b"SQLite format 3\0" + b"x" * 5000).decode()},
        {"query": "SELECT t.i FROM t, t AS u", "script": SCRIPT, "max_rows": 5},
    ):
        options = {"max_rows": reference.pop("max_rows")} if "max_rows" in reference else {}
        verdict = await judge(sandbox, "SELECT 1", reference, **options)
        assert (verdict.status, verdict.reward) == ("invalid_task", None), verdict


@in_sandbox
async def test_an_empty_result_is_flagged(sandbox: Sandbox) -> None:
    reference = {"query": "SELECT i FROM t WHERE i > 9", "script": SCRIPT}
    verdict = await judge(sandbox, "SELECT 1 WHERE 0", reference)
    assert (verdict.reward, verdict.flags) == (1.0, ["empty_result"])
    assert (await judge(sandbox, "SELECT 1, 2 WHERE 0", reference)).reward == 0.0


@in_sandbox
async def test_partial_credit_for_columns(sandbox: Sandbox) -> None:
    reference = {"query": "SELECT i, s FROM t", "script": SCRIPT}
    for query, reward in (
        ("SELECT i, s, f FROM t", 0.533333),
        ("SELECT i, f, b FROM t", 0.133333),
        ("SELECT i, (SELECT s FROM t AS u WHERE u.i = 4 - t.i) FROM t", 0.8),
        ("SELECT i, s FROM t", 1.0),
        ("SELECT nothing FROM t", 0.0),
    ):
        verdict = await judge(sandbox, query, reference, scoring="columns")
        assert verdict.reward == pytest.approx(reward, abs=1e-6), verdict


async def test_without_a_sandbox() -> None:
    verdict = await judge(None, "SELECT 1", {"query": "SELECT 1", "script": SCRIPT})
    assert verdict.status == Unavailable.status


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"query": "SELECT 1"},
        {"query": "", "script": "x"},
        {"query": "SELECT 1", "database": {"file": "!!"}},
        {"query": "SELECT 1", "database": {"file": "AAAA"}},
        {"query": "SELECT 1", "database": {"file": "AAAA", "script": ""}},
        {"query": "SELECT 1", "script": "x", "surprise": 1},
        {"query": "SELECT 1", "schema": 7},
    ],
)
def test_unusable_references(raw: Any) -> None:
    with pytest.raises(ValidationError):
        SqlReference.model_validate(raw)


def test_names_of_the_query() -> None:
    for raw in ({"SQL": "S"}, {"query": "S", "sql": {"select": []}}, {"gold_sql": "S"}, {"answer": "S"}):
        assert SqlReference.model_validate({**raw, "script": "x", "db_id": "d", "evidence": "e"}).query == "S"


FOUND = [
    ("```sql\nSELECT 1;\n```\n```sql\nSELECT 2\n```", "answered", "SELECT 2"),
    ("```sqlite\nSELECT 1\n```\n```text\n1\n```", "answered", "SELECT 1"),
    ("We need\n\nSELECT a\nFROM t\nWHERE b IN (\nSELECT c FROM u);\n\nwhich works.", "answered",
     "SELECT a\nFROM t\nWHERE b IN (\nSELECT c FROM u)"),
    ("SQL: select 1", "answered", "select 1"),
    ("<answer>WITH a AS (SELECT 1) SELECT * FROM a</answer>", "answered", "WITH a AS (SELECT 1) SELECT * FROM a"),
    ("I would select the rows.", "none", ""),
    ("```sql\nSELECT 1", "truncated", ""),
    ("<think>```sql\nSELECT 1\n```", "truncated", ""),
]  # fmt: skip


@pytest.mark.parametrize(("response", "outcome", "query"), FOUND)
def test_where_the_query_is_found(response: str, outcome: str, query: str) -> None:
    found = find_query(response, "last_tagged", bare=True, allow_unclosed=False)
    assert (found.outcome, found.text.rstrip(";")) == (outcome, query)


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t order\n by a LIMIT 3", True),
        ("SELECT a FROM t ORDER/**/BY a", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'ORDER BY' FROM t", False),
        ('SELECT a AS "order by", [order by] FROM t -- ORDER BY a', False),
        ("SELECT 1 UNION SELECT 2 ORDER BY 1", True),
        ("SELECT order_by FROM t /* ORDER BY", False),
        ("", False),
    ],
)
def test_is_ordered(query: str, ordered: bool) -> None:
    assert is_ordered(query) is ordered


CELLS = (
    st.none()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 1e300, -0.0])
    | st.text("ab", max_size=2)
    | st.binary(max_size=1)
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.integers(1, 3))
    return Table(columns, draw(st.lists(st.tuples(*[CELLS] * columns), max_size=5)))


def _plain(gold: Table, got: Table, rule: Rule) -> bool:
    """The rules as Python's own equality states them."""
    if gold.columns != got.columns:
        return False
    if rule == "ordered":
        return gold.rows == got.rows
    if rule == "set":
        return set(gold.rows) == set(got.rows)
    left = list(got.rows)
    for row in gold.rows:
        if row not in left:
            return False
        left.remove(row)
    return not left


@given(tables(), tables(), st.sampled_from(["bag", "set", "ordered"]), st.randoms())
def test_rules_are_pythons_equality(one: Table, other: Table, rule: Rule, random: Any) -> None:
    shuffled = Table(one.columns, random.sample(one.rows, len(one.rows)))
    for got in (one, other, shuffled):
        assert (difference(one, got, rule, 0.0) is None) == _plain(one, got, rule)
    order = random.sample(range(one.columns), one.columns)
    moved = Table(one.columns, shuffled.project(order))
    assert rule == "ordered" or difference(one, moved, rule, 0.0, any_column_order=True) is None
    assert difference(one, Table(one.columns, one.project(order)), rule, 1e-9, any_column_order=True) is None


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.text("ab", max_size=1), st.floats(-1e6, 1e6)), max_size=6), st.randoms()
)
def test_a_tolerance_does_not_depend_on_the_order(rows: list[Any], random: Any) -> None:
    near = [(a * (1 + 1e-12), s, b + 1e-12) for a, s, b in random.sample(rows, len(rows))]
    for rule in ("bag", "set"):
        assert difference(Table(3, rows), Table(3, near), rule, 1e-9) is None  # type: ignore[arg-type]
    far = [(a + 1, s, b) for a, s, b in rows]
    assert not rows or difference(Table(3, rows), Table(3, far), "ordered", 1e-9) is not None


def test_kinds_of_cells_stay_apart() -> None:
    for one, other in ((1, "1"), ("a", b"a"), (None, 0), (None, ""), (2**53, 2**53 + 1)):
        for rule in ("bag", "set", "ordered"):
            assert difference(Table(1, [(one,)]), Table(1, [(other,)]), rule, 0.0)  # type: ignore[arg-type]
    assert difference(Table(1, [(1,)]), Table(1, [(1.0,)]), "bag", 0.0) is None


def test_columns_that_look_alike_end_in_bounded_time() -> None:
    rows = [tuple((row >> column) & 1 for column in range(12)) for row in range(4096)]
    got = [tuple((row >> column) & 1 for column in range(12)) for row in range(4095)] + [(0,) * 12]
    began = time.process_time()
    assert difference(Table(12, rows), Table(12, got), "bag", 1e-9, any_column_order=True)
    assert time.process_time() - began < 30


def test_column_credit() -> None:
    gold = Table(2, [(1, "a"), (2, "b")])
    assert column_credit(gold, Table(3, [(1, "a", 0), (2, "b", 0)])) == pytest.approx(0.533333, abs=1e-6)
    assert column_credit(gold, Table(3, [(1, "x", 0), (2, "y", 0)])) == pytest.approx(0.133333, abs=1e-6)
    assert column_credit(gold, Table(2, [(1, "b"), (2, "a")])) == pytest.approx(0.8)
