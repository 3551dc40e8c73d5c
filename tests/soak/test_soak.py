"""Nothing is left behind: neither by thousands of runs, nor by a server that is killed. See `benchmarks/soak.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox

ROOT = Path(__file__).parents[2]


async def soak(*arguments: str) -> None:
    """Run it in a process of its own; its table is printed, and in the report if it fails."""
    try:
        await (await open_sandbox("zygote")).stop()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    command = [sys.executable, str(ROOT / "benchmarks" / "soak.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: ASYNC221 - nothing else runs
    print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_short_soak() -> None:
    await soak("--runs", "200", "--kill-every", "40")


@pytest.mark.soak
async def test_ten_thousand_runs() -> None:
    await soak("--runs", "10000")
