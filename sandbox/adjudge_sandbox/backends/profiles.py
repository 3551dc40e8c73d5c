"""Profiles: what a zygote has imported before any program comes.

``light`` is what nearly all programs import: each further module makes every fork slower, and a fork is what a run
costs. ``stdlib`` is what else is not rare, and what examinations need; ``scientific`` is that and the packages of
:data:`SCIENTIFIC` that this interpreter has: importing numpy takes a tenth of a second, and a fork of a process that
has it a few milliseconds. The profile is chosen by a look at the text of the program and of its test code. A wrong
guess costs time and nothing else: what is not there is imported as usual.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence

from ..base import Examination, Program, Run

__all__ = ["LIGHT", "ONE_THREAD", "PRELOAD", "SCIENTIFIC", "modules_of", "profile_of"]

LIGHT, STDLIB = "light", "stdlib"
_SCIENTIFIC = "scientific"

_THREADS = "OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS NUMEXPR_NUM_THREADS BLIS_NUM_THREADS"
ONE_THREAD = dict.fromkeys(_THREADS.split(), "1")
"""Environment of a zygote: its packages may start no threads, because a process that has some must not fork."""

_LIGHT = """
abc array bisect builtins collections collections.abc contextlib copy dataclasses datetime decimal enum fractions
functools heapq io itertools json math numbers operator os os.path queue random re string sys textwrap threading time
traceback types typing warnings weakref
"""
_REST = """
ast asyncio base64 calendar cmath concurrent.futures csv hashlib html inspect linecache locale logging multiprocessing
pickle pprint secrets shutil signal socket statistics struct subprocess tempfile timeit tokenize unicodedata unittest
uuid zlib
"""
PRELOAD = tuple(_LIGHT.split() + _REST.split())
SCIENTIFIC = ("numpy", "pandas", "scipy", "sympy", "networkx", "sortedcontainers")
_MORE = {"scipy": ("scipy.optimize", "scipy.stats", "scipy.linalg", "scipy.special", "scipy.sparse")}
_EXAMINATION = ("adjudge_sandbox.python.candidate", "adjudge_sandbox.python.examiner")
"""Our own part of an examination: the jail does not hold this package, so nothing of it can be imported later."""


def _import_of(names: Sequence[str]) -> re.Pattern[str]:
    """Finds ``import a, name`` and ``from name``; bounded, so that no text makes it slow."""
    roots = "|".join(sorted({name.partition(".")[0] for name in names}))
    return re.compile(rf"\b(?:import|from)[ \t]+(?:[\w.]{{1,60}}[ \t]*,[ \t]*){{0,12}}(?:{roots})\b")


_OF_THE_REST = _import_of(_REST.split())
_OF_SCIENCE = _import_of(SCIENTIFIC)


def modules_of(profile: str, preload: Sequence[str]) -> list[str]:
    """What the zygote of a profile imports, of ``preload`` and beyond. Packages that are not installed are left out."""
    if profile == LIGHT:
        return [name for name in preload if name not in _REST.split()]
    if profile == STDLIB:
        return [*preload, *_EXAMINATION]
    found = [name for name in SCIENTIFIC if importlib.util.find_spec(name) is not None]
    return [*preload, *_EXAMINATION, *found, *(more for name in found for more in _MORE.get(name, ()))]


def profile_of(program: Program, runs: Sequence[Run]) -> str:
    """The profile for a Python program and its tests."""
    texts = [program.source]
    texts += [text for run in runs if isinstance(run, Examination) for text in (run.setup, run.test)]
    if any(_OF_SCIENCE.search(text) for text in texts):
        return _SCIENTIFIC
    return STDLIB if len(texts) > 1 or _OF_THE_REST.search(program.source) else LIGHT
