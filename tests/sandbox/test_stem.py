"""Tests of one answer that are forked from one process in one jail meet no more than those in jails of their own."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import FunctionCall, Limits, Outcome, Program, Script
from adjudge_sandbox.errors import SandboxUnavailable

one_loop = pytest.mark.asyncio(loop_scope="module")
_LIMITS = Limits(cpu_s=5.0, wall_s=60.0)
_LIBC = "libc = __import__('cty' + 'pes').CDLL(None, use_errno=True)\n"
"""A source that names the module is given jails of its own."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox():
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


async def _outputs(sandbox, source: str, runs: int = 4, limits: Limits = _LIMITS) -> list[str]:
    """What each of ``runs`` runs prints. Its number is its input."""
    results = await sandbox.run(Program(source), [Script(b"%d\n" % n) for n in range(runs)], limits)
    assert [result.outcome for result in results] == [Outcome.FINISHED] * runs, results
    return [result.stdout.decode().strip() for result in results]


@one_loop
async def test_they_are_forked_from_one_process(sandbox):
    """Else nothing here tests anything. The last test is that process itself."""
    source = "import os, random\nprint(os.getpid(), os.getppid(), os.getsid(0), random.random())"
    lines = [line.split() for line in await _outputs(sandbox, source)]
    assert [line[:3] for line in lines] == [[pid, "0", pid] for pid in ("3", "4", "5", "2")]
    assert len({line[3] for line in lines}) == 4


@pytest.mark.parametrize(
    ("leave", "look", "want"),
    [
        ("open('left', 'w').write('x')", "os.listdir('.'), os.listdir('/tmp')", "['solution.py'] ['solution.py']"),
        ("open('solution.py', 'a').write('#x')", "len(open('solution.py').read()) == int(size)", "True"),
        ("os.chmod('/tmp', 0o700)", "oct(os.stat('/tmp').st_mode)", "0o40755"),
        ("os.utime('/tmp', (1, 1))", "int(os.stat('/tmp').st_mtime) == 1", "False"),
        ("open('/dev/shm/left', 'w').write('x')", "os.listdir('/dev/shm')", "[]"),
        ("os.chmod('/dev/shm', 0o700)", "oct(os.stat('/dev/shm').st_mode)", "0o40755"),
        ("open('big', 'wb').write(bytes(30 << 20))", "os.statvfs('/tmp').f_bfree * 4096 > 63 << 20", "True"),
        ("[open(str(n), 'w').close() for n in range(99)]", "os.listdir('.')", "['solution.py']"),
        ("import math; math.pi = 3", "__import__('math').pi", "3.141592653589793"),
        ("os.environ['LEFT'] = '1'", "'LEFT' in os.environ", "False"),
        ("os.chdir('/usr')", "os.getcwd()", "/tmp"),
        ("os.umask(0o77)", "oct(os.umask(0o22))", "0o22"),
        ("os.nice(5)", "os.getpriority(os.PRIO_PROCESS, 0)", "0"),
        ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", "int(signal.getsignal(15))", "0"),
        ("import signal; signal.pthread_sigmask(0, [15])", "signal.pthread_sigmask(0, [])", "set()"),
        ("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))", "resource.getrlimit(7)", "(256, 256)"),
        ("import socket; s = socket.socket(1); s.bind(chr(0) + 'left'); s.listen()", "connect()", "refused"),
    ],
)
@one_loop
async def test_what_one_leaves_another_does_not_find(sandbox, leave, look, want):
    template = (
        "import os, socket, signal, resource\nsize = {size:4}\n"
        "def connect():\n    try: socket.socket(1).connect(chr(0) + 'left')\n"
        "    except ConnectionRefusedError: return 'refused'\n    return 'CONNECTED'\n"
        f"print(*(repr(x) if not isinstance(x, str) else x for x in [{look}]))\n{leave}"
    )
    source = template.replace("{size:4}", f"{len(template) - 8 + 4:4}")
    assert await _outputs(sandbox, source) == [want] * 4


