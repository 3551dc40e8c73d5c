"""Two programs in two jails on each other's pipes, and test files run by pytest beside a program's jail."""

from __future__ import annotations

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Examination, Interaction, Limits, Outcome, Program
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable

one_loop = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits(cpu_s=1, wall_s=8)
ECHO = Program("while True:\n    print(input()[::-1], flush=True)\n")
ASKS = """import sys
for word in open(sys.argv[1]).read().split():
    print(word, flush=True)
    if sys.stdin.readline().strip() != word[::-1]:
        sys.exit(1)
with open('report.txt', 'w') as report:
    report.write('all asked')
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["zygote", "none"])
async def sandbox(request):
    backend = ZygoteSandbox(request.param)
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


def asks(source: str = ASKS, words: bytes = b"abc defg") -> Interaction:
    return Interaction(Program(source), ("words.txt",), {"words.txt": words}, ("report.txt",))


@one_loop
async def test_a_conversation(sandbox):
    program = Program("for _ in range(2):\n    print(input()[::-1], flush=True)\n")
    for result in await sandbox.run(program, [asks(), asks(words=b"x y")], LIMITS):
        assert (result.outcome, result.partner.outcome) == ("finished", "finished"), result
        assert result.partner.files == {"report.txt": b"all asked"}
        assert result.isolation == result.partner.isolation == sandbox.name
        assert result.stdout == b""  # it went to the partner


@one_loop
async def test_both_endings_are_told(sandbox):
    (result,) = await sandbox.run(Program("print('no')"), [asks()], LIMITS)
    assert (result.outcome, result.partner.outcome, result.partner.exit_status) == ("finished", "raised", 1)
    (result,) = await sandbox.run(ECHO, [asks()], LIMITS)  # goes on when nobody answers any more
    assert (result.outcome, result.partner.outcome) == ("raised", "finished")
    assert "EOFError" in result.detail


@one_loop
async def test_each_has_limits_of_its_own(sandbox):
    (result,) = await sandbox.run(Program("while True: pass"), [asks()], LIMITS)
    assert result.outcome is Outcome.TIME_LIMIT
    assert result.partner.cpu_ms < 1000
    (result,) = await sandbox.run(Program("input()"), [asks("while True: pass")], LIMITS)
    assert result.partner.outcome is Outcome.TIME_LIMIT
    assert result.cpu_ms < 1000
    (result,) = await sandbox.run(ECHO, [asks("x = bytearray(1 << 34)")], LIMITS)
    assert result.partner.outcome is Outcome.MEMORY_LIMIT


@one_loop
async def test_the_wall_clock_ends_both(sandbox):
    (result,) = await sandbox.run(Program("input()"), [asks("input()")], Limits(cpu_s=1, wall_s=1))
    assert result.outcome is result.partner.outcome is Outcome.TIME_LIMIT


@one_loop
async def test_a_flood_keeps_nobody(sandbox):
    """The pipe is theirs: what one writes and the other does not read is not kept by us."""
    flood = Program("import sys\nwhile True: sys.stdout.write('x' * 100000)")
    (result,) = await sandbox.run(flood, [asks("import sys\nsys.exit(1)")], LIMITS)
    assert (result.outcome, result.partner.exit_status) == ("raised", 1)


@one_loop
async def test_the_interactors_files_are_out_of_reach(sandbox):
    if sandbox.name == "none":
        pytest.skip("nothing is isolated here")
    spy = "import os, sys\nprint([n for d, _, f in os.walk('/tmp') for n in f], file=sys.stderr)\n"
    spy += "print([p for p in os.listdir('/proc') if p.isdigit()], file=sys.stderr)\n"
    (result,) = await sandbox.run(Program(spy), [asks()], LIMITS)
    assert b"words.txt" not in result.stderr
    assert result.stderr.startswith(b"['solution.py']")


@one_loop
async def test_an_interactor_that_does_not_compile(sandbox):
    (result,) = await sandbox.run(ECHO, [asks("def f(:")], LIMITS)
    assert result.partner.outcome is Outcome.COMPILE_ERROR
    (result,) = await sandbox.run(Program("def f(:"), [asks()], LIMITS)
    assert result.outcome is Outcome.COMPILE_ERROR
    if "c" in sandbox.languages():
        with pytest.raises(InvalidProgram, match="interactor"):
            await sandbox.run(ECHO, [Interaction(Program("int main( {", "c"))], LIMITS)


@one_loop
async def test_in_two_languages(sandbox):
    if "c" not in sandbox.languages():
        pytest.skip("no C compiler here")
    c = Program('#include <stdio.h>\nint main(void) { int n; scanf("%d", &n); printf("%d\\n", 2 * n); return n; }', "c")
    python = Program("print(7, flush=True)\nassert input() == '14'\n")
    (result,) = await sandbox.run(c, [Interaction(python)], Limits(cpu_s=1, wall_s=20))
    assert (result.exit_status, result.partner.outcome) == (7, "finished")
    (result,) = await sandbox.run(python, [Interaction(c)], Limits(cpu_s=1, wall_s=20))
    assert (result.outcome, result.partner.exit_status) == ("finished", 7)


@one_loop
async def test_a_session_lists_its_tests(sandbox):
    test = "import solution\ndef test_a(): assert solution.f(1) == 2\ndef test_b(): assert solution.f(2) == 2\n"
    run = Examination(test, session="test_it.py", files={"conftest.py": b"import pytest\n"})
    (result,) = await sandbox.run(Program("def f(x): return 2"), [run], LIMITS)
    assert (result.outcome, [row[:2] for row in result.value]) == (
        "finished",
        [("test_a", "passed"), ("test_b", "passed")],
    )
    (result,) = await sandbox.run(Program("def f(x): return x + 1"), [run], LIMITS)
    assert (result.outcome, [row[1] for row in result.value]) == ("failed_assert", ["passed", "failed"])
    (result,) = await sandbox.run(Program("import os\ndef f(x): return 2 if x == 1 else os._exit(0)"), [run], LIMITS)
    assert (result.outcome, result.ended_early) == ("raised", True)
    assert [row[1] for row in result.value] == ["passed"]


@pytest.mark.parametrize(
    ("source", "tampering"),
    [
        ("class Yes(int):\n    def __eq__(self, other): return True\ndef f(x): return Yes(0)", "always_equal"),
        ("class Yes(int):\n    def __eq__(self, other): return True\ndef f(x): return [Yes(0)]", "always_equal"),
        ("import os\ndef f(x):\n    os.write(3, b'x' * 100)\n    return 1", "forged_report"),
        ("class V:\n    def __eq__(self, other): return isinstance(other, V)\ndef f(x): return V()", ""),
        ("from fractions import Fraction\ndef f(x): return Fraction(1, 2)", ""),
        ("def f(x): raise ValueError", ""),
    ],
    ids=range(6),
)
@one_loop
async def test_what_is_certain_is_said(sandbox, source: str, tampering: str):
    (result,) = await sandbox.run(Program(source), [Examination("assert f(1) == 2", bind={"f": "f"})], LIMITS)
    assert (result.outcome is Outcome.FINISHED, result.tampering) == (False, tampering), result
