"""Putting the data set's code around the answer's, and taking test code apart."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from adjudge_verifiers.code.asserts import (
    called_in,
    helpers_of,
    imports_of,
    simple_assert,
    split_asserts,
    with_check_call,
)
from adjudge_verifiers.code.program import assemble, callable_name, defines
from adjudge_verifiers.code.reference import normalise

SOLUTION = "class Solution:\n    def f(self, x):\n        return x\n"
TESTS = [{"assert": "assert f(1)"}]


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("def f(x):\n    pass", "f", True),
        ("async def f(x):\n    pass", "f", True),
        ("x = 1\nf = lambda x: x", "f", True),
        ("f: Callable = g", "f", True),
        ("from m import g as f", "f", True),
        ("import f", "f", True),
        ("class f:\n    pass", "f", True),
        ("def ff(x):\n    pass", "f", False),
        ("f == 1", "f", False),
        ("class A:\n    def f(self): pass", "f", False),
        ("g = f", "f", False),
    ],
)
def test_defines(source: str, name: str, expected: bool) -> None:
    assert defines(source, name) is expected


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("def f(x): pass", "f", "f"),
        (SOLUTION, "f", "Solution().f"),
        (SOLUTION + "\ndef f(x): pass", "f", "f"),
        (SOLUTION, "Solution().f", "Solution().f"),
        (SOLUTION, "Solution.f", "Solution().f"),
        ("def f(x): pass", "Solution().f", "f"),
        ("x = 1", "f", "f"),
    ],
)
def test_callable_name(source: str, name: str, expected: str) -> None:
    assert callable_name(source, name) == expected


PROMPT = "import math\n\ndef help(x):\n    return x\n\ndef f(x):\n    '''Do.'''\n"
HUMANEVAL = {"prompt": PROMPT, "entry_point": "f", "test": "def check(c):\n    assert c(2) == 3\n"}


@pytest.mark.parametrize(
    "answer",
    [
        "    return x + 1",
        "return x + 1",
        "for i in range(1):\n        x += 1\n    return x",
        "for i in range(1):\n    x += 1\nreturn x",
        "y = x\n    return y + 1",
        "\ty = x\n\treturn y + 1",
        "\n   \n    return x + 1",
        " \n\n  return x + 1",
        "def f(x):\n    return help(x) + 1",
        PROMPT + "    return x + 1",
        "f = lambda x: help(x) + 1",
    ],
)
def test_completions_and_whole_functions(answer: str) -> None:
    program = assemble(answer, normalise(HUMANEVAL))
    names: dict[str, Any] = {}
    exec(program.source, names)  # noqa: S102 -- our own text
    assert names["f"](2) == 3
    assert program.function == "f"


def test_prelude_and_leetcode_imports_go_before() -> None:
    program = assemble(SOLUTION, normalise({"tests": TESTS, "fn_name": "f", "prelude": "LIMIT = 3"}))
    assert program.function == "Solution().f"
    assert program.source.index("LIMIT = 3") < program.source.index("class Solution")
    assert "from typing import *" in program.source
    ast.parse(program.source)


def test_a_future_import_stays_first() -> None:
    answer = "from __future__ import annotations\ndef f(x: List[int]): pass"
    source = assemble(answer, normalise({"tests": TESTS, "prelude": "import math"})).source
    compile(source, "x", "exec")


def test_helpers_cannot_be_redefined() -> None:
    prelude = "def same(a, b):\n    return a == b\n"
    reference = normalise({"tests": [{"assert": "assert same(f(1), 2)"}], "prelude": prelude})
    program = assemble("def same(a, b):\n    return True\ndef f(x):\n    return 1", reference)
    assert program.redefined == {"same"}
    names: dict[str, Any] = {}
    exec(program.source, names)  # noqa: S102 -- our own text
    assert names["same"](1, 2) is False


def test_hostile_answers_are_looked_at_in_linear_time() -> None:
    reference = normalise({**HUMANEVAL, "prelude": "def same(a): pass"})
    for answer in (
        " " * 1_000_000,
        "f " * 500_000,
        "import " * 140_000,
        "f:" * 500_000,
        "\t\n" * 500_000,
        "from " + "," * 999_000,
    ):
        assert assemble(answer, reference).source


@pytest.mark.parametrize(
    ("code", "function", "args", "expected"),
    [
        ("assert f(1, [2]) == (3, 4)", "f", (1, [2]), (3, 4)),
        ("assert 3 == f(-1)", "f", (-1,), 3),
        ("assert (f(1)) == {1, 2}", "f", (1,), {1, 2}),
        ("assert Solution().f('a') == 'b', 'wrong'", "Solution().f", ("a",), "b"),
        ("assert f() == None", "f", (), None),
    ],
)
def test_simple_asserts(code: str, function: str, args: tuple[Any, ...], expected: Any) -> None:
    simple = simple_assert(code)
    assert simple is not None
    assert (simple.function, simple.args, simple.expected) == (function, args, expected)
    assert simple.holds(expected)
    assert not simple.holds(["no"])


@pytest.mark.parametrize(
    "code",
    [
        "assert f(x) == 1",
        "assert f(1) == g(1)",
        "assert f(1) != 1",
        "assert f(1)",
        "assert f(*[1]) == 1",
        "assert f(**{'a': 1}) == 1",
        "assert f(1) == 1 == 1",
        "assert abs(f(1) - 2) < 1",
        "assert f(1)(2) == 3",
        "x = 1\nassert f(1) == 1",
        "assert math.f(1) == 1",
        "not python (",
    ],
)
def test_other_asserts_stay_test_code(code: str) -> None:
    assert simple_assert(code) is None


def test_what_the_program_has_to_define() -> None:
    assert called_in("assert set(f(x)) == g(1)") == ({"f", "g"}, {"set"})
    assert called_in("import m\ndef h(): pass\nfor k in [f]:\n    m.x(k(h()), [q() for q in a])") == (set(), set())
    assert called_in("assert sum(1, 2) == 3") == (set(), {"sum"})
    assert called_in("not (python") == (set(), set())


def test_splitting() -> None:
    assert split_asserts("import m\nassert a(1)\nassert b(2)") == ("import m", ["assert a(1)", "assert b(2)"])
    for whole in (
        "assert a(1)",
        "assert a(1)\nx = 2\nassert b(x)",
        "for i in a():\n    assert i",
        "print(1)\nassert 1\nassert 2",
    ):
        assert split_asserts(whole) == ("", [whole])


def test_check_is_called_once() -> None:
    defined = "def check(candidate):\n    assert candidate(1)"
    assert with_check_call(defined).count("check(candidate)") == 2
    called = defined + "\ncheck(f)"
    assert with_check_call(called) == called


def test_prompts_without_a_body() -> None:
    assert helpers_of("import math\ndef f(x):", "f") == "import math"
    assert helpers_of("Write a function.", "f") == ""
    assert imports_of("import a\nfrom b import c\nx = 1") == "import a\nfrom b import c"
