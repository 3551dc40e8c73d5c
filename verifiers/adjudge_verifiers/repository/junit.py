"""Reading a JUnit XML report that may have been forged or made to hurt.

A strict reader on expat: no document types and no entities, bounded in size, depth and number. Of each test case it
takes the name and the worst thing that is said about it. Anything odd is :class:`BadReport`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.parsers import expat

__all__ = ["BadReport", "Reported", "Status", "find", "parse_junit"]

Status = Literal["passed", "failed", "error", "skipped"]

_MAX_BYTES = 32 << 20
_MAX_DEPTH = 16
_MAX_CASES = 200_000
_MAX_ATTRIBUTE = 20_000
_RANK: dict[str, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
_UNPRINTABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class BadReport(Exception):
    """This is no report of a test run."""


@dataclass(slots=True)
class Reported:
    """One test case, as it is called in the report."""

    classname: str
    name: str
    file: str
    status: Status = "passed"
    message: str = ""

    @property
    def identities(self) -> tuple[str, ...]:
        """What a data set may call it: ``tests/test_a.py::TestB::test_c`` and ``tests.test_a.TestB.test_c``."""
        dotted = f"{self.classname}.{self.name}" if self.classname else self.name
        if not self.file:
            return (dotted,)
        module = self.file.removesuffix(".py").replace("/", ".")
        inner = self.classname.removeprefix(module).strip(".") if self.classname.startswith(module) else ""
        return "::".join([self.file, *(inner.split(".") if inner else ()), self.name]), dotted


class _Reader:
    def __init__(self) -> None:
        self.cases: list[Reported] = []
        self._depth = 0
        self._case: Reported | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BadReport("nested too deeply")
        if self._depth == 1 and name not in ("testsuites", "testsuite"):
            raise BadReport(f"its root is {name[:50]!r}")
        if name == "testcase":
            if len(self.cases) >= _MAX_CASES:
                raise BadReport("too many test cases")
            kept = {key: value for key, value in attributes.items() if len(value) <= _MAX_ATTRIBUTE}
            self._case = Reported(kept.get("classname", ""), kept.get("name", ""), kept.get("file", ""))
            self.cases.append(self._case)
        elif self._case is not None and name in ("failure", "error", "skipped"):
            status: Status = {"failure": "failed", "error": "error"}.get(name, "skipped")  # type: ignore[assignment]
            if _RANK[status] > _RANK[self._case.status]:
                self._case.status = status
                self._case.message = attributes.get("message", "")[:500]

    def end(self, name: str) -> None:
        self._depth -= 1
        if name == "testcase":
            self._case = None


def parse_junit(data: bytes) -> list[Reported]:
    """All test cases. Raises :class:`BadReport`."""
    if len(data) > _MAX_BYTES:
        raise BadReport(f"larger than {_MAX_BYTES >> 20} MiB")
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise BadReport(f"not XML: {error}"[:200]) from None
    return reader.cases


def _refuse(*_: object) -> None:
    raise BadReport("it declares a document type")


def find(cases: Sequence[Reported], wanted: Sequence[str]) -> dict[str, Reported]:
    """For each wanted test that was reported, the worst report of it.

    A parametrised test that is wanted without its parameters stands for all of its cases, and so does one whose
    parameters are cut off at a space, as lists that were made from printed logs have them.
    """
    known: dict[str, Reported] = {}
    for case in cases:
        shorter = {case.name.partition("[")[0], case.name.split(" ", 1)[0]} - {case.name} if "[" in case.name else set()
        whole = [one for name in shorter for one in Reported(case.classname, name, case.file).identities]
        for identity in (*case.identities, *whole):
            worst = known.get(identity)
            if worst is None or _RANK[case.status] > _RANK[worst.status]:
                known[identity] = case
    return {name: known[key] for name in wanted if (key := _printable(name)) in known}


def _printable(name: str) -> str:
    """Characters that XML has no place for, as pytest writes them."""
    return _UNPRINTABLE.sub(lambda match: f"#x{ord(match.group()):02X}", name)
