"""The public face: names, one set of methods for both clients, and what an import pulls in."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

import adjudge
from adjudge import AsyncClient, Client

HEAVY = ["httpx2", "httpcore2", "anyio", "torch", "fastapi", "starlette", "uvicorn", "sympy", "sqlalchemy", "asyncio"]


def test_all_names_are_there() -> None:
    assert sorted(adjudge.__all__) == adjudge.__all__ == dir(adjudge)
    for name in adjudge.__all__:
        assert getattr(adjudge, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = adjudge.nonsense


def test_every_error_is_public() -> None:
    from adjudge import errors

    assert set(errors.__all__) <= set(adjudge.__all__)


def in_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_pulls_in_nothing_heavy() -> None:
    loaded = in_new_process(f"import sys, adjudge; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_making_a_client_does_not_load_the_http_library() -> None:
    code = "import sys, adjudge; adjudge.Client(); adjudge.AsyncClient(); print('httpx2' in sys.modules)"
    assert in_new_process(code).strip() == "False"


def test_import_starts_nothing() -> None:
    code = (
        "import threading, signal, os; before = dict(os.environ), signal.getsignal(signal.SIGALRM);"
        "import adjudge, adjudge.client, adjudge.batching, adjudge.testing;"
        "print(threading.active_count(), (dict(os.environ), signal.getsignal(signal.SIGALRM)) == before)"
    )
    assert in_new_process(code).split() == ["1", "True"]


def methods(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    asynchronous, blocking = methods(AsyncClient), methods(Client)
    assert set(asynchronous) == set(blocking) - {"settings"}
    for name, method in asynchronous.items():
        parameters = inspect.signature(method).parameters
        assert parameters == inspect.signature(blocking[name]).parameters, name
        assert not inspect.iscoroutinefunction(blocking[name]), name
        assert method.__doc__, name
    assert inspect.signature(AsyncClient.__init__).parameters == inspect.signature(Client.__init__).parameters
