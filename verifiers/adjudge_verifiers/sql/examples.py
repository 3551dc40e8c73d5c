"""Worked examples of the verifier ``sql``, for the catalogue and the tests."""

from __future__ import annotations

from ..base import Example

__all__ = ["EXAMPLES"]

_PEOPLE = {
    "schema": "CREATE TABLE people (name TEXT, age INTEGER, city TEXT)",
    "inserts": "INSERT INTO people VALUES ('Ann', 31, 'Oslo'), ('Bo', 25, 'Rome'), ('Cy', 31, 'Rome')",
}
_ADULTS = {"query": "SELECT name, age FROM people WHERE age > 30", **_PEOPLE}
_BY_AGE = {"SQL": "SELECT name FROM people ORDER BY age DESC, name", "db_id": "people", **_PEOPLE}


def _sql(query: str) -> str:
    return f"```sql\n{query}\n```"


EXAMPLES: tuple[Example, ...] = (
    Example(_sql("SELECT name, age FROM people WHERE age >= 31 ORDER BY name DESC;"), _ADULTS, category="correct"),
    Example(_sql("SELECT name, age FROM people"), _ADULTS, reward=0.0, category="wrong_answer"),
    Example(_sql("SELECT age, name FROM people WHERE age > 30"), _ADULTS, reward=0.0, category="wrong_answer"),
    Example(
        _sql("SELECT age, name FROM people WHERE age > 30"),
        _ADULTS,
        {"any_column_order": True},
        category="correct",
        note="Spider allows the columns in any order.",
    ),
    Example(_sql("SELECT name FROM people"), _BY_AGE, {"rule": "auto"}, reward=0.0, category="wrong_answer"),
    Example(_sql("SELECT name FROM people"), _BY_AGE, category="correct", note="As a bag, order does not count."),
    Example(
        _sql("SELECT name FROM people UNION ALL SELECT name FROM people"),
        _BY_AGE,
        {"rule": "set"},
        category="correct",
        note="BIRD compares sets of rows.",
    ),
    Example(_sql("SELECT nam FROM people"), _ADULTS, reward=0.0, category="compile_error"),
    Example(_sql("DROP TABLE people; SELECT 1"), _ADULTS, reward=0.0, category="wrong_format"),
    Example(_sql("DELETE FROM people"), _ADULTS, reward=0.0, category="wrong_format"),
    Example(
        _sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"),
        _ADULTS,
        {"cpu_s": 0.5},
        reward=0.0,
        category="time_limit",
    ),
    Example("I would look at the ages.", _ADULTS, reward=0.0, category="no_answer"),
    Example(
        _sql("SELECT 1"),
        {"query": "SELECT nothing FROM people", **_PEOPLE},
        reward=None,
        status="invalid_task",
        note="A right query that fails is the data set's fault.",
    ),
)
