"""Piston's wire format, field by field, through the application and in real jails."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

EXECUTE = "/compat/piston/api/v2/execute"


@pytest.fixture(scope="module", autouse=True)
def _with_a_sandbox(client: TestClient) -> None:
    if client.app.state.engine.sandbox is None:  # type: ignore[attr-defined]
        pytest.skip("this host cannot isolate programs")


def piston(client: TestClient, content: str, **more: Any) -> Any:
    body = {"language": "python", "version": "*", "files": [{"name": "main.py", "content": content}], **more}
    return client.post(EXECUTE, json=body)


def test_piston_runtimes(client: TestClient) -> None:
    found = {each["language"]: each for each in client.get("/compat/piston/api/v2/runtimes").json()}
    assert found["python"]["version"].startswith("3.")
    assert "python3" in found["python"]["aliases"]


def test_piston(client: TestClient) -> None:
    reply = piston(client, "import sys\nprint(input())\nprint('e', file=sys.stderr)", stdin="hi").json()
    assert (reply["language"], reply["version"][:2]) == ("python", "3.")
    run = reply["run"]
    assert (run["stdout"], run["stderr"], run["output"]) == ("hi\n", "e\n", "hi\ne\n")
    assert (run["code"], run["signal"], run["status"], run["message"]) == (0, None, None, None)
    assert run["cpu_time"] >= 0
    assert run["wall_time"] >= 0
    assert "compile" not in reply


@pytest.mark.parametrize(
    ("content", "status", "code", "number"),
    [
        ("import sys; sys.exit(4)", "RE", 4, None),
        ("print(", "RE", 1, None),
        ("import os; os.kill(os.getpid(), 11)", "SG", None, "SIGSEGV"),
        ("while True: pass", "TO", None, "SIGKILL"),
        ("x = bytearray(1 << 29)", "SG", None, "SIGKILL"),
        ("while True: print('x' * 100000)", "OL", None, "SIGKILL"),
    ],
)
def test_piston_statuses(client: TestClient, content: str, status: str, code: int | None, number: str | None) -> None:
    run = piston(client, content, run_timeout=500, run_memory_limit=128 << 20).json()["run"]
    assert (run["status"], run["code"], run["signal"]) == (status, code, number)
    assert run["message"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"language": "cobol"}, "cobol-* runtime is unknown"),
        ({"version": "2.7"}, "python-2.7 runtime is unknown"),
        ({"language": ""}, "language"),
        ({"files": []}, "files"),
        ({"files": [{"content": "aGk=", "encoding": "base64"}]}, "utf8"),
        ({"files": [{"content": "1"}, {"name": "../x", "content": "1"}]}, "'..'"),
        ({"files": [{"content": "1"}, {"name": "x", "content": "zz", "encoding": "hex"}]}, "hex"),
        ({"files": [{"content": "1"}, {"name": "grader_config", "content": ""}]}, "grader"),
        ({"run_timeout": -1}, "run_timeout"),
    ],
)
def test_piston_refuses(client: TestClient, change: dict[str, Any], said: str) -> None:
    reply = piston(client, "print(1)", **change)
    assert reply.status_code == 400, reply.text
    assert said in reply.json()["message"]


@pytest.mark.parametrize(
    ("selector", "fits"),
    [("*", True), ("3", True), ("3.x", True), ("^3.9", True), (">=3.8 <4", True), ("~3.1", False), ("2.x", False),
     ("<3", False), ("nonsense", False)],
)  # fmt: skip
def test_piston_versions(client: TestClient, selector: str, fits: bool) -> None:
    assert piston(client, "print(1)", version=selector).status_code == (200 if fits else 400)


def test_piston_files_and_arguments(client: TestClient) -> None:
    files = [
        {"name": "data.bin", "content": "ff00", "encoding": "hex"},
        {
            "name": "main.py",
            "content": "import sys, helper\nprint(sys.argv[1:], open('data.bin', 'rb').read(), helper.X)",
        },
        {"name": "helper.py", "content": "X = 1"},
    ]
    run = piston(client, "", files=files, args=["a b", "ü"]).json()["run"]
    assert run["stdout"] == "['a b', 'ü'] b'\\xff\\x00' 1\n", run


def test_piston_compiles(client: TestClient) -> None:
    if "c" not in client.app.state.engine.sandbox.languages():  # type: ignore[attr-defined]
        pytest.skip("no toolchain for c here")
    good = piston(client, '#include <stdio.h>\nint main(){puts("hi");}', language="gcc").json()
    assert (good["language"], good["compile"]["code"], good["run"]["stdout"]) == ("c", 0, "hi\n")
    assert good["version"][0].isdigit()
    bad = piston(client, "int main(){ return x; }", language="c").json()
    assert (bad["compile"]["code"], bad["run"]["code"]) == (1, 1)
    assert "x" in bad["compile"]["stderr"]
