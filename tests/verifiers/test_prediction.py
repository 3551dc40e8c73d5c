"""Predictions of outputs and inputs: the worked examples, what is read without running it, and answers that cheat."""

from __future__ import annotations

import collections
import contextlib
import math
from collections.abc import AsyncIterator
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
from adjudge_verifiers import registry
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.errors import InvalidReference, Unavailable, boundary
from adjudge_verifiers.prediction.answer import find_prediction
from adjudge_verifiers.prediction.equality import same
from adjudge_verifiers.prediction.input import CodeInputPrediction
from adjudge_verifiers.prediction.output import CodeOutputPrediction
from adjudge_verifiers.prediction.reference import PredictionReference
from adjudge_verifiers.prediction.written import MAX_CHARS, NotWritten, arguments, statement, value_of

in_sandbox = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def judge(sandbox: Sandbox | None, name: str, response: str, reference: Any, **options: Any) -> Verdict:
    verifier = registry.get(name)
    with boundary(f"verifier {name!r}") as outcome:
        try:
            checked = type(verifier).reference_adapter().validate_python(reference)
        except ValidationError as error:
            raise InvalidReference(str(error)) from None
        chosen = type(verifier).Options.model_validate(options)
        call = Call("", checked, chosen, extraction=verifier.extract(response, chosen))
        return await verifier.verify(call, Context(sandbox))  # type: ignore[misc]
    assert outcome.failure is not None
    return outcome.failure


EXAMPLES = [(each.name, example) for each in (CodeOutputPrediction, CodeInputPrediction) for example in each.examples]


@in_sandbox
@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=range(len(EXAMPLES)))
async def test_examples(sandbox: Sandbox, name: str, example: Any) -> None:
    verdict = await judge(sandbox, name, example.response, example.reference, **example.options)
    assert (verdict.status, verdict.reward) == (example.status, example.reward), verdict
    assert example.category is None or verdict.category == example.category, verdict
    assert not verdict.ok or set(verdict.parts) == {"accuracy"}


F = "def f(*args, **kwargs):\n    return list(args) + sorted(kwargs.items())"
OUTPUTS: list[tuple[str, str, str]] = [  # body of f, input, a right answer
    ("return x", "float('nan')", "nan"),
    ("return x", "float('inf')", "-float('-inf')"),
    ("return -x", "2.5", "-2.5"),
    ("return set(x)", "[]", "set()"),
    ("return set(x)", "[1, 2]", "{2, 1}"),
    ("return frozenset(x)", "'a'", "frozenset({'a'})"),
    ("import collections\n    return collections.Counter(x)", "'aab'", "Counter({'a': 2, 'b': 1})"),
    ("from collections import defaultdict\n    d = defaultdict(list); d[x] = [1]; return d", "3", "{3: [1]}"),
    ("from collections import defaultdict\n    d = defaultdict(list); d[x] = [1]; return d", "3",
     "defaultdict(<class 'list'>, {3: [1]})".replace("<class 'list'>", "list")),
    ("from collections import deque\n    return deque(x, 2)", "'abc'", "deque(['b', 'c'], maxlen=2)"),
    ("from fractions import Fraction\n    return Fraction(x)", "0.5", "Fraction(1, 2)"),
    ("import datetime\n    return datetime.date(2024, 1, x)", "5", "datetime.date(2024, 1, 5)"),
    ("return x * 1j + 1", "2", "(1+2j)"),
    ("return x.encode()", "'é'", r"b'\xc3\xa9'"),
    ("return x[0]", "['a\\n\"b\\'']", "'a\\n\"b\\''"),
    ("return (x,)", "1", "(1,)"),
    ("return x, x", "1", "(1, 1)"),
    ("return x is None", "None", "True"),
    ("return 10 ** x", "40", "1" + "0" * 40),
    ("x.append(1); return x", "[]", "[1]"),
    ("return {1: {'a': [x]}}", "'é'", "{1: {'a': ['é']}}"),
    ("return [v for v in range(x)]", "100", repr(list(range(100)))),
]  # fmt: skip


@in_sandbox
@pytest.mark.parametrize(("body", "given", "answer"), OUTPUTS)
async def test_outputs_as_repr_writes_them(sandbox: Sandbox, body: str, given: str, answer: str) -> None:
    reference = {"code": f"def f(x):\n    {body}", "input": given}
    for response in (f"<answer>{answer}</answer>", f"```python\nassert f({given}) == {answer}\n```"):
        verdict = await judge(sandbox, "code_output_prediction", response, reference)
        assert verdict.reward == 1.0, verdict
    wrong = await judge(sandbox, "code_output_prediction", "<answer>'no'</answer>", reference)
    assert (wrong.reward, wrong.category) == (0.0, "wrong_answer")


