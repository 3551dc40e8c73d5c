"""Files, checkers, interactors, test files and projects on the real sandbox: right answers, wrong ones, and attacks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from adjudge.types import Verdict
from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.reference import normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import boundary

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def judge(sandbox: Sandbox, code: str, raw: Any, **options: Any) -> Verdict:
    response = code if code.startswith(("```", "{")) else f"```python\n{code}\n```"
    with boundary("verifier 'code'") as outcome:
        call = Call(response, normalise(raw), CodeOptions.model_validate({"cpu_s": 2, "wall_s": 10, **options}))
        return await Code().verify(call, Context(sandbox))
    assert outcome.failure is not None
    return outcome.failure


GUESS = """import sys

secret = int(open(sys.argv[1]).read())
for _ in range(10):
    line = sys.stdin.readline()
    if not line.strip().isdigit():
        sys.exit(2)
    guess = int(line)
    print('=' if guess == secret else '<' if secret < guess else '>', flush=True)
    if guess == secret:
        sys.exit(0)
sys.exit(1)
"""
INTERACTIVE = {"interactor": GUESS, "tests": [{"stdin": "37\n", "stdout": "SECRET"}, {"stdin": "1000\n"}]}
SEARCH = """low, high = 1, 1000
while True:
    guess = (low + high) // 2
    print(guess, flush=True)
    reply = input()
    if reply == '=':
        break
    low, high = (low, guess - 1) if reply == '<' else (guess + 1, high)
"""


@pytest.mark.parametrize(
    ("code", "reward", "category"),
    [
        (SEARCH, 1.0, "correct"),
        ("n = 1\nwhile True:\n    print(n, flush=True)\n    n += 1\n    if input() == '=': break", 0.0, "wrong_answer"),
        ("print('x', flush=True)", 0.0, "wrong_answer"),
        ("", 0.0, "no_answer"),
        ("pass", 0.0, "wrong_answer"),
        ("print(1 / 0)", 0.0, "runtime_error"),
        ("while True: pass", 0.0, "time_limit"),
        ("while True: print(1)", 0.0, "wrong_answer"),
        ("import os\nos._exit(0)", 0.0, "wrong_answer"),
        (SEARCH + "raise ValueError", 0.0, "runtime_error"),
        ("def f(:", 0.0, "compile_error"),
        ("x = bytearray(1 << 33)", 0.0, "memory_limit"),
        (
            "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'37')\n    except OSError: pass",
            0.0,
            "wrong_answer",
        ),
        ("import glob\nprint(open(glob.glob('/tmp/*.txt')[0]).read())", 0.0, "runtime_error"),
    ],
)
async def test_interactive(sandbox: Sandbox, code: str, reward: float, category: str) -> None:
    verdict = await judge(sandbox, code, INTERACTIVE)
    assert (verdict.status, verdict.reward, verdict.category) == ("ok", reward, category), verdict


async def test_a_deadlock_is_the_answers_fault(sandbox: Sandbox) -> None:
    verdict = await judge(sandbox, "input()", INTERACTIVE, wall_s=1.5)
    assert (verdict.status, verdict.reward, verdict.category) == ("ok", 0.0, "time_limit"), verdict


@pytest.mark.parametrize(
    "interactor", ["import sys\nsys.exit(3)", "raise ValueError('broken')", "while True: pass", "open('/no/such/file')"]
)
async def test_a_broken_interactor_is_the_data_sets_fault(sandbox: Sandbox, interactor: str) -> None:
    verdict = await judge(sandbox, "input()", {**INTERACTIVE, "interactor": interactor}, cpu_s=1, wall_s=15)
    assert (verdict.status, verdict.reward) == ("invalid_task", None), verdict


async def test_an_interactor_that_a_strange_answer_crashes_is_not_broken(sandbox: Sandbox) -> None:
    fragile = "x = int(input())\nprint(x * 2, flush=True)\nraise SystemExit(0 if x == 5 else 1)"
    raw = {**INTERACTIVE, "interactor": fragile}
    verdict = await judge(sandbox, "print('five')", raw, wall_s=3)
    assert (verdict.status, verdict.reward, verdict.category) == ("ok", 0.0, "wrong_answer"), verdict
    assert (await judge(sandbox, "print(5)\ninput()", raw)).reward == 1.0


CHECKER = {
    "checker": "import sys\nn, out = (open(p).read().split() for p in sys.argv[1:3])\n"
    "sys.exit(0 if sum(map(int, out)) == int(n[0]) else 1)",
    "tests": [{"stdin": "5\n", "stdout": "2 3\n"}],
}


@pytest.mark.parametrize(
    ("code", "reward"),
    [("print(1, 4)", 1.0), ("print(5)", 1.0), ("print(4)", 0.0), ("print('x')", 0.0), ("print('9' * 5000)", 0.0)],
)
async def test_checker(sandbox: Sandbox, code: str, reward: float) -> None:
    verdict = await judge(sandbox, code, CHECKER)
    assert (verdict.status, verdict.reward) == ("ok", reward), verdict


FILES = {
    "input_file": "in.txt",
    "output_file": "out.txt",
    "tests": [{"stdin": "3", "stdout": "9", "files": {"sub/data.bin": {"base64": "AAE="}}}],
}


@pytest.mark.parametrize(
    ("code", "reward"),
    [
        ("n = int(open('in.txt').read())\nopen('out.txt', 'w').write(str(n * n))", 1.0),
        ("n = int(input())\nopen('out.txt', 'w').write(str(n * n))", 1.0),
        ("print(9)", 1.0),
        ("open('out.txt', 'w').write('8')\nprint(9)", 0.0),
        ("assert open('sub/data.bin', 'rb').read() == bytes([0, 1])\nprint(9)", 1.0),
        ("import os\nos.symlink('/etc/hostname', 'out.txt')", 0.0),
        ("import os\nos.mkfifo('out.txt')", 0.0),
    ],
)
async def test_files(sandbox: Sandbox, code: str, reward: float) -> None:
    verdict = await judge(sandbox, code, FILES)
    assert (verdict.status, verdict.reward) == ("ok", reward), verdict


TEST_FILE = """import io
import unittest

