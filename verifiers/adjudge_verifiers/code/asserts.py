"""Test code of data sets, read as syntax: what can be taken apart is, so that more of it is decided outside the jails.

All of this looks at the *data set's* code only. The answer is never parsed here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

__all__ = [
    "SimpleAssert",
    "functions_of",
    "helpers_of",
    "imports_of",
    "names_in",
    "simple_assert",
    "split_asserts",
    "with_check_call",
]

_BROKEN = (SyntaxError, ValueError, MemoryError, RecursionError)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SETUP = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, *_DEFINITIONS)


@dataclass(frozen=True, slots=True)
class SimpleAssert:
    """``assert function(*args, **kwargs) == expected`` with literals only: a call, and a comparison outside."""

    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    expected: Any

    @property
    def root(self) -> str:
        """The name that the program must define: ``Solution`` of ``Solution().f``."""
        return self.function.partition("(")[0]

    def holds(self, value: Any) -> bool:
        """Python's own ``==`` on plain values; a comparison that cannot be made does not hold."""
        try:
            return bool(value == self.expected)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            return False


def parse(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except _BROKEN:
        return None


def with_check_call(test: str) -> str:
    """HumanEval's test code, which defines ``check(candidate)``, with the call that its harness adds."""
    tree = parse(test)
    if tree is None:
        return test  # refused later, with the line
    defined = {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}
    called = {
        node.value.func.id
        for node in tree.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
    }
    return f"{test}\n\ncheck(candidate)\n" if "check" in defined and "check" not in called else test


def helpers_of(prompt: str, entry_point: str) -> str:
    """The code of ``prompt`` without the function that is asked for: imports, helper functions, constants."""
    tree = parse(prompt) or parse(prompt.rstrip() + "\n    pass\n")
    if tree is None:
        return ""
    kept: list[ast.stmt] = [
        node
        for node in tree.body
        if isinstance(node, _SETUP) and not (isinstance(node, _DEFINITIONS) and node.name == entry_point)
    ]
    return ast.unparse(ast.Module(kept, [])) if kept else ""


def imports_of(code: str) -> str:
    """The imports at the top level of ``code``."""
    tree = parse(code)
    kept = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)] if tree else []
    return ast.unparse(ast.Module(list(kept), [])) if kept else ""


def functions_of(code: str) -> tuple[set[str], str]:
    """The functions that ``code`` defines at its top level: their names, and their source."""
    tree = parse(code)
    kept = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)] if tree else []
    return {node.name for node in kept}, ast.unparse(ast.Module(list(kept), [])) if kept else ""


def names_in(code: str) -> set[str]:
    """Every name that ``code`` mentions."""
    tree = parse(code)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()


def split_asserts(code: str) -> tuple[str, list[str]]:
    """Setup and single asserts, if ``code`` is definitions followed by asserts; else it stays one test."""
    tree = parse(code)
    if tree is None:
        return "", [code]
    first = next((i for i, node in enumerate(tree.body) if isinstance(node, ast.Assert)), None)
    if first is None:
        return "", [code]
    setup, rest = tree.body[:first], tree.body[first:]
    if len(rest) < 2 or not all(isinstance(node, ast.Assert) for node in rest):
        return "", [code]
    if not all(isinstance(node, _SETUP) or _is_docstring(node) for node in setup):
        return "", [code]
    return ast.unparse(ast.Module(setup, [])) if setup else "", [ast.unparse(node) for node in rest]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def simple_assert(code: str) -> SimpleAssert | None:
    """``code`` as a call with an expected literal, if that is all it is."""
    tree = parse(code)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Assert):
        return None
    test = tree.body[0].test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    for call, literal in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        if isinstance(call, ast.Call) and (name := _callee(call.func)):
            return _simple(name, call, literal)
    return None


def _simple(name: str, call: ast.Call, literal: ast.expr) -> SimpleAssert | None:
    try:
        args = tuple(ast.literal_eval(argument) for argument in call.args)
        kwargs = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
        expected = ast.literal_eval(literal)
    except (*_BROKEN, TypeError):
        return None
    if len(kwargs) != len(call.keywords):
        return None
    return SimpleAssert(name, args, kwargs, expected)


def _callee(func: ast.expr) -> str | None:
    """``f`` or ``Solution().f``."""
    if isinstance(func, ast.Name):
        return func.id
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call):
        made = func.value
        if isinstance(made.func, ast.Name) and not made.args and not made.keywords:
            return f"{made.func.id}().{func.attr}"
    return None