CHEATS = [
    "f(5)",
    "f(5) == f(5)",
    "assert f(5) == f(5)",
    "assert True",
    "assert f(5)",
    "assert f(6) == 10",
    "(lambda x: 2 * x)(5)",
    "2 * 5",
    "eval('10')",
    "__import__('os').system('true') or 10",
    "type('E', (), {'__eq__': lambda s, o: True})()",
    "[x for x in [10]][0]",
    "10 if True else 0",
    "assert f(5) == 9\nassert f(5) == 10",
    "10 or 9",
    "f'{10}'",
    "...",
    "x",
    "",
]


@in_sandbox
@pytest.mark.parametrize("answer", CHEATS)
async def test_an_output_that_is_no_prediction_gets_nothing(sandbox: Sandbox, answer: str) -> None:
    reference = {"code": "def f(x):\n    return 2 * x", "input": "5", "output": "10"}
    for response in (f"[ANSWER]{answer}[/ANSWER]", f"```output\n{answer}\n```"):
        verdict = await judge(sandbox, "code_output_prediction", response, reference)
        assert verdict.ok
        assert verdict.reward == 0.0, verdict
        loose = await judge(sandbox, "code_output_prediction", response, reference, expressions=True)
        assert loose.ok
        assert loose.reward == (1.0 if answer in LOOSELY_RIGHT else 0.0), loose


LOOSELY_RIGHT = {
    "__import__('os').system('true') or 10",  # in a jail of its own, where it may call what it likes
    "(lambda x: 2 * x)(5)",
    "2 * 5",
    "eval('10')",
    "[x for x in [10]][0]",
    "10 if True else 0",
    "10 or 9",
}
INPUTS: list[tuple[str, str, str, float]] = [  # parameters and body, output, answer, reward
    ("a, b=0: a + b", "5", "2, 3", 1.0),
    ("a, b=0: a + b", "5", "f(2, b=3)", 1.0),
    ("a, b=0: a + b", "5", "assert f(2, 3) == 5", 1.0),
    ("a, b=0: a + b", "5", "assert 5 == f(a=2, b=3)", 1.0),
    ("a, b=0: a + b", "5", "assert f(2, 3) == 6", 0.0),
    ("a, b=0: a + b", "5", "(2, 3)", 0.0),
    ("a: len(a)", "100", "[0] * 100", 1.0),
    ("a: len(a)", "3", "{'a', 'b', 'c'}", 1.0),
    ("a: len(a)", "3", "'a' * 4", 0.0),
    ("a: len(a)", "3", "Counter('abcc')", 1.0),
    ("a: len(a)", "0", "set()", 1.0),
    ("a: a is None", "True", "None", 1.0),
    ("a: 1 / a", "1.0", "0", 0.0),
    ("a: a", "7", "f(7)", 1.0),
    ("a: a", "7", "f(f(7))", 0.0),
    ("a: a", "7", "1) or (7", 0.0),
    ("a: a", "7", "7); import os; (7", 0.0),
    ("a: a", "7", "lambda: 7", 0.0),
    ("a: a", "7", "type('E', (), {'__eq__': lambda s, o: True})()", 0.0),
    ("a: a", "7", "__import__('os')._exit(0)", 0.0),
    ("a: a", "7", "7 if f else 8", 0.0),
    ("a: a", "[7]", "[7]\n", 1.0),
]


@in_sandbox
@pytest.mark.parametrize(("function", "output", "answer", "reward"), INPUTS)
async def test_inputs(sandbox: Sandbox, function: str, output: str, answer: str, reward: float) -> None:
    parameters, _, body = function.partition(": ")
    reference = {"code": f"def f({parameters}):\n    return {body}", "output": output}
    verdict = await judge(sandbox, "code_input_prediction", f"[ANSWER]{answer}[/ANSWER]", reference)
    assert verdict.ok, verdict
    assert verdict.reward == reward, verdict


