"""Tests of reading and writing: standard streams and files, compared here or by a checker.

The run carries what the program may read and nothing of what is expected of it.
"""

from __future__ import annotations

from collections.abc import Callable

from adjudge_sandbox.base import Outcome, RunResult, Script

from .checker import Checker
from .compare import Profile, Tolerance, difference
from .parts import StdinTest, contents
from .scoring import Found

__all__ = ["judge_files", "script"]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def script(test: StdinTest, input_file: str | None, output_file: str | None) -> Script:
    """The run of one test. With ``input_file`` the input lies there, and on stdin as well."""
    files = contents(test.files)
    if input_file is not None:
        files[input_file] = _bytes(test.stdin)
    fetch = [*test.expect_files, *([output_file] if output_file is not None else [])]
    return Script(_bytes(test.stdin), tuple(test.args), files, tuple(dict.fromkeys(fetch)))


def judge_files(
    test: StdinTest, output_file: str | None, profile: Profile, tolerance: Tolerance, checker: Checker | None
) -> Callable[[RunResult], Found | Script]:
    """Compares what was printed and written, or has the checker asked about it."""
    expected = contents(test.expect_files)

    def output_of(result: RunResult) -> bytes:
        """What counts as the output: the named file, or stdout where the program wrote none."""
        if output_file is None:
            return result.stdout
        return result.files.get(output_file, result.stdout)

    def judge(result: RunResult) -> Found | Script:
        if result.outcome is not Outcome.FINISHED:
            return Found.unfinished(result)
        if checker is not None:
            answer = _bytes(test.stdout) if test.stdout is not None else None
            return checker.question(_bytes(test.stdin), output_of(result), answer)
        if test.stdout is not None and (found := difference(profile, test.stdout, output_of(result), tolerance)):
            return Found.of(found)
        for name, content in expected.items():
            if name not in result.files:
                return Found.of(f"The program left no file {name[:80]!r}.")
            if found := _file_difference(profile, content, result.files[name], tolerance):
                return Found.of(f"File {name[:80]!r}: {found}")
        return Found.of(None)

    return judge


def _file_difference(profile: Profile, expected: bytes, got: bytes, tolerance: Tolerance) -> str | None:
    """Text is compared as output is; what is no text, byte by byte."""
    try:
        return difference(profile, expected.decode("utf-8"), got, tolerance)
    except UnicodeDecodeError:
        return None if expected == got else "its bytes differ."
