"""Guards of the repository: names that stay other people's, a wheel of five packages, imports that do nothing."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "adjudge": ROOT / "clients" / "python",
    "adjudge_sandbox": ROOT / "sandbox",
    "adjudge_server": ROOT / "server",
    "adjudge_trainer": ROOT / "trainer_bridge",
    "adjudge_verifiers": ROOT / "verifiers",
}
LONGEST_FILE = 400

SOURCES = sorted(path for name, root in PACKAGES.items() for path in (root / name).rglob("*.py"))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def folders_of_the_top() -> list[Path]:
    return [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]


def modules() -> Iterator[str]:
    for name, root in PACKAGES.items():
        yield name
        for found in pkgutil.walk_packages([str(root / name)], f"{name}."):
            if not found.name.endswith(".__main__"):
                yield found.name


def test_the_guards_see_the_sources() -> None:
    assert len(SOURCES) > 50
    assert {"adjudge.types", "adjudge_server.cli.verify", "adjudge_sandbox.nursery"} <= set(modules())


def test_no_folder_of_the_top_is_a_package() -> None:
    """With an ``__init__.py``, ``verifiers/`` would hide the installed package of that name from whoever runs here."""
    assert [shown(folder) for folder in folders_of_the_top() if (folder / "__init__.py").exists()] == []
    assert not (ROOT / "clients" / "python" / "__init__.py").exists()
    assert [shown(path) for path in (ROOT / "tests").rglob("__init__.py")] == []


def test_top_level_names_stay_those_of_other_projects(tmp_path: Path) -> None:
    """Run from the root, ``import verifiers`` gets an installed package of that name, not our folder."""
    names = [folder.name for folder in folders_of_the_top() if folder.name.isidentifier()]
    assert {"verifiers", "sandbox", "server"} <= set(names)
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("THEIRS = True\n")
    script = f"import sys; sys.path.append({str(tmp_path)!r})\n" + "".join(
        f"import {name}; assert {name}.THEIRS\n" for name in names
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=60)


def test_the_wheel_holds_exactly_the_five_packages(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    if built.returncode and "hatchling" in built.stderr and "No matching distribution" in built.stderr:
        pytest.skip("hatchling, the build backend, cannot be installed here")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in files} == set(PACKAGES)
    expected = {
        path.relative_to(root).as_posix() for root in PACKAGES.values() for path in SOURCES if root in path.parents
    }
    assert expected <= set(files)
    assert {f"{name}/py.typed" for name in PACKAGES} <= set(files)
    assert [name for name in files if "__pycache__" in name or "/tests/" in name] == []


IMPORT_ALL = """
import builtins, json, os, signal, sys, threading
for warm in ("pydantic", "pydantic_settings", "fastapi", "sqlalchemy", "structlog", "typer", "rich.console", "uvicorn"):
    __import__(warm)

def state():
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {"os.environ": dict(os.environ), "sys.path": list(sys.path), "builtins": dict(vars(builtins)),
            "signals": handlers, "threads": threading.active_count(), "cwd": os.getcwd(),
            "sys.excepthook": sys.excepthook, "recursion limit": sys.getrecursionlimit(),
            "int digits": sys.get_int_max_str_digits()}

faults = {}
for name in json.loads(sys.argv[1]):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            before = state()
            __import__(name)
            after = state()
            fault = ", ".join(f"changes {key}" for key in before if before[key] != after[key])
        except BaseException as error:
            fault = f"{type(error).__name__}: {error}"
        os.write(writer, fault.encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        fault = stream.read().decode()
    os.waitpid(pid, 0)
    if fault:
        faults[name] = fault
print(json.dumps(faults))
"""


def test_every_module_can_be_imported_first_and_changes_nothing() -> None:
    """Each in a process of its own: no import order is needed, and nothing happens at import."""
    command = [sys.executable, "-W", "error", "-c", IMPORT_ALL, json.dumps(list(modules()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout) == {}, "(an import must not print either)"


@pytest.mark.parametrize("name", [name for name in modules() if "adjudge_trainer.adapters." not in name])
def test_all_names_what_is_there(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    assert [entry for entry in listed if not hasattr(module, entry)] == []


CONTRACTS = [
    "adjudge.errors",
    "adjudge.types",
    "adjudge_sandbox.base",
    "adjudge_sandbox.errors",
    "adjudge_verifiers.base",
    "adjudge_verifiers.errors",
    "adjudge_server.settings",
    "adjudge_server.settings_load",
]


@pytest.mark.parametrize("name", CONTRACTS)
def test_contracts_list_all_that_is_public(name: str) -> None:
    module = importlib.import_module(name)
    public = {
        entry
        for entry, value in vars(module).items()
        if not entry.startswith("_") and getattr(value, "__module__", None) == name and callable(value)
    }
    assert public - set(module.__all__) - {"R", "O", "V"} == set()


def test_no_source_file_is_too_long() -> None:
    lengths = {shown(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        shown(path)
        for path in SOURCES
        if (tree := ast.parse(path.read_text())).body and ast.get_docstring(tree) is None and path.name != "_version.py"
    ]
    assert silent == []


def test_layers_and_entry_points_name_what_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        (PACKAGES[name] / name).relative_to(ROOT).as_posix() for name in sorted(PACKAGES)
    ]
    assert set(project["tool"]["importlinter"]["root_packages"]) == set(PACKAGES)
    for target in project["project"]["scripts"].values():
        module, _, attribute = target.partition(":")
        assert callable(getattr(importlib.import_module(module), attribute))
