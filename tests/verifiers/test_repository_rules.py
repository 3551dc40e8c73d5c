"""What surrounds a run of repository tests, without a run: references, trees, guards, trip-wires, reports, scores."""

from __future__ import annotations

import ast
import base64
import io
import tarfile
import zipfile

import pytest
from pydantic import ValidationError

from adjudge_sandbox.container.base import CommandResult, Ended, File
from adjudge_verifiers.errors import InvalidReference
from adjudge_verifiers.repository import tree as trees
from adjudge_verifiers.repository.guard import guard, test_files_of
from adjudge_verifiers.repository.junit import BadReport, find, parse_junit
from adjudge_verifiers.repository.reference import RepositoryReference
from adjudge_verifiers.repository.running import TestRun
from adjudge_verifiers.repository.scoring import score, stand
from adjudge_verifiers.repository.tripwire import plant, spring

test_files_of.__test__ = False  # type: ignore[attr-defined]
TestRun.__test__ = False  # type: ignore[attr-defined]


def text(**files: str) -> trees.Tree:
    return {name.replace("__", "/") + ".py": File(content.encode()) for name, content in files.items()}


def test_a_row_of_swe_bench():
    row = {
        "instance_id": "x__y-1",
        "repo": "x/y",
        "image": "swe:1",
        "base_commit": "abc",
        "patch": "p",
        "test_patch": "t",
        "problem_statement": "...",
        "FAIL_TO_PASS": '["test_a (m.C)", "t.py::test_b"]',
        "PASS_TO_PASS": "[]",
        "version": "1",
    }
    reference = RepositoryReference.model_validate(row)
    assert reference.fail_to_pass == ["m.C.test_a", "t.py::test_b"]
    assert reference.pass_to_pass == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"image": ""}, "no repository"),
        ({"files": {"a": "b"}, "archive": "x"}, "not both"),
        ({"FAIL_TO_PASS": []}, "at least 1"),
        ({"FAIL_TO_PASS": "x"}, "neither a list"),
        ({"folder": "relative"}, "absolute"),
        ({"folder": "/etc/x"}, "folder of the system"),
        ({"folder": "/a/../etc"}, "absolute"),
        ({"test_runner": "command"}, "test_command"),
        ({"timeout_s": 1801}, "1800"),
    ],
)
def test_unusable_references(change, why):
    row = {"image": "i", "FAIL_TO_PASS": ["a.py::b"]} | change
    with pytest.raises(ValidationError, match=why):
        RepositoryReference.model_validate(row)


def _tar(entries: list[tarfile.TarInfo], data: bytes = b"x", mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for entry in entries:
            entry.size = len(data) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(data) if entry.isreg() else None)
    return buffer.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, link, mode
    return entry


def test_a_tree_has_no_history_and_no_devices():
    names = ["r/a.py", "r/.git/HEAD", "r/sub/.git", "r/.hg/x", "r/sub/b.py", "other/c.py"]
    entries = [_entry(name) for name in names]
    entries += [_entry("r/run", mode=0o755), _entry("r/dev", tarfile.CHRTYPE), _entry("r/pipe", tarfile.FIFOTYPE)]
    entries += [_entry("r/hard", tarfile.LNKTYPE, "r/a.py"), _entry("r/soft", tarfile.SYMTYPE, "a.py")]
    tree = trees.from_tar(_tar(entries), below="r")
    assert tree == {
        "a.py": File(b"x"),
        "sub/b.py": File(b"x"),
        "run": File(b"x", True),
        "hard": File(b"x"),
        "soft": File(link="a.py"),
    }


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "zip"])
def test_archives(mode):
    if mode == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("p/a.py", "x")
            archive.writestr(".git/HEAD", "x")
        data = buffer.getvalue()
    else:
        data = _tar([_entry("./p/a.py"), _entry(".git/HEAD")], mode=mode)
    assert trees.from_archive(base64.b64encode(data).decode()) == {"p/a.py": File(b"x")}