@in_sandbox
@pytest.mark.parametrize(
    ("answer", "category"),
    [
        ("[1] * 10 ** 12", "wrong_format"),
        ("sum(range(10 ** 12))", "time_limit"),
        ("'a' * (64 << 20)", "output_limit"),
        ("[" * 5000, "wrong_format"),
        ("-" * 50_000 + "1", "wrong_format"),
        ("9" * 60_000, "wrong_format"),
        ("[1]*" * 20_000 + "1", "wrong_format"),
        ("1," * (MAX_CHARS + 1), "wrong_format"),
        ("1, " * 30_000, "runtime_error"),
        ("{" + ", ".join(str(i * (2**61 - 1)) for i in range(1, 3000)) + "}", "wrong_format"),
    ],
    ids=lambda text: text[:12],
)
async def test_bombs(sandbox: Sandbox, answer: str, category: str) -> None:
    reference = {"code": "def f(x):\n    return len(x)", "output": "3"}
    verdict = await judge(sandbox, "code_input_prediction", f"<answer>{answer}</answer>", reference, cpu_s=0.5)
    assert verdict.ok, verdict
    assert verdict.reward == 0.0
    assert verdict.category in (category, "memory_limit"), verdict


@in_sandbox
@pytest.mark.parametrize(
    ("code", "given", "why"),
    [
        ("import random\ndef f(x):\n    return random.random()", "1", "different values"),
        ("def f(x):\n    return 1 / 0", "1", "ZeroDivisionError"),
        ("def f(x):\n    return object()", "1", "not plain data"),
        ("def g(x):\n    return x", "y", "y"),
        ("def f(x):\n    while True: pass", "1", "CPU"),
    ],
)
async def test_a_broken_function_is_the_data_sets_fault(sandbox: Sandbox, code: str, given: str, why: str) -> None:
    for name in ("code_output_prediction", "code_input_prediction"):
        verdict = await judge(sandbox, name, "<answer>1</answer>", {"code": code, "input": given}, cpu_s=0.5)
        assert (verdict.status, verdict.reward) == ("invalid_task", None)
        assert why in verdict.reason


@in_sandbox
async def test_the_evaluated_expression_sees_neither_function_nor_output(sandbox: Sandbox) -> None:
    look = "[k for k in globals()] + [open('/proc/self/cmdline').read(), open(__file__).read()]"
    reference = {"code": "SECRET = 'hunter2'\ndef f(x):\n    return x", "output": "'hunter3'"}
    verdict = await judge(sandbox, "code_input_prediction", f"<answer>{look}</answer>", reference)
    assert verdict.reward == 0.0
    assert "hunter" not in verdict.evidence["returned"] + verdict.reason


MINUS = "(a, b):\n    return a - b"
METHOD = "class Solution:\n    def f(self, x):\n        return -x"
ROWS: list[tuple[str, Any, str]] = [
    ("code_output_prediction", {"code": "def f(x):\n    return x", "input": "1", "output": "1", "id": "sample_0"}, "1"),
    ("code_output_prediction", {"snippet": "def f(x):\n    return x", "input": "1", "imports": ["import re"]}, "1"),
    ("code_output_prediction", {"code": "def g(x):\n    return x", "args": [1]}, "g(1) == 1"),
    ("code_output_prediction", {"code": f"def main{MINUS}", "input": {"a": 3, "b": 2}}, '{"output": 1}'),
    ("code_output_prediction", {"functional": "def f(x):\n    return x", "prompt": "..\nassert f([1]) == ??"}, "[1]"),
    ("code_output_prediction", '{"output": {"a": [true]}}', '{"output": {"a": [true]}}'),
    ("code_output_prediction", "{'ground_truth': 'x y'}", "x y"),
    ("code_output_prediction", {"output": None, "has_output": True}, "null"),
    ("code_input_prediction", {"functional": "def f(x):\n    return x", "prompt": "assert f(??) == [1]"}, "f([1])"),
    ("code_input_prediction", {"code": "def f(x):\n    return x", "input": "'a'"}, "'a'"),
    ("code_input_prediction", {"code": f"def f{MINUS}", "kwargs": {"a": 3, "b": 2}}, '{"input": {"b": 1, "a": 2}}'),
    ("code_input_prediction", {"input": {"a": 3}}, '{"input": {"a": 3}}'),
    ("code_input_prediction", {"code": METHOD, "function": "Solution().f", "output": 2}, "Solution().f(-2)"),
]  # fmt: skip


@in_sandbox
@pytest.mark.parametrize(("name", "reference", "answer"), ROWS)
async def test_rows_of_data_sets(sandbox: Sandbox, name: str, reference: Any, answer: str) -> None:
    verdict = await judge(sandbox, name, f"<answer>{answer}</answer>", reference)
    assert verdict.reward == 1.0, verdict
    wrong = await judge(sandbox, name, "<answer>'zzz'</answer>", reference)
    assert wrong.reward == 0.0, wrong


