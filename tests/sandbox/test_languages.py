"""Every language that has a toolchain here: built, run, limited, given files, and told apart from broken programs.

The programs are data (``languages.toml``): one echo-and-sum, and one for each way of going wrong. On every change the
languages that CI installs, and of their programs those that every language has; the rest by ``make test-languages``.
"""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Limits, Program, RunResult, Script
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.languages import table
from adjudge_sandbox.languages.toolchains import how_to_get
from adjudge_sandbox.probe import probe

FEW = ("c", "cpp", "java", "javascript", "go", "rust", "ruby", "php", "perl", "lua", "bash", "sql")
USUAL = ("sum", "rows", "args", "files", "database", "compile_error", "time_limit", "memory_limit", "output_limit")
CASES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "languages.toml").read_text("utf-8"))
LIMITS = Limits(cpu_s=10, wall_s=60)


def _params() -> list[Any]:
    return [
        pytest.param(language, kind, id=f"{language}-{kind}", marks=[] if usual else pytest.mark.languages)
        for language, cases in CASES.items()
        for kind in cases
        for usual in [language in FEW and kind in USUAL]
    ]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox() -> AsyncIterator[ZygoteSandbox]:
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        if all(finding.ok for finding in probe()):
            raise
        pytest.skip(f"no isolation on this host: {error}")
    yield backend
    await backend.stop()


def _need(sandbox: ZygoteSandbox, language: str) -> None:
    if language not in sandbox.languages():
        known = table.find(language)
        assert known is not None
        pytest.skip(f"no toolchain for {language} here: {how_to_get(known[0])}")


async def _run(sandbox: ZygoteSandbox, program: Program, *scripts: Script, limits: Limits = LIMITS) -> RunResult:
    results = await sandbox.run(program, scripts, limits)
    assert all(result.isolation == "jail" for result in results)
    return results[0]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("language", "kind"), _params())
async def test_language(sandbox: ZygoteSandbox, language: str, kind: str) -> None:
    _need(sandbox, language)
    case = CASES[language][kind]
    script = Script(
        stdin=case.get("stdin", "").encode(),
        args=tuple(case.get("args", ())),
        files={name: text.encode() for name, text in case.get("files", {}).items()},
        fetch=tuple(case.get("fetch", ())),
    )
    limits = Limits(**{"cpu_s": 10, "wall_s": 60, **case.get("limits", {})})
    result = await _run(sandbox, Program(case["source"], language=language), script, limits=limits)
    assert result.outcome == case.get("outcome", "finished"), result
    if "stdout" in case:
        assert result.stdout.decode() == case["stdout"], result
    if "exit_status" in case:
        assert result.exit_status == case["exit_status"], result
    assert case.get("detail", "") in result.detail, result
    assert {name: data.decode() for name, data in result.files.items()} == case.get("fetched", {})


_ORDINARY = ("c", "java", "javascript", "go")
_KINDS = ("sum", "files", "compile_error", "time_limit", "memory_limit")


@pytest.mark.languages
@pytest.mark.parametrize("backend", ["zygote", "landlock"])
@pytest.mark.skipif(os.geteuid() != 0, reason="the suite already runs as an ordinary user")
def test_as_an_ordinary_user(backend: str) -> None:
    """Without control groups: memory by resource limits and a look now and then, which runtimes must live with."""
    python = "/usr/bin/python3"
    new_enough = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if not os.path.exists(python) or subprocess.run(new_enough, check=False).returncode:
        pytest.skip("there is no interpreter that an ordinary user can read")
    root = Path(str(table.__file__)).parents[2]
    cases = {f"{one} {kind}": {"language": one, **CASES[one][kind]} for one in _ORDINARY for kind in _KINDS}
    done = subprocess.run(
        [python, "-B", "-c", _AS_USER, backend],
        input=json.dumps(cases),
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if "SKIP" in done.stdout:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "c sum: finished" in done.stdout, done.stdout


_AS_USER = """
import asyncio, json, sys
from adjudge_sandbox.base import Limits, Program, Script
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.backends.zygote import ZygoteSandbox

async def main():
    sandbox, problems = ZygoteSandbox(sys.argv[1]), 0
    try:
        await sandbox.start()
    except SandboxUnavailable as error:
        print("SKIP", error)
        return 0
    for name, case in json.load(sys.stdin).items():
        if case["language"] not in sandbox.languages():
            continue
        files = {name: text.encode() for name, text in case.get("files", {}).items()}
        script = Script(case.get("stdin", "").encode(), files=files, fetch=tuple(case.get("fetch", ())))
        limits = Limits(**{"cpu_s": 10, "wall_s": 60, **case.get("limits", {})})
        (result,) = await sandbox.run(Program(case["source"], case["language"]), [script], limits)
        print(f"{name}: {result.outcome}")
        fetched = {name: data.decode() for name, data in result.files.items()}
        if result.outcome != case.get("outcome", "finished") or fetched != case.get("fetched", {}):
            problems += 1
            print(result)
    await sandbox.stop()
    return problems

sys.exit(asyncio.run(main()))
"""
