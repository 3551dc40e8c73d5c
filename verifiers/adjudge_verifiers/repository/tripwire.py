"""Tests that must fail: proof that the runner still tells failing from passing.

The answer's code runs in the same process as the tests and could have patched whatever reports on them. So each test
file gets one more test, in the manner of those in it, with a deliberately false assertion (:func:`plant`); and when
everything listed has passed, the listed tests are run again with the false assertion at the start of each
(:func:`spring`), so that even a patch that knows the tests by name is found out. What passes then was tampered with.

Only the data set's own files are parsed here, never the answer's.
"""

from __future__ import annotations

import ast
import secrets
from dataclasses import dataclass, replace

from ..code.literals import parse_python
from .tree import Tree

__all__ = ["Wired", "plant", "spring"]

_FALSEHOODS = (
    "assert {a} == {b}",
    "assert [{a}, 1] == [{b}, 1]",
    "assert not {a}",
    "assert {a} in ({b}, {c})",
    "assert '{a}' == '{b}'",
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Wired:
    """The tree with tests that must fail, and what they are called in the report."""

    tree: Tree
    must_fail: tuple[str, ...]


def plant(tree: Tree, test_files: list[str], *, unittest: bool) -> Wired:
    """One more test in each of ``test_files``."""
    result, names = dict(tree), []
    for path in test_files:
        module = _parse(tree, path)
        if module is None:
            continue
        code, inner = _planted(module, unittest=unittest)
        file = tree[path]
        result[path] = replace(file, data=file.data.rstrip(b"\r\n") + b"\n\n\n" + code.encode())
        names.append(_identity(path, inner, unittest=unittest))
    return Wired(result, tuple(names))


def spring(tree: Tree, listed: list[str], test_files: list[str], *, unittest: bool) -> Wired:
    """Each of the ``listed`` tests that can be found in its file fails at its first statement."""
    wanted = {name.partition("[")[0] for name in listed}
    result, found = dict(tree), set()
    for path in test_files:
        module = _parse(tree, path)
        if module is None:
            continue
        lines = tree[path].data.split(b"\n")
        for inner, function in sorted(_tests_in(module), key=lambda pair: -_first_line(pair[1])):
            identity = _identity(path, inner, unittest=unittest)
            if identity in wanted and _wire(lines, function):
                found.add(identity)
        result[path] = replace(tree[path], data=b"\n".join(lines))
    return Wired(result, tuple(name for name in listed if name.partition("[")[0] in found))


def _identity(path: str, inner: tuple[str, ...], *, unittest: bool) -> str:
    if unittest:
        return ".".join([path.removesuffix(".py").removesuffix("/__init__").replace("/", "."), *inner])
    return "::".join([path, *inner])


def _parse(tree: Tree, path: str) -> ast.Module | None:
    file = tree.get(path)
    if file is None or file.link is not None or not path.endswith(".py"):
        return None
    try:
        return parse_python(file.data.decode("utf-8-sig"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _tests_in(module: ast.Module) -> list[tuple[tuple[str, ...], _Function]]:
    """Functions at the top and in classes, by their names from the outside in."""
    found: list[tuple[tuple[str, ...], _Function]] = []

    def visit(body: list[ast.stmt], outer: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, _Function):
                found.append(((*outer, node.name), node))
            elif isinstance(node, ast.ClassDef):
                visit(node.body, (*outer, node.name))
            elif isinstance(node, ast.If | ast.Try):
                visit(node.body, outer)

    visit(module.body, ())
    return found


def _wire(lines: list[bytes], function: _Function) -> bool:
    """Put the false assertion before the first statement. A body on the line of its ``def`` is left alone."""
    number = _first_line(function)
    begin = lines[number - 1]
    indent = begin[: len(begin) - len(begin.lstrip())]
    if number == function.lineno or len(indent) != function.body[0].col_offset:
        return False
    lines.insert(number - 1, indent + _falsehood().encode())
    return True


def _first_line(function: _Function) -> int:
    """Of its body; a decorated definition begins at its decorators."""
    first = function.body[0]
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    return min([first.lineno, *(decorator.lineno for decorator in decorators)])


def _planted(module: ast.Module, *, unittest: bool) -> tuple[str, tuple[str, ...]]:
    """Code of a test that fails, named after one that is there, so that it is collected as that one is."""
    model = next((names for names, _ in _tests_in(module) if names[-1].lower().startswith("test")), ("test_it",))
    name = _like(model[-1])
    if not unittest and len(model) == 1:
        return f"def {name}():\n    {_falsehood()}\n", (name,)
    owner = _like(model[-2] if len(model) > 1 else "TestIt")
    base = "(__import__('unittest').TestCase)" if unittest or _is_unittest(module) else ""
    return f"class {owner}{base}:\n    def {name}(self):\n        {_falsehood()}\n", (owner, name)


def _is_unittest(module: ast.Module) -> bool:
    return any(
        "TestCase" in ast.dump(base) for node in module.body if isinstance(node, ast.ClassDef) for base in node.bases
    )


def _like(name: str) -> str:
    """A new name with the beginning and the end of ``name``, by which runners choose."""
    extra = "".join(secrets.choice("abcdefghiklmnoprstu") for _ in range(7))
    cut = min(len(name), 5) if name.startswith(("test_", "Test")) else len(name) // 2
    head, tail = name[:cut], name[cut:]
    return f"{head}{extra}{'_' if '_' in name and tail else ''}{tail}"


def _falsehood() -> str:
    a, b, c = secrets.SystemRandom().sample(range(2, 10_000), 3)
    return secrets.choice(_FALSEHOODS).format(a=a, b=b, c=c)
