"""Inside a default container, without any privilege: the server starts, says `landlock`, and holds what it runs.

The container gets this tree and this environment's packages read-only, and its own Python.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SOURCES = ("clients/python", "sandbox", "server", "verifiers")

_SERVE = """
import json, subprocess, sys, time, urllib.request
server = subprocess.Popen([sys.executable, "-m", "adjudge_server", "serve", "--port", "8080", *sys.argv[1:]])
for _ in range(300):
    if server.poll() is not None:
        sys.exit(f"the server ended with status {server.returncode}")
    try:
        with urllib.request.urlopen("http://127.0.0.1:8080/readyz") as reply:
            ready = json.load(reply)
            break
    except OSError:
        time.sleep(0.1)
task = {
    "verifier": "code",
    "response": "```python\\nprint(int(input()) * 2)\\n```",
    "reference": {"tests": [{"stdin": "4", "stdout": "8"}, {"stdin": "5", "stdout": "10"}]},
}
request = urllib.request.Request("http://127.0.0.1:8080/v1/verify", json.dumps(task).encode())
request.add_header("Content-Type", "application/json")
with urllib.request.urlopen(request) as reply:
    print("FOUND", json.dumps({"ready": ready, "verdict": json.load(reply)}))
server.terminate()
server.wait()
"""


def _inside(engine, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a default container; only the network, which it does not need, is off."""
    packages = sysconfig.get_path("purelib")
    path = ":".join([*(f"/opt/adjudge/{source}" for source in _SOURCES), "/opt/packages"])
    return subprocess.run(
        ["docker", "-H", engine.url, "run", "--rm", "--network", "none",
         "-v", f"{ROOT}:/opt/adjudge:ro", "-v", f"{packages}:/opt/packages:ro", "-w", "/opt/adjudge",
         "-e", f"PYTHONPATH={path}", "-e", "PYTHONDONTWRITEBYTECODE=1", "-e", "HOME=/tmp",
         engine.image, *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _same_python():
    if sys.version_info[:2] != (3, 11):
        pytest.skip("this environment's packages are for another Python than the container's, which is 3.11")


def test_the_server_says_landlock(engine):
    done = _inside(engine, ["python3", "-c", _SERVE])
    found = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert found, done.stdout + done.stderr
    shown = json.loads(found[0].removeprefix("FOUND "))
    assert shown["ready"]["sandbox"] == "landlock"
    assert (shown["verdict"]["reward"], shown["verdict"]["isolation"]) == (1.0, "landlock")


def test_it_refuses_to_start_below_the_level_that_is_required(engine):
    done = _inside(engine, ["python3", "-c", _SERVE, "--require-isolation", "jail"])
    assert done.returncode != 0
    assert "isolates less than 'jail'" in done.stdout + done.stderr


def test_hostile_programs_are_held(engine):
    """The suite of `make test-hostile`, with the exceptions that its table names for Landlock."""
    done = _inside(
        engine, ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "hostile", "tests/hostile"]
    )
    log = os.environ.get("ADJUDGE_HOSTILE_LOG")
    if log:
        Path(log).write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
