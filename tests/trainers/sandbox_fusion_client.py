"""The package ``sandbox-fusion`` against a server: prints what it makes of the replies, as one line of JSON.

python sandbox_fusion_client.py ENDPOINT [--failing]
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
from typing import Any

import sandbox_fusion as client
from sandbox_fusion import models

SUM = "print(sum(map(int, input().split())))"
MAPPING = models.SummaryMapping(
    Success="ok", Failed="failed", CompileFailed="compile", RunFailed="run", RunTimeout="time"
)
TESTS = [{"input": {"stdin": f"{n} 1\n"}, "output": {"stdout": f"{n + 1}\n"}} for n in range(5)]


def request(code: str, **more: Any) -> Any:
    return client.RunCodeRequest(code=code, language="python", **more)


def submission(code: str, data: Any, kind: str) -> Any:
    config = client.TestConfig(language="python", dataset_type=kind, provided_data=data)
    return client.SubmitRequest(dataset="mine", id=1, completion=f"```python\n{code}\n```", config=config)


def runs() -> dict[str, Any]:
    codes = {
        "right": request(SUM, stdin="1 2"),
        "crash": request("1 / 0"),
        "slow": request("while True: pass", run_timeout=0.5),
        "files": request(
            "open('out.txt', 'w').write(open('in.txt').read()[::-1])",
            files={"in.txt": base64.b64encode(b"abc").decode(), "none.txt": None},
            fetch_files=["out.txt", "missing.txt"],
        ),
    }
    found = {}
    for name, wanted in codes.items():
        reply = client.run_code(wanted, max_attempts=1)
        found[name] = {
            "summary": client.summary_run_code_result(reply, MAPPING),
            "stdout": reply.run_result.stdout,
            "files": {name: base64.b64decode(text).decode() for name, text in reply.files.items()},
        }
    return found


async def many() -> list[str]:
    replies = await asyncio.gather(*(client.run_code_async(request(f"print({n})"), max_attempts=1) for n in range(20)))
    return [reply.run_result.stdout for reply in replies]


def submissions() -> dict[str, bool]:
    oj = {"test": TESTS}
    evaluated = {"labels": {"programming_language": "python"}, "test": {"code": "assert f(2) == 4"}}
    wanted = {
        "oj_right": (SUM, oj, "CommonOJDataset"),
        "oj_wrong": ("print(1)", oj, "CommonOJDataset"),
        "auto_right": ("def f(x): return 2 * x", evaluated, "AutoEvalDataset"),
        "auto_wrong": ("def f(x): return x", evaluated, "AutoEvalDataset"),
        "auto_exit": ("import os\ndef f(x): os._exit(0)", evaluated, "AutoEvalDataset"),
    }
    return {name: client.submit(submission(*parts), max_attempts=1).accepted for name, parts in wanted.items()}


def failing() -> dict[str, str]:
    """What is raised when the sandbox cannot run anything."""
    found = {}
    calls = {
        "run_code": lambda: client.run_code(request("print(1)"), max_attempts=2),
        "submit": lambda: client.submit(submission(SUM, {"test": TESTS}, "CommonOJDataset"), max_attempts=2),
    }
    for name, call in calls.items():
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the package raises nothing more special
            found[name] = str(error)[:300]
    return found


def main() -> None:
    logging.disable(logging.CRITICAL)
    client.set_endpoint(sys.argv[1])
    if sys.argv[2:] == ["--failing"]:
        print(json.dumps(failing()))
        return
    print(json.dumps({"runs": runs(), "many": asyncio.run(many()), "submissions": submissions()}))


if __name__ == "__main__":
    main()
