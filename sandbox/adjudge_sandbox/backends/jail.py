"""The jail backend: programs that are started and not forked, in every language that has a toolchain here.

It has no walls of its own. A program is built in a jail, by a run whose program is the compiler and whose result is an
archive of what it left; and its runs are runs like any other, in a jail of their own, whose process lays out that
archive and becomes the program. So a compiler is held by the same walls and limits as what it compiles. What was built
is kept, by content, and so is the news that something cannot be built, if that is the source's own doing beyond doubt.
A compiler that is killed by somebody outside starts again, and a second kill is :class:`SandboxUnavailable`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from ..base import Interaction, Limits, Outcome, Program, Run, RunResult, Script
from ..errors import InvalidProgram, SandboxUnavailable
from ..kernel import rootfs
from ..kernel.rootfs import Plan
from ..languages import archive, table
from ..languages.cache import BuildCache, Built
from ..languages.hello import HELLO_INPUT, HELLO_LIMITS, HELLO_OUTPUT
from ..languages.names import check_files, check_texts, safe_name, total_bytes
from ..languages.prepared import Prepared
from ..languages.recipe import Recipe, recipe_for
from ..languages.toolchains import Toolchains
from ..python.process import pack_source
from .pairs import encode_interaction

__all__ = ["Jailed", "encode_python", "encode_script"]

_CACHE_BYTES = 256 << 20
_MAX_DETAIL = 2000
_MIB = 1 << 20

Answer = Callable[[bytes, Limits, dict[str, Any], list[bytes]], Awaitable[list[RunResult]]]
"""Runs one program in one jail: its package, the limits, the runs and their byte strings."""


class Jailed:
    """Builds and runs. Made at the start of a sandbox; adds to ``plan`` what toolchains need to see."""

    def __init__(self, answer: Answer, plan: Plan | None, isolation: str) -> None:
        self._answer = answer
        self._isolation = isolation
        self.toolchains = Toolchains(plan, mounted=isolation == "jail")
        self.prepared = Prepared(plan, mounted=isolation == "jail")
        self._cache = BuildCache(_CACHE_BYTES)
        self._proven: set[str] = set()
        """Languages in which a program has worked."""
        self._proving = asyncio.Lock()

    def languages(self) -> tuple[str, ...]:
        return self.toolchains.names()

    async def stop(self) -> None:
        await self.prepared.stop()

    @staticmethod
    def is_loaded_here(program: Program) -> bool:
        """Is this a Python program that needs no building, and so one for the warm interpreter?"""
        known = table.find(program.language)
        return known is not None and known[0].name == "python" and program.build is None

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool
    ) -> list[RunResult]:
        """See :meth:`adjudge_sandbox.base.Sandbox.run`.

        A failure is believed once some program of the language has worked here: a toolchain that is there and broken
        fails every program, and would make every answer wrong.
        """
        results = await self._run(program, runs, limits, stop_at_failure=stop_at_failure)
        found, _ = await asyncio.to_thread(self.toolchains.find, program.language)
        language = found.language
        if any(result.outcome is Outcome.FINISHED for result in results):
            self._proven.add(language.name)
        elif results and language.name not in self._proven:
            async with self._proving:
                if language.name not in self._proven:
                    await self._prove(language)
        return results

    async def _prove(self, language: table.Language) -> None:
        """Raises :class:`SandboxUnavailable` if the language's first program does not work."""
        program = Program(language.hello, language.name)
        (result,) = await self._run(program, [Script(HELLO_INPUT)], HELLO_LIMITS, stop_at_failure=False)
        if result.outcome is not Outcome.FINISHED or result.stdout.strip() != HELLO_OUTPUT:
            said = result.detail or f"it printed {result.stdout[:100]!r}"
            raise SandboxUnavailable(f"the toolchain of {language.name} does not work here: {said[:_MAX_DETAIL]}")
        self._proven.add(language.name)

    async def _run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool
    ) -> list[RunResult]:
        found, standard = await asyncio.to_thread(self.toolchains.find, program.language)
        for run in runs:
            _script(run, found.language.name)
        recipe = recipe_for(program, found, standard)
        if not runs:
            return []
        built = await self._build(recipe, limits)
        if built.error is not None:
            refused = self._refused(built)
            return [refused] if stop_at_failure else [refused] * len(runs)
        limits = recipe.run_limits(limits, len(built.archive))
        described, blobs = [], list[bytes]()
        for run in runs:
            started = _started(recipe, recipe.run, limits)
            if isinstance(run, Interaction):
                own = {"args": [], "names": [], "fetch": [], **started}
                header, contents = await encode_interaction(self, run, limits, own)
            else:
                header, contents = encode_script(_script(run, found.language.name), limits)
                header |= started
            described.append(header)
            blobs += contents
        request = {"runs": described, "stop_at_failure": stop_at_failure}
        results = await self._answer(built.archive, limits, request, blobs)
        signs = found.toolchain.compile_signs
        return [_as_compile_error(result, signs) for result in results]

    async def package(
        self, program: Program, script: Script, limits: Limits
    ) -> tuple[bytes, dict[str, Any], list[bytes]]:
        """A program ready to be started, Python's too. See :class:`.pairs.Packages`."""
        if self.is_loaded_here(program):
            header, contents = encode_script(script, limits)
            return encode_python(program), header, contents
        found, standard = await asyncio.to_thread(self.toolchains.find, program.language)
        recipe = recipe_for(program, found, standard)
        built = await self._build(recipe, limits)
        if built.error is not None:
            raise InvalidProgram(f"it does not compile: {built.error[:_MAX_DETAIL]}")
        limits = recipe.run_limits(limits, len(built.archive))
        header, contents = encode_script(script, limits)
        return built.archive, {**header, **_started(recipe, recipe.run, limits)}, contents

    def _refused(self, built: Built) -> RunResult:
        detail = (built.error or "")[:_MAX_DETAIL]
        return RunResult(
            Outcome.COMPILE_ERROR,
            detail,
            stderr=built.stderr,
            cpu_ms=built.cpu_ms,
            wall_ms=built.wall_ms,
            isolation=self._isolation,
        )

    async def _build(self, recipe: Recipe, limits: Limits) -> Built:
        if not recipe.build:
            return Built(archive.pack(recipe.files))
        prepared = self.prepared.folder_for(recipe)
        prepared = rootfs.shown_at(prepared) if self._isolation == "jail" else prepared
        limits = recipe.build_limits(limits)
        key = recipe.key((str(limits.cpu_s), str(limits.memory_mib)))
        return await self._cache.get(key, functools.partial(self._compile, recipe, limits, prepared))

    async def _compile(self, recipe: Recipe, limits: Limits, prepared: str) -> Built:
        run = {
            "kind": "exec",
            "blobs": 1,
            "args": [],
            "names": [],
            "fetch": [],
            "collect": True,
            "executes": recipe.executes,
            "killed_signs": list(recipe.found.toolchain.compile_killed),
            **_started(recipe, recipe.build, limits, prepared),
        }
        (result,) = await self._answer(
            archive.pack(recipe.files), limits, {"runs": [run], "stop_at_failure": False}, [b""]
        )
        if result.outcome is Outcome.FINISHED and "" in result.files:
            return Built(result.files[""], cpu_ms=result.cpu_ms, wall_ms=result.wall_ms)
        said = (result.stderr.strip() or result.stdout.strip())[: 4 * _MAX_DETAIL].decode("utf-8", "replace")
        stderr = result.stderr or result.stdout
        lasting = _is_lasting(result, limits)
        return Built(b"", _reason(result, said), stderr, result.cpu_ms, result.wall_ms, lasting)


