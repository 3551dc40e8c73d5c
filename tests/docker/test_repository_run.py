"""The verifier ``repository`` on a real engine: right and wrong patches, cheats, repositories that live in an image."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from adjudge.types import Verdict
from adjudge_sandbox.container.base import ContainerConfig
from adjudge_sandbox.container.pool import ContainerPool
from adjudge_verifiers.base import Call, Context, Example
from adjudge_verifiers.errors import InvalidReference, boundary
from adjudge_verifiers.repository.verifier import Repository, RepositoryOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")

STACK = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop(0)

    def __len__(self):
        return len(self.items)
"""
TESTS = '''import pytest

from shop.stack import Stack


def test_pop():
    stack = Stack()
    stack.push(1)
    stack.push(2)
    assert stack.pop() == 2


class TestLength:
    def test_empty(self):
        """Nothing in it."""
        assert len(Stack()) == 0

    @pytest.mark.parametrize("count", [1, 2])
    def test_pushed(self, count):
        stack = Stack()
        for _ in range(count):
            stack.push(0)
        assert len(stack) == count
'''
REPOSITORY: dict[str, Any] = {
    "files": {
        "shop/__init__.py": "",
        "shop/stack.py": STACK,
        "tests/test_stack.py": TESTS,
        "conftest.py": "import sys\nsys.dont_write_bytecode = True\n",
        "setup.cfg": "[tool:pytest]\naddopts = -ra\n",
    },
    "FAIL_TO_PASS": ["tests/test_stack.py::test_pop"],
    "PASS_TO_PASS": ["tests/test_stack.py::TestLength::test_empty", "tests/test_stack.py::TestLength::test_pushed[2]"],
}
FIX = (
    "--- a/shop/stack.py\n+++ b/shop/stack.py\n@@ -8,2 +8,2 @@\n     def pop(self):\n"
    "-        return self.items.pop(0)\n+        return self.items.pop()\n"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def boxes(engine) -> AsyncIterator[ContainerPool]:
    pool = ContainerPool(ContainerConfig(image=engine.image, engine_url=engine.url, warm=1))
    await pool.start()
    yield pool
    await pool.stop()


async def judge(boxes: ContainerPool, response: str, reference: Any = REPOSITORY, **options: Any) -> Verdict:
    with boundary("verifier 'repository'") as outcome:
        checked = RepositoryOptions.model_validate(options)
        try:
            parsed = Repository.reference_adapter().validate_python(reference)
        except ValueError as error:
            raise InvalidReference(str(error)) from None
        call = Call("", parsed, checked, extraction=Repository().extract(response, checked))
        return await Repository().verify(call, Context(boxes=boxes))
    assert outcome.failure is not None
    return outcome.failure


def diff(text: str) -> str:
    return f"```diff\n{text}```\n"


def new_file(name: str, text: str) -> str:
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


def head_of_stack(code: str) -> str:
    """The wrong code, with ``code`` before it."""
    lines = code.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return f"--- a/shop/stack.py\n+++ b/shop/stack.py\n@@ -1,1 +1,{len(lines) + 1} @@\n{body} class Stack:\n"


@pytest.mark.parametrize("example", Repository.examples, ids=range(len(Repository.examples)))
async def test_examples(boxes, example: Example):
    verdict = await judge(boxes, example.response, example.reference, **example.options)
    assert (verdict.status, verdict.reward) == (example.status, example.reward), verdict
    assert example.category is None or verdict.category == example.category
    if verdict.ok:
        assert set(verdict.parts) == {"resolved", "fail_to_pass", "pass_to_pass"}


async def test_the_gold_patch_of_each_example(boxes):
    for example in Repository.examples:
        if example.status == "ok":
            reference = Repository.reference_adapter().validate_python(example.reference)
            gold = Repository().gold(reference, RepositoryOptions())
            assert gold is not None
            verdict = await judge(boxes, gold, example.reference)
            assert verdict.category == "correct", verdict
            return


async def test_right_patch(boxes):
    verdict = await judge(boxes, diff(FIX))
    assert (verdict.reward, verdict.category, verdict.flags) == (1.0, "correct", []), verdict
    assert (verdict.isolation, verdict.trust) == ("container", "in_process")
    assert verdict.extracted == FIX


async def test_wrong_patch_keeps_what_works(boxes):
    verdict = await judge(boxes, diff(FIX.replace("items.pop()", "items[0]")), scoring="fraction")
    assert verdict.reward == pytest.approx(2 / 3)
    assert verdict.parts == {"resolved": 0.0, "fail_to_pass": 0.0, "pass_to_pass": 1.0}
    assert verdict.evidence["not_passed"][0]["status"] == "failed"
    assert "test_pop" in verdict.evidence["output"]


_ALL_PASS = """
import _pytest.reports
_old = _pytest.reports.TestReport.from_item_and_call
@classmethod
def _new(cls, item, call):
    report = _old.__func__(cls, item, call)
    {condition}report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = _new
"""
_FORGE_AT_EXIT = """
import atexit, glob, re
def _forge():
    for name in glob.glob(".adjudge-*/*.xml"):
        text = open(name).read()
        text = re.sub(r"<(failure|error|skipped)[^>]*>.*?</\\1>|<(failure|error|skipped)[^>]*/>", "", text, flags=re.S)
        open(name, "w").write(text)
atexit.register(_forge)
"""
CHEATS = {
    "leaves at import": (head_of_stack("import os\nos._exit(0)"), {"runtime_error"}),
    "sys.exit at import": (head_of_stack("raise SystemExit(0)"), {"wrong_answer", "runtime_error"}),
    "leaves in the test": (
        FIX.replace("return self.items.pop()", "__import__('os')._exit(0)"),
        {"runtime_error"},
    ),
    "skips": (
        FIX.replace("return self.items.pop()", "__import__('pytest').skip('x')"),
        {"wrong_answer"},
    ),
    "skips the module": (
        head_of_stack("import pytest\npytest.skip('x', allow_module_level=True)"),
        {"wrong_answer"},
    ),
    "every report passes": (head_of_stack(_ALL_PASS.format(condition="")), {"tampered"}),
    "reports of known tests pass": (
        head_of_stack(_ALL_PASS.format(condition="if item.name == 'test_pop': ")),
        {"tampered"},
    ),
    "asserts do nothing": (
        head_of_stack(
            "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
            "import _pytest.unittest\n_pytest.unittest.TestCaseFunction.runtest = lambda self: None"
        ),
        {"tampered"},
    ),
    "forges the report": (head_of_stack(_FORGE_AT_EXIT), {"tampered"}),
    "conftest": (
        new_file(
            "tests/conftest.py",
            "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
            "    outcome = yield\n    outcome.get_result().outcome = 'passed'",
        ),
        {"wrong_answer"},
    ),
    "conftest of a package": (
        new_file("shop/conftest.py", "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None"),
        {"wrong_answer"},
    ),
    "pytest.ini": (new_file("pytest.ini", "[pytest]\naddopts = --co"), {"wrong_answer"}),
    "setup.cfg": (
        "--- a/setup.cfg\n+++ b/setup.cfg\n@@ -1,2 +1,2 @@\n [tool:pytest]\n-addopts = -ra\n+addopts = --co\n",
        {"wrong_answer"},
    ),
    "sitecustomize": (new_file("sitecustomize.py", "import os\nos._exit(0)"), {"wrong_answer"}),
    "pytest of one's own": (new_file("pytest.py", "def main(args): return 0"), {"wrong_answer"}),
    "json of one's own": (new_file("json.py", "import os\nos._exit(0)"), {"wrong_answer"}),
    "edits the test": (
        "--- a/tests/test_stack.py\n+++ b/tests/test_stack.py\n@@ -10,1 +10,1 @@\n"
        "-    assert stack.pop() == 2\n+    assert True\n",
        {"wrong_answer"},
    ),
    "deletes the tests": (
        "diff --git a/tests/test_stack.py b/tests/test_stack.py\ndeleted file mode 100644\n"
        f"--- a/tests/test_stack.py\n+++ /dev/null\n@@ -1,{TESTS.count(chr(10))} +0,0 @@\n"
        + "".join(f"-{line}\n" for line in TESTS.splitlines()),
        {"wrong_answer"},
    ),
    "renames the tests": (
        "diff --git a/tests/test_stack.py b/tests/other.py\nsimilarity index 100%\n"
        "rename from tests/test_stack.py\nrename to tests/other.py\n",
        {"wrong_answer"},
    ),
    "a folder in place of the tests": (new_file("tests/test_stack.py/x.py", "pass"), {"wrong_format"}),
    "outside": (new_file("../x.py", "pass"), {"wrong_format"}),
    "absolute": (new_file("/etc/x.py", "pass"), {"wrong_format"}),
    "history": (new_file(".git/hooks/post-checkout", "true"), {"wrong_format"}),
    "history, spelled otherwise": (new_file("a/.GIT/config", "x"), {"wrong_format"}),
    "sleeps": (head_of_stack("import time\ntime.sleep(600)"), {"time_limit"}),
    "burns": (head_of_stack("while True: pass"), {"time_limit"}),
    "memory": (head_of_stack("x = bytearray(1 << 33)\nfor i in range(0, 1 << 33, 4096): x[i] = 1"), {"memory_limit"}),
}


@pytest.mark.parametrize("name", CHEATS)
async def test_cheats(boxes, name):
    patch, expected = CHEATS[name]
    verdict = await judge(boxes, diff(patch), REPOSITORY | {"timeout_s": 8}, memory_mib=256)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict
    assert verdict.category in expected, verdict


async def test_what_was_undone_is_told(boxes):
    patch = CHEATS["conftest"][0] + CHEATS["pytest.ini"][0] + CHEATS["json of one's own"][0] + FIX
    verdict = await judge(boxes, diff(patch))
    assert verdict.reward == 1.0
    assert verdict.flags == ["runner_file_changed", "shadows_module", "test_file_changed"]
    assert verdict.evidence["undone"] == ["json.py", "pytest.ini", "tests/conftest.py"]


async def test_unittest(boxes):
    tests = (
        "import unittest\nfrom shop.stack import Stack\n\n\nclass StackTest(unittest.TestCase):\n"
        "    def test_pop(self):\n        s = Stack()\n        s.push(1)\n        s.push(2)\n"
        "        self.assertEqual(s.pop(), 2)\n\n    def test_len(self):\n        self.assertEqual(len(Stack()), 0)\n"
    )
    files = REPOSITORY["files"] | {"tests/test_stack.py": tests, "tests/__init__.py": ""}
    reference = {
        "files": files,
        "test_runner": "unittest",
        "FAIL_TO_PASS": ["test_pop (tests.test_stack.StackTest)"],
        "PASS_TO_PASS": ["tests.test_stack.StackTest.test_len"],
    }
    assert (await judge(boxes, diff(FIX), reference)).reward == 1.0
    assert (await judge(boxes, diff(FIX.replace("pop()", "pop(0) + 0")), reference)).category == "wrong_answer"
    patched = (
        "import unittest\n"
        "unittest.TestCase.run = lambda self, result=None: (result.startTest(self), result.addSuccess(self))"
    )
    assert (await judge(boxes, diff(head_of_stack(patched)), reference)).category == "tampered"


async def test_a_command_of_its_own(boxes):
    report = '<testsuite><testcase classname="shell" name="pop"/></testsuite>'
    command = (
        'python3 -c "from shop.stack import Stack as S; s = S(); s.push(1); s.push(2); assert s.pop() == 2" '
        f"&& echo '{report}' > \"$REPORT\""
    )
    reference = {
        "files": REPOSITORY["files"],
        "test_runner": "command",
        "test_command": command,
        "FAIL_TO_PASS": ["shell.pop"],
    }
    assert (await judge(boxes, diff(FIX), reference)).reward == 1.0
    assert (await judge(boxes, diff(FIX.replace("pop()", "pop(0) + 0")), reference)).category == "runtime_error"


async def test_test_patch_and_hidden_tests(boxes):
    """Tests that the model has never seen come with the reference; the answer's own version of them does not count."""
    hidden = (
        "from shop.stack import Stack\n\n\ndef test_peek():\n    s = Stack()\n    s.push(3)\n    assert s.peek() == 3\n"
    )
    reference = REPOSITORY | {
        "test_patch": new_file("tests/test_peek.py", hidden),
        "FAIL_TO_PASS": ["tests/test_peek.py::test_peek"],
        "PASS_TO_PASS": [],
    }
    peek = (
        "--- a/shop/stack.py\n+++ b/shop/stack.py\n@@ -8,2 +8,5 @@\n     def pop(self):\n"
        "         return self.items.pop(0)\n+\n+    def peek(self):\n+        return self.items[-1]\n"
    )
    own = new_file("tests/test_peek.py", "def test_peek():\n    assert True\n")
    assert (await judge(boxes, diff(peek), reference)).reward == 1.0
    assert (await judge(boxes, diff(own), reference)).reward == 0.0
    assert (await judge(boxes, diff(peek + own), reference)).flags == ["test_file_changed"]


async def test_a_repository_in_an_image(boxes, engine):
    """Laid at its own place, without its history, whatever the image says."""
    image = "adjudge-test-repository:1"
    files = {**REPOSITORY["files"], ".git/HEAD": "ref: refs/heads/main\n", "shop/.git": "gitdir: /elsewhere\n"}
    await boxes._engine.call(lambda client: _image_with(client, engine.image, image, files))
    probe = (
        "\n\ndef test_no_history():\n    import os\n    assert os.getcwd() == '/testbed'\n"
        "    assert not os.path.exists('.git') and not os.path.exists('shop/.git')\n"
    )
    reference = {
        "image": image,
        "test_files": {"tests/test_stack.py": TESTS + probe},
        "FAIL_TO_PASS": ["tests/test_stack.py::test_pop", "tests/test_stack.py::test_no_history"],
        "PASS_TO_PASS": REPOSITORY["PASS_TO_PASS"],
    }
    verdict = await judge(boxes, diff(FIX), reference)
    assert verdict.reward == 1.0, verdict
    assert (await judge(boxes, diff(FIX), reference | {"image": "adjudge-test:absent"})).status == "invalid_task"
    assert (await judge(boxes, diff(FIX), reference | {"folder": "/nowhere"})).status == "invalid_task"


def _image_with(client: Any, base: str, image: str, files: dict[str, str]) -> None:
    identity = client.create_container(base, ["true"])["Id"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"testbed/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    client.put_archive(identity, "/", buffer.getvalue())
    repository, _, tag = image.partition(":")
    client.commit(identity, repository, tag)
    client.remove_container(identity)


async def test_an_image_without_pytest_is_the_data_sets_fault(boxes):
    """Said by our driver before anything of the answer has run; an answer that says the same later is not believed."""
    verdict = await judge(boxes, diff(FIX), REPOSITORY | {"env": {"PYTHONPATH": ""}, "python": "./no-pytest"})
    assert (verdict.status, verdict.reward) == ("ok", 0.0)
    files = REPOSITORY["files"] | {"no-pytest": '#!/bin/sh\nexec python3 -S "$@"\n'}
    verdict = await judge(boxes, diff(FIX), REPOSITORY | {"files": files, "python": "./no-pytest"})
    assert verdict.status == "invalid_task"
    assert "has no pytest" in verdict.reason