import pytest
import solution
from solution import Stack, add, main


@pytest.mark.parametrize('a, b', [(1, 2), (3, 4)])
def test_add(a, b):
    assert add(a, b) == a + b


@pytest.fixture
def stack():
    made = Stack()
    made.push(1)
    yield made


def test_stack(stack, tmp_path):
    (tmp_path / 'x').write_text('1')
    assert stack.items == [int((tmp_path / 'x').read_text())]


def test_error():
    with pytest.raises(ValueError, match='no'):
        add('no', 1)


def test_main(capsys, monkeypatch):
    monkeypatch.setattr('builtins.input', lambda *prompt: '4')
    main()
    assert capsys.readouterr().out == '8\\n'


def test_limit(capsys, monkeypatch):
    monkeypatch.setattr(solution, 'FACTOR', 3)
    monkeypatch.setattr('sys.stdin', io.StringIO('5\\n'))
    main()
    assert capsys.readouterr().out == '15\\n'


class TestCase(unittest.TestCase):
    def test_close(self):
        self.assertAlmostEqual(add(0.1, 0.2), 0.3)
"""
SOLVED = """FACTOR = 2


def add(a, b):
    if isinstance(a, str):
        raise ValueError(a)
    return a + b


def main():
    print(int(input()) * FACTOR)


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
"""


def changed(old: str, new: str) -> str:
    assert old in SOLVED
    return SOLVED.replace(old, new)


@pytest.mark.parametrize(
    ("code", "passed", "category"),
    [
        (SOLVED, 7, "correct"),
        (changed("a + b", "a - b"), 4, "partial"),
        (changed("append(item)", "append(0)"), 6, "partial"),
        (changed("return a + b", "import os; os._exit(0)"), 0, "tampered"),
        (changed("    return a + b", "    import pytest; pytest.skip('no')"), 0, "runtime_error"),
        (changed("    return a + b", "    import unittest; raise unittest.SkipTest"), 4, "partial"),
        (changed("def add", "def sub"), 0, "compile_error"),
        (changed("    return a + b", "    while True: pass"), 0, "time_limit"),
        (SOLVED + "import sys\nsys.exit(0)\n", 0, "tampered"),
        (SOLVED + "import pytest, _pytest.runner\n_pytest.runner.call_and_report = None\n", 7, "correct"),
        ("def add(:", 0, "compile_error"),
    ],
    ids=range(11),
)
async def test_test_files(sandbox: Sandbox, code: str, passed: int, category: str) -> None:
    verdict = await judge(sandbox, code, {"pytest": TEST_FILE}, scoring="fraction", cpu_s=0.4, wall_s=30)
    assert (verdict.status, verdict.evidence["passed"], verdict.category) == ("ok", passed, category), verdict
    assert (verdict.reward == 1.0) == (category == "correct")


async def test_expected_tests_are_all_that_counts(sandbox: Sandbox) -> None:
    test = {"pytest": TEST_FILE, "expected": ["test_add", "TestCase::test_close", "test_error"]}
    verdict = await judge(sandbox, changed("append(item)", "append(0)"), {"tests": [test]})
    assert (verdict.reward, verdict.evidence["total"]) == (1.0, 3), verdict
    test["expected"].append("test_that_is_not_there")
    verdict = await judge(sandbox, SOLVED, {"tests": [test]})
    assert (verdict.reward, verdict.category) == (0.0, "wrong_answer"), verdict


@pytest.mark.parametrize(
    ("test", "status", "reward"),
    [
        ("from solution import add\n@pytest.mark.skip\ndef test_a():\n    assert add(1, 2) == 3", "ok", 0.0),
        ("from solution import add\n@pytest.mark.xfail\ndef test_a():\n    assert add(1, 2) == 4", "ok", 0.0),
        ("from solution import add\nadd(1, 2)", "ok", 0.0),
        ("import solution\ndef test_a():\n    pass", "invalid_task", None),
        ("import no_such_module\nimport solution\ndef test_a():\n    pass", "invalid_task", None),
        ("from solution import add\nasync def test_a():\n    assert add(1, 2) == 3", "ok", 1.0),
    ],
    ids=range(6),
)
async def test_what_counts_as_passed(sandbox: Sandbox, test: str, status: str, reward: float | None) -> None:
    verdict = await judge(sandbox, SOLVED, {"pytest": f"import pytest\n{test}\n"})
    assert (verdict.status, verdict.reward) == (status, reward), verdict


PACKAGE = {
    "tests": [{"pytest": "from shapes.square import area\n\n\ndef test():\n    assert area(3) == 9\n"}],
    "project": {},
}


@pytest.mark.parametrize(
    ("files", "reward", "category"),
    [
        ({"shapes/square.py": "def area(x):\n    return x * x"}, 1.0, "correct"),
        ({"shapes/__init__.py": "", "shapes/square.py": "area = lambda x: x"}, 0.0, "wrong_answer"),
        ({"shapes/circle.py": "def area(x):\n    return x * x"}, 0.0, "compile_error"),
        (
            {"shapes/square.py": "from .helper import area", "shapes/helper.py": "def area(x): return x ** 2"},
            1.0,
            "correct",
        ),
        ({"pytest.py": "def main(*a, **k): pass", "shapes/square.py": "def area(x): return 1"}, 0.0, "wrong_answer"),
        ({"conftest.py": "import os; os._exit(0)", "shapes/square.py": "def area(x): return x * x"}, 1.0, "correct"),
    ],
    ids=range(6),
)
async def test_packages(sandbox: Sandbox, files: dict[str, str], reward: float, category: str) -> None:
    verdict = await judge(sandbox, json.dumps(files), PACKAGE)
    assert (verdict.status, verdict.reward, verdict.category) == ("ok", reward, category), verdict


async def test_a_project_is_built_and_run(sandbox: Sandbox) -> None:
    if "bash" not in sandbox.languages():
        pytest.skip("no bash here")
    raw = {
        "project": {
            "files": {"given.txt": "2\n"},
            "build": "echo $(cat given.txt own.txt) > sum.txt",
            "run": "cat sum.txt -",
        },
        "tests": [{"stdin": "x\n", "stdout": "2 3 x"}],
    }
    assert (await judge(sandbox, json.dumps({"own.txt": "3\n"}), raw)).reward == 1.0
    verdict = await judge(sandbox, json.dumps({"other.txt": "3"}), raw)
    assert (verdict.status, verdict.reward) == ("ok", 0.0), verdict


@pytest.mark.parametrize(("name", "standard"), [("c++17", 201703), ("Cpp20", 202002), ("cpp14", 201402)])
async def test_the_standard_of_a_language_reaches_its_compiler(sandbox: Sandbox, name: str, standard: int) -> None:
    if "cpp" not in sandbox.languages():
        pytest.skip("no cpp here")
    response = '```cpp\n#include <cstdio>\nint main() { std::printf("%ld\\n", __cplusplus); }\n```'
    tests = [{"stdin": "", "stdout": f"{standard}\n"}]
    assert (await judge(sandbox, response, {"language": name, "tests": tests}, wall_s=30)).reward == 1.0
    assert (await judge(sandbox, response, {"tests": tests}, language=name, wall_s=30)).reward == 1.0


@pytest.mark.parametrize("language", ["c", "cpp", "javascript"])
async def test_other_languages(sandbox: Sandbox, language: str) -> None:
    if language not in sandbox.languages():
        pytest.skip(f"no {language} here")
    c = '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); return 0; }'
    javascript = "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number);\nconsole.log(a + b);"
    source = javascript if language == "javascript" else c
    response = (
        f"```python\nprint('no')\n```\nIn the right language:\n```{language}\n{source}\n```\nIt prints:\n```\n3\n```"
    )
    raw = {"language": language, "tests": [{"stdin": "1 2\n", "stdout": "3\n"}]}
    verdict = await judge(sandbox, response, raw, wall_s=30)
    assert (verdict.reward, verdict.isolation) == (1.0, "jail"), verdict
    broken = await judge(sandbox, response.replace("a + b", "a +"), raw, wall_s=30)
    assert (broken.reward, broken.category) == (0.0, "compile_error"), broken
