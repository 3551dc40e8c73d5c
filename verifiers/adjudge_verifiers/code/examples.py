"""Worked examples of the verifier ``code``, for the catalogue and the tests."""

from __future__ import annotations

from ..base import Example

__all__ = ["EXAMPLES"]

_SUM = {"inputs": ["1 2\n", "10 -3\n"], "outputs": ["3\n", "7\n"]}
_TWO_SUM = {"inputs": ["[2, 7, 11]\n9"], "outputs": ["[0, 1]"], "fn_name": "twoSum"}
_ASSERTS = ["assert double(2) == 4", "assert double(-1) == -2"]
_HUMANEVAL = {
    "prompt": 'def triple(x):\n    """Three times x."""\n',
    "entry_point": "triple",
    "test": "def check(candidate):\n    for i in range(5):\n        assert candidate(i) == 3 * i\n",
}


def _python(code: str) -> str:
    return f"```python\n{code}\n```"


EXAMPLES: tuple[Example, ...] = (
    Example(
        "Read two numbers and add them.\n\n" + _python("a, b = map(int, input().split())\nprint(a + b)"),
        _SUM,
        category="correct",
        note="Reading and writing, in the layout of APPS, TACO and verl.",
    ),
    Example(_python("a, b = map(int, input().split())\nprint(a - b)"), _SUM, reward=0.0, category="wrong_answer"),
    Example(
        _python("a, b = map(int, input().split())\nprint(3)"),
        _SUM,
        {"scoring": "fraction"},
        reward=0.5,
        category="partial",
        note="The share of tests that pass.",
    ),
    Example(
        _python(
            "class Solution:\n    def twoSum(self, nums, target):\n        seen = {}\n"
            "        for i, x in enumerate(nums):\n            if target - x in seen:\n"
            "                return [seen[target - x], i]\n            seen[x] = i"
        ),
        _TWO_SUM,
        category="correct",
        note="A method of a LeetCode `Solution`; a tuple would do too.",
    ),
    Example(_python("def double(x):\n    return 2 * x"), _ASSERTS, category="correct", note="A list of asserts."),
    Example(
        _python("import os\ndef double(x):\n    os._exit(0)"),
        _ASSERTS,
        reward=0.0,
        category="tampered",
        note="Leaving before the assert is reached passes nothing; the flag is `early_exit`.",
    ),
    Example(
        _python(
            "class Yes(int):\n    def __eq__(self, other):\n        return True\ndef double(x):\n    return Yes(0)"
        ),
        _ASSERTS,
        reward=0.0,
        category="tampered",
        note="An object that equals everything crosses the jail's border as the plain 0 that it is, and is noticed.",
    ),
    Example(
        _python("    return x + x + x"), _HUMANEVAL, category="correct", note="HumanEval: the prompt is completed."
    ),
    Example(_python("def double(x):\n    return 2 *"), _ASSERTS, reward=0.0, category="compile_error"),
    Example(_python("def twice(x):\n    return 2 * x"), _ASSERTS, reward=0.0, category="compile_error"),
    Example(_python("while True:\n    pass"), _SUM, {"cpu_s": 0.5}, reward=0.0, category="time_limit"),
    Example("I would add the two numbers.", _SUM, reward=0.0, category="no_answer"),
    Example("```python\na, b = map(int, input().spl", _SUM, reward=0.0, category="truncated"),
    Example(
        _python("print(1)"),
        {"inputs": ["1\n"], "outputs": []},
        reward=None,
        status="invalid_task",
        note="Unequal numbers of inputs and outputs are the data set's fault.",
    ),
)
