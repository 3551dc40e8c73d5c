"""verl's own Sandbox Fusion client against a server: prints what its reward would be, as one line of JSON.

    python verl_client.py FOLDER_WITH_VERL URL_OF_RUN_CODE

The client is a package of two files that needs nothing of verl, ``utils/reward_score/sandbox_fusion``; it is loaded by
path. ``results`` are its own codes: true and false, -1 for a failure of the sandbox, -2 for a crash, -3 for a program
that ran out of time, -4 for one that does not compile.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import sys
import threading
from pathlib import Path
from typing import Any

INPUTS = {"inputs": ["1 2\n", "3 4\n", "5 6"], "outputs": ["3\n", "7", "11\n"]}
CALLS = {"inputs": ["1\n2", "3\n4"], "outputs": ["3", "7"], "fn_name": "add"}
ASSERTS = {"assert_case": ["assert add(1, 2) == 3", "assert add(1, 2) == 4"]}
SUM = "print(sum(map(int, input().split())))"
ADD = "def add(a, b):\n    return a + b"

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "right": (SUM, INPUTS),
    "wrong": ("print(3)", INPUTS),
    "crash": ("1 / 0", INPUTS),
    "slow": ("while True: pass", {"inputs": ["1"], "outputs": ["1"]}),
    "broken": ("print(", INPUTS),
    "exits": ("import os\nos._exit(0)", INPUTS),
    "call": (ADD, CALLS),
    "asserts": (ADD, ASSERTS),
    "long": ("print('x' * 1_000_000)", {"inputs": [""], "outputs": ["x" * 1_000_000]}),
    "empty": (SUM, {"inputs": [], "outputs": []}),
}


def load(folder: Path) -> Any:
    place = folder / "utils" / "reward_score" / "sandbox_fusion"
    spec = importlib.util.spec_from_file_location(
        "verl_sandbox_fusion", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    client, url = load(Path(sys.argv[1])), sys.argv[2]
    names = sys.argv[3:] or list(CASES)
    logging.disable(logging.CRITICAL)
    semaphore = threading.Semaphore(8)
    found = {}
    for name in names:
        code, tests = CASES[name]
        answer = f"I think:\n```python\n{code}\n```"
        timeout = 1 if name == "slow" else 10
        score, details = client.compute_score(url, semaphore, 1024, answer, json.dumps(tests), timeout=timeout)
        found[name] = {"score": score, "statuses": [detail.get("status") for detail in details]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
