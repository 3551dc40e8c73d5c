"""Hostile programs on every backend of this host: the table that they are in, the backends, and the final table.

A program is a row of ``programs/*.toml`` or of ``tests/sandbox/hostile.toml`` (the part of the suite that is quick
enough for every change)::

    number    of the kind of attack: 1-64 as listed in docs, 65-104 our own
    source    or source_py (a Python literal) or source_parts ([text, times] pairs)
    language  default python
    stdin | call, args_py | test, setup, bind     how it is run; by default as a script without input
    repeat    how often, in one jail; what is said of the result holds for each run
    fetch     files to bring back
    outcomes  what the sandbox may say
    stdout    exact; without: `144` must not be there
    absent    texts that must be in nothing that comes back
    limits    beside those of its language below
    reference, options     of the task that it is sent in as an answer to; by default one that it does not solve
    statuses  of that verdict, if not only `ok`
    harmless  may run on the backend `none`
    except.BACKEND         { outcomes, stdout, statuses, any_output, skip } that differ there, with the `reason`

A backend that the registry knows is tested without a change here.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adjudge_sandbox.base import Limits, Run, Sandbox, Script
from adjudge_sandbox.conformance import run_of, text_of
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import BACKENDS, open_sandbox

HERE = Path(__file__).parent
QUICK = HERE.parent / "sandbox" / "hostile.toml"
LISTED, OWN = range(1, 65), range(65, 105)

_SMALL = {"cpu_s": 1.0, "wall_s": 15.0, "memory_mib": 128, "output_kib": 256}
_LIMITS: dict[str, dict[str, Any]] = {
    "python": _SMALL,
    "c": _SMALL,
    "cpp": {**_SMALL, "memory_mib": 256},
    "rust": _SMALL,
    "bash": _SMALL,
    "perl": _SMALL,
    "lua": _SMALL,
}
_ROOMY = {"cpu_s": 3.0, "wall_s": 25.0, "memory_mib": 512, "output_kib": 256, "processes": 64}
_EXAM = "assert f(2) == 4\nassert f(3) == 9"
SOLUTION = "144"
"""What every task wants that names no other."""


@dataclass(frozen=True, slots=True)
class Program:
    """One row."""

    number: int
    name: str
    language: str
    source: str
    runs: list[Run]
    outcomes: list[str]
    stdout: bytes | None
    absent: list[bytes]
    limits: Limits
    reference: dict[str, Any]
    options: dict[str, Any]
    statuses: list[str]
    harmless: bool
    exceptions: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        prefix = "" if self.name.startswith(str(self.number)) else f"{self.number} "
        return f"{prefix}{self.name}{'' if self.language == 'python' else f' ({self.language})'}"

    def on(self, backend: str) -> dict[str, Any]:
        """What differs on ``backend``."""
        return self.exceptions.get(backend, {})


def load_programs() -> list[Program]:
    """Every row of every table."""
    rows = []
    for path in (QUICK, *sorted((HERE / "programs").glob("*.toml"))):
        for kind, table in tomllib.loads(path.read_text("utf-8")).items():
            rows += [_program(row, path, cheats=kind == "cheat") for row in table]
    return rows


def _program(row: dict[str, Any], path: Path, *, cheats: bool) -> Program:
    if cheats and "test" not in row and "call" not in row:
        row = {**row, "test": _EXAM}
    language = row.get("language", "python")
    given = {**_LIMITS.get(language, _ROOMY), **row.get("limits", {})}
    run = run_of(row)
    if isinstance(run, Script):
        run = Script(run.stdin, tuple(row.get("args", ())), fetch=tuple(row.get("fetch", ())))
    stdout = text_of(row, "stdout", None)
    return Program(
        number=row.get("number") or _leading_number(row["name"]),
        name=row["name"],
        language=language,
        source=text_of(row, "source", ""),
        runs=[run] * row.get("repeat", 1),
        outcomes=row["outcomes"],
        stdout=stdout.encode() if isinstance(stdout, str) else stdout,
        absent=[text.encode() for text in row.get("absent", ())],
        limits=Limits(**given),
        reference=row.get("reference") or _task_for(row, run),
        options={**{k: v for k, v in given.items() if k in _OPTIONS}, **row.get("options", {}), "language": language},
        statuses=row.get("statuses", ["ok"]),
        harmless=row.get("harmless", False),
        exceptions=row.get("except", {}),
    )


_OPTIONS = ("cpu_s", "wall_s", "memory_mib", "output_kib")


def _leading_number(name: str) -> int:
    """Rows of the quick table carry the number in their name, or have none: those are kinds of our own."""
    digits = name.replace("-", " ").split()[0]
    return int(digits) if digits.isdigit() else 0


def _task_for(row: dict[str, Any], run: Run) -> dict[str, Any]:
    """A task that this program does not solve, of the kind that it attacks."""
    if isinstance(run, Script):
        stdin = run.stdin.decode("utf-8", "replace") or "12\n"
        return {"tests": [{"stdin": stdin, "stdout": f"{SOLUTION}\n"}] * 2}
    if "call" in row:
        args = list(ast.literal_eval(row.get("args_py", "()")))
        return {"tests": [{"call": {"function": row["call"], "args": args}, "expect": SOLUTION}] * 2}
    entry = {"entry_point": row["bind"]["candidate"]} if "bind" in row else {}
    return {"tests": [{"assert": row["test"]}], "setup": row.get("setup", ""), **entry}


PROGRAMS = load_programs()


@pytest.fixture(scope="session")
def programs() -> list[Program]:
    return PROGRAMS


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hostile: hostile programs on every backend; run by `make test-hostile`")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", PROGRAMS, ids=[program.id for program in PROGRAMS])
    if "sandbox" in metafunc.fixturenames:
        metafunc.parametrize("sandbox", BACKENDS, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nothing that could hurt this machine runs on ``none``."""
    kept, dropped = [], []
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        program, backend = params.get("program"), params.get("sandbox")
        safe = not isinstance(program, Program) or backend != "none" or program.harmless
        (kept if safe else dropped).append(item)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox(request.param, allow_none=request.param == "none")
    except SandboxUnavailable as error:
        pytest.skip(f"this host has no {request.param}: {error}")
    yield opened
    await opened.stop()


