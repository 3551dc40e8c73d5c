"""Are these the rows that the right query gives? Decided outside the jail, on plain cells.

A cell is NULL, a whole number, a float, text, or bytes; ``1`` equals ``1.0``, text equals no number, NULL equals NULL.
Rows are compared as a *bag* (how often each occurs counts, their order does not), as a *set*, or in *order*; names of
columns never count.

A tolerance cannot be hashed, so rows that are equal to the last digit are taken out first, and what is left is paired:
among rows with the same other cells, the numbers in sorted order.

Columns in any order: the rows are compared for each order of columns that can be right, column by column, so that wrong
beginnings are dropped early. The number of cells looked at is bounded; beyond it the answer counts as different.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Cell", "Rule", "Table", "column_credit", "difference"]

Cell = None | int | float | str | bytes
Row = tuple[Cell, ...]
Rule = Literal["bag", "set", "ordered"]

_MAX_LOOKED_AT = 5_000_000
_GREEDY_ROWS = 200


@dataclass(frozen=True, slots=True)
class Table:
    """What a query gives."""

    columns: int
    rows: list[Row]

    @property
    def cells(self) -> int:
        return self.columns * len(self.rows)

    def project(self, columns: Sequence[int]) -> list[Row]:
        return [tuple(row[column] for column in columns) for row in self.rows]


def difference(gold: Table, got: Table, rule: Rule, tolerance: float, *, any_column_order: bool = False) -> str | None:
    """``None`` if ``got`` is right, else one sentence."""
    if gold.columns != got.columns:
        return f"The query gives {got.columns} columns, expected {gold.columns}."
    if rule != "set" and len(gold.rows) != len(got.rows):
        return f"The query gives {len(got.rows)} rows, expected {len(gold.rows)}."
    if _agree(gold.rows, got.rows, rule, tolerance):
        return None
    if any_column_order and gold.columns > 1:
        found = _Columns(gold, got, rule, tolerance).match()
        return None if found else "The rows differ, whatever the order of the columns."
    return "The rows differ."


def _agree(gold: Sequence[Row], got: Sequence[Row], rule: Rule, tolerance: float) -> bool:
    if rule == "ordered":
        return len(gold) == len(got) and all(_same_row(a, b, tolerance) for a, b in zip(gold, got, strict=True))
    wanted, found = _keyed(gold), _keyed(got)
    if rule == "set":
        left = [row for key, row in wanted[0].items() if key not in found[0]]
        right = [row for key, row in found[0].items() if key not in wanted[0]]
    else:
        left = [row for key, count in (wanted[1] - found[1]).items() for row in [wanted[0][key]] * count]
        right = [row for key, count in (found[1] - wanted[1]).items() for row in [found[0][key]] * count]
    if not (left or right):
        return True
    if tolerance <= 0:
        return False
    if rule == "set" and len(left) * len(got) + len(right) * len(gold) <= _GREEDY_ROWS**2:
        return _covered(left, got, tolerance) and _covered(right, gold, tolerance)
    return _all_close(left, right, tolerance)


def _covered(rows: list[Row], others: Sequence[Row], tolerance: float) -> bool:
    """Is each of the rows close to one of the others? In a set, rows that differ by less than the tolerance are one."""
    return all(any(_same_row(row, other, tolerance) for other in others) for row in rows)


def _keyed(rows: Sequence[Row]) -> tuple[dict[str, Row], Counter[str]]:
    """Rows by a text that equal rows share. Text, because the hash of a text cannot be steered."""
    keys = [_key(row) for row in rows]
    return dict(zip(keys, rows, strict=True)), Counter(keys)


def _key(row: Row) -> str:
    return repr([int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row])


def _same_cell(one: Cell, other: Cell, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        if one == other or (isinstance(one, int) and isinstance(other, int)):
            return one == other
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(one) is type(other) and one == other


def _same_row(one: Row, other: Row, tolerance: float) -> bool:
    return all(_same_cell(a, b, tolerance) for a, b in zip(one, other, strict=True))


def _all_close(left: list[Row], right: list[Row], tolerance: float) -> bool:
    if len(left) != len(right):
        return False
    groups: defaultdict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((left, right)):
        for row in rows:
            groups[repr([None if isinstance(cell, int | float) else (cell,) for cell in row])][side].append(row)
    return all(_paired(one, other, tolerance) for one, other in groups.values())


def _paired(one: list[Row], other: list[Row], tolerance: float) -> bool:
    """Can the rows of two lists be paired so that the numbers of each pair are close?"""
    if len(one) != len(other):
        return False

    def numbers(row: Row) -> tuple[float, ...]:
        return tuple(cell for cell in row if isinstance(cell, int | float))

    if all(
        _same_row(a, b, tolerance) for a, b in zip(sorted(one, key=numbers), sorted(other, key=numbers), strict=True)
    ):
        return True
    if len(one) > _GREEDY_ROWS:
        return False
    left = list(other)
    for row in one:
        match = next((candidate for candidate in left if _same_row(row, candidate, tolerance)), None)
        if match is None:
            return False
        left.remove(match)
    return True


class _Columns:
    """The search for an order of the columns of ``got``."""

    def __init__(self, gold: Table, got: Table, rule: Rule, tolerance: float) -> None:
        self._gold, self._got, self._tolerance = gold, got, tolerance
        self._rule: Rule = rule
        self._looked_at = 0

    def match(self) -> bool:
        return self._extend(())

    def _extend(self, chosen: tuple[int, ...]) -> bool:
        if len(chosen) == self._gold.columns:
            return True
        tried: set[str] = set()
        for column in range(self._got.columns):
            if column in chosen:
                continue
            content = repr([row[column] for row in self._got.rows])
            if content in tried:  # a column like one that has been tried here
                continue
            tried.add(content)
            longer = (*chosen, column)
            if self._agrees(longer) and self._extend(longer):
                return True
        return False

    def _agrees(self, chosen: tuple[int, ...]) -> bool:
        self._looked_at += len(chosen) * (len(self._gold.rows) + len(self._got.rows)) + 1
        if self._looked_at > _MAX_LOOKED_AT:
            return False
        wanted = self._gold.project(range(len(chosen)))
        return _agree(wanted, self._got.project(chosen), self._rule, self._tolerance)


def column_credit(gold: Table, got: Table) -> float:
    """For rows that differ: 0.8 c² / (gold columns x columns), c gold columns having the values of some column."""

    def contents(table: Table) -> Iterator[frozenset[str]]:
        for column in range(table.columns):
            yield frozenset(_key((row[column],)) for row in table.rows)

    available = set(contents(got))
    common = sum(content in available for content in contents(gold))
    return 0.8 * min(1.0, common**2 / (gold.columns * got.columns))
