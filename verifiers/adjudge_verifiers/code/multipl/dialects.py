"""What is known about each language in which test code is put behind an answer. Data; the work is done elsewhere.

Languages are those of the sandbox's table. Data sets name them by the ending of a file (MultiPL-E: ``go_test.go``,
``jl``, ``rs``), which are aliases here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIALECTS", "Dialect", "dialect_of"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language."""

    language: str
    aliases: tuple[str, ...]
    ending: str
    """The statement that shows that the tests were run to their end. ``{token}`` is what it prints."""
    declares: str = ""
    """Pattern of the declaration of ``{name}``; empty: by its parentheses, as in C."""
    named: str = ""
    """Pattern that finds the name of a prompt's function in its group 1; empty: as in C."""
    keeps: str = ""
    """Pattern of a line that a whole answer still needs from before the prompt's function."""
    main: str = ""
    """Pattern of a main function, its name in group 1; empty: a program is run from top to bottom."""
    in_class: bool = False
    """Functions stand in a class."""
    asserts: tuple[tuple[str, int], ...] = ()
    """Assertions by equality: pattern of the name, and which argument is the expected value (-1: there is one argument,
    a comparison)."""
    stops: tuple[str, ...] = ()
    """Where a completion ends, if a data set does not say."""
    braced: bool = False
    """A completion ends where it closes the brace that the prompt opened; stop tokens are for one that never does."""