@pytest.mark.parametrize(
    "make",
    [
        "libc.shmget(77, 4096, 0o1666)",
        "libc.semget(77, 1, 0o1666)",
        "libc.msgget(77, 0o1666)",
        "libc.mq_open(b'/left', 0o102, 0o666, None)",
        "libc.syscall(29, 77, 4096, 0o1666)",
    ],
)
@one_loop
async def test_nothing_outlives_a_test_in_the_ipc_namespace(sandbox, make):
    """Refused beside a stem; in jails of their own they are there, and not found again."""
    assert await _outputs(sandbox, f"{_LIBC}print({make})") == ["-1"] * 4
    named = "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.shmget(77, 0, 0), libc.shmget(77, 4096, 0o1666))"
    assert await _outputs(sandbox, named, 2) == ["-1 0"] * 2


_DAEMON = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(99)\n    os._exit(0)\nos.wait()\n"  # noqa: E501
_SIBLING = f"import time\n{_LIBC}if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0:\n    time.sleep(99)\n"
_FLEEING = (
    "import os\nif os.fork() == 0:\n    os.setsid()\n    while True:\n        if os.fork():\n            os._exit(0)\n"
)


@pytest.mark.parametrize("source", [_DAEMON, _SIBLING, _FLEEING], ids=["daemon", "sibling", "fleeing"])
@one_loop
async def test_processes_end_with_their_test(sandbox, source):
    """Whoever is left in the jail when a test has ended, however it came there and however it runs."""
    look = "print(sum(p.isdigit() for p in __import__('os').listdir('/proc')))\n"
    seen = await _outputs(sandbox, look + source, 5)
    assert set(seen) <= {"2", "3"}, seen  # the first process, perhaps a stem, and the test


@one_loop
async def test_a_sibling_of_an_only_run_is_refused(sandbox):
    """It would be the keeper's child, which only the keeper can wait for."""
    source = "import ctypes\nprint(ctypes.CDLL(None).syscall(56, 0x8000 | 17, 0, 0, 0, 0))"
    assert await _outputs(sandbox, source, 1) == ["-1"]


@pytest.mark.parametrize("number", ["KILL", "STOP", "TERM", "INT", "HUP", "USR1", "SEGV", "CHLD", "CONT", "RTMAX"])
@pytest.mark.parametrize("target", ["2", "-1"], ids=["stem", "all"])
@one_loop
async def test_signals_to_the_stem_change_nothing(sandbox, number, target):
    source = (
        "import os, signal\nsignal.pthread_sigmask(0, signal.valid_signals())\n"
        f"try: os.kill({target}, signal.SIG{number})\n"
        "except OSError: pass\nif os.getpid() != 2: print(int(input()) * 2)\nelse: print('last')"
    )
    if target == "2" and number in ("KILL", "STOP"):
        source = source.replace("try: os", "if os.getpid() == 2: print('last'); raise SystemExit\ntry: os")
    assert set(await _outputs(sandbox, source, 5)) <= {"0", "2", "4", "6", "8", "last"}
    source = source.replace("print('last')", "print(int(input()) * 2)")
    assert await _outputs(sandbox, source, 5) == ["0", "2", "4", "6", "8"]


