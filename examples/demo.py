"""Judge all rows of `examples/rows` by a server, and see that each gets the verdict that it must get.

    python examples/demo.py [--port 8080]

Uses the server that listens on the port; starts one, and stops it at the end, if none does. The judging is done by
`adjudge verify --url`, which prints the table of verdicts and ends with status 1 if any is not as expected.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import adjudge

EXAMPLES = Path(__file__).resolve().parent
CONFIG = EXAMPLES / "adjudge.toml"
ADJUDGE = (sys.executable, "-m", "adjudge_server")


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def start(port: int) -> tuple[subprocess.Popen[str], str]:
    """Start a server with the example recipes; return it and its address, which it prints when it is ready."""
    command = [*ADJUDGE, "serve", "--port", str(port), "--config", str(CONFIG), "--log-level", "warning"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    if address is None:
        process.wait()
        sys.exit("The server did not start; the lines above say why.")
    return process, address[0]


def has_example_recipes(url: str) -> bool:
    """Was this server started with our configuration? Its key, if it asks for one, is ``ADJUDGE_API_KEY``."""
    with adjudge.Client(base_url=url) as client:
        return set(tomllib.loads(CONFIG.read_text())["recipes"]) <= set(client.recipes())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=8080)
    port: int = parser.parse_args().port
    url = f"http://127.0.0.1:{port}"
    files = sorted(os.path.relpath(file) for file in (EXAMPLES / "rows").glob("*.jsonl"))
    process = None
    if not is_ready(url):
        process, url = start(port)
    elif not has_example_recipes(url):
        print(f"The server on port {port} lacks the recipes of {CONFIG.name}: without recipes.jsonl.", file=sys.stderr)
        files = [file for file in files if not file.endswith("recipes.jsonl")]
    try:
        command = [*ADJUDGE, "verify", *files, "--url", url, "--out", os.devnull]
        return subprocess.run(command, check=False).returncode
    finally:
        if process is not None:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
