"""Which test to run first: the one that has failed most answers of the same problem.

When one failure settles the reward, a wrong answer costs what runs until its first failure. Wrong answers to one
problem tend to fail the same tests, so each failure is counted for its problem, and tests run in the order of *kills
per second*: a test that fails many answers in no time goes before one that needs its whole time limit for each. Tests
that have failed nobody keep the order of the data set. Of a right answer every test runs either way.

The reward is the same in any order. What may differ is which failure is reported; it is named by its own number. Two
things keep it so: a failure without a run (compilation, a spent budget) is no kill, and a problem one of whose tests
has turned out to be at fault itself is run in the order of the data set from then on, because there the order decides
whether an answer reaches that test.

Counts are halved from time to time, so that they follow the policy. Memory is bounded: the problems used last are kept,
each with its strongest tests. One object serves many threads and tasks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .scoring import TestOutcome

__all__ = ["Course", "TestOrder"]

_MAX_PROBLEMS = 4096
_MAX_TESTS = 64
_HALVE_AT = 128.0
_LEAST_COUNT = 0.4
_BASE_COST_S = 0.02
"""What any run costs beside its own time; keeps very quick tests from outweighing everything."""
_FIRST_CHUNK_SHARE = 0.9
_MAX_FIRST_CHUNK = 4


@dataclass(slots=True)
class _Test:
    kills: float = 0.0
    cost_s: float = 0.0
    """Moving average over the runs that failed an answer."""

    @property
    def weight(self) -> float:
        return self.kills / (_BASE_COST_S + self.cost_s)


@dataclass(slots=True)
class _Problem:
    tests: dict[int, _Test] = field(default_factory=dict)
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """The order for one answer: ``indexes`` of the tests, and how many make a first chunk of their own (0: none)."""

    indexes: Sequence[int]
    first: int = 0


class TestOrder:
    """See the module docstring."""

    __test__ = False  # its name is no test class's

    def __init__(self, max_problems: int = _MAX_PROBLEMS) -> None:
        self._max_problems = max_problems
        self._problems: OrderedDict[bytes, _Problem] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._problems)

    def course(self, key: bytes, total: int) -> Course:
        """The order in which to run ``total`` tests of the problem ``key``."""
        with self._lock:
            problem = self._problems.get(key)
            if problem is None or problem.fixed or not problem.tests:
                return Course(range(total))
            self._problems.move_to_end(key)
            known = [(index, test.weight, test.kills) for index, test in problem.tests.items() if index < total]
        known.sort(key=lambda entry: (-entry[1], entry[0]))
        ahead = [index for index, _, _ in known]
        rest = set(ahead)
        return Course([*ahead, *(index for index in range(total) if index not in rest)], _first_chunk(known))

    def learn(self, key: bytes, course: Course, outcomes: Sequence[TestOutcome]) -> None:
        """Count the first failure of an answer whose tests ran in the order of ``course``."""
        failed = {each.index: each for each in outcomes if not each.passed}
        first = next((failed[index] for index in course.indexes if index in failed), None) if failed else None
        if first is not None and first.ran and first.category != "compile_error":
            self.killed(key, first.index, first.cpu_ms / 1000)

    def killed(self, key: bytes, index: int, cost_s: float) -> None:
        """Test ``index`` has failed an answer, in a run of ``cost_s`` seconds."""
        with self._lock:
            problem = self._problem(key)
            test = problem.tests.pop(index) if index in problem.tests else _Test()
            problem.tests[index] = test  # the last one to kill stands last
            test.cost_s = cost_s if test.kills == 0 else 0.7 * test.cost_s + 0.3 * cost_s
            test.kills += 1.0
            if sum(each.kills for each in problem.tests.values()) >= _HALVE_AT:
                for each in problem.tests.values():
                    each.kills /= 2
            if len(problem.tests) > _MAX_TESTS or test.kills >= _HALVE_AT / 4:
                _thin_out(problem)

    def fix(self, key: bytes) -> None:
        """A test of this problem is itself at fault: keep to the order of the data set."""
        with self._lock:
            problem = self._problem(key)
            problem.fixed = True
            problem.tests.clear()

    def _problem(self, key: bytes) -> _Problem:
        problem = self._problems.get(key)
        if problem is None:
            problem = self._problems[key] = _Problem()
            if len(self._problems) > self._max_problems:
                self._problems.popitem(last=False)
        self._problems.move_to_end(key)
        return problem


def _thin_out(problem: _Problem) -> None:
    """Forget tests that have faded, and beyond the limit the weakest, of equal ones the one that killed longest ago."""
    for index in [index for index, test in problem.tests.items() if test.kills < _LEAST_COUNT]:
        del problem.tests[index]
    while len(problem.tests) > _MAX_TESTS:
        del problem.tests[min(problem.tests, key=lambda index: problem.tests[index].weight)]


def _first_chunk(known: list[tuple[int, float, float]]) -> int:
    """The tests that account for nine kills of ten, four at most."""
    wanted, covered = _FIRST_CHUNK_SHARE * sum(kills for _, _, kills in known), 0.0
    for count, (_, _, kills) in enumerate(known, 1):
        covered += kills
        if covered >= wanted or count == _MAX_FIRST_CHUNK:
            return count
    return len(known)
