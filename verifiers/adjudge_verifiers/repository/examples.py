"""Worked examples of the verifier ``repository``, for the catalogue and the tests.

They bring their repository with them; the container image is the server's own, any with Python and pytest.
"""

from __future__ import annotations

from ..base import Example

__all__ = ["EXAMPLES"]

_CALC = "def add(a, b):\n    return a - b\n\n\ndef double(x):\n    return 2 * x\n"
_TEST = (
    "from calc import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
    "def test_double():\n    assert double(4) == 8\n"
)
_REPOSITORY = {
    "files": {"calc.py": _CALC, "tests/test_calc.py": _TEST},
    "FAIL_TO_PASS": ["tests/test_calc.py::test_add"],
    "PASS_TO_PASS": ["tests/test_calc.py::test_double"],
    "patch": "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n",
}
_RIGHT = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"


def _diff(patch: str) -> str:
    return f"The sign is wrong.\n\n```diff\n{patch}```\n"


EXAMPLES: tuple[Example, ...] = (
    Example(_diff(_RIGHT), _REPOSITORY, category="correct", note="All of FAIL_TO_PASS and PASS_TO_PASS pass."),
    Example(
        "calc.py\n```python\n<<<<<<< SEARCH\n    return a - b\n=======\n    return b + a\n>>>>>>> REPLACE\n```",
        _REPOSITORY,
        category="correct",
        note="Search-and-replace blocks are patches too.",
    ),
    Example(_diff(_RIGHT.replace("a + b", "a * b")), _REPOSITORY, reward=0.0, category="wrong_answer"),
    Example(
        _diff(_RIGHT.replace("a + b", "a * b")),
        _REPOSITORY,
        {"scoring": "fraction"},
        reward=0.5,
        category="partial",
        note="The share of the listed tests that pass.",
    ),
    Example(_diff(_RIGHT.replace("a - b", "a / b")), _REPOSITORY, reward=0.0, category="wrong_format"),
    Example(
        _diff(
            "--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n@@ -4,2 +4,2 @@\n def test_add():\n"
            "-    assert add(2, 3) == 5\n+    assert True\n"
        ),
        _REPOSITORY,
        reward=0.0,
        category="wrong_answer",
        note="Tests are put back after the patch; the flag is `test_file_changed`.",
    ),
    Example("Use a plus sign.", _REPOSITORY, reward=0.0, category="no_answer"),
    Example(_diff(_RIGHT), {"FAIL_TO_PASS": ["t.py::test"]}, reward=None, status="invalid_task"),
)
