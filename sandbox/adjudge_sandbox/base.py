"""The contract of the sandbox: run one program on many inputs under limits.

What a caller gives is a :class:`Program` (untrusted) and a list of runs; what it gets back is one :class:`RunResult`
for each. Expected outputs are never given: comparison and verdict live with the caller, outside every jail.

Three kinds of run, all on one program in one jail, each in a process of its own that starts from the same clean state:

* :class:`Script` - the program as ``__main__`` with real file descriptors: bytes in on 0, bytes out on 1 and 2, and
  files in its working folder. In every language that the host has a toolchain for.
* :class:`Interaction` - the same, but its two pipes lead to another program (the interactor) in a jail of its own.
* :class:`FunctionCall` - load the program as a module, call one of its functions with plain values, hand back its
  value as plain data (:mod:`adjudge_sandbox.values`).
* :class:`Examination` - a piece of *test code* (from the data set) that calls the program's functions and asserts. The
  test code runs in a second jail; the program stays in the first; calls and plain values travel between them. So an
  answer can neither see the asserts nor end, patch or fool the process that decides about them.

Outcomes are a closed set in which the program's fault and ours never share a value: everything in
:class:`Outcome` is the program's; what is ours is raised (:mod:`adjudge_sandbox.errors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

__all__ = [
    "Examination",
    "FunctionCall",
    "Interaction",
    "Limits",
    "Outcome",
    "Program",
    "Run",
    "RunResult",
    "Sandbox",
    "Script",
]


class Outcome(StrEnum):
    """How a program's run ended. Every value is the program's own doing."""

    FINISHED = "finished"
    """Ran to its end: exit status 0, or the call returned, or the examination was passed."""
    FAILED_ASSERT = "failed_assert"
    """Examination only: an assertion of the test code did not hold (or the test code raised)."""
    RAISED = "raised"
    """The program raised, or exited with a status other than 0, or ended early (``os._exit(0)`` in a call)."""
    SIGNALLED = "signalled"
    """Killed by a signal of its own making."""
    COMPILE_ERROR = "compile_error"
    """The source is not a program of its language, or it has no function of the asked name."""
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    BAD_VALUE = "bad_value"
    """FunctionCall only: the returned value is not plain data."""
    BAD_TEST = "bad_test"
    """Examination only: the test code itself is at fault (does not compile, does not end, calls what is not there)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each single run. CPU time is the limit; the wall clock is a generous backstop."""

    cpu_s: float = 5.0
    wall_s: float | None = None
    """``None``: 3 x ``cpu_s`` + 5 s."""
    memory_mib: int = 512
    processes: int = 32
    output_kib: int = 4096
    """Of stdout and of stderr, each; also of a returned value."""
    scratch_mib: int = 64
    """Size of the writable /tmp, the working folder. What lies there is in memory, and counts as such too."""
    compile_cpu_s: float = 30.0
    """Of the compiler, once per program. Its memory is at least what the language's table asks for."""

    @property
    def wall_limit_s(self) -> float:
        return self.wall_s if self.wall_s is not None else 3 * self.cpu_s + 5.0


