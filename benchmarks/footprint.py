"""What does the base install cost a training image? Import time of the SDK, size of `pip install adjudge`.

    python benchmarks/footprint.py

Printed: what `import adjudge` takes and what it loads (by `-X importtime`), and what `pip install .` without an extra
adds to an empty virtual environment. Needs a package index, or a pip that is set up for another source.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def import_ms(python: str, runs: int = 5) -> tuple[float, list[str]]:
    """The fastest of ``runs`` imports in milliseconds, and the ten dearest modules of the last one."""
    best = float("inf")
    dearest: list[str] = []
    for _ in range(runs):
        report = subprocess.run(
            [python, "-X", "importtime", "-c", "import adjudge"], capture_output=True, text=True, check=True, cwd="/"
        ).stderr
        rows = [line.removeprefix("import time:").split("|") for line in report.splitlines() if "|" in line][1:]
        totals = {name.strip(): int(cumulative) for _, cumulative, name in rows}
        best = min(best, totals["adjudge"] / 1000)
        own = sorted(rows, key=lambda row: -int(row[0]))[:10]
        dearest = [f"{int(self_us) / 1000:7.1f} ms  {name.strip()}" for self_us, _, name in own]
    return best, dearest


def size_mib(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="adjudge-footprint-") as scratch:
        venv.create(scratch, with_pip=True)
        python = str(Path(scratch) / "bin" / "python")
        (packages,) = Path(scratch).glob("lib/python3*/site-packages")
        empty_mib = size_mib(packages)
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
        added_mib = size_mib(packages) - empty_mib
        distributions = sorted(folder.name.rsplit("-", 1)[0] for folder in packages.glob("*.dist-info"))
        best_ms, dearest = import_ms(python)
        loaded = subprocess.run(
            [python, "-c", "import adjudge, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
        ).stdout.split()
    print(f"base install  {added_mib:.1f} MiB, {len(distributions)} distributions: {', '.join(distributions)}")
    heavy = sorted({"httpx2", "fastapi", "torch", "sympy", "numpy"} & set(loaded))
    print(f"import adjudge  {best_ms:.0f} ms (best of 5); heavy modules loaded: {', '.join(heavy) or 'none'}")
    print("dearest modules by themselves:", *dearest, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
