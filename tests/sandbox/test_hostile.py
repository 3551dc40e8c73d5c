"""Hostile programs, each with the verdict that it must get, and a neighbour that must not notice.

They are in ``hostile.toml``. A wrong solution ``f`` is asked for ``f(2) == 4`` and cheats; a script breaks out or uses
things up.
"""

import platform
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Examination, FunctionCall, Limits, Outcome, Program, Script
from adjudge_sandbox.conformance import run_of, text_of
from adjudge_sandbox.errors import SandboxUnavailable

one_loop = pytest.mark.asyncio(loop_scope="module")
FINISHED = Outcome.FINISHED
_SMALL = Limits(cpu_s=1.0, wall_s=5.0, memory_mib=128, output_kib=256)
_EXAM = Examination("assert f(2) == 4\nassert f(3) == 9")
_ROWS = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text("utf-8"))

_TRY = """
import ctypes, ctypes.util, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
bad = []
for name, number, args in {calls}:
    ctypes.set_errno(0)
    if libc.syscall(number, *args) >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
        bad.append((name, ctypes.get_errno()))
print(bad)
"""
_SYSCALLS = [
    ("mount", 165, (b"none", b"/tmp", b"tmpfs", 0, 0)),
    ("umount2", 166, (b"/tmp", 2)),
    ("unshare user", 272, (0x10000000,)),
    ("unshare ns", 272, (0x20000,)),
    ("clone user", 56, (0x10000000 | 17, 0, 0, 0, 0)),
    ("clone3", 435, (0, 0)),
    ("setns", 308, (0, 0)),
    ("pivot_root", 155, (b".", b".")),
    ("chroot", 161, (b"/tmp",)),
    ("open_by_handle_at", 304, (0, 0, 0)),
    ("userfaultfd", 323, (0,)),
    ("bpf", 321, (0, 0, 0)),
    ("io_uring_setup", 425, (8, 0)),
    ("keyctl", 250, (0, 0)),
    ("add_key", 248, (0, 0, 0, 0, 0)),
    ("perf_event_open", 298, (0, 0, -1, -1, 0)),
    ("ptrace", 101, (16, 1, 0, 0)),
    ("process_vm_writev", 311, (1, 0, 0, 0, 0, 0)),
    ("pidfd_getfd", 438, (0, 0, 0)),
    ("vsock", 41, (40, 1, 0)),
    ("alg", 41, (38, 5, 0)),
    ("netlink", 41, (16, 3, 0)),
    ("raw", 41, (2, 3, 1)),
    ("init_module", 175, (0, 0, 0)),
    ("kexec_load", 246, (0, 0, 0, 0)),
    ("reboot", 169, (0, 0, 0, 0)),
    ("x32 getpid", 0x40000000 | 39, ()),
    ("settimeofday", 164, (0, 0)),
    ("sched_setaffinity", 203, (0, 0, 0)),
    ("nice -20", 141, (0, 0, -20)),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox():
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


async def _neighbour(sandbox) -> None:
    """An honest program still gets its verdict."""
    (result,) = await sandbox.run(Program("print(input())"), [Script(b"still here")], Limits())
    assert (result.outcome, result.stdout) == (FINISHED, b"still here\n")


@pytest.mark.parametrize("row", _ROWS["cheat"], ids=lambda row: row["name"])
@one_loop
async def test_cheat(sandbox, row):
    test = run_of(row) if "test" in row else _EXAM
    (result,) = await sandbox.run(Program(text_of(row, "source", "")), [test], _SMALL)
    assert result.outcome in row["outcomes"], result
    await _neighbour(sandbox)


@pytest.mark.parametrize("row", _ROWS["attack"], ids=lambda row: row["name"])
@one_loop
async def test_attack(sandbox, row):
    limits = replace(_SMALL, **row.get("limits", {}))
    (result,) = await sandbox.run(Program(text_of(row, "source", "")), [run_of(row)], limits)
    assert result.outcome in row["outcomes"], result
    stdout = text_of(row, "stdout", None)
    if stdout is not None:
        assert result.stdout == (stdout.encode() if isinstance(stdout, str) else stdout), result
    await _neighbour(sandbox)


@one_loop
async def test_refused_system_calls(sandbox):
    """59 and 60: the filter refuses what a wall cannot hold."""
    if platform.machine() != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    program = Program(_TRY.format(calls=repr(_SYSCALLS)))
    (result,) = await sandbox.run(program, [Script()], Limits())
    assert (result.outcome, result.stdout) == (FINISHED, b"[]\n"), result


@one_loop
async def test_values_lose_their_magic(sandbox):
    source = "class A(int):\n    def __eq__(s, o): return True\n    def __repr__(s): return '3'\ndef f(): return [A(7)]"
    (result,) = await sandbox.run(Program(source), [FunctionCall("f")], Limits())
    assert result.value == [7]
    assert type(result.value[0]) is int
    assert result.value != [3]


@one_loop
async def test_random_numbers_differ_between_runs(sandbox):
    """63: children of one warm process must not share the state of its generator."""
    results = await sandbox.run(Program("import random\nprint(random.random())"), [Script()] * 4, Limits())
    assert len({result.stdout for result in results}) == 4


@one_loop
async def test_later_inputs_are_not_in_memory(sandbox):
    """32: what a later run is given is not to be found in the memory of an earlier one."""
    source = (
        "import re\nneedle = re.compile(b'VERY[-]SECRE[T]')\nfound = 0\n"
        "for line in open('/proc/self/maps'):\n"
        "    a, b = (int(x, 16) for x in line.split()[0].split('-'))\n"
        "    if 'r' not in line.split()[1] or 'vvar' in line or 'vsyscall' in line: continue\n"
        "    with open('/proc/self/mem', 'rb') as memory:\n"
        "        memory.seek(a)\n"
        "        found += len(needle.findall(memory.read(b - a)))\n"
        "print(found)"
    )
    runs = [Script(b""), Script(b"VERY-SECRET"), Examination("x = 'VERY-SECRET'")]
    first = (await sandbox.run(Program(source), runs, Limits(memory_mib=1024)))[0]
    assert (first.outcome, first.stdout) == (FINISHED, b"0\n"), first