@pytest.mark.parametrize(
    "encoded", ["!!", base64.b64encode(b"PK not a zip").decode(), base64.b64encode(b"no").decode()]
)
def test_broken_archives(encoded):
    with pytest.raises(InvalidReference):
        trees.from_archive(encoded)
    with pytest.raises(InvalidReference, match="not the name"):
        trees.from_archive(base64.b64encode(_tar([_entry("../x")])).decode())


def test_guard():
    base = text(a="1", tests__test_a="t", tests__helper="h", django__test__client="c", conftest="k", flat_test="f")
    answer = {**base, **text(a="2", tests__test_a="T", tests__helper="H", django__test__client="C", conftest="K")}
    answer |= text(tests__new="n", pytest="p", json__x="j", src__os="o", deep__json="fine", pkg__conftest="z", b="new")
    answer["x.egg-info/entry_points.txt"] = File(b"[pytest11]")
    answer["evil.pth"] = File(b"import os")
    del answer["flat_test.py"]
    tested = {**base, "tests/test_a.py": File(b"hidden")}
    result = guard(base, tested, answer, {"tests/test_a.py", "flat_test.py"})
    assert result.tree == tested | text(a="2", django__test__client="C", deep__json="fine", b="new")
    assert result.flags == ("runner_file_changed", "shadows_module", "test_file_changed")
    assert "flat_test.py" in result.undone
    assert "django/test/client.py" not in result.undone


def test_guard_keeps_an_honest_patch_as_it_is():
    base = text(a="1", b="2", tests__test_a="t")
    answer = text(a="3", c="4", tests__test_a="t")
    result = guard(base, base, answer, {"tests/test_a.py"})
    assert (result.tree, result.flags, result.undone) == (answer, (), ())


def test_files_of_tests():
    tree = text(tests__test_a="", pkg__tests____init__="", x="")
    names = ["tests/test_a.py::C::t[1]", "tests.test_a.C.t", "pkg.tests.C.t", "no.such.t", "gone.py::t"]
    tree["pkg/tests/__init__.py"] = File()
    assert test_files_of(tree, names) == ["tests/test_a.py", "pkg/tests/__init__.py", "gone.py"]


TESTS = '''import pytest


@pytest.mark.parametrize("n", [1, 2])
def test_top(n):
    """Says something."""
    assert n


class TestThing:
    @pytest.fixture
    def x(self):
        return 1

    async def test_in(self, x):
        @staticmethod
        def inner():
            pass
        assert x

    def test_one_line(self): pass
'''


def test_planted_wires_look_like_their_neighbours_and_fail():
    tree = {"tests/test_a.py": File(TESTS.encode())}
    wired = plant(tree, ["tests/test_a.py", "absent.py"], unittest=False)
    (name,) = wired.must_fail
    assert name.startswith("tests/test_a.py::test_")
    assert name.endswith("top")
    code = wired.tree["tests/test_a.py"].data.decode()
    assert code.startswith(TESTS.rstrip())
    function = ast.parse(code).body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert not eval(compile(ast.Expression(function.body[0].test), "", "eval"))  # type: ignore[attr-defined]  # noqa: S307


def test_planted_wires_of_unittest():
    tree = {
        "tests/a.py": File(b"import unittest\nclass ATests(unittest.TestCase):\n    def test_x(self):\n        pass\n")
    }
    (name,) = plant(tree, ["tests/a.py"], unittest=True).must_fail
    assert name.startswith("tests.a.AT")
    assert name.rpartition(".")[2].startswith("test_")


def test_sprung_wires_stand_first_in_each_listed_test():
    listed = ["t.py::test_top[1]", "t.py::test_top[2]", "t.py::TestThing::test_in", "t.py::TestThing::test_one_line"]
    wired = spring({"t.py": File(TESTS.encode())}, [*listed, "t.py::absent"], ["t.py"], unittest=False)
    assert list(wired.must_fail) == listed[:3]
    module = ast.parse(wired.tree["t.py"].data)
    top, thing = module.body[1:]
    assert isinstance(top, ast.FunctionDef)
    assert isinstance(top.body[0], ast.Assert)
    assert isinstance(thing, ast.ClassDef)
    assert [isinstance(node.body[0], ast.Assert) for node in thing.body] == [False, True, False]  # type: ignore[attr-defined]


