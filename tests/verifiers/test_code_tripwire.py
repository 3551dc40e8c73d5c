"""Helpers of a prelude that run beside the answer: an answer that replaces them is caught by a false assertion."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.code.tripwire import tripwire

PRELUDE = """class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next
def list_node(xs):
    head = None
    for x in reversed(xs):
        head = ListNode(x, head)
    return head
def is_same_list(a, b):
    while a and b:
        if a.val != b.val:
            return False
        a, b = a.next, b.next
    return a is b is None
"""
TEST = "def check(candidate):\n    assert is_same_list(candidate(list_node([1, 2, 3])), list_node([2, 3]))\n"
REFERENCE = {"prompt": PRELUDE, "entry_point": "Solution().rest", "test": TEST}
RIGHT = "class Solution:\n    def rest(self, head):\n        return head.next"
WRONG = "class Solution:\n    def rest(self, head):\n        return head"
LATE = f"""{WRONG}
    def __getattribute__(self, name):
        globals()['is_same_list'] = lambda a, b: True
        return object.__getattribute__(self, name)
"""
THREAD = f"""import threading, time
def swap():
    while True:
        globals()['is_same_list'] = lambda a, b: True
        time.sleep(0.0005)
threading.Thread(target=swap, daemon=True).start()
{WRONG}
"""
CODE = WRONG.replace(
    "        return head", "        is_same_list.__code__ = (lambda a, b: True).__code__\n        return head"
)
BUILDER = WRONG.replace(
    "        return head",
    "        globals()['kept'] = head\n        list_node.__code__ = (lambda xs: kept).__code__\n        return head",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


@pytest.mark.parametrize(
    ("code", "reward", "category", "flags"),
    [
        (RIGHT, 1.0, "correct", []),
        (WRONG, 0.0, "wrong_answer", []),
        (LATE, 0.0, "wrong_answer", []),  # the test has its helpers from before the answer was called
        (CODE, 0.0, "tampered", ["helper_subverted"]),
        (THREAD, 0.0, "tampered", ["helper_subverted"]),
        (BUILDER, 0.0, "tampered", ["helper_subverted"]),
    ],
    ids=["right", "wrong", "another-name", "another-code", "from-a-thread", "the-builder"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_subverted_helper_is_noticed(
    sandbox: Sandbox, code: str, reward: float, category: str, flags: list[str]
) -> None:
    call = Call(f"```python\n{code}\n```", normalise(REFERENCE), CodeOptions())
    verdict = await Code().verify(call, Context(sandbox))
    assert (verdict.reward, verdict.category, verdict.flags) == (reward, category, flags), verdict
    assert verdict.trust == "in_process"


@pytest.mark.parametrize(
    ("code", "test", "control"),
    [
        ("assert same(f(1), [2])", "f(1)\nassert same([2, 3], [2])", "assert same([2, 3], [2])"),
        ("assert same(5, f(1))\nassert f(2)", "f(1)\nassert same(6, 5)\npass", "assert same(6, 5)"),
        ("assert same(f(1), make('a'))", "f(1)\nassert same(make('ax'), make('a'))", None),
    ],
)
def test_the_false_assertion(code: str, test: str, control: str | None) -> None:
    found = tripwire(code, {"same", "make"})
    assert found is not None
    assert found.test == test
    assert control is None or found.control == control


@pytest.mark.parametrize(
    "code",
    ["assert f(1) == 2", "assert same(f(1), g(2))", "assert same(f(1))", "same(f(1), 2)", "assert same(f(1), None)"],
)
def test_no_false_assertion_can_be_made(code: str) -> None:
    assert tripwire(code, {"same"}) is None
