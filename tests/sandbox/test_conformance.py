"""Every backend of this host does what :mod:`adjudge_sandbox.conformance` says."""

import os
import subprocess
import sys

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import FunctionCall, Limits, Program, Script
from adjudge_sandbox.conformance import Check, find_problem, load_checks
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage

one_loop = pytest.mark.asyncio(loop_scope="module")
_BACKENDS = ("zygote", "none")
"""``landlock`` wants an interpreter that everybody can read: see below."""
CHECKS = load_checks()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=_BACKENDS)
async def sandbox(request):
    backend = ZygoteSandbox(request.param)
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


def test_names_are_unique():
    assert len({check.name for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@one_loop
async def test_check(sandbox, check: Check):
    if excuse := check.excuse(sandbox.name):
        pytest.skip(excuse)
    assert await find_problem(sandbox, check) is None


@one_loop
async def test_runs_do_not_meet(sandbox):
    """Files, processes and global state of one run are gone in the next."""
    source = (
        "import os, sys, subprocess\nprint(os.listdir('.'), len(sys.stdin.read()))\nopen('left', 'w').write('x')\n"
        "if os.fork() == 0:\n    import time\n    time.sleep(99)\n"
    )
    results = await sandbox.run(Program(source), [Script(b"a"), Script(b"bb"), Script()], Limits(wall_s=10))
    assert [result.stdout for result in results] == [f"['solution.py'] {n}\n".encode() for n in (1, 2, 0)]


@one_loop
async def test_stops_at_failure(sandbox):
    runs = [Script(b"1"), Script(b"x"), Script(b"2")]
    program = Program("print(int(input()))")
    assert [r.outcome for r in await sandbox.run(program, runs, Limits())] == ["finished", "raised", "finished"]
    stopped = await sandbox.run(program, runs, Limits(), stop_at_failure=True)
    assert [r.outcome for r in stopped] == ["finished", "raised"]


@one_loop
async def test_other_languages_are_refused(sandbox):
    with pytest.raises(UnsupportedLanguage, match="cobol"):
        await sandbox.run(Program("x", "cobol"), [Script()], Limits())


@pytest.mark.parametrize("limits", [{"cpu_s": 0}, {"wall_s": -1.0}, {"memory_mib": 0}, {"cpu_s": float("inf")}])
@one_loop
async def test_impossible_limits_are_refused(sandbox, limits):
    with pytest.raises(InvalidProgram, match=next(iter(limits))):
        await sandbox.run(Program("print(1)"), [Script()], Limits(**limits))


@one_loop
async def test_arguments_that_are_not_plain_are_refused(sandbox):
    with pytest.raises(InvalidProgram, match="object"):
        await sandbox.run(Program("def f(x): pass"), [FunctionCall("f", (object(),))], Limits())


@one_loop
async def test_no_runs(sandbox):
    assert await sandbox.run(Program("print(1)"), [], Limits()) == []


@pytest.mark.parametrize(("backend", "user"), [("zygote", 65534), ("landlock", 65534), ("landlock", 0)])
@pytest.mark.skipif(os.geteuid() != 0, reason="the suite already runs as an ordinary user")
def test_as_an_ordinary_user(backend, user):
    """The same checks where only user namespaces are available, or not even those, and no control group; and for
    Landlock as root, with an interpreter that others can read."""
    python = "/usr/bin/python3"
    new_enough = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if not os.path.exists(python) or subprocess.run(new_enough, check=False).returncode:
        pytest.skip("there is no interpreter that an ordinary user can read")
    root = os.path.dirname(os.path.dirname(sys.modules["adjudge_sandbox"].__file__))
    done = subprocess.run(
        [python, "-B", "-c", _AS_USER, backend],
        env={"PYTHONPATH": root, "PATH": os.environ["PATH"]},
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if "SKIP" in done.stdout:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


_AS_USER = """
import asyncio, sys
from adjudge_sandbox.conformance import find_problem, load_checks
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.backends.zygote import ZygoteSandbox

async def main():
    sandbox = ZygoteSandbox(sys.argv[1])
    try:
        await sandbox.start()
    except SandboxUnavailable as error:
        print("SKIP", error)
        return 0
    checks = [check for check in load_checks() if not check.excuse(sandbox.name)]
    problems = [problem for check in checks if (problem := await find_problem(sandbox, check))]
    await sandbox.stop()
    print(*problems, sep="\\n")
    return len(problems)

sys.exit(asyncio.run(main()))
"""