@dataclass(frozen=True, slots=True)
class Program:
    """Untrusted source text in ``language`` (a name or an alias of the language table)."""

    source: str
    language: str = "python"
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the program, laid beside its source before it is compiled: relative names, ``/`` between
    folders. Names that lead elsewhere are :class:`~adjudge_sandbox.errors.InvalidProgram`."""
    build: str | None = None
    """A shell script that is run once, in the jail, instead of the language's compiler; what it leaves in the folder
    is the program of every run. For projects."""


@dataclass(frozen=True, slots=True)
class Script:
    """Run the program with ``stdin``."""

    stdin: bytes = b""
    args: tuple[str, ...] = ()
    """Its command line, after its own name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Laid into its working folder before it starts."""
    fetch: tuple[str, ...] = ()
    """Files to bring back after it has ended: regular files only, links are not followed. One that is not there is
    missing in the result."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """Run the program against ``interactor``: what one writes to its stdout the other reads from its stdin.

    Each is in a jail of its own, under the same limits. Both results are given: the program's, and the interactor's as
    its ``partner``. When one has ended, the other sees the end of its input; the wall clock holds for the pair.
    """

    interactor: Program
    args: tuple[str, ...] = ()
    """Of the interactor."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Of the interactor: the secret input, the answer."""
    fetch: tuple[str, ...] = ()
    """Of the interactor."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Call ``function`` with ``args`` (plain values).

    ``function`` is a name of the module, or ``Class().method`` for a method of a fresh instance
    (``Solution().twoSum``).
    """

    function: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Examination:
    """Run ``test`` (trusted data-set text) against the program.

    ``setup`` is test-side code run before it: imports, helper functions, classes that the program may not redefine.
    Names that neither defines and that the program does are calls into the program. ``bind`` gives names to program
    functions: ``{"candidate": "add"}``.

    With ``session`` the test is a file of that name for pytest, which is run by pytest itself, on the test's side. The
    result's value then lists each test that was run as ``(id, outcome, detail)``, as far as it came: ``passed``,
    ``failed``, ``skipped``, ``raised`` (by the program), ``memory``, ``missing`` (the program lacks what it imports).
    """

    test: str
    setup: str = ""
    bind: dict[str, str] = field(default_factory=dict)
    session: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Laid beside the test code."""
    modules: tuple[str, ...] = ("solution",)
    """As what test code may import the program; further names are those of the program's files."""


Run = Script | Interaction | FunctionCall | Examination


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run did. ``stdout`` and ``stderr`` are bytes as written, cut at the limit."""

    outcome: Outcome
    detail: str = ""
    """One sentence: exception, signal name, exit status, or failed assertion. At most 2,000 characters."""
    exit_status: int | None = None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    value: Any = None
    """FunctionCall: the value, of built-in types only."""
    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    peak_memory_mib: float | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What ``fetch`` asked for and was there."""
    ended_early: bool = False
    """FunctionCall, Examination: the process ended (``os._exit(0)``, ``sys.exit()``) where the only honest way out is
    to return."""
    tampering: str = ""
    """FunctionCall, Examination: what the program was caught at beyond doubt, in one word: ``forged_report`` (it wrote
    where only our driver does), ``always_equal`` (its value says that it equals everything)."""
    partner: RunResult | None = None
    """Interaction: what the interactor did."""
    isolation: str = "none"
    """What was in force: ``zygote``, ``jail``, ``container``, ``landlock``, ``none``."""


class Sandbox(Protocol):
    """Runs programs. One object serves many concurrent callers."""

    name: str
    """The strongest isolation that it gives: ``zygote``, ``landlock``, ``none``. Each result says its own."""

    def languages(self) -> tuple[str, ...]:
        """Canonical names of the languages that it can run here."""
        ...

    async def run(
        self, program: Program, runs: Sequence[Run], limits: Limits, *, stop_at_failure: bool = False
    ) -> list[RunResult]:
        """Run ``program`` once for each of ``runs``, in order, in one jail.

        Returns one result per run, in order; with ``stop_at_failure`` the list ends after the first result whose
        outcome is not ``FINISHED``. Cancelling the call kills the jail.

        Raises (all of :mod:`adjudge_sandbox.errors`):
            UnsupportedLanguage: no backend here runs ``program.language``.
            SandboxUnavailable: no jail could be made, or it was lost from outside more than once. Retry later.
            SandboxOverloaded: twice a run waited for a core until its wall clock ran out. Retry later.
        """
        ...

    async def start(self) -> None:
        """Start what is kept warm. Raises :class:`SandboxUnavailable` if this host cannot isolate."""
        ...

    async def stop(self) -> None:
        """Kill all jails and helpers."""
        ...
