"""Other sandboxes' own clients against a running server: verl's, the package ``sandbox-fusion``, Open-R1's.

Run by ``make test-trainers``. Each client runs in a process of its own. Open-R1 is not on PyPI: set
``OPEN_R1_CHECKOUT`` to a checkout of it to run its code reward.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.trainers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERL = "verl==0.9.1"


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """The address of a real server, in a process of its own."""
    command = [sys.executable, "-m", "adjudge_server", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process,
    ):
        assert process.stdout is not None
        address = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert address is not None, (folder / "log").read_text()
        yield address[0]
        process.terminate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose sandbox is off."""
    with serving(tmp_path_factory.mktemp("broken"), "--set", "sandbox.enabled=false") as address:
        yield address


def run(script: str, *arguments: str) -> Any:
    for package in ("requests", *(["sandbox_fusion"] if "fusion" in script else [])):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed here; run `make test-trainers`")
    command = [sys.executable, str(HERE / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def verl_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The package out of its wheel."""
    folder = tmp_path_factory.mktemp("verl")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), VERL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"{VERL} cannot be fetched: {done.stderr[-300:]}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return str(folder / "verl")


def test_verl(server: str, verl_folder: str) -> None:
    found = run("verl_client.py", verl_folder, f"{server}/compat/sandboxfusion/run_code")
    assert {name: case["score"] for name, case in found.items()} == {
        "right": 1.0,
        "wrong": pytest.approx(1 / 3),
        "crash": 0.0,
        "slow": 0.0,
        "broken": 0.0,
        "exits": 0.0,
        "call": 1.0,
        "asserts": 0.5,
        "long": 1.0,
        "empty": 0.0,
    }
    assert found["right"]["statuses"] == ["success"] * 3
    assert found["crash"]["statuses"] == ["runtime_error"] * 3
    assert found["slow"]["statuses"] == ["timeout"]
    assert found["asserts"]["statuses"] == ["success", "runtime_error"]


def test_verl_when_the_sandbox_is_down(broken: str, verl_folder: str) -> None:
    found = run("verl_client.py", verl_folder, f"{broken}/compat/sandboxfusion/run_code", "right")
    assert found["right"]["statuses"] == ["api_error"] * 3, "it has tried three times and calls none of them wrong"


def test_sandbox_fusion(server: str) -> None:
    found = run("sandbox_fusion_client.py", f"{server}/compat/sandboxfusion")
    assert {name: each["summary"] for name, each in found["runs"].items()} == {
        "right": "ok",
        "crash": "run",
        "slow": "time",
        "files": "ok",
    }
    assert found["runs"]["right"]["stdout"] == "3\n"
    assert found["runs"]["files"]["files"] == {"out.txt": "cba"}
    assert found["many"] == [f"{n}\n" for n in range(20)]
    assert found["submissions"] == {
        "oj_right": True,
        "oj_wrong": False,
        "auto_right": True,
        "auto_wrong": False,
        "auto_exit": False,
    }


def test_sandbox_fusion_when_the_sandbox_is_down(broken: str) -> None:
    found = run("sandbox_fusion_client.py", broken, "--failing")
    assert set(found) == {"run_code", "submit"}
    assert all("504" in reason and "SandboxError" in reason for reason in found.values())


def test_open_r1(server: str, broken: str) -> None:
    checkout = os.environ.get("OPEN_R1_CHECKOUT")
    if not checkout:
        pytest.skip("set OPEN_R1_CHECKOUT to a checkout of Open-R1")
    place = "/compat/open_r1"
    assert run("open_r1_client.py", checkout, server.removeprefix("http://") + place) == [1.0, 0.25, 0.0, 0.0]
    assert run("open_r1_client.py", checkout, broken.removeprefix("http://") + place) == [None] * 4
