"""What an answer may not change: the tests, and what decides how tests are run.

After the answer's patch, all such files are put back into the state in which the data set has them, and what the answer
added of their kind is removed. That is not yet a verdict: a model may well add tests of its own. It is told by flags.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .tree import Tree

__all__ = ["Guarded", "guard", "test_files_of"]

_RUNNER_FILES = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "*.egg-link",
    ".coveragerc",
)
_RUNNER_FOLDERS = ("*.egg-info", "*.dist-info", "__pycache__")
_TEST_FOLDERS = frozenset({"test", "tests"})
_SHADOWED = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "py", "xdist", *sys.stdlib_module_names})
_ROOTS = ("", "src/", "lib/")


@dataclass(frozen=True, slots=True)
class Guarded:
    """The tree that is tested, and what the answer had tried."""

    tree: Tree
    flags: tuple[str, ...]
    undone: tuple[str, ...]
    """Names of the files that were put back or removed."""


def test_files_of(tree: Tree, tests: Iterable[str]) -> list[str]:
    """The files of the listed tests: ``a/test_b.py::C::d``, ``a.test_b.C.d``. Names without a file give none."""
    found: dict[str, None] = {}
    for name in tests:
        if "::" in name or name.endswith(".py"):
            found[name.partition("::")[0]] = None
            continue
        parts = name.partition("[")[0].split(".")
        for count in range(len(parts) - 1, 0, -1):
            path = "/".join(parts[:count])
            hit = next((one for one in (f"{path}.py", f"{path}/__init__.py") if one in tree), None)
            if hit is not None:
                found[hit] = None
                break
    return list(found)


def guard(base: Tree, tested: Tree, answer: Tree, test_files: Collection[str]) -> Guarded:
    """The answer's tree with what is not the answer's business put back.

    Args:
        base: Before everything, what the model saw.
        tested: With the data set's test patch, without the answer.
        answer: ``base`` with the answer's patch.
        test_files: Those of the listed tests, of the test patch and of the reference.
    """
    result, flags, undone = dict(tested), set(), []
    folders = _test_folders(test_files)
    for name in sorted(base.keys() | answer.keys()):
        if answer.get(name) == base.get(name):
            continue
        flag = _flag(name, base, test_files, folders)
        if flag is not None:
            flags.add(flag)
            undone.append(name)
        elif name in answer:
            result[name] = answer[name]
        else:
            result.pop(name, None)
    _drop_what_collides(result, tested)
    return Guarded(result, tuple(sorted(flags)), tuple(undone))


def _flag(name: str, base: Tree, test_files: Collection[str], folders: Collection[str]) -> str | None:
    """Why this file is not the answer's business; ``None`` if it is."""
    parts = name.split("/")
    if name in test_files or any("/".join(parts[:count]) in folders for count in range(1, len(parts))):
        return "test_file_changed"
    runner = any(fnmatchcase(parts[-1].lower(), pattern) for pattern in _RUNNER_FILES)
    if runner or any(fnmatchcase(part.lower(), pattern) for part in parts[:-1] for pattern in _RUNNER_FOLDERS):
        return "runner_file_changed"
    if name not in base and _shadows(name):
        return "shadows_module"
    return None


def _test_folders(test_files: Collection[str]) -> set[str]:
    """Folders that are called so and hold a listed test: all in them belongs to the tests."""
    found: set[str] = set()
    for name in test_files:
        parts = name.split("/")
        found.update("/".join(parts[: at + 1]) for at, part in enumerate(parts[:-1]) if part in _TEST_FOLDERS)
    return found


def _shadows(name: str) -> bool:
    """Would Python import this new file in place of the module of that name that the test runner means?"""
    for root in _ROOTS:
        if name.startswith(root):
            top = name[len(root) :].split("/")[0]
            if top.split(".")[0] in _SHADOWED and (top != name[len(root) :] or top.endswith((".py", ".so", ".pyc"))):
                return True
    return False


def _drop_what_collides(result: Tree, tested: Tree) -> None:
    """The answer may have made a file of what is a folder in the test's state, or the other way round."""
    folders = {"/".join(name.split("/")[:count]) for name in tested for count in range(1, name.count("/") + 1)}
    for name in [name for name in result if name not in tested]:
        parts = name.split("/")
        if name in folders or any("/".join(parts[:count]) in tested for count in range(1, len(parts))):
            del result[name]
