"""Programs in the sandbox lane: slots, queue, disconnects; and what is ours never comes back as a result."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from adjudge_sandbox.base import Limits, Program, Script
from adjudge_server.engine import Engine, NotExecuted

RUN_CODE = "/compat/sandboxfusion/run_code"
SUBMIT = "/compat/sandboxfusion/submit"
EXECUTE = "/compat/piston/api/v2/execute"
ASSERTS = "/compat/open_instruct/test_program"
STDIO = "/compat/open_instruct/test_program_stdio"
BATCH = "/compat/open_r1/execute_batch"
ADD = "def add(a, b):\n    return a + b"
SUM = "print(sum(map(int, input().split())))"
SUMS = [{"input": {"stdin": "1 1"}, "output": {"stdout": "2"}}]
AUTO_EVAL = {"labels": {"programming_language": "python"}, "test": {"code": "assert double(2) == 4"}}


@pytest.fixture(scope="module", autouse=True)
def _with_a_sandbox(client: TestClient) -> None:
    if client.app.state.engine.sandbox is None:  # type: ignore[attr-defined]
        pytest.skip("this host cannot isolate programs")


def requests() -> list[tuple[str, dict[str, Any]]]:
    """One good request for each route."""
    return [
        (RUN_CODE, {"code": "print(1)", "language": "python"}),
        (SUBMIT, {"dataset": "", "id": 1, "completion": f"```python\n{SUM}\n```",
                  "config": {"language": "python", "provided_data": {"test": SUMS}}}),
        (SUBMIT, {"dataset": "", "id": 1, "completion": "```python\ndef double(x): return 2 * x\n```",
                  "config": {"dataset_type": "AutoEvalDataset", "provided_data": AUTO_EVAL}}),
        (EXECUTE, {"language": "python", "version": "*", "files": [{"content": "print(1)"}]}),
        (ASSERTS, {"program": ADD, "tests": ["assert add(1, 2) == 3"]}),
        (STDIO, {"program": SUM, "tests": [{"input": "1 2", "output": "3"}]}),
        (BATCH, {"scripts": ["1"], "languages": ["python"], "timeout": 1, "request_timeout": 1}),
    ]  # fmt: skip


def check_failures(client: TestClient) -> None:
    statuses = {RUN_CODE: 504, SUBMIT: 504, EXECUTE: 503, ASSERTS: 503, STDIO: 503, BATCH: 200}
    for path, body in requests():
        reply = client.post(path, json=body)
        assert reply.status_code == statuses[path], (path, reply.text)
        found = reply.json()
        if path in (RUN_CODE, SUBMIT):
            assert (found["status"], found["run_result"]) == ("SandboxError", None)
            assert found["message"]
        elif path == BATCH:
            assert (found[0]["execution"], found[0]["text"]) == (None, None)
            assert found[0]["exception_str"]
        else:
            assert "results" not in found
            assert "run" not in found
        if path != BATCH:
            assert reply.headers["retry-after"] == "1"


def test_without_a_sandbox(make_app: Callable[..., Any]) -> None:
    with TestClient(make_app(sandbox={"enabled": False}), raise_server_exceptions=False) as client:
        check_failures(client)


def test_with_a_sandbox_that_was_stopped(make_app: Callable[..., Any]) -> None:
    app = make_app()
    with TestClient(app, raise_server_exceptions=False) as client:
        assert client.post(RUN_CODE, json=requests()[0][1]).status_code == 200
        client.portal.call(app.state.engine.sandbox.stop)  # type: ignore[union-attr]
        check_failures(client)


async def test_programs_wait_in_the_queue_of_the_lane(make_engine: Callable[..., Any]) -> None:
    engine: Engine = await make_engine(lanes={"sandbox_slots": 1, "sandbox_queue": 2})
    limits = Limits(cpu_s=1)

    async def execute(code: str, **more: Any) -> Any:
        return await engine.execute(Program(code), [Script()], limits, **more)

    running = asyncio.create_task(execute("import time; time.sleep(1)"))
    await asyncio.sleep(0.2)
    waiting = [asyncio.create_task(execute("print(1)")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(NotExecuted) as full:
        await execute("print(1)")
    assert full.value.status == "overloaded"
    assert [result.stdout for (result,) in await asyncio.gather(running, *waiting)] == [b"", b"1\n", b"1\n"]


async def test_a_program_may_wait_too_long(make_engine: Callable[..., Any]) -> None:
    engine: Engine = await make_engine(lanes={"sandbox_slots": 1})
    running = asyncio.create_task(engine.execute(Program("import time; time.sleep(2.5)"), [Script()], Limits(cpu_s=1)))
    await asyncio.sleep(0.2)
    with pytest.raises(NotExecuted, match="free slot"):
        await engine.execute(Program("print(1)"), [Script()], Limits(), queue_timeout_s=0.1)
    running.cancel()


async def test_a_client_that_goes_frees_the_slot(make_engine: Callable[..., Any]) -> None:
    engine: Engine = await make_engine(lanes={"sandbox_slots": 1})
    gone = asyncio.create_task(engine.execute(Program("import time; time.sleep(60)"), [Script()], Limits(wall_s=90)))
    await asyncio.sleep(0.3)
    gone.cancel()
    started = time.monotonic()
    (result,) = await engine.execute(Program("print(1)"), [Script()], Limits())
    assert result.stdout == b"1\n"
    assert time.monotonic() - started < 30


def test_keys(make_app: Callable[..., Any]) -> None:
    basic = base64.b64encode(b":secret").decode()
    body = {"code": "print(1)", "language": "python"}
    with TestClient(make_app(api_keys=["secret"]), raise_server_exceptions=False) as client:
        for refused in ({}, {"Authorization": "Basic !"}, {"Authorization": "Basic OnNlY3JldHM="}):
            assert client.post(RUN_CODE, json=body, headers=refused).status_code == 401
        for accepted in ("Bearer secret", f"Basic {basic}"):
            assert client.post(RUN_CODE, json=body, headers={"Authorization": accepted}).status_code == 200
        assert client.post(f"{RUN_CODE}?key=secret", json=body).status_code == 200
