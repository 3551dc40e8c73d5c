"""A test file run by pytest, in the examiner's jail: each of its tests reports for itself.

pytest is the test side's own: it lies beside the test code, and the program, in the other jail, can neither see nor
change it. No plug-in is loaded but what pytest brings; no configuration is read but a ``conftest.py`` that came with
the test. What a test found is appended to a file that the runner reads, so that what was reached before the program
ended the session is known. Passed is what pytest has seen to pass; everything else has not.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .process import lay_files

__all__ = ["read_results", "run_session"]

_MAX_DETAIL = 500
_MAX_TESTS = 5000
_OPTIONS = ("-q", "--assert=plain", "--capture=sys", "--override-ini=addopts=", "-c", os.devnull)
_LEFT_OUT = ("cacheprovider", "doctest", "faulthandler", "junitxml", "pastebin", "stepwise")
_OUTCOMES = ("Skipped", "XFailed")

Classify = Callable[[BaseException], tuple[str, str]]
Complaint = Callable[[], str | None]


def run_session(
    name: str, test: bytes, files: dict[str, bytes], results_fd: int, classify: Classify, complaint: Complaint
) -> tuple[str, str]:
    """Run the file, and give the verdict on it as a whole.

    ``classify`` says of an exception whose fault it is; ``complaint`` what else has gone wrong since it was last asked.
    """
    try:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        import pytest
    except ImportError:
        return "bad_test", "pytest is not installed here, so that test files cannot be run"
    folder = os.path.join(os.getcwd(), "tests")
    os.mkdir(folder)
    lay_files([*files, name], [*files.values(), test], folder)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    sys.argv[:] = ["pytest"]
    recorder = _Recorder(results_fd, classify, complaint)
    options = [*_OPTIONS, *(f"-pno:{plugin}" for plugin in _LEFT_OUT), f"--rootdir={folder}", name]
    with contextlib.suppress(SystemExit):
        pytest.main(options, plugins=[recorder])
    return recorder.verdict()


class _Recorder:
    """The plug-in that writes down what became of each test."""

    def __init__(self, results_fd: int, classify: Classify, complaint: Complaint) -> None:
        self._fd = results_fd
        self._classify = classify
        self._complaint = complaint
        self._faults: dict[str, tuple[str, str]] = {}
        self._called: set[str] = set()
        self._errors: list[tuple[str, str]] = []
        self._unloaded: list[tuple[str, str]] = []
        self._count = 0
        self._failed = ""

    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool | None:
        """Coroutines, which pytest leaves to plug-ins."""
        function = pyfuncitem.obj
        if not inspect.iscoroutinefunction(function):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(function(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True

    def pytest_exception_interact(self, call: Any, report: Any) -> None:
        """The exception that kept a file from being loaded: it tells more than its text."""
        if getattr(report, "when", "collect") != "collect":
            return
        error = call.excinfo.value
        while type(error).__name__ == "CollectError" and error.__cause__ is not None:
            error = error.__cause__
        self._errors.append(self._classify(error))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._unloaded.append(("failed", _tail(report)))
        elif report.skipped:
            self._note(report.nodeid, "skipped", "The file was skipped.")

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """The exception itself, before pytest makes text of it."""
        if call.excinfo is not None and type(call.excinfo.value).__name__ not in _OUTCOMES:
            self._faults.setdefault(item.nodeid, self._classify(call.excinfo.value))

    def pytest_runtest_logreport(self, report: Any) -> None:
        nodeid = report.nodeid
        if report.skipped or hasattr(report, "wasxfail"):
            reason = "expected to fail" if hasattr(report, "wasxfail") else "skipped"
            self._faults[nodeid] = ("skipped", f"The test was {reason}, which is not passed.")
        elif report.failed:
            self._faults.setdefault(nodeid, ("failed", _tail(report)))
        if report.when == "call" and report.passed:
            self._called.add(nodeid)
        if report.when == "teardown":
            if (complaint := self._complaint()) is not None:
                self._faults.setdefault(nodeid, ("failed", complaint))
            passed = ("passed", "") if nodeid in self._called else ("failed", "The test was not run.")
            self._note(nodeid, *self._faults.get(nodeid, passed))

    def _note(self, nodeid: str, outcome: str, detail: str) -> None:
        self._count += 1
        if outcome != "passed":
            self._failed = self._failed or detail or outcome
        if self._count <= _MAX_TESTS:
            name = nodeid.partition("::")[2] or nodeid
            os.write(self._fd, json.dumps([name[:200], outcome, detail[:_MAX_DETAIL]]).encode() + b"\n")

    def verdict(self) -> tuple[str, str]:
        if self._errors or self._unloaded:
            return (self._errors or self._unloaded)[0]
        if self._count > _MAX_TESTS:
            return "bad_test", f"the file holds more than {_MAX_TESTS} tests"
        if not self._count:
            return "failed", "no test was collected from the file"
        return ("failed", self._failed) if self._failed else ("passed", "")


def _tail(report: Any) -> str:
    """The last line of what pytest says."""
    lines = str(report.longrepr)[-4 * _MAX_DETAIL :].strip().splitlines()
    return lines[-1].removeprefix("E").strip()[-_MAX_DETAIL:] if lines else "it failed"


def read_results(content: bytes) -> Sequence[tuple[str, str, str]]:
    """What :class:`_Recorder` wrote; a last line that was cut off does not count."""
    return [tuple(json.loads(line)) for line in content.split(b"\n")[:-1]]
