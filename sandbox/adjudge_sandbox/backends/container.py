"""The ``container`` backend: programs as scripts in boxes of a Docker engine.

Slower than a jail by two orders of magnitude, and needed where the host cannot isolate by itself but an engine can
(or gVisor must), or where a program needs the software of an image. It runs :class:`Script` in the languages whose
command the image has; function calls and examinations need our own driver beside the program and are refused.
"""

from __future__ import annotations

import re
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ..base import Limits, Outcome, Program, Run, RunResult, Script
from ..container.base import Command, CommandResult, ContainerConfig, Ended, File, Shape
from ..container.pool import ContainerPool
from ..errors import InvalidProgram, SandboxUnavailable, UnsupportedLanguage

__all__ = ["ContainerSandbox"]

_MAX_DETAIL = 2000
_LAST_LINES_BYTES = 4000
_MARGIN_S = 1.0
_LINE = re.compile(rb'File "solution.py", line (\d{1,9})')


@dataclass(frozen=True, slots=True)
class _Language:
    """How an image runs a source file: a command, and before it perhaps a compiler."""

    file: str
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


_LANGUAGES = {
    "python": _Language(
        "solution.py",
        ("python3", "solution.py"),
        ("python3", "-c", """'compile(open("solution.py", "rb").read(), "solution.py", "exec")'"""),
        aliases=("py", "python3", "py3"),
    ),
    "bash": _Language("solution.sh", ("bash", "solution.sh"), aliases=("sh", "shell")),
    "perl": _Language("solution.pl", ("perl", "solution.pl"), aliases=("pl",)),
    "ruby": _Language("solution.rb", ("ruby", "solution.rb"), aliases=("rb",)),
    "javascript": _Language("solution.js", ("node", "solution.js"), aliases=("js", "node", "nodejs")),
    "php": _Language("solution.php", ("php", "solution.php")),
    "lua": _Language("solution.lua", ("lua", "solution.lua")),
    "c": _Language("solution.c", ("/box/solution",), ("gcc", "-O2", "-o", "/box/solution", "solution.c", "-lm")),
    "cpp": _Language(
        "solution.cpp",
        ("/box/solution",),
        ("g++", "-O2", "-o", "/box/solution", "solution.cpp"),
        aliases=("c++", "cc", "cxx"),
    ),
}
_BY_NAME = {name: key for key, row in _LANGUAGES.items() for name in (key, *row.aliases)}

# A compiler's failure is told from the program's by a word that the program has never seen.
_COMPILED = """
word=$1; shift
{compile} >/box/log 2>&1 </dev/null || {{ printf %s "$word" >&2; cat /box/log >&2; exit 1; }}
rm -f /box/log; unset word PWD OLDPWD; exec "$@"
"""


