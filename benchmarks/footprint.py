"""What does the base install cost a training image? Import time of the SDK, size of `pip install adjudge`.

    python benchmarks/footprint.py

Printed: what `pip install .` without an extra adds to an empty virtual environment; what `import adjudge` takes by
`-X importtime` and what the first client costs on top, since names are loaded when they are first used. Needs a package
index, or a pip that is set up for another source.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = ("import adjudge", "from adjudge import Client", "from adjudge import Client; Client()")
HEAVY = {"httpx2", "fastapi", "pydantic", "torch", "sympy", "numpy"}


def import_ms(python: str, statement: str, runs: int = 5) -> float:
    """The fastest of ``runs`` in milliseconds, over what an empty program imports."""

    def total_us(code: str) -> int:
        command = [python, "-X", "importtime", "-c", code]
        report = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stderr
        rows = [line.removeprefix("import time:").split("|") for line in report.splitlines() if "|" in line]
        return sum(int(self_us) for self_us, _, _ in rows[1:])

    return (min(total_us(statement) for _ in range(runs)) - min(total_us("pass") for _ in range(runs))) / 1000


def loaded(python: str, statement: str) -> set[str]:
    """The top-level modules that ``statement`` loads."""
    code = f"{statement}; import sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout.split())


def size_mib(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def distributions(packages: Path) -> set[str]:
    return {folder.name.removesuffix(".dist-info").rpartition("-")[0] for folder in packages.glob("*.dist-info")}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="adjudge-footprint-") as scratch:
        venv.create(scratch, with_pip=True)
        python = str(Path(scratch) / "bin" / "python")
        (packages,) = Path(scratch).glob("lib/python3*/site-packages")
        before_mib, before = size_mib(packages), distributions(packages)
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
        added_mib, added = size_mib(packages) - before_mib, sorted(distributions(packages) - before)
        print(f"base install: {added_mib:.1f} MiB, {len(added)} distributions: {', '.join(added)}")
        for statement in STATEMENTS:
            heavy = ", ".join(sorted(HEAVY & loaded(python, statement))) or "none"
            print(f"{statement}: {import_ms(python, statement):.0f} ms (best of 5); heavy modules loaded: {heavy}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
