"""Test libraries that test code asks for, written anew as far as it uses them.

A jail shows what its language's toolchain brings and nothing else, and hosts differ in what is installed. So luaunit,
Test::Deep, test/unit, testify's assert and javatuples come from here, always.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

__all__ = ["beside", "inlined"]

_NAMES = ("Unit", "Pair", "Triplet", "Quartet", "Quintet", "Sextet", "Septet", "Octet", "Ennead", "Decade")
_TUPLES = {name: size for size, name in enumerate(_NAMES, 1)}
_TUPLE = re.compile(rf"\b(?:{'|'.join(_TUPLES)})\b")
_REQUIRES = {
    "perl": (re.compile(r"^[ \t]*use[ \t]+Test::Deep\b[^;\n]*;", re.MULTILINE), "deep.pl"),
    "ruby": (re.compile(r"^[ \t]*require[ \t]*\(?[ \t]*['\"]test/unit['\"][ \t]*\)?", re.MULTILINE), "test_unit.rb"),
    "go": (re.compile(r"\bassert[ \t]*:=[ \t]*assert\.New\("), "assert.go"),
    "lua": (re.compile(r"\brequire[ \t]*\(?[ \t]*['\"]luaunit['\"][ \t]*\)?"), "luaunit.lua"),
}


@functools.cache
def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")


def inlined(tests: str, language: str) -> str:
    """``tests`` with the library in the place where they ask for it."""
    if language not in _REQUIRES:
        return tests
    pattern, name = _REQUIRES[language]
    if language == "go":  # a library of functions goes to the end
        return (
            f"{pattern.sub('assert := adjudge_assert_new(', tests)}\n{_text(name)}" if pattern.search(tests) else tests
        )
    return pattern.sub(lambda _: _text(name), tests, count=1)


def beside(source: str, language: str) -> tuple[str, dict[str, bytes]]:
    """The program, and files that have to lie beside it."""
    if language != "java" or "org.javatuples" not in source:
        return source, {}
    used = sorted(set(_TUPLE.findall(source)))
    if not used:
        return re.sub(r"^[ \t]*import[ \t]+org\.javatuples\.\*;", "", source, flags=re.MULTILINE), {}
    return source, {f"org/javatuples/{name}.java": _tuple_class(name, _TUPLES[name]).encode() for name in used}


def _tuple_class(name: str, size: int) -> str:
    """One class of org.javatuples: its fields, ``with``, getters, equality and text."""
    letters = "ABCDEFGHIJ"[:size]
    kinds = ", ".join(letters)
    parameters = ", ".join(f"{letter} v{i}" for i, letter in enumerate(letters))
    values = ", ".join(f"v{i}" for i in range(size))
    getters = "".join(
        f"    public {letter} getValue{i}() {{ return v{i}; }}\n{_setter(name, letters, i)}"
        for i, letter in enumerate(letters)
    )
    return f"""package org.javatuples;

public final class {name}<{kinds}> implements Comparable<{name}<{kinds}>>, Iterable<Object> {{
{"".join(f"    private final {letter} v{i};{chr(10)}" for i, letter in enumerate(letters))}
    public {name}({parameters}) {{ {" ".join(f"this.v{i} = v{i};" for i in range(size))} }}
    public static <{kinds}> {name}<{kinds}> with({parameters}) {{ return new {name}<>({values}); }}
{getters}    public int getSize() {{ return {size}; }}
    public Object getValue(int i) {{ return toList().get(i); }}
    public java.util.List<Object> toList() {{ return java.util.Arrays.<Object>asList({values}); }}
    public java.util.Iterator<Object> iterator() {{ return toList().iterator(); }}
    public boolean contains(Object x) {{ return toList().contains(x); }}
    public int hashCode() {{ return toList().hashCode(); }}
    public String toString() {{ return toList().toString(); }}
    public boolean equals(Object other) {{
        return other instanceof {name} && toList().equals((({name}<?{", ?" * (size - 1)}>) other).toList());
    }}
    @SuppressWarnings({{"unchecked", "rawtypes"}})
    public int compareTo({name}<{kinds}> other) {{
        for (int i = 0; i < {size}; i++) {{
            int found = ((Comparable) getValue(i)).compareTo(other.getValue(i));
            if (found != 0) return found;
        }}
        return 0;
    }}
}}
"""


def _setter(name: str, letters: str, index: int) -> str:
    kinds = ", ".join("X" if i == index else letter for i, letter in enumerate(letters))
    values = ", ".join("x" if i == index else f"v{i}" for i in range(len(letters)))
    return f"    public <X> {name}<{kinds}> setAt{index}(X x) {{ return new {name}<>({values}); }}\n"