class ContainerSandbox:
    """See the module."""

    name = "container"

    def __init__(self, config: ContainerConfig, pool: ContainerPool | None = None) -> None:
        """``pool``: share one with other users of the same engine; it is then theirs to start and stop."""
        self._config = config
        self._own = pool is None
        self.pool = pool or ContainerPool(config)
        self._languages: tuple[str, ...] = ()

    async def start(self) -> None:
        """Connect, and ask the image which languages it has."""
        if self._languages:
            return
        if self._own:
            await self.pool.start()
        try:
            self._languages = await self._present()
        except InvalidProgram as error:
            await self.stop()
            raise SandboxUnavailable(str(error)) from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Destroy all boxes."""
        self._languages = ()
        if self._own:
            await self.pool.stop()

    def languages(self) -> tuple[str, ...]:
        """Those whose command the image has."""
        return self._languages

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        """See :meth:`adjudge_sandbox.base.Sandbox.run`."""
        language = _BY_NAME.get(program.language.strip().lower(), "")
        if language not in self._languages:
            known = ", ".join(self._languages) or "nothing yet: it has not been started"
            raise UnsupportedLanguage(f"no backend here runs {program.language[:50]!r}; this one runs {known}")
        _check_limits(limits)
        word = secrets.token_hex(16)
        commands = [_command(_LANGUAGES[language], program, run, limits, word) for run in runs]
        results: list[RunResult] = []
        async with self.pool.answer(self._config.image, _shape(limits)) as answer:
            for command in commands:
                result = _judged(await answer.run(command), limits, word.encode())
                results.append(result)
                if stop_at_failure and result.outcome is not Outcome.FINISHED:
                    break
        return results

    async def _present(self) -> tuple[str, ...]:
        words = {name: (row.compile or row.run)[0] for name, row in _LANGUAGES.items()}
        script = "".join(f"command -v {word} >/dev/null && echo {name}\n" for name, word in words.items())
        result = await self.pool.run(self._config.image, _shape(Limits()), Command(["sh", "-c", script + ":"]))
        if result.exit_status != 0:
            raise SandboxUnavailable(f"a first command did not run in {self._config.image!r}: {result}"[:500])
        return tuple(result.stdout.decode("ascii", "replace").split())


def _shape(limits: Limits) -> Shape:
    return Shape(limits.memory_mib, limits.processes, limits.scratch_mib, folder_mib=limits.scratch_mib)


def _command(language: _Language, program: Program, run: Run, limits: Limits, word: str) -> Command:
    """Raises :class:`InvalidProgram` for what is no script."""
    if not isinstance(run, Script):
        raise InvalidProgram(f"the container backend runs scripts; it cannot run a {type(run).__name__}")
    if program.build is not None:
        raise InvalidProgram("the container backend runs no build scripts")
    if any("\0" in arg for arg in run.args):
        raise InvalidProgram("an argument holds a NUL")
    files = {**_files(program.files), language.file: File(program.source.encode("utf-8", "surrogatepass"))}
    argv: tuple[str, ...] = (*language.run, *run.args)
    cpu_s, wall_s = limits.cpu_s, limits.wall_limit_s
    if language.compile:
        argv = ("sh", "-c", _COMPILED.format(compile=" ".join(language.compile)), "sh", word, *argv)
        if language.file != "solution.py":
            cpu_s, wall_s = cpu_s + limits.compile_cpu_s, wall_s + limits.compile_cpu_s
    return Command(
        argv,
        stdin=run.stdin,
        files={**files, **_files(run.files)},
        wall_s=wall_s + _MARGIN_S,
        cpu_s=cpu_s,
        output_kib=limits.output_kib,
        fetch=run.fetch,
    )


def _files(files: Mapping[str, bytes]) -> dict[str, File]:
    return {name: File(data) for name, data in files.items()}


def _judged(result: CommandResult, limits: Limits, word: bytes) -> RunResult:
    if result.stderr.startswith(word):
        result = replace(result, stderr=result.stderr.removeprefix(word))
        outcome, detail = Outcome.COMPILE_ERROR, _complaint(result.stderr)
    else:
        outcome, detail = _outcome(result, limits)
    number = _signal_of(result.exit_status)
    return RunResult(
        outcome=outcome,
        detail=detail[:_MAX_DETAIL],
        exit_status=None if number is not None else result.exit_status,
        signal=number,
        stdout=result.stdout,
        stderr=result.stderr,
        cpu_ms=result.cpu_s * 1000,
        wall_ms=result.wall_s * 1000,
        peak_memory_mib=result.peak_memory_mib,
        stdout_truncated=result.stdout_truncated,
        stderr_truncated=result.stderr_truncated,
        files=result.files,
        isolation="container",
    )


def _outcome(result: CommandResult, limits: Limits) -> tuple[Outcome, str]:
    status, last_line = result.exit_status, _last_line(result.stderr)
    match result.ended:
        case Ended.OUTPUT:
            return Outcome.OUTPUT_LIMIT, f"wrote more than {limits.output_kib} KiB to stdout or stderr"
        case Ended.MEMORY:
            return Outcome.MEMORY_LIMIT, f"needed more than {limits.memory_mib} MiB of memory"
        case Ended.CPU:
            return Outcome.TIME_LIMIT, f"used more than {limits.cpu_s:g} s of CPU time"
        case Ended.WALL:
            return Outcome.TIME_LIMIT, f"did not end within {limits.wall_limit_s:g} s of wall time"
    if status == 0:
        return Outcome.FINISHED, ""
    number = _signal_of(status)
    if number == signal.SIGXCPU:
        return Outcome.TIME_LIMIT, f"used more than {limits.cpu_s:g} s of CPU time"
    if number is not None:
        return Outcome.SIGNALLED, f"killed by {signal.Signals(number).name}"
    if last_line.startswith("MemoryError"):
        return Outcome.MEMORY_LIMIT, f"needed more than {limits.memory_mib} MiB of memory (MemoryError)"
    return Outcome.RAISED, f"exit status {status}{': ' if last_line else ''}{last_line}"


def _signal_of(status: int | None) -> int | None:
    """A shell's 128 + n. A program that exits with such a status by itself fails just the same."""
    if status is None or status <= 128 or status - 128 not in set(signal.Signals):
        return None
    return status - 128


def _complaint(stderr: bytes) -> str:
    """Of a compiler: the line that it names last, if it does so as Python does, and its last word."""
    named = _LINE.findall(stderr[-_LAST_LINES_BYTES:])
    return (f"line {named[-1].decode()}: " if named else "") + _last_line(stderr)


def _last_line(stderr: bytes) -> str:
    lines = stderr[-_LAST_LINES_BYTES:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _check_limits(limits: Limits) -> None:
    """Raises :class:`InvalidProgram` for limits under which nothing can run."""
    least = Limits(cpu_s=0.01, wall_s=0.01, memory_mib=16, processes=1, output_kib=1, scratch_mib=1, compile_cpu_s=0.01)
    for name, smallest in asdict(least).items():
        given = getattr(limits, name)
        if name != "compile_cpu_s" and given is not None and not smallest <= given < float("inf"):
            raise InvalidProgram(f"the limit {name} is {given}; it must be at least {smallest}")
