"""The container backend on a real engine: scripts, limits, hostile programs, and nothing left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.container import ContainerSandbox
from adjudge_sandbox.base import FunctionCall, Limits, Program, RunResult, Script
from adjudge_sandbox.conformance import Check, find_problem, load_checks
from adjudge_sandbox.container.base import Command, ContainerConfig, Ended, File, Shape
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage

pytestmark = pytest.mark.asyncio(loop_scope="module")

OF_THE_JAIL = {"nobody", "process 2 of its own world", "no host files"}
"""Checks of how our own jail looks from inside; a container looks different and is no weaker for it."""
SCRIPTS = [check for check in load_checks() if isinstance(check.run, Script) and check.name not in OF_THE_JAIL]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(engine) -> AsyncIterator[ContainerSandbox]:
    opened = ContainerSandbox(ContainerConfig(image=engine.image, engine_url=engine.url, warm=1))
    await opened.start()
    yield opened
    await opened.stop()


async def run(sandbox: ContainerSandbox, source: str, stdin: bytes = b"", **limits: float) -> RunResult:
    (result,) = await sandbox.run(Program(source), [Script(stdin)], Limits(**limits))
    return result


async def test_what_the_image_has(sandbox):
    assert {"python", "bash", "perl"} <= set(sandbox.languages())
    assert sandbox.pool.describe()["seccomp"]


@pytest.mark.parametrize("check", SCRIPTS, ids=lambda check: check.name)
async def test_conformance(sandbox, check: Check):
    assert await find_problem(sandbox, check) is None


async def test_runs_of_one_answer_share_a_box_and_nothing_else(sandbox):
    source = (
        "import os, sys\nprint(sorted(os.listdir('.')), os.listdir('/tmp'), len(sys.stdin.read()))\n"
        "open('left', 'w').write('x')\nopen('/tmp/.left', 'w').write('x')\nos.makedirs('/tmp/a/b')\n"
        "if os.fork() == 0:\n    import time\n    sys.stdout = None\n    os.close(1), os.close(2)\n    time.sleep(99)\n"
    )
    results = await sandbox.run(Program(source), [Script(b"a"), Script(b"bb"), Script()], Limits(wall_s=10))
    assert [result.stdout for result in results] == [f"['solution.py'] [] {n}\n".encode() for n in (1, 2, 0)]
    assert {result.isolation for result in results} == {"container"}


async def test_files_come_and_go(sandbox):
    source = (
        "import os\nprint(open('in/data.txt').read())\nopen('out.bin', 'wb').write(bytes(range(256)))\n"
        "os.symlink('/etc/passwd', 'link')\nos.mkfifo('pipe')\nopen('sparse', 'wb').truncate(1 << 40)\n"
    )
    script = Script(files={"in/data.txt": b"hello"}, fetch=("out.bin", "link", "pipe", "sparse", "absent"))
    (result,) = await sandbox.run(Program(source), [script], Limits(wall_s=20))
    assert result.stdout == b"hello\n"
    assert dict(result.files) == {"out.bin": bytes(range(256))}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a//b", "a/../b", ".", "", "a\nb", "x" * 300])
async def test_names_that_lead_elsewhere(sandbox, name):
    with pytest.raises(InvalidProgram):
        await sandbox.run(Program("print(1)"), [Script(files={name: b""})], Limits())
    with pytest.raises(InvalidProgram):
        await sandbox.run(Program("print(1)"), [Script(fetch=(name,))], Limits())


async def test_what_it_does_not_run(sandbox):
    with pytest.raises(UnsupportedLanguage, match="cobol"):
        await sandbox.run(Program("x", "cobol"), [Script()], Limits())
    with pytest.raises(InvalidProgram, match="FunctionCall"):
        await sandbox.run(Program("def f(): pass"), [FunctionCall("f")], Limits())


async def test_bash(sandbox):
    (result,) = await sandbox.run(Program('read x; echo "$x $1" >&2; exit 3', "sh"), [Script(b"a\n", ("b",))], Limits())
    assert (result.outcome, result.exit_status, result.stderr) == ("raised", 3, b"a b\n")


HOSTILE = {
    "fork bomb": ("import os\nwhile True:\n    os.fork()", {"raised", "time_limit", "memory_limit", "signalled"}),
    "fork bomb, sessions": (
        "import os\nwhile True:\n    try:\n        if os.fork() == 0:\n            os.setsid()\n"
        "    except OSError:\n        pass",
        {"time_limit"},
    ),
    "memory": ("x = bytearray(1 << 32)\nfor i in range(0, 1 << 32, 4096): x[i] = 1", {"memory_limit", "raised"}),
    "memory in /tmp": ("with open('/tmp/x', 'wb') as f:\n    while True: f.write(bytes(1 << 20))", {"raised"}),
    "a million files": ("for i in range(10**6): open(f'/tmp/{i}', 'w')", {"raised"}),
    "disk": ("open('/usr/x', 'w')", {"raised"}),
    "flood": ("while True: print('x' * 1000)", {"output_limit"}),
    "flood on stderr": ("import sys\nwhile True: sys.stderr.write('x' * 1000)", {"output_limit"}),
    "one byte each": ("import os\nwhile True: os.write(1, b'x')", {"output_limit", "time_limit"}),
    "ignores signals": (
        "import signal\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except OSError: pass\n"
        "while True: pass",
        {"time_limit", "signalled"},
    ),
    "sleeps": ("import time\ntime.sleep(999)", {"time_limit"}),
    "kills everybody": ("import os, time\nos.kill(-1, 9)\ntime.sleep(0.2)\nraise SystemExit(7)", {"raised"}),
    "kills the keeper": ("import os\nos.kill(1, 9)", {"raised"}),
    "stops everybody": ("import os, signal\nos.kill(-1, signal.SIGSTOP)\nraise SystemExit(7)", {"raised"}),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile(sandbox, name):
    source, expected = HOSTILE[name]
    result = await run(sandbox, source, cpu_s=1, wall_s=5, memory_mib=128, output_kib=256)
    assert result.outcome in expected, result
    healthy = await run(sandbox, "print(6 * 7)")
    assert healthy.stdout == b"42\n"


WALLS = """
import ctypes, os, socket, sys
def tried(what, function):
    try:
        function()
    except BaseException as error:
        return
    print("NOT HELD:", what)
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    if libc.syscall(*args) == -1:
        raise OSError(ctypes.get_errno())
