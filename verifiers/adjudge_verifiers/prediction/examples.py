"""Worked examples of the verifiers of predictions, for the catalogue and the tests."""

from __future__ import annotations

from ..base import Example

__all__ = ["INPUT_EXAMPLES", "OUTPUT_EXAMPLES"]

_REVERSE = {"code": "def f(s, n):\n    return s[::-1] * n", "input": "'abc', 2", "output": "'cbacba'"}
_GROUPS = {
    "snippet": "def f(words):\n    groups = {}\n    for w in words:\n        groups.setdefault(len(w), set()).add(w)\n"
    "    return groups",
    "input": "['a', 'bc', 'b']",
}
_DOUBLE = {"code": "def f(x):\n    return 2 * x", "output": "8"}

OUTPUT_EXAMPLES: tuple[Example, ...] = (
    Example("[ANSWER]\nassert f('abc', 2) == 'cbacba'\n[/ANSWER]", _REVERSE, category="correct", note="CRUXEval."),
    Example('It is reversed.\n\n```output\n"cbacba"\n```', _REVERSE, category="correct", note="Absolute Zero."),
    Example("<answer>'abcabc'</answer>", _REVERSE, reward=0.0, category="wrong_answer"),
    Example(
        "<answer>{2: {'bc'}, 1: {'b', 'a'}}</answer>",
        _GROUPS,
        category="correct",
        note="Without a recorded output, the function is run on the input.",
    ),
    Example(
        "[ANSWER]f('abc', 2)[/ANSWER]",
        _REVERSE,
        reward=0.0,
        category="wrong_format",
        note="The call itself predicts nothing.",
    ),
    Example("[ANSWER]assert f('abc', 1) == 'cba'[/ANSWER]", _REVERSE, reward=0.0, category="wrong_format"),
    Example('{"code_output": "3\\n"}', {"code_output": "3\n"}, category="correct", note="SYNTHETIC: nothing to run."),
    Example("<think>hm", _REVERSE, reward=0.0, category="truncated"),
    Example(
        "[ANSWER]4[/ANSWER]",
        {"code": "def f(x):\n    return 2 * x", "input": "2", "output": "5"},
        reward=None,
        status="invalid_task",
        note="The function does not return what the data set says.",
    ),
)

INPUT_EXAMPLES: tuple[Example, ...] = (
    Example("[ANSWER]\nassert f('cba' * 2, 1) == 'cbacba'\n[/ANSWER]", _REVERSE, reward=0.0, category="wrong_answer"),
    Example(
        "[ANSWER]\nassert f('abc' * 2, 1) == 'cbacba'\n[/ANSWER]",
        _REVERSE,
        category="correct",
        note="Any input that gives the output; an expression is evaluated in a jail of its own.",
    ),
    Example("```input\n4.0\n```", _DOUBLE, category="correct", note="8.0 == 8."),
    Example("```input\n4.0\n```", _DOUBLE, {"equality": "strict"}, reward=0.0, category="wrong_answer"),
    Example("<answer>1) or (True</answer>", _DOUBLE, reward=0.0, category="wrong_format"),
    Example(
        "<answer>type('E', (), {'__rmul__': lambda s, n: s, '__eq__': lambda s, o: True})()</answer>",
        _DOUBLE,
        reward=0.0,
        category="wrong_format",
        note="An object that equals everything is no plain data.",
    ),
    Example("<answer>None</answer>", _DOUBLE, reward=0.0, category="runtime_error"),
    Example("", _DOUBLE, reward=0.0, category="no_answer"),
    Example("<answer>4</answer>", {"code": "def f(x):\n    return 2 * x"}, reward=None, status="invalid_task"),
)
