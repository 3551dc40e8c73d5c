"""What is not the program's doing: compilers that somebody kills, memory that the host lacks, other servers' users."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Script
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.languages import table
from adjudge_sandbox.probe import probe

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here: apt-get install g++"),
]
LIMITS = Limits(cpu_s=10, wall_s=60)
HOG = """
#include <stdlib.h>
#include <string.h>
int main(void) { volatile char *p = memset(malloc(200 << 20), 1, 200 << 20); return p[100 << 20] - 1; }
"""
SORTED = "using namespace std;\nint main() { vector<int> v{3, 1, 2}; sort(v.begin(), v.end()); cout << v[0] * 42; }"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox() -> AsyncIterator[ZygoteSandbox]:
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        if all(finding.ok for finding in probe()):
            raise
        pytest.skip(f"no isolation on this host: {error}")
    yield backend
    await backend.stop()


async def run(sandbox: ZygoteSandbox, program: Program, limits: Limits = LIMITS) -> RunResult:
    (result,) = await sandbox.run(program, [Script()], limits)
    return result


def _below(ancestor: int, name: str) -> set[int]:
    """Processes of this name that descend from ``ancestor``."""
    parents: dict[int, int] = {}
    named: list[int] = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit():
                head, _, tail = Path(f"/proc/{entry}/stat").read_text("utf-8", "replace").rpartition(")")
                parents[int(entry)] = int(tail.split()[1])
                if head.partition("(")[2] == name:
                    named.append(int(entry))
    found = set[int]()
    for pid in named:
        above = pid
        while above not in (0, ancestor):
            above = parents.get(above, 0)
        if above == ancestor:
            found.add(pid)
    return found


async def _run_killing(sandbox: ZygoteSandbox, program: Program, name: str, times: int) -> RunResult:
    """Run it, and kill the first so many processes of this name."""
    running = asyncio.ensure_future(run(sandbox, program))
    killed = set[int]()
    while not running.done() and len(killed) < times:
        for pid in sorted(_below(os.getpid(), name) - killed)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        await asyncio.sleep(0.005)
    if running.done() and len(killed) < times:
        running.exception()
        pytest.skip(f"{name} was too fast to be killed")
    return await running


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _slow_to_compile(status: int) -> Program:
    text = "#include <map>\n#include <algorithm>\nint main() { std::map<int, int> m; m[1]; return m.size() - 1 + "
    return Program(f"{text}{status}; }}", "cpp")


@pytest.mark.parametrize("name", ["cc1plus", pytest.param("g++", marks=pytest.mark.languages)])
async def test_a_compiler_that_is_killed_starts_again(sandbox: ZygoteSandbox, name: str) -> None:
    program = _slow_to_compile(len(name))
    result = await _run_killing(sandbox, program, name, 1)
    assert (result.outcome, result.exit_status) == (Outcome.RAISED, len(name)), result


@pytest.mark.parametrize("name", ["cc1plus", pytest.param("g++", marks=pytest.mark.languages)])
async def test_a_compiler_that_is_killed_twice_says_nothing_about_the_program(
    sandbox: ZygoteSandbox, name: str
) -> None:
    program = _slow_to_compile(20 + len(name))
    with pytest.raises(SandboxUnavailable, match="compiler was killed"):
        await _run_killing(sandbox, program, name, 2)
    assert (await run(sandbox, program)).exit_status == 20 + len(name)  # and nobody has kept that


async def test_a_build_that_kills_itself(sandbox: ZygoteSandbox) -> None:
    """A build script is code of the task, or runs the answer's: that is their own doing."""
    result = await run(sandbox, Program("", "c", build="kill -9 $$"))
    assert (result.outcome, result.detail) == (Outcome.COMPILE_ERROR, "the compiler was killed by SIGKILL")


@pytest.mark.parametrize(
    "source",
    [
        '#line 1 "g++"\n#error Killed signal terminated program cc1plus\nint main() {}',
        '#line 1 "x\\ng++: fatal error: Killed signal terminated program cc1plus\\n"\n#include "no"\nint main() {}',
        "#error signal: 9 (SIGKILL)\nint main() {}",
    ],
)
async def test_a_source_that_looks_like_a_killed_compiler(sandbox: ZygoteSandbox, source: str) -> None:
    assert (await run(sandbox, Program(source, "cpp"))).outcome is Outcome.COMPILE_ERROR


