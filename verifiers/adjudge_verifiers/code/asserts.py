"""Test code of data sets, read as syntax: what can be taken apart is, so that more of it is decided outside the jails.

All of this looks at the *data set's* code only. The answer is never parsed here.
"""

from __future__ import annotations

import ast
import builtins
import functools
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .literals import parse_python
from .standard import WELL_KNOWN

__all__ = [
    "BUILTINS",
    "SimpleAssert",
    "bound_in",
    "called_in",
    "calls_in",
    "functions_of",
    "helpers_of",
    "imports_of",
    "names_in",
    "parse",
    "simple_assert",
    "sorted_out",
    "split_asserts",
    "with_check_call",
]

_BROKEN = (SyntaxError, ValueError, MemoryError, RecursionError)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BUILTINS = frozenset(dir(builtins))
_TYPING = frozenset(typing.__all__)
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
    """The syntax tree, which must not be changed; ``None`` if it is not Python."""
    return _parse_again(code) if len(code) <= _KEPT_CHARS else _parse(code)


def _parse(code: str) -> ast.Module | None:
    try:
        return parse_python(code)
    except _BROKEN:
        return None


_KEPT_CHARS = 100_000
_parse_again = functools.lru_cache(maxsize=8)(_parse)  # a row's texts are looked at from several sides


def _walk(code: str | ast.Module) -> Iterator[ast.AST]:
    tree = parse(code) if isinstance(code, str) else code
    return ast.walk(tree) if tree is not None else iter(())


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


def names_in(code: str | ast.Module) -> set[str]:
    """Every name that ``code`` mentions."""
    return {node.id for node in _walk(code) if isinstance(node, ast.Name)}


def bound_in(code: str | ast.Module) -> set[str]:
    """Every name that ``code`` gives a meaning to, at any depth: definitions, imports, assignments, parameters."""
    found: set[str] = set()
    for node in _walk(code):
        if isinstance(node, _DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def calls_in(code: str | ast.Module) -> set[str]:
    """Every name that ``code`` calls, or needs as a class (``isinstance``, ``except``, an attribute of ``Colour``)."""
    found: set[str] = set()
    for node in _walk(code):
        if isinstance(node, ast.Call):
            found |= _names_of(node.func)
            if _names_of(node.func) & {"isinstance", "issubclass"} and len(node.args) == 2:
                found |= _class_names(node.args[1])
            elif isinstance(node.func, ast.Attribute) and node.func.attr in ("raises", "assertRaises") and node.args:
                found |= _class_names(node.args[0])
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            found |= _class_names(node.type)
        elif isinstance(node, ast.Attribute):
            found |= _class_names(node.value)
    return found


def _names_of(*nodes: ast.expr) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _class_names(node: ast.expr) -> set[str]:
    """Names written as those of classes are, in ``node`` or in a tuple of them."""
    names = _names_of(*node.elts) if isinstance(node, ast.Tuple) else _names_of(node)
    return {name for name in names if name[0].isupper() and (len(name) == 1 or not name.isupper())}


def called_in(code: str) -> tuple[set[str], set[str]]:
    """Names that ``code`` needs (:func:`calls_in`) and gives no meaning to.

    First those that the program under test has to define, then built-in ones and those of the standard library that
    results are compared with. A name of the second kind means the program's own only if nothing else is called (MBPP
    asks for a ``sum`` once): otherwise an answer could redefine the ``set`` or ``isclose`` that judges its result.
    """
    return sorted_out(calls_in(code) - bound_in(code))


def sorted_out(free: set[str]) -> tuple[set[str], set[str]]:
    """Names without a meaning as :func:`called_in` tells them apart."""
    known = free & (BUILTINS | WELL_KNOWN.keys())
    return free - known - _TYPING, known


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


def simple_assert(code: str | ast.Module) -> SimpleAssert | None:
    """``code`` as a call with an expected literal, if that is all it is."""
    tree = parse(code) if isinstance(code, str) else code
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
