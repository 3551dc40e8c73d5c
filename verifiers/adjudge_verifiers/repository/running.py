"""Running the tests of a repository in a box: what is laid there, what is run, what comes back."""

from __future__ import annotations

import json
import posixpath
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge_sandbox.container.base import Boxes, Command, CommandResult, Ended, File, Shape

from ..errors import InvalidTask
from ..sandboxed import sandbox_failures
from .driver import DRIVER
from .junit import BadReport, Reported, parse_junit
from .reference import RepositoryReference
from .tree import Tree, size_mib

__all__ = ["TestRun", "run_tests"]

_REPORT_KIB = 32 << 10
_OUTPUT_KIB = 256
_ROOM_MIB = 256
_STEP_MIB = 64
_SHOWN_BYTES = 4000


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of the tests. ``cases`` is ``None`` if there is no usable report; ``problem`` then says why."""

    result: CommandResult
    cases: list[Reported] | None
    problem: str = ""

    @property
    def output(self) -> str:
        """The end of what was printed."""
        both = self.result.stdout + self.result.stderr
        return both[-_SHOWN_BYTES:].decode("utf-8", "replace")


async def run_tests(
    boxes: Boxes, image: str, reference: RepositoryReference, tree: Tree, test_files: Sequence[str], memory_mib: int
) -> TestRun:
    """Lay ``tree`` into a fresh box, run ``test_files`` there, and read the report.

    Raises :class:`Unavailable`, and :class:`InvalidTask` if the image cannot run such tests at all.
    """
    ours = f".adjudge-{secrets.token_hex(6)}"
    absent = secrets.token_hex(16)
    report = f"{ours}/{secrets.token_hex(6)}.xml"
    files = {**tree, **_tools(reference, ours, report, absent, test_files)}
    room = -(-size_mib(tree) // _STEP_MIB) * _STEP_MIB + _ROOM_MIB
    shape = Shape(memory_mib + room, processes=512, scratch_mib=256, folder=reference.folder, folder_mib=room)
    command = Command(
        _argv(reference, ours),
        files=files,
        env={**_environment(reference, report, test_files), **reference.env},
        wall_s=reference.timeout_s,
        cpu_s=reference.timeout_s,
        output_kib=_OUTPUT_KIB,
        tail=True,
        fetch=(report,),
        fetch_kib=_REPORT_KIB,
    )
    with sandbox_failures():
        result = await boxes.run(image, shape, command)
    if absent.encode() in result.stdout:
        raise InvalidTask(f"The image {image!r} has no {reference.test_runner}: {_after(result.stdout, absent)}")
    return _read(result, report)


def _read(result: CommandResult, report: str) -> TestRun:
    data = result.files.get(report)
    if result.ended is not Ended.EXITED or data is None:
        return TestRun(result, None, "the tests left no report")
    try:
        return TestRun(result, parse_junit(data))
    except BadReport as error:
        return TestRun(result, None, f"the report of the tests is damaged: {error}")


def _after(stdout: bytes, mark: str) -> str:
    return stdout.decode("utf-8", "replace").partition(mark)[2].strip()[:200]


def _argv(reference: RepositoryReference, ours: str) -> list[str]:
    if reference.test_runner == "command":
        return ["sh", "-c", reference.test_command]
    return [reference.python, f"{ours}/run.py"]


def _tools(
    reference: RepositoryReference, ours: str, report: str, absent: str, test_files: Sequence[str]
) -> dict[str, File]:
    """What stands beside the repository: the driver and what it is to do."""
    config = {
        "runner": reference.test_runner,
        "report": report,
        "absent": absent,
        "args": _pytest_args(reference, report, test_files),
        "modules": [_module(name) for name in test_files],
    }
    return {f"{ours}/run.py": File(DRIVER.encode()), f"{ours}/config.json": File(json.dumps(config).encode())}


def _pytest_args(reference: RepositoryReference, report: str, test_files: Sequence[str]) -> list[str]:
    # `--deselect`, `-k` and the like of the data set are the data set's business; the last word on the report is ours.
    return [
        *reference.pytest_args,
        f"--rootdir={reference.folder}",
        "-p",
        "no:cacheprovider",
        "-o",
        "junit_family=xunit1",
        f"--junitxml={report}",
        "--",
        *test_files,
    ]


def _environment(reference: RepositoryReference, report: str, test_files: Sequence[str]) -> dict[str, str]:
    return {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_ADDOPTS": "",
        "REPORT": posixpath.join(reference.folder, report),
        "TEST_FILES": " ".join(test_files),
    }


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
