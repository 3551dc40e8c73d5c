"""Finding the program in a response."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge_verifiers.extract.code import Block, blocks, canonical_language, find_program

FOUND: list[tuple[str, dict[str, Any], str]] = [
    ("```python\nprint(1)\n```", {}, "print(1)"),
    ("```py\nprint(1)\n```\nthen\n```python3\nprint(2)\n```", {}, "print(2)"),
    ("```python\nprint(1)\n```\nOutput:\n```\n1\n```", {}, "print(1)"),
    ("```python\nprint(1)\n```\nRun it:\n```bash\npython x.py\n```", {}, "print(1)"),
    ("```\nprint(1)\n```\n```\nprint(2)\n```", {}, "print(2)"),
    ("```\nprint(1)\n```\n```text\n1\n```", {}, "print(1)"),
    ("```python\na\n```\n```\nb\n```", {"pick": "last"}, "b"),
    ("```\na\n```\n```python\nb\n```", {"pick": "first"}, "a"),
    ("```python\na = 1\n```\nand\n```text\nx\n```\n```python\nb = 2\n```", {"pick": "join"}, "a = 1\n\nb = 2"),
    ("```cpp\nint a;\n```\n```python\nb\n```", {"language": "C++"}, "int a;"),
    ("~~~python\nprint('```')\n~~~", {}, "print('```')"),
    ("````python\nx = '''\n```\n'''\n````", {}, "x = '''\n```\n'''"),
    ("1. First:\n   ```python\n   if x:\n       y()\n   ```", {}, "if x:\n    y()"),
    ("Here it is: ```python\nprint(1)\n```", {}, "print(1)"),
    ("```python\nprint(1)```", {}, "print(1)"),
    ("```python print(1)```", {}, "print(1)"),
    ("```Python\r\nprint(1)\r\n```\r\n", {}, "print(1)\r"),
    ("```{.python .numberLines}\nprint(1)\n```", {}, "print(1)"),
    ("```python\nold\n```python\nprint(1)\n```", {}, "print(1)"),
    ('```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n    return 1\n```', {}, None),  # type: ignore[list-item]
    ("<think>```python\nbad\n```</think>```python\nprint(1)\n```", {}, "print(1)"),
    ("bad ```python\nx\n```</think>\n```python\nprint(1)\n```", {}, "print(1)"),
    ("print(int(input()) + 1)", {}, "print(int(input()) + 1)"),
    ("    return x + 1\n", {}, "    return x + 1"),
    ("def f(x):\n    return x", {}, "def f(x):\n    return x"),
    ("text <answer>\nx = 1\nprint(x)</answer>", {}, "x = 1\nprint(x)"),
    ("```python\nprint(1)", {"allow_unclosed": True}, "print(1)"),
    ("```python\nprint(1)\n```\n```text\ncut", {}, "print(1)"),
]


@pytest.mark.parametrize(("response", "how", "program"), FOUND, ids=range(len(FOUND)))
def test_found(response: str, how: dict[str, Any], program: str | None) -> None:
    extraction = find_program(response, **how)
    assert extraction.outcome == "answered"
    if program is not None:
        assert extraction.text == program


@pytest.mark.parametrize(
    ("response", "how", "outcome"),
    [
        ("", {}, "none"),
        ("I would sort the list and return it.", {}, "none"),
        ("print(1)", {"bare": False}, "none"),
        ("```python\n```", {}, "none"),
        ("```python\nprint(1", {}, "truncated"),
        ("```python\nprint(1)\n```\nBetter:\n```python\nprint(", {}, "truncated"),
        ("```python\nprint(1)\n```\nBetter:\n```python\nprint(", {"pick": "join"}, "truncated"),
        ("<think>so I write ```python\nprint(1)\n```", {}, "truncated"),
        ("<answer>print(1)", {}, "truncated"),
    ],
)
def test_not_found(response: str, how: dict[str, Any], outcome: str) -> None:
    extraction = find_program(response, **how)
    assert (extraction.outcome, extraction.text) == (outcome, "")


@pytest.mark.parametrize(
    "response",
    [
        "`" * 1_000_000,
        "```\n" * 250_000,
        "```python\n" * 100_000,
        "```python" * 100_000,
        " " * 1_000_000,
        "a" + " " * 999_999,
        "a" * 1_000_000,
        "a." * 500_000,
        "\n" * 1_000_000,
        "    ```" * 140_000,
        "```python\n" + "    x```\n" * 100_000,
        "<answer>" * 100_000,
        "~`" * 400_000,
    ],
    ids=range(13),
)
def test_hostile_text_is_read_in_linear_time(response: str) -> None:
    assert find_program(response).outcome in ("answered", "none", "truncated")


@given(st.text(alphabet="`~\n py.x=(", max_size=80))
def test_only_the_last_block_can_be_open(text: str) -> None:
    found = blocks(text)
    assert all(isinstance(block, Block) for block in found)
    assert all(block.closed for block in found[:-1])


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("d", "d"),
        ("dlang", "d"),
        ("rust2021", "rust"),
        ("g++", "cpp"),
        ("C++17", "cpp"),
        ("py3", "python"),
        ("zsh", "bash"),
    ],
)
def test_tags_are_the_sandboxs_names(tag: str, language: str) -> None:
    text = f"```{tag}\nright\n```\n```text\nno program\n```"
    assert find_program(text, language=language).text == "right"
    assert canonical_language(tag) == language
