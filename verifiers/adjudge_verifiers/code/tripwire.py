"""A deliberately false assertion for tests whose helpers stand beside the answer.

LeetCode sets compare by functions of their prelude (``assert is_same_list(candidate(...), list_node([2, 3]))``), which
need the answer's own objects and so run in its process, where it could have replaced them. What the answer cannot know
is which of two calls is the real one: after it has been called as in the test, the same helper is asked whether the
expected value equals another one. An honest helper says no, the assertion fails, and all is well. If it holds, and does
not hold for the prelude alone, then the answer has subverted the helper.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import replace

from adjudge_sandbox.base import Examination, Limits, Outcome, Program, Sandbox

from .asserts import parse

__all__ = ["Tripwire", "is_subverted", "tripwire"]

_MAX_CHARS = 100_000


class Tripwire:
    """The test with its assertion made false, and the false assertion alone."""

    __slots__ = ("control", "test")

    def __init__(self, test: str, control: str) -> None:
        self.test = test
        self.control = control


def tripwire(code: str, helpers: set[str]) -> Tripwire | None:
    """For the first assertion of a helper on two things, one of which is written down; ``None`` if there is none."""
    tree = parse(code) if len(code) <= _MAX_CHARS else None
    if tree is None:
        return None
    maker = _Maker(helpers)
    changed = maker.visit(copy.deepcopy(tree))
    if maker.false is None:
        return None
    control = ast.Module([maker.false], [])
    return Tripwire(*(ast.unparse(ast.fix_missing_locations(each)) for each in (changed, control)))


class _Maker(ast.NodeTransformer):
    """Makes the first fitting assertion false, and drops the others."""

    def __init__(self, helpers: set[str]) -> None:
        self._helpers = helpers
        self.false: ast.Assert | None = None

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.stmt]:
        made = self._falsified(node.test) if self.false is None else None
        if made is None:
            return ast.Pass()
        asked, self.false = made
        return [ast.Expr(asked), self.false]

    def _falsified(self, test: ast.expr) -> tuple[ast.expr, ast.Assert] | None:
        """What the helper is asked about, and the false assertion."""
        if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in self._helpers):
            return None
        if len(test.args) != 2 or test.keywords:
            return None
        for asked, written in (test.args, test.args[::-1]):
            other = copy.deepcopy(written)
            if self._is_written_down(written) and not self._is_written_down(asked) and _alter(other):
                false = ast.Call(test.func, [other, copy.deepcopy(written)], [])
                return asked, ast.Assert(false)
        return None

    def _is_written_down(self, node: ast.expr) -> bool:
        """Made of literals and helpers only."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        return names <= self._helpers | {"None", "True", "False"}


def _alter(node: ast.expr) -> bool:
    """Change the value that is written down, in place: one more item in a list, another number or text."""
    for each in ast.walk(node):
        if isinstance(each, ast.List):
            numbers = [item.value for item in each.elts if isinstance(item, ast.Constant) and type(item.value) is int]
            each.elts.append(ast.Constant(max(numbers, default=0) + 1))
            return True
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and type(each.value) in (int, float):
            each.value = each.value + 1  # type: ignore[operator]
            return True
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            each.value = each.value + "x"
            return True
    return False


async def is_subverted(
    sandbox: Sandbox, program: Program, prelude: Program, run: Examination, helpers: set[str], limits: Limits
) -> bool:
    """Does a false assertion hold beside the answer which does not hold beside the prelude alone?"""
    wire = tripwire(run.test, helpers)
    if wire is None:
        return False
    (result,) = await sandbox.run(program, [replace(run, test=wire.test)], limits)
    if result.outcome is not Outcome.FINISHED:
        return False
    bind = {name: name for name in run.bind if name in helpers}
    (control,) = await sandbox.run(prelude, [replace(run, test=wire.control, bind=bind)], limits)
    return control.outcome is Outcome.FAILED_ASSERT
