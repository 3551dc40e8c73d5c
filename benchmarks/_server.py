"""A server of one's own for a benchmark: `adjudge serve` as a process on a free port, with its records in a folder
that is thrown away. What is measured is therefore what a user runs, and nothing of it stays behind.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RunningServer", "counted", "needs_data", "running_server"]

_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Where the server answers, and how long it took from its start until it was ready."""

    base_url: str
    pid: int
    start_s: float
    group: str = ""
    """The control group that counts its CPU time, if this host lets us make one."""

    def cpu_s(self) -> float | None:
        """CPU seconds of the server and of everything that it ever started; ``None`` where nobody counts them."""
        return _counted_s(self.group)


def needs_data(name: str) -> Path:
    """The path of a file of the shared data, or an exit that says where it is looked for."""
    shared = Path(os.environ.get("ADJUDGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    path = shared / "data" / name
    if not path.is_file():
        sys.exit(f"This benchmark reads {name}, and {path} is not there. Set ADJUDGE_SHARED to the folder that has it.")
    return path


@contextlib.contextmanager
def running_server(*arguments: str, **settings: str) -> Iterator[RunningServer]:
    """Run `adjudge serve` until the block ends.

    ``settings`` are environment variables of the server (``ADJUDGE_CACHE__ENTRIES="0"``). Exits with the server's own
    words if it does not become ready.
    """
    with tempfile.TemporaryDirectory(prefix="adjudge-bench-") as scratch, contextlib.ExitStack() as cleanup:
        log = cleanup.enter_context(open(Path(scratch) / "log", "w+b"))
        port = _free_port()
        command = [sys.executable, "-m", "adjudge_server", "serve", "--port", str(port), *arguments]
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=scratch,  # so that a user's own adjudge.toml is not read
            env={**os.environ, "XDG_STATE_HOME": scratch, "ADJUDGE_LOG_LEVEL": "warning", **settings},
        )
        group = _counting_group(process.pid)
        if group:
            cleanup.callback(_remove_group, group)
        cleanup.callback(_stop, process)
        base_url = f"http://127.0.0.1:{port}"
        if not _wait_ready(process, base_url):
            log.seek(0)
            sys.exit("The server did not become ready:\n" + log.read().decode(errors="replace")[-4000:])
        yield RunningServer(base_url, process.pid, time.perf_counter() - began, group)


@contextlib.contextmanager
def counted() -> Iterator[Callable[[], float | None]]:
    """Count what this process and everything that it starts in the block use: CPU seconds, ``None`` if nobody does."""
    group = _counting_group(os.getpid())
    try:
        yield lambda: _counted_s(group)
    finally:
        if group:
            with contextlib.suppress(OSError):
                (Path(group).parent / "cgroup.procs").write_text(str(os.getpid()))
            _remove_group(group)


def _counted_s(group: str) -> float | None:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(group, "cpuacct.usage").read_text()) / 1e9 if group else None
    return None


def _counting_group(pid: int) -> str:
    """Put a process that has no children yet into a control group that counts CPU time; empty if none can be made."""
    for own in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = own.split(":", 2)
        if "cpuacct" in controllers.split(","):
            group = Path(f"/sys/fs/cgroup/cpuacct{path}".rstrip("/"), f"bench-{pid}")
            with contextlib.suppress(OSError):
                group.mkdir()
                (group / "cgroup.procs").write_text(str(pid))
                return str(group)
    return ""


def _remove_group(group: str) -> None:
    for _ in range(50):
        with contextlib.suppress(OSError):
            for inner in sorted(Path(group).rglob("*"), reverse=True):
                if inner.is_dir():
                    inner.rmdir()
            os.rmdir(group)
            return
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_ready(process: subprocess.Popen[bytes], base_url: str) -> bool:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{base_url}/readyz", timeout=5) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
