"""Runs that take two jails, as the runner is told of them: examinations and interactions."""

from __future__ import annotations

from typing import Any, Protocol

from ..base import Examination, Interaction, Limits, Program, Script
from ..errors import InvalidProgram
from ..languages.names import check_files, safe_name
from ..supervisor.examination import examiner_limits_of

__all__ = ["Packages", "encode_examination", "encode_interaction"]


class Packages(Protocol):
    """Makes programs ready to be started."""

    async def package(
        self, program: Program, script: Script, limits: Limits
    ) -> tuple[bytes, dict[str, Any], list[bytes]]:
        """The program as it is sent, how this run of it is described, and the run's byte strings.

        Raises :class:`InvalidProgram` if it cannot be built.
        """
        ...


def encode_examination(run: Examination) -> tuple[dict[str, Any], list[bytes]]:
    """Raises :class:`InvalidProgram` for names that lead out of the folder."""
    check_files(run.files)
    if run.session is not None:
        safe_name(run.session)
    header = {
        "kind": "examination",
        "blobs": 2 + len(run.files),
        "bind": run.bind,
        "session": run.session,
        "files": list(run.files),
        "modules": list(run.modules),
    }
    texts = [text.encode("utf-8", "surrogatepass") for text in (run.setup, run.test)]
    return header, [*texts, *map(bytes, run.files.values())]


async def encode_interaction(
    packages: Packages, run: Interaction, limits: Limits, own: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[bytes]]:
    """``own``: how the answer is started, if it is not a Python program. Raises :class:`InvalidProgram`."""
    script = Script(args=run.args, files=run.files, fetch=run.fetch)
    try:
        package, partner, contents = await packages.package(run.interactor, script, examiner_limits_of(limits))
    except InvalidProgram as error:
        raise InvalidProgram(f"the interactor cannot be run: {error}") from error
    mine = own or {"kind": "script", "args": [], "names": [], "fetch": []}
    header = {"kind": "interaction", "own": mine, "partner": partner}
    blobs = [package, *contents[1:]]  # without its stdin
    return {**header, "blobs": len(blobs)}, blobs
