"""A Docker engine for the tests: the one that can be reached, else one that is started here and stopped at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "engine.sh"
USUAL_SOCKET = "/var/run/docker.sock"


@dataclass(frozen=True)
class Engine:
    """Where the engine is, and an image with Python and pytest."""

    url: str
    image: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the engine."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.docker)


def _script(*args: str, url: str = "") -> str:
    done = subprocess.run(
        [str(SCRIPT), *args],
        env={**os.environ, **({"DOCKER_HOST": url} if url else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no Docker engine: {done.stderr.strip()[-500:] or done.stdout.strip()[-500:]}")
    return done.stdout.strip()


def _reachable() -> str | None:
    url = os.environ.get("DOCKER_HOST") or (f"unix://{USUAL_SOCKET}" if os.path.exists(USUAL_SOCKET) else None)
    docker = shutil.which("docker")
    if url is None or docker is None:
        return None
    done = subprocess.run([docker, "-H", url, "info"], capture_output=True, check=False)
    return url if done.returncode == 0 else None


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """See the module."""
    url = _reachable()
    if url is not None:
        yield Engine(url, _script("image", url=url))
        return
    folder = tempfile.mkdtemp(prefix="adjudge-docker-")
    try:
        _script("up", folder)
        url = f"unix://{folder}/docker.sock"
        yield Engine(url, _script("image", url=url))
    finally:
        subprocess.run([str(SCRIPT), "down", folder], check=False, capture_output=True)
