"""Answers of several files: how they are found, and which of two files of one name is taken."""

from __future__ import annotations

import json

import pytest

from adjudge_verifiers.code.parts import Project
from adjudge_verifiers.code.project import files_of, find_files, program_of_project

PROJECT = Project()
TWO = {"a/b.py": "x = 1", "main.py": "print(1)"}


@pytest.mark.parametrize(
    "response",
    [
        "```python title=a/b.py\nx = 1\n```\n```python title=main.py\nprint(1)\n```",
        '```python title="a/b.py"\nx = 1\n```\n```python\nprint(1)\n```',
        "```python a/b.py\nx = 1\n```\n```python main.py\nprint(1)\n```",
        "```a/b.py\nx = 1\n```\n```main.py\nprint(1)\n```",
        "`a/b.py`:\n```python\nx = 1\n```\n\n**main.py**\n\n```python\nprint(1)\n```",
        "### a/b.py\n```python\nx = 1\n```\nFile: main.py\n```python\nprint(1)\n```",
        "1. `./a/b.py`\n\n```python\nx = 1\n```\n\nThe program:\n\n```python\nprint(1)\n```",
        json.dumps(TWO),
        json.dumps({"files": TWO}),
        "Here:\n```json\n" + json.dumps(TWO) + "\n```",
        "<think>```python\ndraft\n```</think>\n```py file=a/b.py\nx = 1\n```\n```py file=main.py\nprint(1)\n```",
    ],
)
def test_files_are_found(response: str) -> None:
    found = find_files(response, PROJECT)
    assert found.outcome == "answered"
    assert json.loads(found.text) == TWO


def test_a_comment_on_the_first_line_names_a_file_and_stays() -> None:
    found = find_files("```python\n# a/b.py\nx = 1\n```\n```js\n// src/run.js\nrun()\n```", PROJECT)
    assert json.loads(found.text) == {"a/b.py": "# a/b.py\nx = 1", "src/run.js": "// src/run.js\nrun()"}


@pytest.mark.parametrize(
    ("response", "outcome"),
    [("No code.", "none"), ("", "none"), ("```python\nprint(", "truncated"), ("<think>```python\nx\n```", "truncated")],
)
def test_no_files(response: str, outcome: str) -> None:
    assert find_files(response, PROJECT).outcome == outcome


def test_prose_above_a_block_is_no_name() -> None:
    found = find_files("I changed main.py and it works now.\n```python\nprint(1)\n```", PROJECT)
    assert json.loads(found.text) == {"main.py": "print(1)"}


def test_the_references_files_win() -> None:
    project = Project(files={"tests/data.txt": "given", "main.py": "given"})
    answer = json.dumps({"main.py": "own", "tests/data.txt": "own", "more.py": "own"})
    program = program_of_project(answer, project, "python")
    assert program is not None
    assert program.source == "given"
    assert dict(program.files) == {"tests/data.txt": b"given", "main.py": b"given", "more.py": b"own"}


@pytest.mark.parametrize("name", ["../x.py", "/etc/passwd", "a/../../b", "a//b", "", ".", "a\0b", "x" * 300, "a\\b"])
def test_names_that_lead_elsewhere_are_dropped(name: str) -> None:
    program = program_of_project(json.dumps({name: "x", "main.py": "y"}), PROJECT, "python")
    assert program is not None
    assert set(program.files) == {"main.py"}


def test_what_is_run() -> None:
    files = json.dumps({"main.cpp": "int main() {}", "x.h": "int x;"})
    compiled = program_of_project(files, Project(main="main.cpp"), "cpp")
    assert compiled is not None
    assert (compiled.source, dict(compiled.files), compiled.build) == ("int main() {}", {"x.h": b"int x;"}, None)
    scripted = program_of_project(files, Project(build="make", run="./x < /dev/stdin"), "cpp")
    assert scripted is not None
    assert (scripted.source, scripted.language, scripted.build) == ("./x < /dev/stdin", "bash", "make")
    assert program_of_project(json.dumps({"x.h": ""}), Project(main="main.cpp"), "cpp") is None


def test_text_that_is_no_object_is_the_main_file() -> None:
    assert files_of("print(1)", PROJECT) == {"main.py": "print(1)"}
    assert files_of('{"a": 1}', PROJECT) == {"main.py": '{"a": 1}'}