def test_reports():
    report = (
        b'<?xml version="1.0"?><testsuites><testsuite name="pytest">'
        b'<testcase classname="tests.test_a.TestB" name="test_c[1]" file="tests/test_a.py"/>'
        b'<testcase classname="tests.test_a.TestB" name="test_c[2]" file="tests/test_a.py">'
        b'<failure message="no"/></testcase>'
        b'<testcase classname="tests.test_a" name="test_d" file="tests/test_a.py"><skipped message="s"/></testcase>'
        b'<testcase classname="tests.test_a" name="test_e" file="tests/test_a.py"/>'
        b'<testcase classname="tests.test_a" name="test_e" file="tests/test_a.py"><error message="down"/></testcase>'
        b'<testcase classname="tests.test_a" name="test_f[a b]" file="tests/test_a.py"/>'
        b'<testcase classname="m.C" name="test_g"/></testsuite></testsuites>'
    )
    wanted = {
        "tests/test_a.py::TestB::test_c[1]": "passed",
        "tests/test_a.py::TestB::test_c": "failed",
        "tests/test_a.py::test_d": "skipped",
        "tests.test_a.test_e": "error",
        "tests/test_a.py::test_f[a": "passed",
        "m.C.test_g": "passed",
    }
    found = find(parse_junit(report), [*wanted, "tests/test_a.py::absent"])
    assert {name: case.status for name, case in found.items()} == wanted


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"not xml",
        b"<html/>",
        b'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><testsuites><testcase name="&b;"/></testsuites>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuites/>',
        b"<testsuites>" * 100,
        b"<testsuites>" + b"<a>" * 50 + b"</a>" * 50 + b"</testsuites>",
        b"<testsuites>" + b"<testcase/>" * 200_001 + b"</testsuites>",
        b" " * (33 << 20),
        b"<testsuites><testcase name='\xff'/></testsuites>",
    ],
    ids=range(10),
)
def test_reports_that_are_none(report):
    with pytest.raises(BadReport):
        parse_junit(report)


def _run(report: str | None, status: int = 1) -> TestRun:
    result = CommandResult(Ended.EXITED, status)
    return TestRun(result, None if report is None else parse_junit(f"<testsuites>{report}</testsuites>".encode()))


def _case(name: str, inner: str = "") -> str:
    return f'<testcase classname="t" name="{name}" file="t.py">{inner}</testcase>'


@pytest.mark.parametrize(
    ("report", "status", "strict", "tripped"),
    [
        (_case("a") + _case("wire", "<failure/>"), 1, False, False),
        (_case("a") + _case("wire", "<error/>"), 1, False, False),
        (_case("a") + _case("wire"), 1, False, True),
        (_case("a") + _case("wire", "<skipped/>"), 1, False, True),
        (_case("a"), 1, False, True),
        (_case("a", "<failure/>"), 1, False, False),
        (_case("a", "<failure/>"), 1, True, True),
        ("", 2, False, False),
        (_case("a") + _case("wire", "<failure/>"), 0, False, True),
    ],
)
def test_trip_wires(report, status, strict, tripped):
    standing = stand(_run(report, status), ["t.py::a"], ["t.py::wire"], strict=strict)
    assert bool(standing.tripped) is tripped


def test_scores():
    reference = RepositoryReference.model_validate(
        {"image": "i", "FAIL_TO_PASS": ["t.py::a", "t.py::b"], "PASS_TO_PASS": ["t.py::c", "t.py::d"]}
    )
    names = "abcd"
    every = stand(_run("".join(map(_case, names)), 0), reference.listed, [])
    assert score(every, reference, "resolved").reward == 1.0
    some = stand(_run(_case("a") + _case("c") + _case("d", "<skipped/>")), reference.listed, [])
    assert score(some, reference, "resolved").reward == 0.0
    verdict = score(some, reference, "fraction")
    assert (verdict.reward, verdict.category, verdict.trust) == (0.5, "partial", "in_process")
    assert verdict.parts == {"resolved": 0.0, "fail_to_pass": 0.5, "pass_to_pass": 0.5}
    assert [row["status"] for row in verdict.evidence["not_passed"]] == ["missing", "skipped"]
