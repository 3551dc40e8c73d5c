"""Every hostile program gets the verdict it deserves, is never rewarded, and hurts nobody beside it.

Beside each of them runs a canary: an honest program after the other, the first of which is in the sandbox before the
attack begins and the last of which ends after it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import ValidationError

from adjudge.types import Verdict
from adjudge_sandbox.base import Examination, Limits, Outcome, Run, RunResult, Sandbox, Script
from adjudge_sandbox.base import Program as Source
from adjudge_verifiers import registry
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.errors import InvalidReference, boundary

pytestmark = pytest.mark.hostile
in_jails = pytest.mark.asyncio(loop_scope="module")

MAX_DETAIL = 2000
COMPILER_OUTPUT_BYTES = 1 << 20
CANARY_LIMITS = Limits(cpu_s=10.0, wall_s=120.0)
CANARY = """
import os, sys, threading, time
token = sys.stdin.read()
with open("mine", "w") as file:
    file.write(token)
block = bytearray(b"%d" % len(token)) * (4 << 20)
seen = []
thread = threading.Thread(target=lambda: seen.append(sum(range(100_000))))
thread.start()
child = os.fork()
if child == 0:
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
time.sleep(0.15)
thread.join()
found = open("mine").read(), sorted(os.listdir(".")), status, seen, block.count(b"%d" % len(token))
wanted = token, ["mine", "solution.py"], 7, [4999950000], len(block) // len(b"%d" % len(token))
print(token if found == wanted else ("CHANGED", found))
"""
_tokens = itertools.count()


@asynccontextmanager
async def canary(sandbox: Sandbox) -> AsyncIterator[list[str]]:
    """Honest programs one after the other while the block runs. What is wrong with them is in the list afterwards."""
    problems: list[str] = []
    over = asyncio.Event()

    async def sing() -> None:
        while True:
            token = f"canary {next(_tokens)}"
            (result,) = await sandbox.run(Source(CANARY), [Script(token.encode())], CANARY_LIMITS)
            if result.outcome is not Outcome.FINISHED or result.stdout != f"{token}\n".encode():
                problems.append(f"the canary was hurt: {result!r}"[:2000])
            if over.is_set():
                return

    singing = asyncio.ensure_future(sing())
    await asyncio.sleep(0.05)
    try:
        yield problems
    finally:
        over.set()
        await singing


def runnable(program: Any, sandbox: Sandbox) -> None:
    """Skip what this host or backend cannot run, saying why."""
    if program.language not in sandbox.languages():
        pytest.skip(f"no toolchain for {program.language} here")
    if program.on(sandbox.name).get("skip"):
        pytest.skip(program.on(sandbox.name)["reason"])


@in_jails
async def test_program(sandbox: Sandbox, program: Any) -> None:
    runnable(program, sandbox)
    async with canary(sandbox) as problems:
        results = await sandbox.run(Source(program.source, program.language), program.runs, program.limits)
    assert problems == []
    assert len(results) == len(program.runs)
    for run, result in zip(program.runs, results, strict=True):
        check(run, result, program, program.on(sandbox.name))


def check(run: Run, result: RunResult, program: Any, exception: dict[str, Any]) -> None:
    found_out = (
        isinstance(run, Examination) and result.tampering
    )  # the verdict is then `tampered`, whatever the outcome
    assert found_out or result.outcome in exception.get("outcomes", program.outcomes), result
    assert len(result.detail) <= MAX_DETAIL
    cap = max(program.limits.output_kib << 10, COMPILER_OUTPUT_BYTES if result.outcome == "compile_error" else 0)
    assert max(len(result.stdout), len(result.stderr)) <= cap + 1, "more output came back than was asked for"
    wanted = exception["stdout"].encode() if "stdout" in exception else program.stdout
    if wanted is not None and not exception.get("any_output"):
        assert result.stdout == wanted, result
    everything = [result.stdout, result.stderr, result.detail.encode("utf-8", "surrogatepass"), *result.files.values()]
    for secret in program.absent:
        assert not any(secret in text for text in everything), result
    if result.outcome is Outcome.FINISHED:
        assert type(result.value) in (type(None), bool, int, float, str, list, dict, tuple, set, frozenset, bytes)


async def verdict_of(sandbox: Sandbox, program: Any) -> Verdict:
    """The program as an answer, through the verifier, as the engine would ask it."""
    verifier = registry.get("code")
    with boundary("verifier 'code'") as outcome:
        options = type(verifier).Options.model_validate(program.options)
        try:
            reference = type(verifier).reference_adapter().validate_python(program.reference)
        except ValidationError as error:
            raise InvalidReference(str(error)) from None
        response = f"````{program.language}\n{program.source.strip()}\n````\n"
        extraction = verifier.extract(response, options)
        call: Call[Any, Any] = Call("" if extraction else response, reference, options, extraction=extraction)
        verdict = await verifier.verify(call, Context(sandbox))
        assert isinstance(verdict, Verdict)
        return verdict
    assert outcome.failure is not None
    return outcome.failure


@in_jails
async def test_verdict(sandbox: Sandbox, program: Any) -> None:
    """Never rewarded; and a verdict, not an excuse: what cannot be scored is dropped by trainers, which is a reward."""
    runnable(program, sandbox)
    async with canary(sandbox) as problems:
        verdict = await verdict_of(sandbox, program)
        if verdict.status in ("overloaded", "unavailable") and os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
            verdict = await verdict_of(sandbox, program)  # the machine's doing, perhaps
    assert problems == []
    assert verdict.status in program.on(sandbox.name).get("statuses", program.statuses), verdict
    assert not verdict.reward, verdict
