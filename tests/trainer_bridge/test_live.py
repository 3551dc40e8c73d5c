"""Trainers' own code against a running server: TRL's ``GRPOTrainer``, OpenRLHF's and slime's reward clients.

Run by ``make test-trainers``, in an environment that has torch and trl. Each trainer runs in a process of its own,
from the scripts in ``tests/trainers`` and ``examples``, because trainers fight over event loops and warn a lot.
slime is not on PyPI: set ``SLIME_CHECKOUT`` to a checkout of it to run its own file, else an equal client runs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Client

pytestmark = pytest.mark.trainers

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "trainers"
OPENRLHF = "openrlhf==0.11.2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server, in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    # The store of verdicts goes there too, not into the user's own.
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-m", "adjudge_server", "serve", "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        with Client(base_url=url) as client:
            assert client.ready(wait_s=60), (folder / "log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(60)


def run(script: Path, *arguments: str) -> str:
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def last_line(text: str) -> Any:
    return json.loads(text.strip().splitlines()[-1])


def grpo(server: str, log: Path, *arguments: str) -> list[dict[str, Any]]:
    if find_spec("trl") is None:
        pytest.skip("trl is not installed here; run `make test-trainers`")
    run(ROOT / "examples" / "trl_grpo.py", "--base-url", server, "--steps", "2", "--log", str(log), *arguments)
    return [entry for entry in json.loads(log.read_text()) if "reward" in entry]


def test_trl_two_steps(server: str, tmp_path: Path) -> None:
    steps = grpo(server, tmp_path / "log.json")
    assert [entry["step"] for entry in steps] == [1, 2]
    for entry in steps:
        assert entry["adjudge/failed_share"] == entry["brevity/failed_share"] == 0
        assert 0 <= entry["rewards/adjudge_numeric/mean"] <= 1
        assert entry["rewards/brevity/mean"] == 0, "eight tokens are not too long"


def test_trl_goes_on_when_nothing_can_be_judged(tmp_path: Path) -> None:
    steps = grpo("http://127.0.0.1:9", tmp_path / "log.json")
    assert [entry["adjudge/failed_share"] for entry in steps] == [1, 1]
    assert all(entry["loss"] == 0 for entry in steps), "every advantage is masked"


def test_trl_with_an_unknown_verifier(server: str, tmp_path: Path) -> None:
    steps = grpo(server, tmp_path / "log.json", "--verifier", "no_such_verifier")
    assert [entry["adjudge/invalid_task_share"] for entry in steps] == [1, 1]
    assert [entry["brevity/failed_share"] for entry in steps] == [0, 0]


def openrlhf_folder() -> Path:
    """The package out of its wheel, which is fetched once."""
    cache = ROOT / ".venv-trainers" / "openrlhf"
    if not any(cache.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), OPENRLHF]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            pytest.skip(f"{OPENRLHF} cannot be fetched: {done.stderr[-300:]}")
    with zipfile.ZipFile(next(cache.glob("*.whl"))) as wheel:
        wheel.extractall(cache)
    return next(path.parent.parent for path in cache.rglob("utils/agent.py"))


def test_openrlhf(server: str) -> None:
    if find_spec("aiohttp") is None or find_spec("torch") is None:
        pytest.skip("torch and aiohttp are not installed here; run `make test-trainers`")
    found = last_line(run(SCRIPTS / "openrlhf_client.py", str(openrlhf_folder()), server))
    assert [sample["rewards"] for sample in found[:4]] == [[1.0], [0.0], [1.0], [0.0]]
    assert [sample["scores"] for sample in found[:4]] == [[1.0], [0.0], [1.0], [0.0]]
    assert {"valid", "correct"} <= set(found[0]["logs"]) < set(found[0]["info"])
    assert found[5]["rewards"] is None, "a label that is missing is no reward, and never a 0"


def test_slime(server: str) -> None:
    if find_spec("aiohttp") is None:
        pytest.skip("aiohttp is not installed here; run `make test-trainers`")
    checkout = os.environ.get("SLIME_CHECKOUT")
    found = last_line(run(SCRIPTS / "slime_client.py", server, *([checkout] if checkout else [])))
    assert found["numbers"] == [1.0, 0.0, 1.0, 0.0, *[1.0] * 96]
    assert [reply["score"] for reply in found["dicts"]] == [1.0, 0.0]
    assert (found["unusable"][0]["reward"], found["unusable"][0]["valid"]) == (0.0, 0.0)
    assert all(isinstance(value, int | float) for value in found["dicts"][0].values())
    assert found["nothing"] == []
