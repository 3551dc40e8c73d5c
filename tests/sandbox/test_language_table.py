"""The table of languages and what is worked out from it without running anything."""

from __future__ import annotations

import asyncio

import pytest

from adjudge_sandbox.base import Limits, Program
from adjudge_sandbox.languages import table
from adjudge_sandbox.languages.cache import BuildCache, Built
from adjudge_sandbox.languages.classes import entry_of
from adjudge_sandbox.languages.recipe import Recipe, recipe_for
from adjudge_sandbox.languages.toolchains import Found

ALL = (
    "python c cpp java javascript typescript go rust csharp kotlin scala ruby php perl lua r julia haskell ocaml d "
    "bash sql"
)
SANDBOX_FUSION = "python cpp nodejs go java php csharp bash typescript sql rust lua R perl D_ut ruby scala julia kotlin"
TAGS = "py3 pypy3 cc cxx cplusplus c++17 c11 js node mjs ts golang rs cs c# kt rb pl jl hs ml sh zsh"
PISTON = "c c++ csharp csharp.net java javascript typescript go rust ruby php perl lua rscript julia haskell ocaml bash"


def test_every_language_is_there_once() -> None:
    assert sorted(language.name for language in table.languages()) == sorted(ALL.split())
    aliases = [a for one in table.languages() for a in {one.name, *one.aliases, *one.standards}]
    assert len(aliases) == len(set(aliases))


@pytest.mark.parametrize("name", [*SANDBOX_FUSION.split(), *PISTON.split()])
def test_names_of_other_executors(name: str) -> None:
    assert table.find(name) is not None


@pytest.mark.parametrize("tag", TAGS.split())
def test_tags_of_fenced_blocks(tag: str) -> None:
    assert table.find(tag) is not None


def test_an_alias_chooses_the_standard() -> None:
    for alias, standard in (("c++17", "gnu++17"), ("cpp20", "gnu++20"), ("c99", "c99"), ("rust2018", "2018")):
        found = table.find(alias)
        assert found is not None
        assert found[1] == standard
    assert (table.find("cpp") or ("", ""))[1] == ""


@pytest.mark.parametrize(
    ("source", "file", "main"),
    [
        ("public class A { public static void main(String[] a) {} }", "A", "A"),
        ("class H {} class App { public static void main(String... a) {} }", "App", "App"),
        ("interface I {}\npublic final class B<T extends C<T>> { static void main(String[] a) {} }", "B", "B"),
        ("class X { public static void main(String[] a) {} } public class Y {}", "Y", "X"),
        ("package org.ex;\npublic class A { public static void main(String[] a) {} }", "A", "org.ex.A"),
        ("// class No { void main(\n/* class No2 { void main( */ class Z { void main() {} }", "Z", "Z"),
        ('class S { String s = "class T { void main("; char c = \'"\'; static void main(String[] a) {} }', "S", "S"),
        ("class O { static class I { public static void main(String[] a) {} } }", "O", "O$I"),
        ("record P(int a) {} enum E { A { } } class M { static void main(String[] a) {} }", "M", "M"),
        ("object Hello extends App { println(1) }", "Hello", "Hello"),
        ("case class C(x: Int)\nobject Main { def main(args: Array[String]): Unit = {} }", "Main", "Main"),
        ("class Solution { int f() { return 1; } }", "Main", "Main"),
        ("", "Main", "Main"),
    ],
)
def test_where_a_program_begins(source: str, file: str, main: str) -> None:
    entry = entry_of(source)
    assert (entry.file, entry.main) == (file, main)


@pytest.mark.parametrize(
    "piece",
    [
        "/*",
        '"',
        '\\"',
        "'",
        "class A{",
        "public ",
        "final ",
        "\n",
        " ",
        "{",
        "}",
        "void main(",
        "package a.",
        "extends App ",
    ],
)
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str) -> None:
    """What is quadratic would not end before the suite's patience does: a megabyte squared is an hour."""
    assert entry_of(piece * (1_000_000 // len(piece))).main


def _recipe(source: str, language: str = "java", **files: bytes) -> Recipe:
    known = table.find(language)
    assert known is not None
    toolchain = known[0].toolchains[0]
    found = Found(known[0], toolchain, {name: f"/usr/bin/{name}" for name in toolchain.needs}, "identity")
    return recipe_for(Program(source, language, files=files), found, known[1] or known[0].standard)


def test_commands_are_filled_in() -> None:
    recipe = _recipe("class App { static void main(String[] a) {} }")
    command = recipe.command(recipe.run, 100)
    assert command[0] == "/usr/bin/java"
    assert command[-1] == "App"
    assert "-Xmx100m" in command
    assert recipe.command(recipe.build, 0)[-1] == "App.java"
    assert not any("{" in part for part in (*command, *recipe.command(recipe.build, 0)))
    assert "-J-XX:SharedArchiveFile=/there/javac.jsa" in recipe.command(recipe.build, 0, "/there")


def test_limits_are_raised_to_what_a_runtime_needs_and_never_lowered() -> None:
    recipe = _recipe("class A {}")
    limits = recipe.run_limits(Limits(memory_mib=64, processes=4), 3 << 20)
    assert limits.memory_mib > 200
    assert limits.processes == 64
    assert limits.scratch_mib == Limits().scratch_mib + 3
    assert recipe.run_limits(Limits(memory_mib=2048, processes=500), 0).memory_mib == 2048
    assert recipe.heap_mib(limits) < limits.memory_mib


def test_what_changes_the_key_of_a_build() -> None:
    keys = [
        _recipe(*arguments).key()
        for arguments in (("int a;", "c"), ("int b;", "c"), ("int a;", "c99"), ("int a;", "cpp"))
    ]
    keys += [_recipe("int a;", "c", **{"x.h": b"1"}).key(), _recipe("int a;", "c", **{"x.h": b"2"}).key()]
    assert len(set(keys)) == len(keys)
    assert _recipe("int a;", "c").key() == keys[0]


async def test_the_cache_joins_bounds_and_forgets_failures() -> None:
    cache, built = BuildCache(10_000), list[str]()

    async def build(name: str, size: int = 3000) -> Built:
        built.append(name)
        await asyncio.sleep(0.01)
        if name == "bad":
            raise OSError("no")
        return Built(bytes(size), lasting=name != "passing")

    async def get(name: str) -> Built:
        return await cache.get(name, lambda: build(name))

    await asyncio.gather(get("a"), get("a"), get("a"))
    assert built == ["a"]
    for name in ("b", "a", "c", "b", "a"):  # "c" drives out "b", the least recently used, and "b" then "a"
        await get(name)
    assert built == ["a", "b", "c", "b", "a"]
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            await get("bad")
        await get("passing")
    assert built[5:] == ["bad", "passing", "bad", "passing"]


async def test_a_build_outlives_one_of_its_callers_and_ends_with_the_last() -> None:
    cache, events = BuildCache(10_000), list[str]()

    async def build() -> Built:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        return Built(b"x")

    first, second = (asyncio.ensure_future(cache.get("k", build)) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    assert (await second).archive == b"x"
    alone = asyncio.ensure_future(cache.get("other", build))
    await asyncio.sleep(0.01)
    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
    await asyncio.sleep(0.01)
    assert events == ["cancelled"]
