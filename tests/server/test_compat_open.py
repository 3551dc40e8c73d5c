"""The wire formats of open-instruct's code API and of Open-R1's routers, in real jails."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from starlette.testclient import TestClient

from adjudge_server.http import open_r1

ASSERTS = "/compat/open_instruct/test_program"
STDIO = "/compat/open_instruct/test_program_stdio"
BATCH = "/compat/open_r1/execute_batch"
ADD = "def add(a, b):\n    return a + b"
SUM = "print(sum(map(int, input().split())))"


@pytest.fixture(scope="module", autouse=True)
def _with_a_sandbox(client: TestClient) -> None:
    if client.app.state.engine.sandbox is None:  # type: ignore[attr-defined]
        pytest.skip("this host cannot isolate programs")


def test_open_instruct_asserts(client: TestClient) -> None:
    tests = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add(0, 0) == 1"]
    reply = client.post(ASSERTS, json={"program": ADD, "tests": tests, "max_execution_time": 1.0}).json()
    assert reply["results"] == [1, 1, 0]
    assert reply["runtimes"][2] == -1.0
    assert all(seconds >= 0 for seconds in reply["runtimes"][:2])
    many = [f"assert add({n}, 1) == {n + 1 if n % 3 else 0}" for n in range(50)]
    reply = client.post(ASSERTS, json={"program": ADD, "tests": json.dumps(many)}).json()
    assert reply["results"] == [int(n % 3 > 0) for n in range(50)]


def test_open_instruct_stdio(client: TestClient) -> None:
    tests = [{"input": f"{n} 1\n", "output": f"{n + 1}\n"} for n in range(3)] + [{"input": "1 1", "output": "3"}]
    body = {"program": SUM, "tests": tests, "max_execution_time": 1.0}
    assert client.post(STDIO, json=body).json()["results"] == [1, 1, 1, 0]
    hostile = {**body, "program": "import os\nos._exit(0)"}
    assert client.post(STDIO, json=hostile).json()["results"] == [0, 0, 0, 0]
    fine = {**body, "program": f"import os, threading\n{SUM}"}
    assert client.post(STDIO, json=fine).json()["results"] == [1, 1, 1, 0], "its words are not forbidden"


def test_open_instruct_packed_tests(client: TestClient) -> None:
    import pickle

    tests = ["assert add(1, 2) == 3", "assert add(1, 2) == 4"]
    packed = base64.b64encode(zlib.compress(pickle.dumps(tests))).decode()
    assert client.post(ASSERTS, json={"program": ADD, "tests": packed}).json()["results"] == [1, 0]

    class Bomb:
        def __reduce__(self) -> Any:
            return (print, ("unpickled",))

    packed = base64.b64encode(zlib.compress(pickle.dumps([Bomb()]))).decode()
    assert client.post(ASSERTS, json={"program": ADD, "tests": packed}).status_code == 422


@pytest.mark.parametrize("tests", [[], None, "", "[]"])
def test_open_instruct_with_nothing_to_test(client: TestClient, tests: Any) -> None:
    for path in (ASSERTS, STDIO):
        assert client.post(path, json={"program": ADD, "tests": tests}).json() == {"results": [], "runtimes": []}


def test_open_instruct_tests_that_are_none(client: TestClient) -> None:
    for tests in (["assert ("], [3], 5, {"a": 1}, "assert"):
        reply = client.post(ASSERTS, json={"program": ADD, "tests": tests})
        assert reply.status_code == 422, (tests, reply.text)
    assert client.post(STDIO, json={"program": ADD, "tests": [{"input": "1"}]}).status_code == 422


SCRIPT = """
    import json

    def evaluate_code(code, test_cases):
        return 0.25

    code_snippet = {code}
    test_cases = json.loads({test_cases})

    evaluate_code(code_snippet, test_cases)
    """


def script(code: str, cases: Any) -> str:
    """As Open-R1 fills its template."""
    return SCRIPT.format(code=json.dumps(code), test_cases=json.dumps(json.dumps(cases)))


def test_open_r1_scripts(client: TestClient) -> None:
    scripts = [
        "print('hello')",
        "x = 2\nx * 0.25",
        script("print(1)", []),
        "print('hello)",
        "1 / 0",
        "while True: pass",
    ]
    body = {"scripts": scripts, "languages": ["python"] * len(scripts), "timeout": 1, "request_timeout": 3}
    found = client.post(BATCH, json=body).json()
    assert [reply["text"] for reply in found[:3]] == ["hello\n", "0.5", "0.25"]
    assert found[0]["execution"]["logs"] == {"stdout": ["hello\n"], "stderr": []}
    assert found[1]["execution"]["results"] == [{"text": "0.5", "is_main_result": True}]
    for reply, name in zip(found[3:], ("SyntaxError", "ZeroDivisionError", "time_limit"), strict=True):
        assert reply["execution"]["results"] == []
        assert reply["execution"]["error"]["name"] == name
        assert name in reply["exception_str"]


def test_open_r1_with_nothing_to_run(client: TestClient) -> None:
    assert client.post(BATCH, json={"scripts": [], "languages": [], "timeout": 1, "request_timeout": 1}).json() == []
    reply = client.post(BATCH, json={"scripts": ["1"], "languages": ["python"] * 2, "timeout": 1, "request_timeout": 1})
    assert reply.status_code == 422


def test_open_r1s_own_script_is_judged_and_not_run(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_r1, "_TEMPLATES", {open_r1._digest(SCRIPT)})
    cases = [{"input": f"{n} 1", "output": f"{n + 1}\n"} for n in range(4)]
    codes = [SUM, "print(2)", "import os\nos._exit(0)", "print()\nprint('```')", ""]
    forger = """import os
for process in range(1000):
    try:
        os.write(os.open(f"/proc/{process}/fd/1", os.O_WRONLY), b"0.99")
    except OSError:
        pass"""
    scripts = [script(code, cases) for code in [*codes, forger]]
    other = script(SUM, cases).replace("0.25", "0.75")
    body = {"scripts": [*scripts, other], "languages": [], "timeout": 30, "request_timeout": 28}
    found = client.post(BATCH, json=body).json()
    assert [float(reply["text"]) for reply in found] == [1.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.75]
    assert found[1]["execution"]["results"] == [{"text": "0.25", "is_main_result": True}]


@pytest.mark.parametrize("cases", [[], {}, [{"input": "1"}], [{"input": 1, "output": 2}], "x", None, [[1]]])
def test_a_script_without_tests_of_that_kind_is_run(monkeypatch: pytest.MonkeyPatch, cases: Any) -> None:
    monkeypatch.setattr(open_r1, "_TEMPLATES", {open_r1._digest(SCRIPT)})
    assert open_r1.recognise(script("1", [{"input": "1", "output": "2"}])) is not None
    assert open_r1.recognise(script("1", cases)) is None
    assert open_r1.recognise(script("1", [{"input": "1", "output": "2"}]) + "\nprint(1)") is None