def _is_lasting(result: RunResult, limits: Limits) -> bool:
    """Would it certainly not compile the next time either? What lacks memory, or crashes, may."""
    match result.outcome:
        case Outcome.RAISED:
            said = (result.stderr[-_SIGN_BYTES:] + result.stdout[-_SIGN_BYTES:]).lower()
            return not any(sign in said for sign in _SHORTAGES)
        case Outcome.TIME_LIMIT:
            return result.cpu_ms >= limits.cpu_s * 1000
        case Outcome.OUTPUT_LIMIT:
            return True
        case Outcome.FINISHED:
            return result.exit_status == 0
    return False


_SIGN_BYTES = 8000
_SHORTAGES = (
    b"cannot allocate memory", b"resource temporarily unavailable", b"insufficient memory", b"memory exhausted",
    b"out of memory", b"unable to create native thread", b"no space left", b"too many open files", b"killed",
    b"input/output error", b"internal compiler error",
)  # fmt: skip
"""What the host, too, may be short of. They decide about nothing but whether the news is kept."""


def _reason(result: RunResult, said: str) -> str:
    """Why there is no program, in words."""
    if result.outcome is Outcome.RAISED:
        return said or f"the compiler ended with {result.detail}"
    if result.outcome is Outcome.FINISHED:
        return "what the compiler left is too large"
    was = "was " if result.outcome is Outcome.SIGNALLED else ""
    return f"the compiler {was}{result.detail}{': ' if said else ''}{said}"


def _started(recipe: Recipe, command: tuple[str, ...], limits: Limits, prepared: str = "") -> dict[str, Any]:
    """What a run needs beyond a script's, because its program is started."""
    heap_mib = recipe.heap_mib(limits)
    return {
        "kind": "exec",
        "command": recipe.command(command, heap_mib, prepared),
        "environment": recipe.environment(heap_mib),
        "address_mib": recipe.address_mib(limits),
        "memory_signs": list(recipe.found.toolchain.memory_signs),
    }


def _script(run: Run, language: str) -> Script:
    if isinstance(run, Script):
        return run
    if isinstance(run, Interaction):
        return Script()
    kind = type(run).__name__
    raise InvalidProgram(f"{kind} is for Python programs: a program in {language} can only be run as a Script")


def _as_compile_error(result: RunResult, signs: Sequence[str]) -> RunResult:
    """A language without a compiler finds out when it loads the program, and says so on stderr."""
    if result.outcome is not Outcome.RAISED or not any(sign.encode() in result.stderr[:20_000] for sign in signs):
        return result
    said = result.stderr.strip()[: 4 * _MAX_DETAIL].decode("utf-8", "replace")[:_MAX_DETAIL]
    return replace(result, outcome=Outcome.COMPILE_ERROR, detail=said)


def encode_script(run: Script, limits: Limits | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """A script as the runner is told of it. Raises :class:`InvalidProgram`."""
    check_files(run.files)
    for name in run.fetch:
        safe_name(name)
    check_texts(run.args, "the command line")
    if limits is not None and total_bytes(run.files) > limits.scratch_mib * _MIB:
        raise InvalidProgram(f"the files of a run take more than its {limits.scratch_mib} MiB of scratch space")
    header = {
        "kind": "script",
        "blobs": 1 + len(run.files),
        "args": list(run.args),
        "names": list(run.files),
        "fetch": list(run.fetch),
    }
    return header, [bytes(run.stdin), *map(bytes, run.files.values())]


def encode_python(program: Program) -> bytes:
    """A Python program as the runner is given it. Raises :class:`InvalidProgram`."""
    check_files(program.files)
    source = program.source.encode("utf-8", "surrogatepass")
    return pack_source(source, {name: bytes(data) for name, data in program.files.items()})
