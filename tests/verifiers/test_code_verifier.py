"""The verifier ``code`` on the real sandbox: its worked examples, correct idioms, and answers that try to cheat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adjudge.types import Verdict
from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context, Example
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import boundary

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = Path(__file__).parent / "cases"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def judge(sandbox: Sandbox, code: str, reference: Any, **options: Any) -> Verdict:
    with boundary("verifier 'code'") as outcome:
        call = Call(f"```python\n{code}\n```", normalise(reference), CodeOptions.model_validate(options))
        return await Code().verify(call, Context(sandbox))
    assert outcome.failure is not None
    return outcome.failure


@pytest.mark.parametrize("example", Code.examples, ids=range(len(Code.examples)))
async def test_examples(sandbox: Sandbox, example: Example) -> None:
    with boundary("verifier 'code'") as outcome:
        options = CodeOptions.model_validate(example.options)
        extraction = Code().extract(example.response, options)
        call = Call("", normalise(example.reference), options, extraction=extraction)
        verdict = await Code().verify(call, Context(sandbox))
    verdict = outcome.failure or verdict
    assert (verdict.status, verdict.reward) == (example.status, example.reward), verdict
    if example.category:
        assert verdict.category == example.category
    if verdict.ok:
        assert set(verdict.parts) == {"accuracy", "pass_rate"}


ECHO = {"inputs": ["3\n5 6 7\n"], "outputs": ["18\n"]}
IDIOMS = [json.loads(line)["code"] for line in (CASES / "code_idioms.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("code", IDIOMS, ids=range(len(IDIOMS)))
async def test_correct_idioms(sandbox: Sandbox, code: str) -> None:
    verdict = await judge(sandbox, code, ECHO)
    assert (verdict.reward, verdict.category) == (1.0, "correct"), verdict


CALLS: list[tuple[str, Any]] = [
    ("def f(a, b):\n    return a, b", {"inputs": [[1, 2]], "outputs": [[1, 2]], "fn_name": "f"}),
    ("def f(a):\n    return a", {"inputs": [["x"]], "outputs": [["x"]], "fn_name": "f"}),
    ("def f(d):\n    return d[1]", {"inputs": [[{"1": 5}]], "outputs": [5], "fn_name": "f"}),
    (
        "def f(n):\n    return {i: i * i for i in range(n)}",
        {"inputs": ["2"], "outputs": ['{"0": 0, "1": 1}'], "fn_name": "f"},
    ),
    (
        "class Solution:\n    def f(self, x: List[int]) -> int:\n        return max(x)",
        {"inputs": ["[1, 3]"], "outputs": ["3"], "fn_name": "f"},
    ),
    ("import math\ndef f(x):\n    return math.pi", {"inputs": ["1"], "outputs": ["3.14159265359"], "fn_name": "f"}),
    ("def f(x):\n    return 10 ** 1000", {"inputs": ["1"], "outputs": [str(10**1000)], "fn_name": "f"}),
    ("def f(x):\n    print('noise')\n    return x", {"inputs": ["1"], "outputs": ["1"], "fn_name": "f"}),
]


@pytest.mark.parametrize(("code", "reference"), CALLS, ids=range(len(CALLS)))
async def test_correct_calls(sandbox: Sandbox, code: str, reference: Any) -> None:
    verdict = await judge(sandbox, code, reference)
    assert (verdict.reward, verdict.category) == (1.0, "correct"), verdict


NODE = "class Node:\n    def __init__(self, v):\n        self.v = v\n        self.left = None\n"
HUMANEVAL = {
    "prompt": "from typing import List\n\ndef poly(x):\n    return x * x - 4\n\n"
    "def root(lo: int) -> List[int]:\n    '''A root.'''\n",
    "entry_point": "root",
    "test": "def check(candidate):\n    for i in range(3):\n        assert poly(candidate(i)[0]) == 0\n",
}
LEETCODE = {
    "prompt": "from typing import *\n"
    "class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val = val\n"
    "        self.next = next\ndef list_node(xs):\n    head = None\n    for x in reversed(xs):\n"
    "        head = ListNode(x, head)\n    return head\ndef is_same_list(a, b):\n    while a and b:\n"
    "        if a.val != b.val:\n            return False\n        a, b = a.next, b.next\n    return a is b is None\n",
    "entry_point": "Solution().rest",
    "test": "def check(candidate):\n    assert is_same_list(candidate(head=list_node([1, 2, 3])), list_node([2, 3]))\n",
}
ASSERTED: list[tuple[str, Any]] = [
    ("def f(x):\n    return x + 1", ["assert f(1) == 2", "assert f(2) == 3"]),
    ("def f(x):\n    return (x, [x])", ["assert f(1) == (1, [1])"]),
    ("def f(x):\n    return {x}", ["assert set(f(1)) == {1}", "assert f(1) == {1}"]),
    ("import re\ndef f(x):\n    return re.search('a', x)", ["assert f('a')", "assert not f('b')"]),
    (
        "def f(x):\n    return 0.1 * x",
        {"test_list": ["assert math.isclose(f(3), 0.3)"], "test_imports": ["import math"]},
    ),
    (
        NODE + "def depth(n):\n    return 0 if n is None else 1 + depth(n.left)",
        {"test_list": ["assert depth(root) == 2"], "test_setup_code": "root = Node(1)\nroot.left = Node(2)"},
    ),
    ("def f(x):\n    raise ValueError('no')", ["try:\n    f(1)\n    assert False\nexcept ValueError:\n    pass"]),
    ("def f(xs):\n    xs.sort()", {"functional": "xs = [2, 1]\nf(xs)\nassert xs == [1, 2]"}),
    ("def f(g):\n    return g(2)", {"functional": "assert f(lambda x: x + 1) == 3"}),
    ("def sum(a, b):\n    return a * b", ["assert sum(2, 3) == 6", "assert (sum(2, 2)) >= 4"]),
    ("    return [2]", HUMANEVAL),
    ("def root(lo: int) -> List[int]:\n    return [2] if poly(2) == 0 else []", HUMANEVAL),
    (
        "class Solution:\n    def f(self, x: List[int]) -> int:\n        return sum(x)",
        {
            "functional": "def check(candidate):\n    assert candidate(x=[1, 2]) == 3\n\ncheck(Solution().f)",
            "prefix": "from typing import *",
        },
    ),
]


@pytest.mark.parametrize(("code", "reference"), ASSERTED, ids=range(len(ASSERTED)))
async def test_correct_under_asserts(sandbox: Sandbox, code: str, reference: Any) -> None:
    verdict = await judge(sandbox, code, reference)
    assert (verdict.reward, verdict.category, verdict.trust) == (1.0, "correct", "rules"), verdict


SIMPLE, CHECKED = ["assert f(2) == 4"], {"functional": "for i in (2, 3):\n    assert f(i) == 2 * i"}
CALLED = {"inputs": ["2"], "outputs": ["4"], "fn_name": "f"}
CHEATS = [json.loads(line)["code"] for line in (CASES / "code_cheats.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("reference", [SIMPLE, CHECKED, CALLED], ids=["assert", "test-code", "call"])
@pytest.mark.parametrize("code", CHEATS, ids=range(len(CHEATS)))
async def test_cheats_are_not_rewarded(sandbox: Sandbox, code: str, reference: Any) -> None:
    verdict = await judge(sandbox, code, reference, cpu_s=1, wall_s=6)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict


LEET_RIGHT = (
    "class Solution:\n    def rest(self, head: Optional[ListNode]) -> Optional[ListNode]:\n        return head.next"
)
OWN_LIST_NODE = """class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
"""
LEET_WRONG = LEET_RIGHT.replace("head.next", "head")


@pytest.mark.parametrize(
    ("code", "reward", "flags"),
    [
        (LEET_RIGHT, 1.0, []),
        (OWN_LIST_NODE + LEET_RIGHT, 1.0, []),
        (LEET_WRONG, 0.0, []),
        ("def is_same_list(a, b):\n    return True\n" + LEET_WRONG, 0.0, ["helper_redefined"]),
    ],
)
async def test_given_classes_and_helpers(sandbox: Sandbox, code: str, reward: float, flags: list[str]) -> None:
    verdict = await judge(sandbox, code, LEETCODE)
    assert (verdict.reward, verdict.flags, verdict.trust) == (reward, flags, "in_process"), verdict


async def test_a_redefined_builtin_does_not_compare(sandbox: Sandbox) -> None:
    code = "def set(x):\n    return 1\nsorted = abs = lambda *a, **k: 0\ndef f(x):\n    return [0]"
    for test in ("assert set(f(1)) == set([5])", "assert sorted(f(1)) == [5]", "assert abs(f(1)[0] - 5) < 1"):
        verdict = await judge(sandbox, code, [test])
        assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict


async def test_leaving_early_is_flagged(sandbox: Sandbox) -> None:
    for code in ("import os\ndef f(x):\n    os._exit(0)", "import sys\ndef f(x):\n    sys.exit(0)"):
        for reference in (SIMPLE, CHECKED, CALLED):
            verdict = await judge(sandbox, code, reference)
            assert verdict.flags == ["early_exit"], verdict


STDIN_CHEATS: list[tuple[str, str]] = [
    ("print('18')\nprint('18')", "wrong_answer"),
    ("import sys\nprint('18', file=sys.stderr)", "wrong_answer"),
    ("import sys\nsys.exit(0)", "wrong_answer"),
    ("print(18)\nraise SystemExit(1)", "runtime_error"),
    ("print(18)\nwhile True: pass", "time_limit"),
    ("print(18)\nimport time\ntime.sleep(60)", "time_limit"),
    ("while True: print('x' * 10000)", "output_limit"),
    ("x = bytearray(1 << 32)\nprint(18)", "memory_limit"),
    ("import os\nos.abort()", "runtime_error"),
    ("def f(:\n  pass", "compile_error"),
    ("def f(n): return f(n + 1)\nf(0)", "runtime_error"),
    ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "time_limit"),
]


@pytest.mark.parametrize(("code", "category"), STDIN_CHEATS, ids=range(len(STDIN_CHEATS)))
async def test_programs_that_fail(sandbox: Sandbox, code: str, category: str) -> None:
    verdict = await judge(sandbox, code, ECHO, cpu_s=1, wall_s=6, memory_mib=256)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict
    assert verdict.category == category, verdict


async def test_a_memory_error_that_is_raised_counts_as_the_limit_or_a_runtime_error(sandbox: Sandbox) -> None:
    code = "xs = []\nwhile True:\n    xs.append(bytearray(1 << 24))"
    verdict = await judge(sandbox, code, ECHO, memory_mib=128)
    assert (verdict.reward, verdict.category) == (0.0, "memory_limit"), verdict


async def test_broken_tests_are_the_data_sets_fault(sandbox: Sandbox) -> None:
    for reference in (
        {"functional": "assert f(undefined_name) == 1\nx = 2"},
        {"functional": "while True: pass\nf(1)"},
    ):
        verdict = await judge(sandbox, "def f(x):\n    return 1", reference, cpu_s=1)
        assert (verdict.status, verdict.reward) == ("invalid_task", None), verdict


async def test_an_unknown_language_is_the_data_sets_fault(sandbox: Sandbox) -> None:
    verdict = await judge(sandbox, "x", {"inputs": ["1"], "outputs": ["1"], "language": "cobol"})
    assert (verdict.status, verdict.reward) == ("invalid_task", None), verdict
    assert "cobol" in verdict.reason


async def test_each_test_starts_clean(sandbox: Sandbox) -> None:
    code = "calls = []\ndef f(x):\n    calls.append(x)\n    return len(calls)"
    verdict = await judge(sandbox, code, ["assert f(1) == 1", "assert f(2) == 1"])
    assert verdict.reward == 1.0


async def test_gold_answers(sandbox: Sandbox) -> None:
    row = {"test_list": ["assert f(1) == '```'"], "code": "def f(x):\n    return '''```'''"}
    reference = normalise(row)
    gold = Code().gold(reference, CodeOptions())
    assert gold is not None
    call = Call(gold, reference, CodeOptions())
    assert (await Code().verify(call, Context(sandbox))).reward == 1.0
    assert Code().gold(normalise(["assert f(1)"]), CodeOptions()) is None
