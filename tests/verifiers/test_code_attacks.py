"""Ways around the verifier ``code`` that were open once: an answer that passes, or that gets away without a verdict."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from adjudge.types import Verdict
from adjudge_sandbox.base import Examination, Limits, Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.asserts import calls_in, parse
from adjudge_verifiers.code.plan import Comparison, plan
from adjudge_verifiers.code.program import assemble, defines
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.running import Budget, fitted
from adjudge_verifiers.code.standard import imports_for, modules_in, with_runner
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import InvalidReference, InvalidTask, boundary

in_jails = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def judge(sandbox: Sandbox, code: str, reference: Any, timeout_s: float | None = None, **options: Any) -> Verdict:
    with boundary("verifier 'code'") as outcome:
        checked = CodeOptions.model_validate(options)
        call = Call(f"```python\n{code}\n```", normalise(reference), checked, timeout_s=timeout_s)
        return await Code().verify(call, Context(sandbox))
    assert outcome.failure is not None
    return outcome.failure


WRONG, RIGHT = "def f(x):\n    return 0\n", "def f(x):\n    return x * x\n"
UNITTEST = "class T(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(2), 4)\n"
RUNNERS: dict[str, Any] = {
    "test function": {"functional": "def test_f():\n    assert f(2) == 4"},
    "KodCode": {
        "test": "from solution import f\n\ndef test_a():\n    assert f(0) == 0\ndef test_b():\n    assert f(3) == 9"
    },
    "pytest class": {
        "functional": "class TestF:\n    def setup_method(self):\n        self.x = 2\n"
        "    def test_f(self):\n        assert f(self.x) == 4"
    },
    "test case": {"functional": "import unittest\n" + UNITTEST},
    "inherited test case": {
        "functional": "from unittest import TestCase\nclass Base(TestCase):\n    x = 2\n"
        "class T(Base):\n    def test_f(self):\n        self.assertEqual(f(self.x), 4)"
    },
    "runner that tells nobody": {"functional": f"import unittest\n{UNITTEST}unittest.main(exit=False)"},
    "main": {"functional": f"import unittest\n{UNITTEST}if __name__ == '__main__':\n    unittest.main()"},
    "async": {"functional": "async def test_f():\n    assert f(2) == 4"},
    "called": {"functional": "def test_f():\n    assert f(2) == 4\nfor test in [test_f]:\n    test()"},
}


@pytest.mark.parametrize("reference", RUNNERS.values(), ids=RUNNERS)
@in_jails
async def test_tests_that_nothing_calls_are_called(sandbox: Sandbox, reference: Any) -> None:
    for code, reward in ((WRONG, 0.0), (RIGHT, 1.0)):
        verdict = await judge(sandbox, code, reference)
        assert (verdict.status, verdict.reward) == ("ok", reward), verdict


@in_jails
async def test_a_test_that_asks_nothing_judges_nobody(sandbox: Sandbox) -> None:
    for test in ("def verify_f():\n    assert f(2) == 4", "x = 1\nassert x"):
        verdict = await judge(sandbox, WRONG, {"functional": test})
        assert (verdict.status, verdict.reward) == ("invalid_task", None), verdict
    verdict = await judge(sandbox, WRONG, {"functional": "def test_f(tmp_path):\n    assert f(2) == 4"})
    assert verdict.status == "invalid_task", verdict
    assert "pytest" in verdict.reason


IMPOSTORS = [
    ("class math:\n    isclose = staticmethod(lambda *a, **k: True)", "assert math.isclose(f(3), 0.3)"),
    ("import types\nmath = types.SimpleNamespace(isclose=lambda *a: True)", "assert math.isclose(f(3), 0.3)"),
    ("isclose = lambda *a, **k: True", "assert isclose(f(3), 0.3)"),
    ("def Counter(x):\n    return 0", "assert Counter(f(3)) == Counter([1])"),
    ("def deepcopy(x):\n    return 0", "assert deepcopy(f(3)) == deepcopy([1])"),
]


@pytest.mark.parametrize(("impostor", "test"), IMPOSTORS, ids=range(len(IMPOSTORS)))
@in_jails
async def test_what_compares_is_not_the_answers(sandbox: Sandbox, impostor: str, test: str) -> None:
    verdict = await judge(sandbox, f"{impostor}\ndef f(x):\n    return []", [test])
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict


@in_jails
async def test_tests_may_use_what_they_do_not_import(sandbox: Sandbox) -> None:
    for code, test in (
        ("def f(x):\n    return x / 3", "assert math.isclose(f(3), 1.0)"),
        ("def f(x):\n    return [x]", "assert Counter(f(3)) == Counter([3])"),
        ("def Counter(x):\n    return x", "y = Counter(3)\nassert y == 3"),
        ("def floor(x):\n    return 7", "assert all(map(lambda x: floor(x) == 7, [1]))"),
    ):
        verdict = await judge(sandbox, code, {"functional": test})
        assert verdict.reward == 1.0, verdict


ESCAPES: list[tuple[str, Any]] = [
    ("def f(x):\n    return 1", {"functional": "assert isinstance(f(2), Point)"}),
    ("def f(x):\n    return 1", {"functional": "assert f(Colour.RED) == 3"}),
    ("def g(x):\n    return 1", {"test": "from solution import f\nassert f(2) == 4"}),
    (
        "def Node(x):\n    return 0\ndef f(x):\n    return 1",
        {"test_list": ["assert f(root) == 2"], "test_setup_code": "root = Node(1)\nroot.left = Node(2)"},
    ),
    ("def f(x):\n    return 10 ** 18 + 9", {"functional": "n, i = f(2), 2\nwhile n % i:\n    i += 1\nassert n == 4"}),
]


@pytest.mark.parametrize(("code", "reference"), ESCAPES, ids=range(len(ESCAPES)))
@in_jails
async def test_a_failure_is_not_the_data_sets_fault(sandbox: Sandbox, code: str, reference: Any) -> None:
    verdict = await judge(sandbox, code, reference, cpu_s=1)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict


@pytest.mark.parametrize("scoring", ["all", "fraction"])
@in_jails
async def test_sleeping_does_not_outlast_the_verifier(sandbox: Sandbox, scoring: str) -> None:
    code = "import os, time\ndef f(x):\n    time.sleep(1.2)\n    os.kill(os.getpid(), 9)"
    tests = {"inputs": [str(i) for i in range(30)], "outputs": ["0"] * 30, "fn_name": "f"}
    verdict = await judge(sandbox, code, tests, timeout_s=9.0, scoring=scoring, cpu_s=1, wall_s=1.5)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict


def test_limits_fit_into_the_time_of_the_verifier() -> None:
    limits = Limits(cpu_s=5.0)
    assert fitted(limits, 600.0) == replace(limits, wall_s=20.0)
    assert fitted(limits, 12.0).wall_limit_s == 4.0
    assert Budget.of(fitted(limits, 12.0), 12.0).longest_chunk == 1


@pytest.mark.parametrize(
    "name", ["__import__('os').system", "lambda: 4", "f()", "a b", "f;g", "f\0", "if", "f" * 5000, "f..g", "1f"]
)
def test_a_name_that_no_answer_can_define_is_the_data_sets_fault(name: str) -> None:
    for reference in (
        {"inputs": ["2"], "outputs": ["4"], "fn_name": name},
        {"tests": [{"call": {"function": name, "args": [2]}, "expect": 4}]},
        {"tests": [{"assert": "assert candidate(2) == 4"}], "entry_point": name},
    ):
        with pytest.raises(InvalidReference, match="not the name of a function"):
            normalise(reference)


def test_names_of_functions() -> None:
    for name in ("f", "Solution().f", "Solution.f", "größe", "a.b.c"):
        assert normalise({"inputs": ["2"], "outputs": ["4"], "fn_name": name}).fn_name == name


def test_checks_are_made_when_asked_for() -> None:
    reference = normalise(["assert f(1) == 1", "def test_f(fixture): assert f(1)", "x = f(1)\nassert x == 3"])
    checks = plan(reference, assemble(RIGHT, reference), Comparison())
    assert len(checks) == 3
    assert isinstance(checks[-1].run, Examination)
    assert [type(check.run).__name__ for check in checks[:1]] == ["FunctionCall"]
    with pytest.raises(InvalidTask, match="Test 2"):
        checks[1]
    with pytest.raises(IndexError):
        checks[3]


def test_an_answer_is_read_once_for_all_names() -> None:
    source = (
        "import a, b as c\nfrom d import (e, f)\nh: int = 1\ni == 2\nasync def j(): pass\nclass K:\n    def m(s): pass"
    )
    assert {name for name in "abcdefghijKm" if defines(source, name)} == set("acefhjK")
    assert not defines("import " + "a" * 200_000 + "!", "a")  # in linear time


def test_one_piece_of_test_code_is_bounded() -> None:
    with pytest.raises(InvalidReference, match="limit"):
        normalise(["assert f(1) == 1\nx = " + "1" * 1_000_001])


def test_what_test_code_needs() -> None:
    code = "try:\n    f(A.x, B_C)\nexcept (MyError, ValueError):\n    assert isinstance(g, Point) and MAX.y"
    assert calls_in(code) >= {"f", "A", "MyError", "Point", "isinstance"}
    assert not calls_in(code) & {"g", "B_C", "MAX"}
    tree = parse("math.pi + np.x + copy(1) + x.re")
    assert modules_in(tree) == {"math", "np"}
    assert imports_for({"math", "np"}, {"np"}, {"isclose", "f"}) == "import math as math\nfrom math import isclose"


def test_only_what_nothing_calls_is_called() -> None:
    def added(code: str) -> list[str]:
        tree = parse(code)
        assert tree is not None
        return [line for line in with_runner(code, tree)[len(code) :].split("\n") if line]

    assert added("def test_a(x=1): f()") == ["test_a()"]
    assert added("def test_a(): f()\ntest_a()") == []
    assert added("def helper(): f()\nassert helper()") == []
    assert added("class TestA:\n    @staticmethod\n    def test_b(): f()") == ["_made = TestA()", "_made.test_b()"]
    assert added("class TestA:\n    def __init__(self, x): pass\n    def test_b(self): f()") == []
    for code in ("def test_a(x): f(x)", "class TestA:\n    def test_b(self, x): f(x)", "def test_a(*, x): f(x)"):
        with pytest.raises(ValueError, match="pytest"):
            added(code)