@pytest.fixture(autouse=True)
def _counted(request: pytest.FixtureRequest) -> None:
    """What the final table counts."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    program = params.get("program")
    if isinstance(program, Program):
        label = "jail" if params["sandbox"] == "zygote" and program.language != "python" else params["sandbox"]
        through = "verdict" if "verdict" in request.node.name else "sandbox"
        request.node.user_properties.append(("hostile", [label, through, program.number]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Backend by programs: run, ok, not ok, not applicable; how many of the 104 numbers that covers."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for status in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(status, ()):
            for key, value in getattr(report, "user_properties", ()):
                if key == "hostile" and (report.when == "call" or status != "passed"):
                    label, through, number = value
                    counts[label, through][status] += 1
                    if status == "passed":
                        numbers[label, through].add(number)
    if not counts:
        return
    terminalreporter.section("hostile programs")
    terminalreporter.line(
        f"{'backend':<10} {'asked':<8} {'programs':>8} {'ok':>6} {'not ok':>7} {'skipped':>8}  numbers"
    )
    for (label, through), count in sorted(counts.items()):
        ran = count["passed"] + count["failed"] + count["error"]
        listed, own = (len(numbers[label, through] & set(which)) for which in (LISTED, OWN))
        terminalreporter.line(
            f"{label:<10} {through:<8} {ran:>8} {count['passed']:>6} {count['failed'] + count['error']:>7} "
            f"{count['skipped']:>8}  {listed} of {len(LISTED)}, {own} of {len(OWN)}"
        )
