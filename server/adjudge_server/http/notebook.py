"""A Python script run as a notebook cell: the value of its last expression is its result.

That is what Open-R1's code reward reads. The script is parsed and run in the jail, by the few lines below that are put
in place of a program; they print the result behind a marker that is new for every script. The script could print it
too: it speaks for itself, so nothing is gained by that.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from adjudge_sandbox.base import Outcome, RunResult

__all__ = ["Cell", "cell_program", "read_cell"]

_RUNNER = """\
import ast as _ast, sys as _sys, textwrap as _textwrap, traceback as _traceback
def _run(source, marker):
    tree = _ast.parse(_textwrap.dedent(source).strip("\\n"), "<cell>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None:
        return
    value = eval(compile(_ast.Expression(last.value), "<cell>", "eval"), names)
    if value is not None:
        text = repr(value)
        _sys.stdout.flush()
        _sys.stdout.write(marker + text)
        _sys.stdout.flush()
_run(%r, %r)
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell did."""

    text: str | None
    """Of its last expression; ``None`` if there is none, or its value is."""
    stdout: str
    stderr: str
    error: tuple[str, str] | None
    """A name and a sentence."""


def cell_program(script: str) -> tuple[str, str]:
    """The program that runs ``script``, and its marker."""
    marker = f"\n<result {secrets.token_hex(16)}>\n"
    return _RUNNER % (script, marker), marker


def read_cell(result: RunResult, marker: str) -> Cell:
    """What came of it."""
    stdout, found, text = result.stdout.decode("utf-8", "backslashreplace"), "", ""
    if marker:
        stdout, found, text = stdout.partition(marker)
    stderr = result.stderr.decode("utf-8", "backslashreplace")
    error = None if result.outcome is Outcome.FINISHED else _error(result, stderr)
    return Cell(text if found and error is None else None, stdout, stderr, error)


def _error(result: RunResult, stderr: str) -> tuple[str, str]:
    last = stderr.rstrip().rpartition("\n")[2][:500]
    name, separator, value = last.partition(":")
    if result.outcome is Outcome.RAISED and separator and name.replace(".", "").isidentifier():
        return name, value.strip()
    return str(result.outcome), result.detail
