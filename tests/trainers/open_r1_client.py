"""Open-R1's own code reward against a server: prints the rewards of some answers, as one line of JSON.

    python open_r1_client.py CHECKOUT_OF_OPEN_R1 HOST:PORT/compat/open_r1

Open-R1 is not on PyPI. ``code_reward`` and ``RoutedSandbox`` are taken out of its files as they are; what they import
of E2B is replaced by the few attributes that they look at.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from pathlib import Path
from typing import Any

CASES = [{"input": f"{n} 1\n", "output": f"{n + 1}\n"} for n in range(4)]
SUM = "print(sum(map(int, input().split())))"
ANSWERS = [SUM, "print(2)", "import os\nos._exit(0)", "while True: pass"]


class Execution:
    """Stands for E2B's: the text of the main result."""

    def __init__(self, results: Any = (), logs: Any = None, error: Any = None, execution_count: Any = None) -> None:
        self.text = next((result.text for result in results if result.is_main_result), None)


def definitions(path: Path, names: set[str], scope: dict[str, Any]) -> None:
    """Run only these functions and classes of a file."""
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
    exec(compile(tree, str(path), "exec"), scope)  # noqa: S102 - Open-R1's own code is what is tested


def main() -> None:
    folder, url = Path(sys.argv[1]) / "src" / "open_r1", sys.argv[2]
    import re

    import requests

    def result(**fields: Any) -> Any:
        return types.SimpleNamespace(**fields)

    scope: dict[str, Any] = {
        "requests": requests, "json": json, "re": re, "Execution": Execution, "ExecutionError": result,
        "Result": result, "List": list, "Optional": __import__("typing").Optional, "abc": __import__("abc"),
        "is_e2b_available": lambda: True,
    }  # fmt: skip
    definitions(folder / "utils" / "routed_sandbox.py", {"RoutedSandbox"}, scope)
    definitions(folder / "utils" / "code_providers.py", {"CodeExecutionProvider", "E2BProvider"}, scope)
    scope["get_provider"] = lambda **_: scope["E2BProvider"](e2b_router_url=url)
    definitions(folder / "rewards.py", {"code_reward", "extract_code"}, scope)
    completions = [[{"content": f"```python\n{code}\n```"}] for code in ANSWERS]
    information = [{"language": "python", "test_cases": CASES} for _ in ANSWERS]
    print(json.dumps(scope["code_reward"](completions, verification_info=information)))


if __name__ == "__main__":
    main()
