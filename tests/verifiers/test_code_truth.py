"""Every canonical HumanEval and MBPP solution is rewarded, and none that returns nothing: on the real sandbox.

The normal suite takes a sample of the shared data; ``slow`` takes all of it. ``benchmarks/code_truth.py``, from which
the cases come, does the same through a running server.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import boundary

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ADJUDGE_SHARED", ROOT.parent / "shared")) / "data"
FILES = {"humaneval": "HumanEval.jsonl.gz", "mbpp": "mbpp.jsonl"}


def truth() -> ModuleType:
    name = "adjudge_code_truth"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / "code_truth.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def cases(data: str) -> list[Any]:
    path = DATA / FILES[data]
    if not path.is_file():
        pytest.skip(f"the shared data is not there: {path.name} in {DATA} (set ADJUDGE_SHARED)")
    return list(getattr(truth(), f"{data}_cases")(path))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def exceptions(sandbox: Sandbox, chosen: list[Any]) -> list[str]:
    """The cases that did not get their reward."""
    slots = asyncio.Semaphore(2)

    async def one(case: Any) -> str | None:
        async with slots:
            with boundary("verifier 'code'") as outcome:
                call = Call(case.response, normalise(case.reference), CodeOptions())
                verdict = await Code().verify(call, Context(sandbox))
            verdict = outcome.failure or verdict
        if verdict.reward == case.reward or case.name in truth().KNOWN_NONE:
            return None
        return f"{case.name}: {verdict.status} {verdict.reward} {verdict.category}: {verdict.reason[:200]}"

    return [found for found in await asyncio.gather(*map(one, chosen)) if found]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("data", "step"), [("humaneval", 17), ("mbpp", 51)])
async def test_a_sample(sandbox: Sandbox, data: str, step: int) -> None:
    chosen = cases(data)[::step]
    assert {case.reward for case in chosen} == {0.0, 1.0}
    assert await exceptions(sandbox, chosen) == []


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("data", ["humaneval", "mbpp"])
async def test_all(sandbox: Sandbox, data: str) -> None:
    assert await exceptions(sandbox, cases(data)) == []


@pytest.mark.parametrize("data", ["humaneval", "mbpp"])
def test_every_problem_has_a_usable_reference_and_a_gold_answer(data: str) -> None:
    for case in cases(data):
        reference = normalise(case.reference)
        assert reference.tests
        if data == "mbpp":
            assert Code().gold(reference, CodeOptions())