async def test_without_a_sandbox() -> None:
    reference = {"code": "def f(x):\n    return x", "output": "1"}
    verdict = await judge(None, "code_input_prediction", "<answer>1</answer>", reference)
    assert verdict.status == Unavailable.status
    recorded = await judge(None, "code_output_prediction", '{"output": 1}', {"output": 1})
    assert recorded.reward == 1.0


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"code": "def f(x):\n    return x"},
        {"code": "def f(", "input": "1"},
        {"code": "def f(x): pass", "input": "1) + (2"},
        {"code": "def f(x): pass", "input": "1", "args": [1]},
        {"code": "def f(x): pass", "input": "1", "function": "os.system('x')"},
        {"output": 1, "surprise": 2},
        7,
    ],
)
def test_unusable_references(raw: Any) -> None:
    with pytest.raises(ValidationError):
        PredictionReference.model_validate(raw)


FOUND: list[tuple[str, str, str, str]] = [
    ("[ANSWER]1[/ANSWER]\n[ANSWER] 2 [/ANSWER]", "answered", "2", "bracket"),
    ("assert f(1) == 2\n[/ANSWER]", "answered", "assert f(1) == 2", "bracket"),
    ("[ANSWER]1", "truncated", "", "bracket"),
    ("<answer>\n```python\n3\n```\n</answer>", "answered", "3", "answer_tag"),
    ("so `x`\n```input\n'a', 1\n```\nDone.", "answered", "'a', 1", "fence"),
    ("```\n1\n```\n```output\n2", "truncated", "", "fence"),
    ('Thus {"a": {}} and {"output": {"b": [1]}}.', "answered", '{"output": {"b": [1]}}', "json"),
    ("We see\nassert f(1) == 2\nwhich is it", "answered", "assert f(1) == 2", "assert"),
    ("Therefore\n**Output: [1, 2]**", "answered", "[1, 2]", "last_line"),
    ("it gives\n\n`'a'`\n", "answered", "'a'", "last_line"),
    ("<think>[ANSWER]1[/ANSWER]</think>", "none", "", ""),
    ("<think>", "truncated", "", "thinking"),
    ("", "none", "", ""),
]


@pytest.mark.parametrize(("response", "outcome", "text", "method"), FOUND)
def test_where_the_answer_is_found(response: str, outcome: str, text: str, method: str) -> None:
    conventions = ("bracket", "answer_tag", "fence", "json", "assert", "last_line")
    found = find_prediction(response, conventions, ("output",))  # type: ignore[arg-type]
    assert (found.outcome, found.text, found.method) == (outcome, text, method)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.complex_numbers(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
    | st.dictionaries(st.text() | st.integers(), inner, max_size=4) | st.sets(st.integers(), max_size=4)
    | st.frozensets(st.text(), max_size=4) | st.lists(st.integers()).map(collections.deque)
    | st.lists(st.text(max_size=2)).map(collections.Counter),
    max_leaves=12,
)  # fmt: skip


@given(PLAIN)
def test_what_repr_writes_is_read(value: Any) -> None:
    read = value_of(repr(value))
    assert repr(read) == repr(value) or read == value
    assert same(value, read, "python")
    assert same(value, read, "strict")
    call = arguments(f"{value!r}, k={value!r}").values()
    assert same([value, value], [call[0][0], call[1]["k"]], "python")
    said = statement(f"assert f({value!r}) == {value!r}", "f")
    assert said.call is not None
    assert said.value is not None
    assert same(value, value_of(said.value), "python")


@given(PLAIN, PLAIN)
def test_python_equality_is_pythons(one: Any, other: Any) -> None:
    assert same(one, other, "python") == (one == other)


@given(st.text(max_size=60))
def test_reading_never_does_anything_else_than_refuse(text: str) -> None:
    for read in (value_of, arguments, lambda text: statement(text, "f")):
        with contextlib.suppress(NotWritten):
            read(text)  # type: ignore[operator]


def test_equalities() -> None:
    assert same(8, 8.0, "python")
    assert same(1, True, "python")
    assert not same(8, 8.0, "strict")
    assert not same((1,), [1], "python")
    assert same([1], (1,), "json")
    assert same({"a": "[true]"}, {"a": [True]}, "json")
    assert same(math.nan, math.nan, "python")
    assert same([0.1 + 0.2], [0.3], "python", 1e-9)
    assert not same([0.1 + 0.2], [0.3], "python")
    assert not same({1: 2}, {2: 2}, "python")
    assert not same(10**400, 1.0, "python", 0.1)
