"""Go: test files are no programs, so a ``main`` is put beside their test functions.

Imports may stand only at the top and only once, and one that is not used is an error: those of prompt and answer are
brought together there.
"""

from __future__ import annotations

import re

from .dialects import Dialect
from .lexing import mask

__all__ = ["go_program"]

_PACKAGE = re.compile(r"^[ \t]*package[ \t]+\w+[ \t]*;?[ \t]*$", re.MULTILINE)
_IMPORT = re.compile(r"^import[ \t]*(?:\(([^()]*)\)|([\w.]*[ \t]*[\"`][^\"`\n]+[\"`]))[ \t]*;?", re.MULTILINE)
_SPEC = re.compile(r"([\w.]+)?[ \t]*[\"`]([^\"`\n]+)[\"`]")
_TEST = re.compile(r"^func[ \t]+(Test\w*)[ \t]*\([ \t]*\w+[ \t]+\*testing\.T[ \t]*\)", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*")


def go_program(before: str, tests: str, prompt: str, dialect: Dialect, token: str) -> str:
    """One file of package main. Raises ``ValueError`` if the tests hold no test function."""
    names = _TEST.findall(tests)
    if not names:
        raise ValueError("the test code has no function of the form TestName(t *testing.T)")
    before = _without(before, names, dialect)
    given = [*_imports(prompt), *_imports(tests), ("", "testing"), ("", "reflect")]
    own = [each for each in _imports(before) if each not in given]
    body, tests = _IMPORT.sub("", _PACKAGE.sub("", before)), _IMPORT.sub("", _PACKAGE.sub("", tests))
    code = f"{mask(body, 'go')}\n{mask(tests, 'go')}"
    wanted = [*own, *(each for each in given if _is_used(each, code) and "stretchr/testify" not in each[1])]
    lines = dict.fromkeys(f'\t{alias} "{path}"' for alias, path in wanted)
    runs = "".join(f'\t\tpassed = t.Run("{name}", {name}) && passed\n' for name in names)
    ending = dialect.ending.replace("{token}", token)
    return (
        'package main\n\nimport (\n\tadjudge_fmt "fmt"\n\tadjudge_testing "testing"\n' + "\n".join(lines) + "\n)\n"
        f"{body}\n{tests}\n"
        "func main() {\n\tadjudge_testing.Main(func(pattern, name string) (bool, error) { return true, nil },\n"
        '\t\t[]adjudge_testing.InternalTest{{Name: "all", F: func(t *adjudge_testing.T) {\n'
        f"\t\tpassed := true\n{runs}\t\tif passed {{\n\t\t\t{ending}\n\t\t}}\n\t}}}}}}, nil, nil)\n}}\n"
    )


def _without(text: str, names: list[str], dialect: Dialect) -> str:
    """The answer's own tests and its ``main`` give way."""
    for name in names:
        text = re.sub(rf"^func[ \t]+{name}\b", f"func adjudge_unused_{name}", text, flags=re.MULTILINE)
    return text


def _imports(text: str) -> list[tuple[str, str]]:
    """Alias and path of each import."""
    found: list[tuple[str, str]] = []
    for match in _IMPORT.finditer(text):
        inside = _COMMENT.sub("", match[1]) if match[1] is not None else match[2]
        found += [(spec[1] or "", spec[2]) for spec in _SPEC.finditer(inside)]
    return found


def _is_used(spec: tuple[str, str], code: str) -> bool:
    alias, path = spec
    name = alias or path.rpartition("/")[2]
    return name in ("_", ".") or re.search(rf"\b{re.escape(name)}\.", code) is not None
