"""Scoring modes: from how each test went to one number, and which tests can still change it.

=============== =====================================================================================================
``all``         1 if every test passes, else 0
``fraction``    the share of tests that pass, weighted by their points if they have any
``first_n``     the share of the first ``first_n`` tests that pass (verl's ``continuous`` mode, with ten)
``subtasks``    a sub-task earns its points times the *least* credit of its tests (IOI); the sum, as a share of all
``tddr_strict`` MiMo: a level's score is earned if all its tests and all tests of all easier levels pass
``tddr_soft``   MiMo: a level's score is shared equally among its tests
=============== =====================================================================================================

A test's credit is 1 or 0, or what a checker gave it. ``all`` stops at the first failure, ``subtasks`` leaves out what
is left of a sub-task that has failed, ``tddr_strict`` what is as hard as a level that has. Tests that are left out
count as not passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import InvalidTask
from .parts import Test

__all__ = ["Progress", "Rules", "Scoring", "TestWeight", "rules_for"]

Scoring = Literal["all", "fraction", "first_n", "subtasks", "tddr_strict", "tddr_soft"]


@dataclass(frozen=True, slots=True)
class TestWeight:
    """What a test says of itself."""

    __test__ = False

    groups: tuple[str, ...] = ()
    points: float | None = None
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """``all`` and its like over a list of tests. ``credits`` below maps the number of a test to (credit, tests in it):
    a test file is one entry that holds several tests."""

    mode: Scoring
    weights: Sequence[TestWeight]
    group_points: Mapping[str, float] = field(default_factory=dict)
    level_scores: Sequence[float] = ()

    @property
    def stops_early(self) -> bool:
        """Can a failure settle something?"""
        return self.mode in ("all", "subtasks", "tddr_strict")

    def reward(self, credits: Mapping[int, tuple[float, int]]) -> float:
        """From 0 to 1. What is missing in ``credits`` earns nothing."""
        if self.mode == "all":
            return float(len(credits) == len(self.weights) and all(credit >= 1 for credit, _ in credits.values()))
        if self.mode == "subtasks":
            return _share([(points, least) for points, least, _, _ in self._groups(credits).values()])
        if self.mode.startswith("tddr"):
            return self._tddr(credits)
        pointed = any(weight.points is not None for weight in self.weights)
        pairs = []
        for index, weight in enumerate(self.weights):
            credit, size = credits.get(index, (0.0, 1))
            pairs.append((float(size) if not pointed else 1.0 if weight.points is None else weight.points, credit))
        return _share(pairs)

    def details(self, credits: Mapping[int, tuple[float, int]]) -> dict[str, Any]:
        """How each sub-task or level went, for the evidence."""
        if self.mode == "subtasks":
            return {
                "groups": {
                    name: {"points": points, "credit": least, "passed": passed, "total": total}
                    for name, (points, least, passed, total) in self._groups(credits).items()
                }
            }
        if self.mode.startswith("tddr"):
            return {
                "levels": {
                    str(level): {
                        "passed": sum(credits.get(i, (0.0, 1))[0] >= 1 for i in members),
                        "total": len(members),
                    }
                    for level, members in self._levels().items()
                }
            }
        return {}

    def _groups(self, credits: Mapping[int, tuple[float, int]]) -> dict[str, tuple[float, float, int, int]]:
        """By name: points, least credit, tests passed, tests."""
        members: dict[str, list[int]] = {}
        for index, weight in enumerate(self.weights):
            for group in weight.groups:
                members.setdefault(group, []).append(index)
        found = {}
        for group, indices in members.items():
            earned = [credits.get(index, (0.0, 1))[0] for index in indices]
            own = [self.weights[index].points for index in indices]
            points = self.group_points.get(group)
            if points is None:
                points = 1.0 if all(each is None for each in own) else sum(each or 0.0 for each in own)
            found[group] = (points, min(earned), sum(credit >= 1 for credit in earned), len(earned))
        return found

    def _level(self, index: int) -> int:
        return self.weights[index].level or 1

    def _levels(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for index in range(len(self.weights)):
            found.setdefault(self._level(index), []).append(index)
        return dict(sorted(found.items()))

    def _tddr(self, credits: Mapping[int, tuple[float, int]]) -> float:
        levels = self._levels()
        scores = self.level_scores or [float(rank) for rank in range(1, len(levels) + 1)]
        pairs, easier = [], True
        for score, members in zip(scores, levels.values(), strict=True):
            earned = [credits.get(index, (0.0, 1))[0] for index in members]
            easier = easier and min(earned) >= 1
            pairs.append((score, float(easier) if self.mode == "tddr_strict" else sum(earned) / len(earned)))
        return _share(pairs)


class Progress:
    """What has failed so far, and so which tests may be left out because the reward cannot depend on them any more."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._failed = False
        self._failed_groups: set[str] = set()
        self._least_failed_level: int | None = None

    def note(self, index: int, credit: float) -> None:
        if credit >= 1:
            return
        self._failed = True
        weight = self._rules.weights[index]
        if credit <= 0:
            self._failed_groups.update(weight.groups)
        level = weight.level or 1
        self._least_failed_level = min(level, self._least_failed_level or level)

    def leaves_out(self, index: int) -> bool:
        mode, weight = self._rules.mode, self._rules.weights[index]
        if mode == "all":
            return self._failed
        if mode == "subtasks":
            return self._failed_groups.issuperset(weight.groups)
        if mode == "tddr_strict" and self._least_failed_level is not None:
            return (weight.level or 1) >= self._least_failed_level
        return False


def _share(pairs: list[tuple[float, float]]) -> float:
    """The weighted mean of (weight, credit); exactly 1 if every credit is."""
    total = sum(weight for weight, _ in pairs)
    if all(credit >= 1 for _, credit in pairs):
        return 1.0
    return sum(weight * credit for weight, credit in pairs) / total if total > 0 else 0.0


def rules_for(
    mode: Scoring, tests: Sequence[Test], group_points: Mapping[str, float], level_scores: Sequence[float]
) -> Rules:
    """Raises :class:`InvalidTask` if the tests do not say what the mode needs to know."""
    weights = [TestWeight(test.groups, test.points, test.level) for test in tests]
    if (
        mode == "subtasks"
        and (lacking := next((i for i, each in enumerate(weights) if not each.groups), None)) is not None
    ):
        raise InvalidTask(f"Scoring `subtasks` needs to know the `group` of every test; test {lacking + 1} has none.")
    if mode.startswith("tddr"):
        lacking = next((i for i, each in enumerate(weights) if each.level is None), None)
        if lacking is not None:
            raise InvalidTask(f"Scoring `{mode}` needs the `level` of every test; test {lacking + 1} has none.")
        levels = len({each.level for each in weights})
        if level_scores and len(level_scores) != levels:
            raise InvalidTask(f"The tests have {levels} levels, but there are {len(level_scores)} `level_scores`.")
    return Rules(mode, weights, group_points, level_scores)
