"""What is particular to the zygote: profiles, jails that share nothing, clocks on a busy host, its end."""

import asyncio
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.profiles import profile_of
from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Examination, FunctionCall, Limits, Outcome, Program, Script
from adjudge_sandbox.errors import SandboxOverloaded, SandboxUnavailable
from adjudge_sandbox.kernel import cgroups
from adjudge_sandbox.supervisor.execution import Ending
from adjudge_sandbox.supervisor.messages import Report, pack_run, pack_watched, quiet_ms, unpack_answer, unpack_run
from adjudge_sandbox.supervisor.runner import _was_starved

one_loop = pytest.mark.asyncio(loop_scope="module")
_LIMITS = Limits(cpu_s=5.0, wall_s=60.0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox():
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


async def _print(sandbox, source: str, runs: int = 1, limits: Limits = _LIMITS) -> list[str]:
    results = await sandbox.run(Program(source), [Script()] * runs, limits)
    assert [result.outcome for result in results] == [Outcome.FINISHED] * runs, results
    return [result.stdout.decode().strip() for result in results]


@pytest.mark.parametrize(
    ("source", "profile"),
    [
        ("print(1)", "light"),
        ("import sys, math\nfrom collections import deque", "light"),
        ("import hashlib", "stdlib"),
        ("import sys, re , asyncio", "stdlib"),
        ("from unittest.mock import ANY", "stdlib"),
        ("import numpy as np", "scientific"),
        ("if 1:\n    from scipy.special import comb", "scientific"),
        ("import sys, pandas", "scientific"),
        ("important_numpy = 1", "light"),
        ("import " + "a," * 400_000, "light"),
    ],
)
def test_profile_of_a_program(source, profile):
    assert profile_of(Program(source), [Script()]) == profile


def test_profile_of_a_test():
    program = Program("def f(): return 1")
    assert profile_of(program, [Examination("assert f() == 1")]) == "stdlib"
    assert profile_of(program, [Examination("import numpy\nassert f() == 1")]) == "scientific"
    assert profile_of(program, [FunctionCall("f")]) == "light"


@one_loop
async def test_what_is_not_preloaded_can_be_imported(sandbox):
    assert await _print(sandbox, "m = __import__('hash' + 'lib')\nprint(m.md5(b'').hexdigest()[:6])") == ["d41d8c"]


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="numpy is not installed")
@one_loop
async def test_numpy_is_preloaded(sandbox):
    source = "import sys\nwarm = 'numpy' in sys.modules\nimport numpy as np\nprint(warm, np.arange(4).sum(), np.random.rand())"  # noqa: E501
    first, second = (line.split() for line in await _print(sandbox, source, 2))
    assert first[:2] == second[:2] == ["True", "6"]
    assert first[2] != second[2]
    result = await sandbox.run(
        Program("import numpy as np\ndef f(x): return np.array(x) * 2"), [FunctionCall("f", ([1, 2],))], _LIMITS
    )
    assert result[0].value == [2, 4]
    (big,) = await sandbox.run(
        Program("import numpy as np\nnp.ones(10**8)"), [Script()], replace(_LIMITS, memory_mib=128)
    )
    assert big.outcome is Outcome.MEMORY_LIMIT


@one_loop
async def test_namespaces_are_of_one_run_only(sandbox):
    source = "import os\nfor n in ('user', 'pid', 'mnt', 'ipc', 'uts', 'net'): print(os.readlink('/proc/self/ns/' + n))"
    outside = [os.readlink(f"/proc/self/ns/{name}") for name in ("user", "pid", "mnt", "ipc", "uts", "net")]
    outputs = await _print(sandbox, source, 2) + await _print(sandbox, source)
    seen = list(zip(*(output.split() for output in outputs), strict=True))
    for name, host, inside in zip(("user", "pid", "mnt", "ipc", "uts"), outside, seen, strict=False):
        assert host not in inside, name
    assert outside[5] not in seen[5]
    # numbers of namespaces that have gone are used again, so that jails differ is seen from two that live at once
    waiting = source + "\nimport sys, time\nsys.stdout.flush()\ntime.sleep(0.5)"
    both = await asyncio.gather(_print(sandbox, waiting), _print(sandbox, waiting))
    one, other = both[0][0].split(), both[1][0].split()
    assert [a != b for a, b in zip(one, other, strict=True)] == [True] * 5 + [False]


@one_loop
async def test_answers_share_nothing(sandbox):
    """Files, shared memory, System V objects and processes of one answer are not there in the next."""
    source = (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
        "print(os.listdir('/tmp'), os.listdir('/dev/shm'), libc.shmget(77, 0, 0),\n"
        "      sorted(p for p in os.listdir('/proc') if p.isdigit()))\n"
        "open('/tmp/left', 'w').close()\nopen('/dev/shm/left', 'w').close()\nlibc.shmget(77, 4096, 0o1666)\n"
        "if os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(99)\n"
    )
    want = "['solution.py'] [] -1 ['1', '2']"
    assert await _print(sandbox, source, 2) == [want] * 2
    assert await _print(sandbox, source) == [want]


