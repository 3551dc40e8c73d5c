"""Run every benchmark, one after the other, each in a process of its own; go on when one fails and say so at the end.

    python benchmarks/all.py

The soak is not among them: `make soak`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("ADJUDGE_SHARED", HERE.parents[1] / "shared"))
ARGUMENTS = {"math_truth.py": [str(SHARED / "cases" / "math_answers.jsonl")]}


def main() -> int:
    failed = []
    for script in sorted(HERE.glob("*.py")):
        if script.name.startswith("_") or script.name in (Path(__file__).name, "soak.py"):
            continue
        print(f"\n== {script.name}", flush=True)
        command = [sys.executable, str(script), *ARGUMENTS.get(script.name, [])]
        if subprocess.run(command, check=False).returncode != 0:
            failed.append(script.name)
    if failed:
        print(f"\nnot as they should be: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
