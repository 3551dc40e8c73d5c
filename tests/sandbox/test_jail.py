"""Programs that are built and started: what they are given, what they may leave, and what a hostile one can not do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Examination, FunctionCall, Limits, Outcome, Program, RunResult, Script
from adjudge_sandbox.errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage
from adjudge_sandbox.probe import probe

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here: apt-get install gcc libc6-dev"),
]
LIMITS = Limits(cpu_s=5, wall_s=40)
BAD_NAMES = ["/etc/x", "../x", "a/../b", "a//b", "./a", "", "a\0b", "x" * 300, "/".join("d" * 30), "a/", "\udcff"]


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["jail", "none"])
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[ZygoteSandbox]:
    backend = ZygoteSandbox("zygote" if request.param == "jail" else request.param)
    try:
        await backend.start()
    except SandboxUnavailable as error:
        if all(finding.ok for finding in probe()):
            raise
        pytest.skip(f"no isolation on this host: {error}")
    yield backend
    await backend.stop()


async def one(
    sandbox: ZygoteSandbox,
    source: str,
    script: Script | None = None,
    *,
    language: str = "bash",
    limits: Limits = LIMITS,
) -> RunResult:
    (result,) = await sandbox.run(Program(source, language=language), [script or Script()], limits)
    return result


async def test_aliases_and_results(sandbox: ZygoteSandbox) -> None:
    for alias in ("bash", "sh", " Shell "):
        result = await one(sandbox, "echo hi; echo err >&2", language=alias)
        assert (result.outcome, result.stdout, result.stderr) == (Outcome.FINISHED, b"hi\n", b"err\n")
        assert result.isolation == ("jail" if sandbox.name == "zygote" else "none")


async def test_standards_of_cpp(sandbox: ZygoteSandbox) -> None:
    source = '#include <cstdio>\nint main() { std::printf("%ld", __cplusplus); }'
    for alias, expected in (("c++11", b"201103"), ("cpp17", b"201703"), ("C++20", b"202002")):
        assert (await one(sandbox, source, language=alias)).stdout == expected


async def test_unknown_and_missing_languages(sandbox: ZygoteSandbox) -> None:
    with pytest.raises(UnsupportedLanguage, match="there is no language 'klingon'; this host runs python"):
        await one(sandbox, "", language="klingon")
    for language in sandbox.jailed.toolchains.missing():
        with pytest.raises(UnsupportedLanguage, match=r"apt-get install|not packaged"):
            await one(sandbox, "", language=language.name)


@pytest.mark.parametrize("run", [FunctionCall("f"), Examination("assert f() == 1")])
async def test_only_python_is_called(sandbox: ZygoteSandbox, run: FunctionCall | Examination) -> None:
    with pytest.raises(InvalidProgram, match="can only be run as a Script"):
        await sandbox.run(Program("echo", language="bash"), [run], LIMITS)


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_names_that_lead_elsewhere(sandbox: ZygoteSandbox, name: str) -> None:
    for language in ("python", "bash"):
        with pytest.raises(InvalidProgram):
            await sandbox.run(Program("", language=language, files={name: b""}), [Script()], LIMITS)
        with pytest.raises(InvalidProgram):
            await sandbox.run(Program("", language=language), [Script(files={name: b""})], LIMITS)
        with pytest.raises(InvalidProgram):
            await sandbox.run(Program("", language=language), [Script(fetch=(name,))], LIMITS)


@pytest.mark.parametrize("language", ["bash", "python"])
async def test_a_file_is_no_folder(sandbox: ZygoteSandbox, language: str) -> None:
    with pytest.raises(InvalidProgram, match="folder that is also a file"):
        await sandbox.run(Program("", language=language), [Script(files={"a": b"", "a/b": b""})], LIMITS)


async def test_files_and_arguments_of_python(sandbox: ZygoteSandbox) -> None:
    source = (
        "import helper, sys, json\nfrom pkg import deep\n"
        "open('out.txt', 'w').write(open('in/x.txt').read() + helper.name + deep.name + sys.argv[1])\nsys.exit(3)"
    )
    files = {"helper.py": b"name = 'H'", "pkg/__init__.py": b"", "pkg/deep.py": b"name = 'D'", "json.py": b"1/0"}
    script = Script(args=("A",), files={"in/x.txt": b"I"}, fetch=("out.txt", "nothing"))
    results = await sandbox.run(Program(source, files=files), [script, script], LIMITS)
    for result in results:
        assert (result.outcome, result.exit_status) == (Outcome.RAISED, 3)
        assert result.files == {"out.txt": b"IHDA"}


async def test_files_of_a_python_program_that_is_called(sandbox: ZygoteSandbox) -> None:
    program = Program("import helper\ndef f(x): return helper.g(x)", files={"helper.py": b"def g(x): return x + 1"})
    runs = [FunctionCall("f", (1,)), Examination("assert f(2) == 3")]
    results = await sandbox.run(program, runs, LIMITS)
    assert [result.outcome for result in results] == [Outcome.FINISHED] * 2
    assert results[0].value == 2


async def test_several_source_files(sandbox: ZygoteSandbox) -> None:
    files = {"part.c": b"int twice(int x) { return 2 * x; }", "part.h": b"int twice(int);", "data.txt": b"21"}
    source = (
        '#include <stdio.h>\n#include "part.h"\n'
        'int main(void) { int n; fscanf(fopen("data.txt", "r"), "%d", &n); printf("%d", twice(n)); return 0; }'
    )
    (result,) = await sandbox.run(Program(source, language="c", files=files), [Script()], LIMITS)
    assert result.stdout == b"42", result


async def test_build_in_place_of_the_compiler(sandbox: ZygoteSandbox) -> None:
    program = Program(
        "", language="c", files={"x.c": b"int main(void) { return VALUE; }"}, build="cc -DVALUE=5 x.c -o program"
    )
    (result,) = await sandbox.run(program, [Script()], LIMITS)
    assert result.exit_status == 5
    (result,) = await sandbox.run(Program("", language="c", build="true"), [Script()], LIMITS)
    assert result.outcome is Outcome.COMPILE_ERROR
    (result,) = await sandbox.run(Program("", language="c", build="echo no >&2; exit 4"), [Script()], LIMITS)
    assert (result.outcome, result.detail) == (Outcome.COMPILE_ERROR, "no")


async def test_python_with_a_build(sandbox: ZygoteSandbox) -> None:
    program = Program("import made; print(made.x)", build="echo x = 42 > made.py")
    (result,) = await sandbox.run(program, [Script()], LIMITS)
    assert result.stdout == b"42\n", result


async def test_each_run_has_a_clean_folder(sandbox: ZygoteSandbox) -> None:
    program = Program("ls; touch left-behind; echo x > main.sh", language="bash")
    results = await sandbox.run(program, [Script(), Script()], LIMITS)
    assert results[0].stdout == results[1].stdout == b"main.sh\n"


async def test_what_cannot_be_brought_back(sandbox: ZygoteSandbox) -> None:
    source = (
        "ln -s /etc/passwd link; mkfifo fifo; mkdir folder; ln -s /etc etc; ln -s . here; echo x > real; "
        "head -c 300000 /dev/zero > large; chmod 000 real; chmod 600 real"
    )
    names = ("link", "fifo", "folder", "etc/passwd", "here/real", "real", "large", "missing/x")
    result = await one(sandbox, source, Script(fetch=names), limits=Limits(output_kib=256))
    assert result.outcome is Outcome.FINISHED, result
    assert result.files == {"real": b"x\n"}


async def test_the_end_of_a_program_with_files(sandbox: ZygoteSandbox) -> None:
    """Its status and signal are the same with a process of ours waiting beside it."""
    for command, outcome, status, signal in (
        ("exit 9", Outcome.RAISED, 9, None),
        ("kill -ABRT $$", Outcome.SIGNALLED, None, 6),
        ("kill -SEGV $$", Outcome.SIGNALLED, None, 11),
        ("true", Outcome.FINISHED, 0, None),
    ):
        for fetch in ((), ("f",)):
            result = await one(sandbox, f"echo 1 > f; {command}", Script(fetch=fetch))
            assert (result.outcome, result.exit_status, result.signal) == (outcome, status, signal), result
            assert result.files == ({"f": b"1\n"} if fetch else {})


async def test_a_background_process_neither_delays_nor_changes_what_is_fetched(sandbox: ZygoteSandbox) -> None:
    if sandbox.name == "none":
        pytest.skip("without a pid namespace it goes on until the run is over")
    source = "echo first > f; (setsid sh -c 'while :; do echo later > f; done' & ) ; echo first > f; sleep 0.1; exit 0"
    result = await one(sandbox, source, Script(fetch=("f",)))
    assert result.outcome is Outcome.FINISHED
    assert result.wall_ms < 5000


async def test_killing_the_process_that_waits(sandbox: ZygoteSandbox) -> None:
    """The program loses its files and its verdict, and that is all."""
    if sandbox.name == "none":
        pytest.skip("there the parent is not hidden, and nothing is promised")
    result = await one(sandbox, "echo x > f; kill -9 $PPID; sleep 1; exit 0", Script(fetch=("f",)))
    assert (result.outcome, result.files) == (Outcome.SIGNALLED, {})
    result = await one(
        sandbox, "cat /proc/$PPID/mem /proc/$PPID/environ /proc/$PPID/fd/3; ls /proc/$PPID/fd", Script(fetch=("f",))
    )
    assert b"Permission denied" in result.stderr
    assert result.stdout == b""


async def test_descriptors_and_environment(sandbox: ZygoteSandbox) -> None:
    """Nothing but 0, 1, 2; nothing of ours in the environment, the arguments or the signal mask."""
    source = "echo /proc/self/fd/*; env | cut -d= -f1 | sort | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status"
    result = await one(sandbox, source, Script(fetch=("f",)))
    lines = result.stdout.decode().splitlines()
    assert set(lines[0].split()) <= {f"/proc/self/fd/{n}" for n in (0, 1, 2, 3, 255)}
    names = set(lines[1].partition("SigBlk")[0].split())
    assert names <= {"HOME", "LANG", "LC_ALL", "PATH", "PWD", "SHLVL", "TMPDIR", "_", "OLDPWD"}
    assert "SigBlk:\t0000000000000000" in result.stdout.decode()


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("cpp", "template<int N> struct A { typename A<N + 1>::type x; }; A<0> a; int main() {}"),
        (
            "cpp",
            "#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(A(x)))))\n"
            "#define C(x) B(B(x))\nint main() { C(C(1;)) }",
        ),
        ("c", '#include "/dev/zero"\nint main(void) { return 0; }'),
        ("c", "char big[1L << 30] = {1};\nint main(void) { return 0; }"),
        ("c", "#include __FILE__\n#include __FILE__\nint main(void) { return 0; }"),
        ("c", '__asm__(".incbin \\"/dev/zero\\"");\nint main(void) { return 0; }'),
        ("c", "int main(void) { return" + "(" * 200_000 + "0" + ")" * 200_000 + "; }"),
    ],
    ids=["template recursion", "macro bomb", "dev zero", "large data", "self inclusion", "incbin", "nesting"],
)
async def test_compile_bombs(sandbox: ZygoteSandbox, language: str, source: str) -> None:
    if sandbox.name == "none":
        pytest.skip("contained by walls")
    limits = Limits(cpu_s=2, compile_cpu_s=4)
    results = await asyncio.gather(
        one(sandbox, source, language=language, limits=limits), one(sandbox, "echo fine", language="bash")
    )
    assert results[0].outcome is Outcome.COMPILE_ERROR, results[0]
    assert results[0].detail
    assert results[1].stdout == b"fine\n"


async def test_a_compiler_sees_no_file_of_the_host(sandbox: ZygoteSandbox) -> None:
    if sandbox.name == "none":
        pytest.skip("there it does")
    result = await one(sandbox, f'#include "{__file__}"\nint main(void) {{}}', language="c")
    assert result.outcome is Outcome.COMPILE_ERROR
    assert "No such file" in result.detail
    result = await one(sandbox, '#include "/etc/passwd"\nint main(void) {}', language="c")
    assert "root" not in result.detail + result.stderr.decode()


async def test_a_build_that_does_not_end(sandbox: ZygoteSandbox) -> None:
    limits = Limits(cpu_s=1, compile_cpu_s=0.3)
    program = Program("", language="c", build="while :; do :; done")
    (result,) = await sandbox.run(program, [Script()], limits)
    assert result.outcome is Outcome.COMPILE_ERROR
    assert "CPU time" in result.detail


async def test_a_build_that_leaves_too_much(sandbox: ZygoteSandbox) -> None:
    program = Program("", language="c", build="head -c 60000000 /dev/zero > big; cp /bin/true program")
    (result,) = await sandbox.run(program, [Script()], LIMITS)
    assert (result.outcome, result.detail) == (Outcome.COMPILE_ERROR, "what the compiler left is too large")


async def test_links_that_a_build_leaves(sandbox: ZygoteSandbox) -> None:
    """Are not part of what is kept: nothing outside is read, and nothing is written through them."""
    build = (
        "ln -s /etc/passwd a; ln -s /etc d; mkdir r; ln -s .. r/up; printf '#!/bin/sh\nls' > program; chmod +x program"
    )
    (result,) = await sandbox.run(Program("", language="c", build=build), [Script()], LIMITS)
    assert sorted(result.stdout.decode().split()) == ["main.c", "program"], result


async def test_built_once(sandbox: ZygoteSandbox) -> None:
    """For all runs, for all who ask at the same time, and for those who ask later."""
    program = Program(
        "", language="c", build="date +%s%N > stamp; printf '#!/bin/sh\ncat stamp' > program; chmod +x program"
    )
    asked = await asyncio.gather(*(sandbox.run(program, [Script(), Script()], LIMITS) for _ in range(4)))
    asked.append(await sandbox.run(program, [Script()], LIMITS))
    assert len({result.stdout for results in asked for result in results}) == 1
    assert asked[0][0].outcome is Outcome.FINISHED


async def test_a_compile_error_is_every_runs(sandbox: ZygoteSandbox) -> None:
    program = Program("int main(void) { oops }", language="c")
    results = await sandbox.run(program, [Script()] * 3, LIMITS)
    assert [result.outcome for result in results] == [Outcome.COMPILE_ERROR] * 3
    assert "oops" in results[0].detail
    assert b"oops" in results[0].stderr
    assert len(await sandbox.run(program, [Script()] * 3, LIMITS, stop_at_failure=True)) == 1


async def test_stops_at_the_first_failure(sandbox: ZygoteSandbox) -> None:
    program = Program("read x; exit $x", language="bash")
    results = await sandbox.run(program, [Script(b"0\n"), Script(b"1\n"), Script(b"0\n")], LIMITS, stop_at_failure=True)
    assert [result.exit_status for result in results] == [0, 1]


async def test_processes_of_a_program_are_limited(sandbox: ZygoteSandbox) -> None:
    source = "for i in $(seq 20); do sleep 0.3 & done; wait"
    result = await one(sandbox, source, limits=Limits(cpu_s=5, wall_s=20, processes=8))
    assert b"fork" in result.stderr


async def test_a_cancelled_build_leaves_nothing(sandbox: ZygoteSandbox) -> None:
    program = Program("", language="c", build="sleep 30")
    task = asyncio.ensure_future(sandbox.run(program, [Script()], LIMITS))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await one(sandbox, "echo on")).stdout == b"on\n"
