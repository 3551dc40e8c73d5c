"""MultiPL-E's own tests, in every language that runs here: right and wrong solutions, and answers that end early.

The solutions (``multipl_e.toml``) are ours; prompts and tests are those of the sample in the shared data.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Script
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable
from adjudge_sandbox.languages import table
from adjudge_sandbox.languages.self_test import SelfTest, self_test
from adjudge_sandbox.probe import probe

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("ADJUDGE_SHARED", HERE.parents[2] / "shared"))
SOLUTIONS: dict[str, dict[str, dict[str, str]]] = tomllib.loads((HERE / "multipl_e.toml").read_text("utf-8"))
LIMITS = Limits(cpu_s=10, wall_s=60, compile_cpu_s=90)
JAVATUPLES = b"package org.javatuples; public class Pair<A, B> { }"  # the prompts import the package and use none of it
NEEDS = {
    "lua": ('require("luaunit")', "lua-unit"),
    "pl": ("use Test::Deep;", "libtest-deep-perl"),
    "rb": ("require 'test/unit'", "ruby-test-unit"),
}
"""Libraries that the tests use: how to load them, and the Debian package."""
EXITS = {
    "cpp": "    std::exit(0);\n",
    "cs": "        Environment.Exit(0); return 0;\n",
    "d": "{\n    import core.stdc.stdlib : exit;\n    exit(0);\n    return 0;\n}\n\n",
    "java": "        System.exit(0); return 0;\n",
    "js": "  process.exit(0);\n}\n\n",
    "jl": "\n    exit(0)\nend\n\n",
    "lua": "  os.exit(0)\nend\n\n",
    "pl": "    exit 0;\n}\n\n",
    "r": "    quit(status = 0)\n}\n",
    "rb": "  exit!(0)\nend\n\n",
    "rs": "    std::process::exit(0)\n",
    "scala": "        sys.exit(0)\n",
    "sh": "    kill -9 $$\n",
    "ts": "  declareExit(); return 0;\n}\ndeclare var process: any;\nfunction declareExit() { process.exit(0); }\n\n",
    "go_test.go": '\treturn 0\n}\n\nfunc init() { panic("x") }\n\n',
}
"""Bodies of ``strlen`` that end the process, with success wherever the language lets them."""
SOURCE_READERS = {
    "js": '  const s = require("fs").readFileSync(__filename, "utf8");\n'
    '  console.log(s.match(/"([0-9a-f]{32})"/)[1]); process.exit(0);\n}\n\n',
    "rb": "  puts File.read(__FILE__)[/[0-9a-f]{32}/]\n  $stdout.flush\n  exit!(0)\nend\n\n",
    "pl": '    open(my $f, "<", $0); local $/; <$f> =~ /([0-9a-f]{32})/; print "$1\\n"; exit 0;\n}\n\n',
    "sh": '    grep -oE "[0-9a-f]{32}" main.sh >&2; echo 0\n',
}
"""Bodies of ``strlen`` that print what they find in their own source."""

IMPOSSIBLE = {("php", "HumanEval_23_strlen"): "Cannot redeclare strlen()"}
"""Problems of the sample that nobody can solve, and what the language says of it."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.languages,
    pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data is not at {SHARED}"),
]


@cache
def rows() -> dict[tuple[str, str], dict[str, Any]]:
    lines = (SHARED / "data" / "multipl_e_sample.jsonl").read_text("utf-8").splitlines()
    return {(row["language"], row["name"]): row for row in map(json.loads, lines)}


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


async def run(sandbox: ZygoteSandbox, program: Program) -> RunResult:
    if program.language == "java":
        program = Program(program.source, "java", files={"org/javatuples/Pair.java": JAVATUPLES})
    (result,) = await sandbox.run(program, [Script()], LIMITS)
    return result


async def judge(sandbox: ZygoteSandbox, language: str, problem: str, completion: str) -> tuple[str, RunResult]:
    """``passed``, ``failed``, or ``tampered``: it also passes tests of which one is false."""
    known = table.find(language.removesuffix("_test.go"))
    assert known is not None
    if known[0].name not in sandbox.languages():
        pytest.skip(f"no toolchain for {known[0].name} here: apt-get install {known[0].package}")
    if language in NEEDS:
        load, package = NEEDS[language]
        if (await run(sandbox, Program(load, language))).outcome is not Outcome.FINISHED:
            pytest.skip(f"a library of the tests is missing: apt-get install {package}")
    row = rows()[language, problem]
    test: SelfTest = self_test(language, row["prompt"] + completion, row["tests"])
    result = await run(sandbox, test.program)
    if not test.passed(result):
        return "failed", result
    return ("tampered" if test.passed(await run(sandbox, test.trip_wire)) else "passed"), result


@pytest.mark.parametrize("problem", sorted(SOLUTIONS["cpp"]))
@pytest.mark.parametrize("language", sorted(SOLUTIONS))
async def test_solutions(sandbox: ZygoteSandbox, language: str, problem: str) -> None:
    solutions = SOLUTIONS[language][problem]
    verdict, result = await judge(sandbox, language, problem, solutions["right"])
    if (language, problem) in IMPOSSIBLE:
        assert IMPOSSIBLE[language, problem] in result.detail
        return
    assert verdict == "passed", result
    verdict, result = await judge(sandbox, language, problem, solutions["wrong"])
    assert verdict == "failed", result
    assert result.outcome is not Outcome.COMPILE_ERROR, result


@pytest.mark.parametrize("language", sorted(EXITS))
async def test_an_answer_that_ends_early_has_not_passed(sandbox: ZygoteSandbox, language: str) -> None:
    verdict, result = await judge(sandbox, language, "HumanEval_23_strlen", EXITS[language])
    assert verdict == "failed", result
    assert result.outcome is not Outcome.COMPILE_ERROR, result


@pytest.mark.parametrize("language", sorted(SOURCE_READERS))
async def test_an_answer_that_reads_its_own_source_trips_over_the_wire(sandbox: ZygoteSandbox, language: str) -> None:
    verdict, result = await judge(sandbox, language, "HumanEval_23_strlen", SOURCE_READERS[language])
    assert verdict in ("tampered", "failed"), result


async def test_every_language_of_the_sample_has_solutions() -> None:
    assert set(SOLUTIONS) == {language for language, _ in rows()} == {*EXITS, "php"}


async def test_tests_that_end_otherwise() -> None:
    with pytest.raises(InvalidProgram, match="do not end with"):
        self_test("cpp", "", "int main() {")
    with pytest.raises(InvalidProgram, match="not known"):
        self_test("brainfuck", "", "")
