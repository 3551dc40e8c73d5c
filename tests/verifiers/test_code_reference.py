"""Every layout of tests that data sets use becomes the native form, and what cannot be used says why."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge_verifiers.code import blobs
from adjudge_verifiers.code.reference import AssertTest, CallTest, CodeReference, StdinTest, normalise
from adjudge_verifiers.errors import InvalidReference


def packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw)).decode()


IO = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}
LCB = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}, {"input": "3 4\n", "output": "7\n", "metadata": {}}]
STDIN: list[Any] = [
    IO,
    json.dumps(IO),
    json.dumps(json.dumps(IO)),
    str(IO),  # a Python literal
    {"ground_truth": json.dumps(IO)},
    {"input_output": json.dumps(IO), "difficulty": "x"},
    {**IO, "fn_name": None},
    {"inputs": [["1 2", ""], "3 4\n"], "outputs": [["3", ""], ["7", ""]]},
    {"tests": [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "3 4\n", "stdout": "7\n"}]},
    {"language": "python", "test_cases": [{**case, "type": "stdin_stdout", "fn_name": None} for case in LCB]},
    LCB,
    json.dumps(LCB),
    packed(pickle.dumps(json.dumps(LCB))),
    packed(pickle.dumps(LCB)),
    packed(pickle.dumps(LCB, protocol=0)),
    packed(json.dumps(LCB).encode()),
    {"public_test_cases": json.dumps(LCB[:1]), "private_test_cases": packed(pickle.dumps(json.dumps(LCB[1:])))},
    {
        "case_type": "input",
        "test_cases": [{"stdin": a, "expected_stdout": b} for a, b in zip(*IO.values(), strict=True)],
    },
    {"case_type": "input", "test_cases": json.dumps([{"stdin": "1 2\n", "expected_stdout": "3\n"}, LCB[1]])},
    {
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": [], "output": []},
        "generated_tests": {"input": ["3 4\n"], "output": ["7\n"]},
    },
    [{"input": {"stdin": a}, "output": {"stdout": b}} for a, b in zip(*IO.values(), strict=True)],
    {"official_tests": [{"input": "1 2\n", "output": "3\n"}, LCB[1]]},
    {"unit_tests": IO},
    [{"input": "1 2\n", "expected_output": "3\n"}, json.dumps(LCB[1])],
]


@pytest.mark.parametrize("raw", STDIN, ids=range(len(STDIN)))
def test_reading_and_writing(raw: Any) -> None:
    tests = normalise(raw).tests
    assert [(test.stdin.strip(), test.stdout.strip()) for test in tests if isinstance(test, StdinTest)] == [
        ("1 2", "3"),
        ("3 4", "7"),
    ]


CALLS: list[tuple[Any, str, list[Any], Any]] = [
    ({"inputs": [[1, [2]]], "outputs": [[3]], "fn_name": "f"}, "f", [1, [2]], [3]),
    ({"inputs": ["1\n[2]"], "outputs": ["[3]"], "fn_name": "f"}, "f", [1, [2]], [3]),
    ({"inputs": ['"a"\n\nTrue'], "outputs": ["yes"], "fn_name": "f"}, "f", ["a", True], "yes"),
    ({"inputs": [[{"1": 2}]], "outputs": [None], "fn_name": "f"}, "f", [{1: 2}], None),
    (
        [{"input": "[1]\n2", "output": "true", "testtype": "functional", "metadata": {"func_name": "f"}}],
        "f",
        [[1], 2],
        True,
    ),
    ({"test_cases": [{"type": "function_call", "fn_name": "f", "input": [1], "output": 2}]}, "f", [1], 2),
    ({"tests": [{"call": {"function": "f", "args": [1]}, "expect": {"a": 1}}]}, "f", [1], {"a": 1}),
]


@pytest.mark.parametrize(("raw", "function", "args", "expect"), CALLS, ids=range(len(CALLS)))
def test_function_calls(raw: Any, function: str, args: list[Any], expect: Any) -> None:
    (test,) = normalise(raw).tests
    assert isinstance(test, CallTest)
    assert (test.call.function, test.call.args, test.expect) == (function, args, expect)


def test_wrapped_values_are_unwrapped_only_if_all_are_wrapped() -> None:
    def flags(outputs: list[Any]) -> list[bool]:
        reference = normalise({"inputs": [[1]] * len(outputs), "outputs": outputs, "fn_name": "f"})
        return [test.unwrap for test in reference.tests if isinstance(test, CallTest)]

    assert flags([[1], [2]]) == [True, True]
    assert flags([[1], [2, 3]]) == [False, False]
    assert flags([[1], 2]) == [False, False]


ASSERTS: list[tuple[Any, list[str], str]] = [
    (["assert f(1) == 1", "assert f(2)"], ["assert f(1) == 1", "assert f(2)"], ""),
    (json.dumps(["assert f(1) == 1"]), ["assert f(1) == 1"], ""),
    ({"tests": [{"assert": "assert f(1)"}], "setup": "import math"}, ["assert f(1)"], "import math"),
    ({"assert_case": ["assert f(1)"], "inputs": [""], "outputs": [None]}, ["assert f(1)"], ""),
    (
        {"test_list": ["assert f(1)"], "test_setup_code": "r = N(1)\r\nr.x = 2", "test_imports": ["import math"]},
        ["assert f(1)"],
        "import math\nr = N(1)\nr.x = 2",
    ),
    (
        {"functional": "import math\n\nassert f(1) == 1\nassert f(2) == 2"},
        ["assert f(1) == 1", "assert f(2) == 2"],
        "import math",
    ),
    ({"functional": "for i in range(3):\n    assert f(i)"}, ["for i in range(3):\n    assert f(i)"], ""),
    ("assert f(1) == 1\nassert f(2) == 2", ["assert f(1) == 1", "assert f(2) == 2"], ""),
    (
        {"case_type": "assert", "test_cases": [{"assert_code": "assert f(1)", "import_prefix": "import math"}]},
        ["import math\nassert f(1)"],
        "",
    ),
    (packed(pickle.dumps(["assert f(1)"])), ["assert f(1)"], ""),
    ({"test": {"code": "assert f(1)"}}, ["assert f(1)"], ""),
]


@pytest.mark.parametrize(("raw", "codes", "setup"), ASSERTS, ids=range(len(ASSERTS)))
def test_asserts(raw: Any, codes: list[str], setup: str) -> None:
    reference = normalise(raw)
    assert [test.code for test in reference.tests if isinstance(test, AssertTest)] == codes
    assert reference.setup == setup


def test_humaneval() -> None:
    prompt = "import math\ndef help(x):\n    return x\ndef f(x):\n    '''Do.'''\n"
    reference = normalise(
        {
            "prompt": prompt,
            "entry_point": "f",
            "test": "def check(c):\n    assert c(1)\n",
            "canonical_solution": "    return 1\n",
        }
    )
    (test,) = reference.tests
    assert isinstance(test, AssertTest)
    assert test.code.endswith("check(candidate)\n")
    assert "def help" in reference.setup
    assert "def f" not in reference.setup
    assert (reference.prompt, reference.entry_point) == (prompt, "f")
    assert reference.solution == prompt + "    return 1\n"


def test_roll_calls_check_with_its_entry_point() -> None:
    case = {"assert_code": "def check(c):\n    assert c(1)", "entry_point": "Solution().f"}
    (test,) = normalise({"case_type": "assert", "test_cases": [case]}).tests
    assert isinstance(test, AssertTest)
    assert test.code.endswith("\ncheck(Solution().f)")


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("unpickled",))


BAD: list[tuple[Any, str]] = [
    ({}, "empty"),
    ([], "no tests"),
    ("", "empty"),
    ("   ", "empty"),
    (None, "NoneType"),
    (5, "int"),
    ({"inputs": ["1"], "outputs": []}, "1 inputs but 0 outputs"),
    ({"inputs": [], "outputs": []}, "no tests"),
    ({"inputs": "[1", "outputs": "[1]"}, "neither JSON nor a Python literal"),
    ({"inputs": [None], "outputs": ["1"]}, "test 1"),
    ('{"inputs": [', "not JSON"),
    ("hello there", "no"),
    ({"tests": []}, "no tests"),
    ({"tests": [{"stdin": "1"}]}, "test 1"),
    ({"tests": [{"assert": "assert ("}]}, "test 1 is not Python"),
    ({"tests": [{"assert": "x" + "." + "y" * 3 + "\n  z"}]}, "test 1 is not Python"),
    ({"tests": [{"stdin": "", "stdout": ""}], "setup": "def"}, "setup code is not Python"),
    ({"tests": [{"stdin": "", "stdout": "", "cost": 1}]}, "cost"),
    ({"tests": [{"stdin": "", "stdout": ""}], "bogus": 1}, "bogus"),
    ({"tests": [{"call": {"args": [1]}, "expect": 1}]}, "fn_name"),
    ({"foo": 1}, "no tests found"),
    ({"pytest": ""}, "no tests found|no test"),
    ({"pytest": "def test_x(: pass"}, "test 1 is not Python"),
    ({"solution_file": "x"}, "solution_file"),
    ({"case_type": "pytest", "test_cases": [1]}, "pytest"),
    ({"case_type": "check_based", "test_cases": [1]}, "checker"),
    ({"official_tests": [LCB[0]], "generated_checker": "def"}, "checker is not Python"),
    ({"official_tests": [LCB[0]], "interaction_format": "Ask."}, "interactive"),
    ({"tests": [{"stdin": ""}], "checker": '#include "testlib.h"'}, "testlib.h"),
    ({"tests": [{"stdin": ""}], "checker": "pass", "interactor": "pass"}, "both"),
    ({"tests": [{"assert": "assert f(1)"}], "checker": "pass"}, "no test of standard input"),
    ({"tests": [{"stdin": "", "args": ["x"]}], "interactor": "pass"}, "no arguments"),
    ({"tests": [{"stdin": "", "stdout": "", "level": 0}]}, "level"),
    ({"tests": [{"stdin": "", "stdout": ""}], "input_file": "../x"}, "file name"),
    ({"test": "def check(candidate):\n    assert candidate(1)"}, "entry_point"),
    ({"inputs": ["@"], "outputs": ["1"], "fn_name": "f"}, "test 1"),
    ({"test_cases": [{"type": "function_call", "input": [1], "output": 2}]}, "fn_name"),
    ({"test_cases": [{"type": "unheard", "input": "1", "output": "2"}]}, "unheard"),
    ([{"input": {"stdin": "", "../data.txt": ""}, "output": {"stdout": ""}}], "data.txt"),
    ([{"input": {"stdin": ""}, "output": {}}], "no `stdout` and no file"),
    ({"public_tests": {"input": ["1"], "output": []}}, "1 inputs but 0 outputs"),
    ("[" * 100_000, "nested too deeply"),
    ("[" + "9" * 5000 + "]", "5000 digits"),
    (packed(pickle.dumps(Evil())), "refused"),
    (packed(pickle.dumps(Evil(), protocol=0)), "refused"),
    (packed(pickle.dumps([Evil()])), "refused"),
    (packed(b"\x80\x04]q\x00h\x00a."), "no known kind|not an|a test is"),
    (packed(b"no json"), "neither JSON nor a pickle"),
    (base64.b64encode(b"not zlib at all").decode(), "zlib"),
    (packed(b"x" * 1000)[:-12], "base64|zlib"),
]


@pytest.mark.parametrize(("raw", "says"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_used_says_why(raw: Any, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidReference, match=says):
        normalise(raw)
    assert "unpickled" not in capsys.readouterr().out


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(InvalidReference, match="more than 64 MiB"):
        normalise(packed(b" " * (blobs.MAX_BYTES + 10)))


def test_a_deep_or_self_referring_pickle_ends() -> None:
    deep = b"\x80\x04" + b"]" * 5000 + b"a" * 4999 + b"."
    with pytest.raises(ValueError, match="too deeply"):
        blobs.read_pickle(deep)
    laughs: Any = ["x"]
    for _ in range(40):
        laughs = [laughs, laughs]
    with pytest.raises(ValueError, match="too"):
        blobs.read_pickle(pickle.dumps(laughs))
    key = b"\x80\x04}" + b")" + b"\x85" * 200_000 + b"Ns."
    with pytest.raises(ValueError, match="broken"):
        blobs.read_pickle(key)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN, st.integers(0, 5))
def test_plain_pickles_are_read_as_pickle_would(value: Any, protocol: int) -> None:
    if protocol < 3 and _holds_bytes(value):
        return  # these protocols write bytes as a call
    assert blobs.read_pickle(pickle.dumps(value, protocol=protocol)) == value


def _holds_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_bytes, value.values()))
    return isinstance(value, bytes) or (isinstance(value, list | tuple) and any(map(_holds_bytes, value)))


@given(st.binary(max_size=60))
def test_broken_pickles_raise_value_errors(raw: bytes) -> None:
    with contextlib.suppress(ValueError):
        blobs.read_pickle(b"\x80\x04" + raw)


KEYS = [
    *(
        "tests",
        "inputs",
        "outputs",
        "fn_name",
        "test",
        "entry_point",
        "test_list",
        "stdin",
        "stdout",
        "assert",
        "input",
    ),
    *("output", "type", "test_cases", "functional", "public_tests", "prompt", "metadata", "call", "expect", "setup"),
    *("prelude", "test_setup_code", "test_imports", "assert_case", "unit_tests", "private_test_cases"),
]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(ANY_JSON)
def test_anything_is_a_reference_or_a_complaint(raw: Any) -> None:
    with contextlib.suppress(InvalidReference):
        assert isinstance(normalise(raw), CodeReference)