@one_loop
async def test_the_first_process_is_out_of_reach(sandbox):
    source = (
        "import os\ndef attempt(what):\n    try: what()\n    except OSError: return 'no'\n    return 'YES'\n"
        "print(*(attempt(lambda: open('/proc/1/' + n, 'rb').read(1))\n"
        "        for n in ('mem', 'maps', 'environ', 'auxv', 'syscall')),\n"
        "      attempt(lambda: os.listdir('/proc/1/fd')), attempt(lambda: os.readlink('/proc/1/root')))\n"
        "try: os.kill(1, 9)\nexcept PermissionError: pass\n"
        "print(os.path.exists('/proc/1'), os.getppid())"
    )
    assert (await _print(sandbox, source))[0].split("\n") == ["no no no no no no no", "True 0"]


@one_loop
async def test_output_over_the_limit_is_marked(sandbox):
    limits = replace(_LIMITS, output_kib=8)
    (out,) = await sandbox.run(Program("print('x' * 9000)"), [Script()], limits)
    (err,) = await sandbox.run(Program("import sys\nsys.stderr.write('x' * 9000)"), [Script()], limits)
    assert (out.outcome, len(out.stdout), out.stdout_truncated, out.stderr_truncated) == (
        "output_limit",
        8192,
        True,
        False,
    )
    assert (err.outcome, len(err.stderr), err.stdout_truncated, err.stderr_truncated) == (
        "output_limit",
        8192,
        False,
        True,
    )
    assert out.isolation == "zygote"


@pytest.mark.parametrize("leave", ["import os\n    os._exit(0)", "raise SystemExit", "import sys\n    sys.exit(3)"])
@one_loop
async def test_ended_early(sandbox, leave):
    program = Program(f"def f():\n    {leave}\ndef g(): raise ValueError")
    runs = [FunctionCall("f"), Examination("assert f() == 1"), FunctionCall("g"), Examination("assert g() == 1")]
    results = await sandbox.run(program, runs, _LIMITS)
    assert [result.ended_early for result in results] == [True, True, False, False], results
    assert not any(result.outcome is Outcome.FINISHED for result in results)


def _ending(cpu_s: float, share: float, *, wall_exceeded: bool = True) -> Ending:
    return Ending(Report(9, cpu_s, 10.0, 1.0, "asked", share), [], wall_exceeded=wall_exceeded)


def test_what_counts_as_starved():
    assert _was_starved(_ending(1.0, 0.99))  # wanted a core all the time, and got one for a tenth of it
    assert not _was_starved(_ending(0.1, 0.02))  # slept
    assert not _was_starved(_ending(19.0, 0.99))  # its own threads had all cores
    assert not _was_starved(_ending(9.0, 0.99))  # it got what it wanted
    assert not _was_starved(_ending(1.0, 0.99, wall_exceeded=False))


@contextlib.contextmanager
def _busy_host():
    """Eight processes that never sleep, each with a larger share than what the sandbox runs."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(8)]
    try:
        for hog in hogs:
            os.setpriority(os.PRIO_PROCESS, hog.pid, -5)
            with contextlib.suppress(OSError):
                Path(f"/proc/{hog.pid}/autogroup").write_text("-5")
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give others a larger share")
@one_loop
async def test_a_starved_program_is_not_judged(sandbox):
    """It would use half of its CPU limit, and never gets it before its wall clock runs out."""
    program = Program("import time\nwhile time.process_time() < 1.5: pass")
    with _busy_host(), pytest.raises(SandboxOverloaded, match="CPU time"):
        await sandbox.run(program, [Script()], Limits(cpu_s=3.0, wall_s=1.2))
    (slept,) = await sandbox.run(Program("import time\ntime.sleep(9)"), [Script()], Limits(cpu_s=3.0, wall_s=1.2))
    assert slept.outcome is Outcome.TIME_LIMIT


_SERVER = """
import asyncio, json, os
from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import *

async def main():
    sandbox = ZygoteSandbox()
    await sandbox.start()
    sleeper = asyncio.ensure_future(sandbox.run(Program("import time\\ntime.sleep(99)"), [Script()], Limits()))
    await sandbox.run(Program("def f(): return 1"), [Examination("assert f() == 1")], Limits())
    await asyncio.sleep(0.3)
    print("ready", flush=True)
    await sleeper

asyncio.run(main())
"""


def _tree(root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, queue = set(), [root]
    while queue:
        found.add(pid := queue.pop())
        queue += children.get(pid, [])
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_everything_ends_with_the_server(number):
    """Runners, zygotes, keepers and jails, those that wait as well as those that work."""
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) as server:
        if server.stdout.readline() != "ready\n":
            pytest.skip("this host cannot isolate")
        everybody = _tree(server.pid)
        assert len(everybody) > 8
        server.send_signal(number)
        server.wait()
        until = time.monotonic() + 20
        while (alive := [pid for pid in everybody if os.path.exists(f"/proc/{pid}")]) and time.monotonic() < until:
            time.sleep(0.05)
        assert alive == []
    cgroups.open_groups().remove()  # and the groups of the dead with them


def test_messages_of_a_keeper():
    message = pack_run((2.0, 512, 32, 64, True), {"role": "script"})
    assert unpack_run(message) == ((2.0, 512, 32, 64, True), {"role": "script"})
    assert quiet_ms(message) == 2.0 / (os.cpu_count() or 1) * 1000
    report = Report(-1, 0.5, 1.5, 3.25, "asked", 1.25)
    assert unpack_answer(pack_watched(report)) == (report, "", "")