@one_loop
async def test_the_stem_is_out_of_reach(sandbox):
    source = (
        f"import os, resource\n{_LIBC}"
        "limit, priority, schedule = (getattr(*name) for name in (\n"
        "    (resource, 'prl' + 'imit'), (os, 'setpri' + 'ority'), (os, 'sched_' + 'setscheduler')))\n"
        "def attempt(what):\n    try: what()\n    except OSError: return 'no'\n    return 'YES'\n"
        "if os.getpid() != 2:\n    print(*(attempt(lambda: open('/proc/2/' + n, 'rb').read(1))\n"
        "        for n in ('mem', 'maps', 'environ', 'auxv', 'syscall', 'stack')),\n"
        "      attempt(lambda: os.listdir('/proc/2/fd')), attempt(lambda: os.readlink('/proc/2/cwd')),\n"
        "      attempt(lambda: open('/proc/2/oom_score_adj', 'w').write('1000')),\n"
        "      attempt(lambda: limit(2, resource.RLIMIT_CPU, (1, 1))),\n"
        "      attempt(lambda: priority(os.PRIO_PROCESS, 2, 9)), attempt(lambda: priority(os.PRIO_USER, 0, 9)),\n"
        "      attempt(lambda: schedule(2, os.SCHED_IDLE, os.sched_param(0))),\n"
        "      libc.ptrace(16, 2, 0, 0), libc.syscall(251, 1, 2, 0x6000), libc.syscall(251, 3, 65534, 0x6000),\n"
        "      'own:', attempt(lambda: limit(0, resource.RLIMIT_CPU, (5, 5))), attempt(lambda: os.nice(1)),\n"
        "      attempt(lambda: schedule(0, os.SCHED_BATCH, os.sched_param(0))))"
    )
    assert (await _outputs(sandbox, source))[:3] == ["no " * 13 + "-1 -1 -1 own: YES YES YES"] * 3


@one_loop
async def test_limits_are_those_of_each_test(sandbox):
    """Time, memory and output; those before and after are not touched."""
    source = (
        "n = int(input())\n"
        "if n == 1:\n    while True: pass\n"
        "if n == 3: bytearray(1 << 30)\n"
        "if n == 5: print('x' * (9 << 20))\n"
        "if n == 7:\n    import time; time.sleep(99)\n"
        "import time\nwhile time.process_time() < 0.3: pass\nprint(n)"
    )
    limits = Limits(cpu_s=0.8, wall_s=4.0, memory_mib=128)
    results = await sandbox.run(Program(source), [Script(b"%d" % n) for n in range(10)], limits)
    want = {1: "time_limit", 3: "memory_limit", 5: "output_limit", 7: "time_limit"}
    assert [result.outcome for result in results] == [want.get(n, "finished") for n in range(10)]
    assert [result.stdout for result in results[::2]] == [b"0\n", b"2\n", b"4\n", b"6\n", b"8\n"]
    assert all(250 < result.cpu_ms < 700 for n, result in enumerate(results) if n not in want), results
    assert results[5].stdout_truncated


@one_loop
async def test_cpu_time_of_children_counts(sandbox):
    source = "import os\nif int(input()) == 1 and os.fork() == 0:\n    while True: pass\nif os.getpid() == 4: os.wait()"
    results = await sandbox.run(Program(source), [Script(b"%d" % n) for n in range(3)], Limits(cpu_s=0.5, wall_s=20.0))
    assert [result.outcome for result in results] == ["finished", "time_limit", "finished"]


@one_loop
async def test_more_tests_than_one_stem_forks(sandbox):
    assert await _outputs(sandbox, "print(int(input()))", 75) == [str(n) for n in range(75)]


@one_loop
async def test_runs_of_other_kinds_in_between(sandbox):
    program = Program(
        "def f(): return 5\nif __name__ == '__main__':\n    import sys\n    print(input(), *sys.argv[1:])"
    )
    runs = [Script(b"1"), Script(b"2"), FunctionCall("f"), Script(b"3"), Script(b"4", args=("x",)), Script(b"5")]
    results = await sandbox.run(program, runs, _LIMITS)
    assert [r.stdout for r in results] == [b"1\n", b"2\n", b"", b"3\n", b"4 x\n", b"5\n"]
    assert results[2].value == 5


@pytest.mark.parametrize(("source", "outcome"), [("def f(:", "compile_error"), ("(" * 5000, "compile_error")])
@one_loop
async def test_what_does_not_compile(sandbox, source, outcome):
    results = await sandbox.run(Program(source), [Script()] * 3, _LIMITS)
    assert [(r.outcome, r.detail) for r in results] == [(outcome, results[0].detail)] * 3
    assert results[0].detail