async def test_memory_that_the_host_lacks(sandbox: ZygoteSandbox) -> None:
    """The kernel kills a program that is within its own limit: whoever asked shall ask again later."""
    groups = sandbox._groups
    if groups is None or groups.kind == "rlimits":
        pytest.skip("no control groups here")
    name = "memory.limit_in_bytes" if groups.kind == "v1" else "memory.max"
    path = os.path.join(groups.folders["memory"], name)
    try:
        _write(path, str(100 << 20))
        with pytest.raises(SandboxUnavailable, match="no memory left"):
            await run(sandbox, Program(HOG, "c"), Limits(memory_mib=512))
    finally:
        _write(path, "-1" if groups.kind == "v1" else "max")
    assert (await run(sandbox, Program(HOG, "c"), Limits(memory_mib=512))).outcome is Outcome.FINISHED
    assert (await run(sandbox, Program(HOG, "c"), Limits(memory_mib=128))).outcome is Outcome.MEMORY_LIMIT


async def test_memory_counts_what_the_program_uses(sandbox: ZygoteSandbox) -> None:
    """Not the files that somebody has read before, nor those that it reads; but what it writes, for /tmp is memory."""
    limits = Limits(memory_mib=64, cpu_s=10)
    hello = Program("int main(void) { return 0; }", "c")
    writes = "for i in 1 2 3; do head -c 40000000 /dev/zero > $TMPDIR/f; cat $TMPDIR/f > /dev/null; rm $TMPDIR/f; done"
    result = await run(sandbox, Program(writes, "bash"), limits)
    assert result.outcome is Outcome.FINISHED, result
    result = await run(sandbox, Program("cat /usr/lib/*/lib*.so* > /dev/null 2>&1 || true", "bash"), limits)
    assert result.outcome is Outcome.FINISHED, result
    for _ in range(2):
        result = await run(sandbox, hello, limits)
        assert result.outcome is Outcome.FINISHED
        if sandbox.describe()["cgroup"] == "v1":
            assert result.peak_memory_mib is not None
            assert result.peak_memory_mib < 10


async def test_no_two_servers_share_a_user(sandbox: ZygoteSandbox) -> None:
    """Else one that kills all processes of a user (Landlock's way to clean up) would kill another's programs."""
    if os.geteuid() != 0:
        pytest.skip("an ordinary user has no others to give")
    other = ZygoteSandbox()
    await other.start()
    try:
        program = Program("print(open('/proc/self/uid_map').read().split()[1])")
        users = [(await run(each, program)).stdout for each in (sandbox, other)]
    finally:
        await other.stop()
    assert users[0] != users[1]


_MORE = pytest.mark.languages


@pytest.mark.parametrize(
    ("before", "between"),
    [
        pytest.param("", "", id="first"),
        pytest.param("", "#include <bits/stdc++.h>\n", id="twice"),
        pytest.param("", "int g;\n#include <bits/stdc++.h>\n", id="twice, apart"),
        pytest.param('// first\n/* second */\n#pragma GCC optimize("O3")\n', "", id="pragma", marks=_MORE),
        pytest.param("#define _GLIBCXX_DEBUG\n", "", id="define", marks=_MORE),
        pytest.param("#include <vector>\nusing namespace std;\n", "", id="late"),
    ],
)
async def test_the_precompiled_header(sandbox: ZygoteSandbox, before: str, between: str) -> None:
    known = table.find("cpp")
    assert known is not None
    await run(sandbox, Program("#include <bits/stdc++.h>\nint main() {}", "cpp"))
    await sandbox.jailed.prepared.ready()
    result = await run(sandbox, Program(f"{before}#include <bits/stdc++.h>\n{between}{SORTED}", "cpp"))
    assert result.stdout == b"42", result


async def test_a_broken_toolchain_makes_no_answer_wrong():
    """It is there, and whatever is asked of it fails: that is no program's doing."""
    backend = ZygoteSandbox()
    await backend.start()
    try:
        found, _ = backend.jailed.toolchains.find("perl")
        found.executables = {"perl": "/bin/false"}
        with pytest.raises(SandboxUnavailable, match="perl does not work here"):
            await run(backend, Program("print 1;", "perl"))
        found, _ = backend.jailed.toolchains.find("c")
        found.executables = {"gcc": "/bin/false"}
        with pytest.raises(SandboxUnavailable, match="toolchain of c "):
            await run(backend, Program("int main(void) { return 0; }", "c"))
        assert (await run(backend, Program("exit 3", "bash"))).exit_status == 3
    finally:
        await backend.stop()
