"""Every language that has a toolchain here: built, run, limited, given files, and told apart from broken programs.

The programs are data (``languages.toml``): one echo-and-sum, and one for each way of going wrong.
"""

from __future__ import annotations

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
from adjudge_sandbox.probe import probe

FEW = ("c", "cpp", "java", "javascript", "go", "rust", "ruby", "php", "perl", "lua", "bash", "sql")
CASES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "languages.toml").read_text("utf-8"))
LIMITS = Limits(cpu_s=10, wall_s=60)


def _params() -> list[Any]:
    return [
        pytest.param(language, kind, id=f"{language}-{kind}", marks=[] if language in FEW else pytest.mark.languages)
        for language, cases in CASES.items()
        for kind in cases
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
        pytest.skip(f"no toolchain for {language} here: apt-get install {known[0].package}")


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
