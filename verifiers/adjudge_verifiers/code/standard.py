"""What test code leaves out: the imports it takes for granted, and the calls that a test runner would make.

Many data sets were made by running tests in one namespace with a right answer, under pytest or ``unittest``. So test
code uses ``math.isclose`` because the answer imported ``math``, and defines ``test_add`` without calling it. Taken
literally, the first lets an answer bring a ``math`` of its own whose ``isclose`` always says yes, and the second passes
every answer there is. What is missing is added here, from the data set's code alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["MODULES", "WELL_KNOWN", "imports_for", "modules_in", "with_runner"]

MODULES = {
    name: name
    for name in (
        *("array", "bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq"),
        *("io", "itertools", "json", "math", "operator", "os", "random", "re", "statistics", "string", "sys", "time"),
    )
} | {"np": "numpy", "numpy": "numpy"}
"""By the name that code uses. Only for what is used as a module: ``copy.deepcopy``, not ``copy(x)``."""

WELL_KNOWN = {
    name: module
    for module, names in {
        "collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
        "copy": ("deepcopy",),
        "decimal": ("Decimal",),
        "fractions": ("Fraction",),
        "itertools": ("chain",),
        "math": ("ceil", "fabs", "floor", "isclose", "isfinite", "isinf", "isnan", "sqrt"),
    }.items()
    for name in names
}
"""What test code compares results with."""


def modules_in(tree: ast.Module | None) -> set[str]:
    """Names that ``tree`` uses as modules and that are those of modules."""
    attributes = (node.value for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.Attribute))
    return {value.id for value in attributes if isinstance(value, ast.Name)} & MODULES.keys()


def imports_for(modules: set[str], bound: set[str], names: set[str]) -> str:
    """Imports of ``modules`` and of the well-known among ``names``, but for what is ``bound`` to something."""
    lines = [f"import {MODULES[name]} as {name}" for name in sorted(modules - bound)]
    lines += [f"from {WELL_KNOWN[name]} import {name}" for name in sorted(names & WELL_KNOWN.keys() - bound)]
    return "\n".join(lines)


def with_runner(code: str, tree: ast.Module) -> str:
    """``code`` and calls of its test functions and test cases, as pytest would make them, if nothing in it does.

    Raises:
        ValueError: a test function needs what only pytest could give it.
    """
    cases = _cases(tree.body)
    uncalled = [node for node in _uncalled(tree) if node.name.lower().startswith("test") or node.name in cases]
    calls = [line for node in uncalled for line in _run(node, cases)]
    return "\n".join([code, "", *calls, ""]) if calls else code


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _uncalled(tree: ast.Module) -> Iterator[_Definition]:
    """Definitions at the top level that nothing else in the code mentions."""
    runs_all = any(isinstance(node, ast.Attribute) and node.attr == "main" for node in ast.walk(tree))
    mentioned = [{node.id for node in ast.walk(part) if isinstance(node, ast.Name)} for part in tree.body]
    counts: dict[str, int] = {}
    for names in mentioned:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    for part, names in zip(tree.body, mentioned, strict=True):
        alone = isinstance(part, _Definition) and counts.get(part.name, 0) == (part.name in names)
        if isinstance(part, _Definition) and alone and not (runs_all and isinstance(part, ast.ClassDef)):
            yield part


def _cases(body: list[ast.stmt]) -> set[str]:
    """Names of the classes that are test cases of ``unittest``."""
    found = {"TestCase", "IsolatedAsyncioTestCase"}
    for node in body:
        if isinstance(node, ast.ClassDef):
            bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
            if bases & found:
                found.add(node.name)
    return found - {"TestCase", "IsolatedAsyncioTestCase"}


def _run(node: _Definition, cases: set[str]) -> Iterator[str]:
    """Lines that run one definition."""
    if not isinstance(node, ast.ClassDef):
        yield _call(node, node.name)
    elif node.name in cases:
        loader = "__import__('unittest').defaultTestLoader.loadTestsFromTestCase"
        yield f"{loader}({node.name}).run(__import__('unittest').TestResult())"
    else:
        methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
        before = next((name for name in ("setup_method", "setup", "setUp") if name in methods), None)
        for name, method in methods.items():
            if name.startswith("test") and "__init__" not in methods:
                yield f"_made = {node.name}()"
                if before is not None:
                    yield f"_made.{before}({'None' if len(methods[before].args.args) > 1 else ''})"
                yield _call(method, f"_made.{name}", bound=1)


def _call(node: ast.FunctionDef | ast.AsyncFunctionDef, target: str, bound: int = 0) -> str:
    takes = node.args
    static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in node.decorator_list)
    needed = len(takes.posonlyargs) + len(takes.args) - len(takes.defaults) - (0 if static else bound)
    if needed > 0 or None in takes.kw_defaults:
        raise ValueError(f"the test function {node.name} has parameters, which only a pytest session would fill")
    return f"__import__('asyncio').run({target}())" if isinstance(node, ast.AsyncFunctionDef) else f"{target}()"
