"""The table of hostile programs is whole: every number is there, and what it says can be meant."""

from __future__ import annotations

from collections import Counter
from typing import Any

from adjudge_sandbox.base import Outcome
from adjudge_sandbox.registry import LEVELS


def test_every_number_is_there(programs: list[Any]) -> None:
    """1 to 64 are the list, 65 to 104 our own; 0 are further programs of the quick table."""
    assert {program.number for program in programs} == set(range(105))


def test_ids_are_unique(programs: list[Any]) -> None:
    assert [name for name, count in Counter(program.id for program in programs).items() if count > 1] == []


def test_rows_can_be_meant(programs: list[Any]) -> None:
    for program in programs:
        assert program.outcomes, program.id
        for backend, exception in program.exceptions.items():
            assert backend in LEVELS, (program.id, backend)
            assert exception.get("reason"), f"{program.id}: an exception has a reason"
            assert set(exception) <= {"outcomes", "stdout", "statuses", "any_output", "skip", "reason"}, program.id
        for outcome in (*program.outcomes, *(o for e in program.exceptions.values() for o in e.get("outcomes", ()))):
            Outcome(outcome)


def test_python_is_not_the_only_language(programs: list[Any]) -> None:
    counts = Counter(program.language for program in programs)
    assert min(counts[name] for name in ("c", "cpp", "java", "javascript", "go", "rust", "bash")) >= 3, counts