def connect(address):
    socket.create_connection(address, 2).close()
tried("network", lambda: connect(("1.1.1.1", 53)))
tried("metadata", lambda: connect(("169.254.169.254", 80)))
tried("a name", lambda: socket.getaddrinfo("example.org", 80))
tried("engine", lambda: os.stat("/var/run/docker.sock"))
tried("root file system", lambda: open("/etc/x", "w"))
tried("usr", lambda: open("/usr/bin/python3", "ab"))
tried("setuid", lambda: os.setuid(0))
tried("mount", lambda: call(165, b"none", b"/tmp", b"tmpfs", 0, 0))
tried("unshare", lambda: call(272, 0x10000000))
tried("chroot", lambda: os.chroot("/tmp"))
tried("ptrace 1", lambda: call(101, 16, 1, 0, 0))
tried("keyring", lambda: call(250, 0, -3, 0, 0, 0))
tried("bpf", lambda: call(321, 0, 0, 0))
tried("device", lambda: open("/dev/mem", "rb"))
tried("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
tried("sysctl", lambda: open("/proc/sys/kernel/core_pattern", "w"))
tried("cgroup", lambda: open("/sys/fs/cgroup/cgroup.procs", "w"))
tried("cgroup v1", lambda: open("/sys/fs/cgroup/memory/memory.limit_in_bytes", "w"))
tried("keeper's memory", lambda: open("/proc/1/mem", "rb"))
tried("keeper's environment", lambda: open("/proc/1/environ", "rb").read(1) or 1 / 0)
assert os.getuid() == 65534 and os.getgid() == 65534
status = open("/proc/self/status").read()
assert "CapBnd:\\t0000000000000000" in status and "NoNewPrivs:\\t1" in status and "Seccomp:\\t2" in status
assert not [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3]
print("done")
"""


async def test_walls(sandbox):
    result = await run(sandbox, WALLS, wall_s=20)
    assert result.stdout == b"done\n", result


async def test_a_process_left_behind_does_not_hold_the_answer(sandbox):
    source = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\nprint('parent')"
    began = time.monotonic()
    result = await run(sandbox, source, wall_s=30)
    assert (result.outcome, result.stdout) == ("finished", b"parent\n")
    assert time.monotonic() - began < 25


async def test_a_box_is_never_used_for_two_answers(sandbox):
    for _ in range(3):
        result = await run(sandbox, "import os\nprint(os.path.exists('/dev/shm/x'))\nopen('/dev/shm/x', 'w')\n")
        assert result.stdout == b"False\n"


async def test_more_answers_than_boxes(sandbox):
    results = await asyncio.gather(*(run(sandbox, f"print({n})") for n in range(7)))
    assert [result.stdout for result in results] == [f"{n}\n".encode() for n in range(7)]


async def test_cancelling_kills_the_box(sandbox, engine):
    running = asyncio.ensure_future(run(sandbox, "import time\ntime.sleep(300)", wall_s=300))
    await asyncio.sleep(1.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    while sandbox.pool._background:
        await asyncio.gather(*sandbox.pool._background, return_exceptions=True)
    left = await sandbox.pool._engine.call(_sleepers)
    assert left == 0


def _sleepers(client) -> int:
    found = 0
    for container in client.containers(filters={"label": "adjudge.owner"}):
        told = client.top(container["Id"])
        found += sum("sleep(300)" in " ".join(row) or "solution.py" in " ".join(row) for row in told["Processes"])
    return found


async def test_images_and_folders(sandbox, engine):
    pool = sandbox.pool
    with pytest.raises(InvalidProgram, match="no image"):
        await pool.run("adjudge-test:absent", Shape(), Command(["true"]))
    with pytest.raises(InvalidProgram, match="no folder"):
        await pool.folder_of(engine.image, "/nowhere")
    with pytest.raises(InvalidProgram, match="more than 1 MiB"):
        await pool.folder_of(engine.image, "/usr/lib", max_mib=1)
    assert b"root:x:0:0" in await pool.folder_of(engine.image, "/etc")


async def test_a_folder_of_ones_own(sandbox, engine):
    command = Command(
        ["sh", "-c", "pwd; cat a/b; ls -l a/run | cut -c1-10; readlink l; head -c 3000000 /dev/zero >&2"],
        files={"a/b": File(b"text\n"), "a/run": File(b"#!/bin/sh\n", executable=True), "l": File(link="a/b")},
        output_kib=1,
        tail=True,
    )
    result = await sandbox.pool.run(engine.image, Shape(folder="/testbed"), command)
    assert (result.ended, result.exit_status) == (Ended.EXITED, 0)
    assert result.stdout == b"/testbed\ntext\n-rwxr-xr-x\na/b\n"
    assert len(result.stderr) == 1024
    assert (result.stdout_truncated, result.stderr_truncated) == (False, True)


async def test_without_an_engine():
    sandbox = ContainerSandbox(ContainerConfig(image="x", engine_url="unix:///nonexistent/docker.sock"))
    with pytest.raises(SandboxUnavailable, match="container engine"):
        await sandbox.start()


async def test_a_runtime_that_is_not_there(engine):
    sandbox = ContainerSandbox(ContainerConfig(image=engine.image, engine_url=engine.url, runtime="nope"))
    with pytest.raises(SandboxUnavailable, match="no runtime 'nope'"):
        await sandbox.start()
