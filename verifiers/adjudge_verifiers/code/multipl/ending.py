"""Test code that shows that it was run to its end, and whose assertions the answer cannot have replaced by name.

An exit status of 0 proves nothing: the answer can end the process itself. So the last thing that the tests do is to
print a token that nothing else knows, and only that is a pass. It stands behind the last assertion: before the end of
``main``, or at the end of the text.
"""

from __future__ import annotations

import re

from .dialects import Dialect
from .lexing import arguments, closing, mask
from .stand_ins import inlined

__all__ = ["finished"]

_RETURN = re.compile(r"\breturn\b[^;{}]{0,100};\s*\Z")
_LUA_EXIT = re.compile(r"os\.exit\(([^\n]*LuaUnit\.run\([^\n)]*\))\)")
_DECLARE = re.compile(r"^declare[ \t][^\n]*\n", re.MULTILINE)
_UNITTEST = re.compile(r"\bunittest\b(?=\s*\{)")


def finished(tests: str, dialect: Dialect, token: str) -> str:
    """The tests with their ending. Raises ``ValueError`` if they have no place for it."""
    tests = inlined(_guarded(tests, dialect, token[:12]), dialect.language)
    statement = dialect.ending.replace("{token}", token)
    language = dialect.language
    if language == "go":
        return tests
    if language == "lua":
        return _lua(tests, statement)
    if language == "ruby":
        return f"{tests}\nexit(1) unless AdjudgeTestUnit.passed?\n{statement}\n"
    if language in ("javascript", "typescript"):
        head = "".join(_DECLARE.findall(tests))
        return f"{head}{{\n{_DECLARE.sub('', tests)}\n{statement}\n}}\n"
    if language == "d":
        tests, statement = _unittests(tests, statement, token)
    if not dialect.main:
        return f"{tests.rstrip()}\n{statement}\n"
    return _in_main(tests, dialect, statement)


def _in_main(tests: str, dialect: Dialect, statement: str) -> str:
    masked = mask(tests, dialect.language)
    mains = [match.end() - 1 for match in re.finditer(dialect.main, masked, re.MULTILINE)]
    if not mains:
        raise ValueError(f"the test code has no main function, which {dialect.language} needs")
    opening = masked.find("{", closing(masked, mains[-1]) or mains[-1])
    end = closing(masked, opening) if opening >= 0 else None
    if end is None:
        raise ValueError("the main function of the test code has no end")
    last = _RETURN.search(masked, max(opening, end - 200), end)
    at = last.start() if last else end
    return f"{tests[:at].rstrip()}\n{statement}\n{tests[at:]}"


def _lua(tests: str, statement: str) -> str:
    """luaunit's run gives the number of failures; its usual caller ends the process with it."""
    if not _LUA_EXIT.search(tests):
        return f"{tests.rstrip()}\n{statement}\n"
    return _LUA_EXIT.sub(lambda match: f"if {match[1]} ~= 0 then os.exit(1) end\n{statement}", tests)


def _unittests(tests: str, statement: str, token: str) -> tuple[str, str]:
    """D's ``unittest`` blocks as functions that main calls: the compiler is not told to run any."""
    names: list[str] = []

    def renamed(match: re.Match[str]) -> str:
        names.append(f"adjudge_tests_{token[:12]}_{len(names)}")
        return f"void {names[-1]}()"

    tests = _UNITTEST.sub(renamed, tests)
    return tests, "".join(f"{name}(); " for name in names) + statement


# ---------------------------------------------------------------------------------------------------------------------
# Assertions.

_CHECKS = {
    "cpp": (
        r"\bassert(?=[ \t]*\()",
        "template <class T> static void {name}(T&& holds) {{\n"
        '    if (!holds) {{ ::fputs("Assertion failed\\n", stderr); ::exit(1); }}\n}}\n',
        r"(?:int|void|auto)[ \t]+main\b",
    ),
    "csharp": (
        r"\bDebug\.Assert(?=[ \t]*\()",
        'static void {name}(bool holds) {{ if (!holds) throw new global::System.Exception("Assertion failed"); }}\n',
        r"(?:public[ \t]+)?static[ \t]+(?:void|int)[ \t]+Main\b",
    ),
    "scala": (
        r"(?<![\w.])assert(?=[ \t]*\()",
        'def {name}(holds: Boolean): Unit = if (!holds) throw new java.lang.AssertionError("Assertion failed")\n',
        r"def[ \t]+main\b",
    ),
}
"""Assertions that an answer could switch off, or that this host's runtime ignores, and a function in their place."""

_CONSOLE_ASSERT = re.compile(r"\bconsole\.assert(?=[ \t]*\()")
_CPP_CANDIDATE = re.compile(r"(\bauto[ \t]+candidate[ \t]*=[ \t]*)(\w+[ \t]*;)")


def _guarded(tests: str, dialect: Dialect, mark: str) -> str:
    if dialect.language == "rust":
        return re.sub(r"(?<![\w:])(assert(?:_eq|_ne)?!)", r"::std::\1", tests)
    if dialect.language in ("javascript", "typescript"):  # console.assert only complains
        return _CONSOLE_ASSERT.sub("require('node:assert').ok", tests)
    if dialect.language == "cpp":  # beside `using namespace std`, a bare max_element is two functions
        tests = _CPP_CANDIDATE.sub(r"\1::\2", tests)
    check = _CHECKS.get(dialect.language)
    if check is None:
        return tests
    pattern, definition, main = check
    masked = mask(tests, dialect.language)
    at = re.search(main, masked)
    calls = [match for match in re.finditer(pattern, masked) if _has_one_argument(masked, match.end())]
    if at is None or not calls:
        return tests
    name = f"adjudge_check_{mark}"
    pieces, last = [tests[: at.start()], definition.format(name=name)], at.start()
    for match in calls:
        if match.start() < last:
            continue
        pieces += [tests[last : match.start()], name]
        last = match.end()
    return "".join([*pieces, tests[last:]])


def _has_one_argument(masked: str, position: int) -> bool:
    found = arguments(masked, masked.index("(", position))
    return found is not None and (len(found[0]) == 1 or "<" in masked[found[0][0][0] : found[1]])
