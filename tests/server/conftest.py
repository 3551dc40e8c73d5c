"""An engine and an application with small lanes, and the verifiers of ``plugins/``."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from adjudge_server.app import create_app
from adjudge_server.engine import Engine
from adjudge_server.settings import Settings

PLUGINS = str(Path(__file__).parent / "plugins")


@pytest.fixture(scope="session", autouse=True)
def _plugins_on_path() -> None:
    sys.path.insert(0, PLUGINS)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [PLUGINS, os.environ.get("PYTHONPATH")]))


def settings_in(folder: Path, **changes: Any) -> Settings:
    """Settings for a test: two cpu workers, a store in ``folder``, the test verifiers."""
    values: dict[str, Any] = {
        "plugins": ["adjudge_test_plugin"],
        "lanes": {"cpu_workers": 2, "sandbox_slots": 2},
        "store": {"url": f"sqlite:///{folder / 'verdicts.sqlite3'}"},
    }
    for key, value in changes.items():
        values[key] = {**values[key], **value} if isinstance(values.get(key), dict) else value
    return Settings(**values)


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    return functools.partial(settings_in, tmp_path)


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One application for all tests that do not change it."""
    with TestClient(create_app(settings_in(tmp_path_factory.mktemp("app"))), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
async def make_engine(make_settings: Callable[..., Settings]) -> AsyncIterator[Callable[..., Any]]:
    """Starts engines and stops them afterwards."""
    engines: list[Engine] = []

    async def make(**changes: Any) -> Engine:
        engine = Engine(make_settings(**changes))
        await engine.start()
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        await engine.stop()


@pytest.fixture
async def engine(make_engine: Callable[..., Any]) -> Engine:
    started: Engine = await make_engine()
    return started


@pytest.fixture
def make_app(make_settings: Callable[..., Settings]) -> Callable[..., Any]:
    """Applications for :class:`starlette.testclient.TestClient` (use it as a context manager)."""
    return lambda **changes: create_app(make_settings(**changes))


@pytest.fixture(scope="session")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real ``adjudge serve`` process."""
    state = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-m", "adjudge_server", "serve", "--port", "0"]
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    with (
        (state / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process,
    ):
        assert process.stdout is not None
        address = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert address is not None, (state / "log").read_text()
        yield address[0]
        process.terminate()
        assert process.wait(30) == 0, (state / "log").read_text()[-2000:]
    assert "http.bug" not in (state / "log").read_text()