@one_loop
async def test_endings(sandbox):
    source = "import os, sys\nn = int(input())\n[lambda: 1 / 0, lambda: sys.exit(3), lambda: os.kill(os.getpid(), 9), lambda: os.abort(), lambda: os._exit(0)][n]()"  # noqa: E501
    results = await sandbox.run(Program(source), [Script(b"%d" % n) for n in range(5)], _LIMITS)
    assert [(r.outcome, r.exit_status, r.signal) for r in results] == [
        ("raised", 1, None),
        ("raised", 3, None),
        ("signalled", None, 9),
        ("signalled", None, 6),
        ("finished", 0, None),
    ]


def _below(root: int) -> list[int]:
    found, queue = [], [root]
    while queue:
        with contextlib.suppress(OSError):
            pid = queue.pop()
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                below = [int(child) for child in children.read().split()]
            found += below
            queue += below
    return found


def _in_jails(sandbox, number: int) -> list[int]:
    """Processes that are ``number`` in their own pid namespace, three below that of this process."""
    found = []
    for root in filter(None, sandbox.describe()["zygote_pids"].values()):
        for pid in _below(root):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status", errors="replace") as status:
                numbers = next(line for line in status if line.startswith("NSpid:")).split()[1:]
                if len(numbers) == 4 and int(numbers[-1]) == number:
                    found.append(pid)
    return found


@one_loop
async def test_a_stem_that_is_killed_from_outside_costs_no_result(sandbox):
    work = asyncio.ensure_future(_outputs(sandbox, "import time\ntime.sleep(0.1)\nprint(int(input()) + 1)", 20))
    kills = 0
    for _ in range(3):
        await asyncio.sleep(0.4)
        for pid in _in_jails(sandbox, 2):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
    assert kills
    assert await work == [str(n + 1) for n in range(20)]


@one_loop
async def test_stopping_at_a_failure_leaves_no_stem(sandbox):
    runs = [Script(b"1"), Script(b"x"), Script(b"2")]
    results = await sandbox.run(Program("print(int(input()))"), runs, _LIMITS, stop_at_failure=True)
    assert [result.outcome for result in results] == ["finished", "raised"]
    for _ in range(100):
        if not _in_jails(sandbox, 2):
            break
        await asyncio.sleep(0.02)
    assert _in_jails(sandbox, 2) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the suite already runs as an ordinary user")
def test_as_an_ordinary_user():
    """Where only user namespaces are available, and no control group."""
    python = "/usr/bin/python3"
    new_enough = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if not os.path.exists(python) or subprocess.run(new_enough, check=False).returncode:
        pytest.skip("there is no interpreter that an ordinary user can read")
    root = os.path.dirname(os.path.dirname(sys.modules["adjudge_sandbox"].__file__))
    done = subprocess.run(
        [python, "-B", "-c", _AS_USER],
        env={"PYTHONPATH": root, "PATH": os.environ["PATH"]},
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if "SKIP" in done.stdout:
        pytest.skip(done.stdout)
    lines = done.stdout.splitlines()
    assert lines == ["3 solution.py []", "4 solution.py []", "5 solution.py []", "2 solution.py []", *_KINDS], done


_KINDS = ["finished", "time_limit", "memory_limit", "finished", "finished"]
_AS_USER = """
import asyncio
from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Limits, Program, Script
from adjudge_sandbox.errors import SandboxUnavailable

async def main():
    sandbox = ZygoteSandbox()
    try:
        await sandbox.start()
    except SandboxUnavailable as error:
        print("SKIP", error)
        return
    look = "import os\\nprint(os.getpid(), *os.listdir('/tmp'), os.listdir('/dev/shm'))"
    for result in await sandbox.run(Program(look), [Script()] * 4, Limits()):
        print(*result.stdout.decode().split(), *result.detail.split())
    source = "n = int(input())\\nif n == 1:\\n    while True: pass\\nif n == 2: bytearray(200 << 20)\\n"
    source += "if n == 3:\\n    import os\\n    if os.fork() == 0:\\n        os.setsid()\\n        while True: pass"
    limits = Limits(cpu_s=0.5, memory_mib=64)
    for result in await sandbox.run(Program(source), [Script(b"%d" % n) for n in range(5)], limits):
        print(result.outcome)
    await sandbox.stop()

asyncio.run(main())
"""