_COMPARES = -1
_PRINT_JAVA = 'java.lang.System.out.println("{token}");'

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "c",
        ("c",),
        'puts("{token}");',
        keeps=r"[ \t]*#",
        main=r"\b(?:int|void)[ \t]+(main)[ \t]*\(",
        asserts=((r"\bassert", _COMPARES),),
        braced=True,
    ),
    Dialect(
        "cpp",
        ("cpp", "c++", "cc", "cxx"),
        '::puts("{token}");',
        keeps=r"[ \t]*#|[ \t]*using\b",
        main=r"\b(?:int|void|auto)[ \t]+(main)[ \t]*\(",
        asserts=((r"\bassert", _COMPARES),),
        braced=True,
    ),
    Dialect(
        "java",
        ("java",),
        _PRINT_JAVA,
        keeps=r"[ \t]*import\b",
        main=r"\bvoid[ \t]+(main)[ \t]*\(",
        in_class=True,
        asserts=((r"\bassert", _COMPARES),),
        braced=True,
    ),
    Dialect(
        "csharp",
        ("cs", "csharp", "c#"),
        'global::System.Console.WriteLine("{token}");',
        keeps=r"[ \t]*using\b",
        main=r"\b(?:void|int|Task)[ \t]+(Main)[ \t]*\(",
        in_class=True,
        asserts=((r"\bDebug\.Assert", _COMPARES),),
        braced=True,
    ),
    Dialect(
        "scala",
        ("scala",),
        '_root_.java.lang.System.out.println("{token}");',
        declares=r"\bdef[ \t]+{name}\b",
        named=r"\bdef[ \t]+(\w+)",
        keeps=r"[ \t]*import\b",
        main=r"\bdef[ \t]+(main)[ \t]*\(",
        in_class=True,
        asserts=((r"\bassert", _COMPARES),),
        braced=True,
    ),
    Dialect(
        "kotlin",
        ("kt", "kotlin"),
        'kotlin.io.println("{token}")',
        declares=r"\bfun[ \t]+(?:<[^>\n]{0,80}>[ \t]*)?{name}\b",
        named=r"\bfun[ \t]+(?:<[^>\n]{0,80}>[ \t]*)?(\w+)",
        keeps=r"[ \t]*import\b",
        main=r"\bfun[ \t]+(main)[ \t]*\(",
        asserts=((r"\bassert", _COMPARES),),
        braced=True,
    ),
    Dialect(
        "d",
        ("d", "dlang"),
        'import std.stdio : writeln; writeln("{token}");',
        keeps=r"[ \t]*import\b",
        main=r"\b(?:void|int)[ \t]+(main)[ \t]*\(",
        asserts=((r"\bassert", _COMPARES),),
        stops=("\n\n", "\nvoid", "\nbool", "\nint", "\nunittest"),
    ),
    Dialect(
        "go",
        ("go", "golang", "go_test.go"),
        'adjudge_fmt.Println("{token}")',
        declares=r"^func[ \t]+{name}[ \t]*[\[(]",
        named=r"^func[ \t]+(\w+)[ \t]*[\[(]",
        main=r"^func[ \t]+(main)[ \t]*\(",
        stops=("\nfunc", "\ntype ", "\n// "),
        braced=True,
    ),
    Dialect(
        "rust",
        ("rs", "rust"),
        '::std::println!("{token}");',
        declares=r"\bfn[ \t]+{name}\b",
        named=r"\bfn[ \t]+(\w+)",
        keeps=r"[ \t]*use\b",
        main=r"\bfn[ \t]+(main)[ \t]*\(",
        asserts=((r"\bassert_eq!", 1),),
        braced=True,
    ),
    Dialect(
        "javascript",
        ("js", "javascript", "node", "nodejs"),
        "require('node:fs').writeSync(1, '\\n{token}\\n');",
        declares=r"\bfunction(?:[ \t]*\*)?[ \t]*{name}\b|^[ \t]*(?:export[ \t]+)?(?:const|let|var)[ \t]+{name}\b",
        named=r"\bfunction[ \t]+(\w+)|^(?:const|let|var)[ \t]+(\w+)",
        asserts=((r"\bassert\.(?:deepEqual|deepStrictEqual|equal|strictEqual)", 1),),
        stops=("\nfunction ", "\n/*", "\n//", "\nconsole.log"),
        braced=True,
    ),
    Dialect(
        "typescript",
        ("ts", "typescript"),
        "require('node:fs').writeSync(1, '\\n{token}\\n');",
        declares=r"\bfunction(?:[ \t]*\*)?[ \t]*{name}\b|^[ \t]*(?:export[ \t]+)?(?:const|let|var)[ \t]+{name}\b",
        named=r"\bfunction[ \t]+(\w+)|^(?:const|let|var)[ \t]+(\w+)",
        asserts=((r"\bassert\.(?:deepEqual|deepStrictEqual|equal|strictEqual)", 1),),
        stops=("\nfunction ", "\n/*", "\n//", "\nclass"),
        braced=True,
    ),
    Dialect(
        "lua",
        ("lua",),
        "io.stdout:write('\\n{token}\\n')",
        declares=r"\bfunction[ \t]+{name}\b|\b{name}[ \t]*=[ \t]*function\b",
        named=r"\bfunction[ \t]+(\w+)",
        asserts=((r"\blu\.assertEquals", 1),),
        stops=("\nlocal", "\nfunction", "\n--", "\n\n"),
    ),
    Dialect(
        "php",
        ("php",),
        'fwrite(STDOUT, "\\n{token}\\n");',
        declares=r"\bfunction(?:[ \t]+&)?[ \t]*{name}\b",
        named=r"\bfunction[ \t]+&?[ \t]*(\w+)",
        asserts=((r"\bif", _COMPARES),),
        stops=("\nfunction", "\n?>", "\n//", "\n#"),
        braced=True,
    ),
    Dialect(
        "perl",
        ("pl", "perl"),
        'print STDOUT "\\n{token}\\n";',
        declares=r"\bsub[ \t]+{name}\b",
        named=r"\bsub[ \t]+(\w+)",
        keeps=r"use\b",
        asserts=((r"\beq_deeply", 1),),
        stops=("\nsub", "\n#", "\n\n"),
    ),
    Dialect(
        "r",
        ("r",),
        "base::cat('\\n{token}\\n')",
        declares=r"(?<![\w.]){name}[ \t]*(?:<-|=)[ \t]*(?:function\b|\\\()",
        named=r"([\w.]+)[ \t]*(?:<-|=)[ \t]*function\b",
        asserts=((r"\ball\.equal", 1), (r"\bidentical", 1)),
        stops=("\n#", "\n```"),
        braced=True,
    ),
    Dialect(
        "ruby",
        ("rb", "ruby"),
        "STDOUT.puts('', '{token}')",
        declares=r"\bdef[ \t]+(?:self\.)?{name}\b",
        named=r"\bdef[ \t]+(?:self\.)?(\w+)",
        keeps=r"require\b",
        asserts=((r"\bassert_equal", 0),),
        stops=("\nclass", "\ndef", "\n#", "\n\n"),
    ),
    Dialect(
        "julia",
        ("jl", "julia"),
        'Base.println(Base.stdout, "\\n{token}")',
        declares=r"\bfunction[ \t]+{name}\b|^{name}\([^\n]{0,500}?\)[^\n=]{0,200}=(?!=)",
        named=r"\bfunction[ \t]+(\w+)",
        keeps=r"(?:using|import)\b",
        asserts=((r"@test", _COMPARES),),
        stops=("\nfunction", "\nmacro", "\n\n"),
    ),
    Dialect(
        "bash",
        ("sh", "bash", "shell"),
        "builtin printf '\\n%s\\n' '{token}'",
        declares=r"^[ \t]*(?:function[ \t]+)?{name}[ \t]*\(\)|^[ \t]*function[ \t]+{name}\b",
        named=r"^(\w+)[ \t]*\(\)",
    ),
)
_BY_NAME = {name: dialect for dialect in DIALECTS for name in (dialect.language, *dialect.aliases)}


def dialect_of(name: str) -> Dialect | None:
    """The language that a data set calls ``name``, if test code can be put behind an answer in it."""
    return _BY_NAME.get(name.strip().lower())
