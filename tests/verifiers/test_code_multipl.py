"""Test code that is put behind an answer in its own language: how the program is made, and what passes.

The ordinary suite makes programs and runs a few in JavaScript. ``languages`` runs the answers of
``cases/multipl_e_solutions.toml`` to MultiPL-E's problems (shared data) in every language that this host has.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

from adjudge.types import Verdict
from adjudge_sandbox.base import Outcome, RunResult, Sandbox
from adjudge_sandbox.errors import SandboxUnavailable
from adjudge_sandbox.registry import open_sandbox
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.code.multipl.answer import function_of, place
from adjudge_verifiers.code.multipl.dialects import DIALECTS, Dialect, dialect_of
from adjudge_verifiers.code.multipl.ending import finished
from adjudge_verifiers.code.multipl.falsify import falsified
from adjudge_verifiers.code.multipl.lexing import mask
from adjudge_verifiers.code.multipl.program import Harness
from adjudge_verifiers.code.multipl.stand_ins import beside
from adjudge_verifiers.code.reference import CodeReference, normalise
from adjudge_verifiers.code.tests import Code, CodeOptions
from adjudge_verifiers.errors import InvalidReference, boundary

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ADJUDGE_SHARED", ROOT.parent / "shared")) / "data" / "multipl_e_sample.jsonl"


def dialect(name: str) -> Dialect:
    found = dialect_of(name)
    assert found is not None
    return found


PROMPTS = {
    "cpp": "#include <vector>\n// add(1, 2)\nstd::vector<long> twice(std::function<long(long)> f, long n) {\n",
    "java": "import java.util.*;\nclass Problem {\n    // twice((2l))\n    public static long twice(long n) {\n",
    "cs": "using System;\nclass Problem {\n    public static long twice(long n) {\n",
    "scala": "object Problem {\n    def twice(n : Long) : Long = {\n",
    "kotlin": "fun twice(n: Long): Long {\n",
    "d": "import std.math;\n/* twice(2) */\nlong twice(long n) \n",
    "go": 'package twice_test\n\nimport (\n    "testing"\n    "fmt"\n)\n\n// twice(2)\nfunc twice(n int) int {\n',
    "rs": "/// twice(2)\nfn twice(n: isize) -> isize {\n",
    "js": "// twice(2)\nfunction twice(n){\n",
    "ts": "// twice(2)\nfunction twice(n: number): number {\n",
    "lua": "-- twice(2)\nlocal function twice(n)\n",
    "php": "<?php\n// twice(2)\nfunction twice($n) {\n",
    "pl": "# twice(2)\nsub twice {\n    my($n) = @_;\n",
    "r": "# twice(2)\ntwice <- function(n) {",
    "rb": "# twice.call(2)\ndef twice(n)\n",
    "jl": '"""twice(2)"""\nfunction twice(n::Int64)::Int64 \n',
    "sh": "#!/bin/bash\n# $(twice 2)\ntwice() {\n",
}


@pytest.mark.parametrize("language", PROMPTS)
def test_the_function_of_a_prompt(language: str) -> None:
    assert function_of(PROMPTS[language], dialect(language)) == "twice"


@pytest.mark.parametrize(
    ("language", "answer", "whole"),
    [
        ("cpp", "    if (twice(f, l)) {\n        return twice(f, l);\n    }\n}", False),
        ("cpp", "long\ntwice(long n)\n{\n    return 2 * n;\n}", True),
        ("cpp", "// long twice(long n) {\n    return {};\n}", False),
        ("cpp", "static inline std::vector<long> twice(F f, std::vector<long> l) noexcept {\n}", True),
        ("java", "        return twice(n - 1) + 2;\n    }", False),
        ("java", "    static long twice(long n) throws Exception {\n        return 2 * n;\n    }", True),
        ("cs", "static long twice(long n) => 2 * n;", True),
        ("d", "{\n    return 2 * n;\n}", False),
        ("js", "  const inner = (n) => 2 * n;\n  return inner(n);\n}", False),
        ("js", "const twice = async (n) => 2 * n;", True),
        ("ts", "export const twice = (n: number): number => 2 * n;", True),
        ("lua", "    return 2 * n\nend", False),
        ("lua", "twice = function(n) return 2 * n end", True),
        ("r", "    # twice <- function\n    2 * n\n}", False),
        ("r", "twice = \\(n) 2 * n", True),
        ("rb", "def self.twice(n) = 2 * n", True),
        ("sh", "function twice {\n    echo $(($1 * 2))\n}", True),
        ("jl", "twice(n::Int) = 2n", True),
        ("go", "\treturn twice(n)\n}", False),
        ("rs", "pub fn twice(n: isize) -> isize { 2 * n }", True),
    ],
)
def test_a_whole_answer_is_one_that_declares_the_function(language: str, answer: str, whole: bool) -> None:
    placed = place(answer, PROMPTS[language], "}\n", dialect(language), "twice", ())
    assert placed.whole == whole
    assert placed.before.startswith(PROMPTS[language]) != whole


@pytest.mark.parametrize(
    ("language", "tests", "answer", "kept"),
    [
        ("cpp", "}\n", "    return \"}\" + '}'; // }\n}\nint main() {}", "    return \"}\" + '}'; // }\n"),
        (
            "java",
            "    }\n",
            "        if (n > 0) { return 1; }\n        return 0;\n    }\n\n    int x;\n}",
            "return 0;\n",
        ),
        ("js", "test();", "  return `}${n}`.match(/[}]/);\n}\nconsole.log(1)", ".match(/[}]/);\n}"),
        ("lua", "x", "    if n then\n\n        return 1\n    end\nend\n\nprint(1)", "    end\nend"),
        ("rb", "x", "  n\nend\n\nputs 1", "  n\nend"),
        ("d", "x", "{\n    int x;\n\n    return 1;\n}\nvoid main() {}", "    return 1;\n}"),
        ("sh", "}\n", "    echo ${#1} # a }\n}\nexit", "    echo ${#1} # a }"),
        ("rs", "}\n", "    let c: &'static str = \"{\"; let d = '}'; n\n}\nfn main() {}", "let d = '}'; n\n"),
    ],
)
def test_a_completion_ends_where_the_function_does(language: str, tests: str, answer: str, kept: str) -> None:
    stops = ("\n}",) if language == "sh" else ()
    assert place(answer, PROMPTS[language], tests, dialect(language), "twice", stops).before.endswith(kept)


def test_stop_tokens_of_the_data_set_end_a_completion_without_braces() -> None:
    placed = place("    return 1\nend\n-- more\n", PROMPTS["lua"], "x", dialect("lua"), "twice", ["\n-- m"])
    assert placed.before == PROMPTS["lua"] + "    return 1\nend"


@pytest.mark.parametrize(
    ("language", "answer"),
    [
        ("cpp", "long twice(long n) { return n; }\nint main() { return 0; }"),
        (
            "java",
            "class Problem {\n  static long twice(long n) { return n; }\n  public static void main(String[] a) {}\n}",
        ),
        ("cs", "namespace X { class Y { static long twice(long n) { return n; }\n static void Main() {} } }"),
        ("rs", "fn twice(n: isize) -> isize { n }\nfn main() {}"),
        ("scala", "object Main extends App { def twice(n: Long): Long = n\n def main(a: Array[String]) = {} }"),
    ],
)
def test_the_main_of_a_whole_answer_gives_way(language: str, answer: str) -> None:
    tests = "}\npublic static void main(String[] args) {\n}\n}\n"
    placed = place(answer, PROMPTS[language], tests, dialect(language), "twice", ())
    assert "adjudge_unused_main" in placed.before
    assert "extends App" not in placed.before
    program = f"{placed.before}{placed.tests}{placed.after}"
    depth = program.count("{") - program.count("}")
    assert depth == (0 if dialect(language).in_class else -1)


def test_whole_answers_keep_what_they_need_of_the_prompt() -> None:
    def before(language: str, answer: str, prompt: str = "") -> str:
        return place(answer, prompt or PROMPTS[language], "}\nx\n}", dialect(language), "twice", ()).before

    method = "import java.io.*;\npublic static long twice(long n) {\n return n; }"
    assert before("java", method).startswith("import java.util.*;\nimport java.io.*;\nclass Problem {\npublic static")
    union = "union Either { long n; };\n" + "Either twice(long n) {\n"
    assert "union Either" in before("cpp", "Either twice(long n) { return {n}; }", union)
    used = "use std::collections::HashMap;\nuse std::fmt;\nfn twice(n: isize) -> isize {\n"
    rust = before("rs", "use std::collections::{HashMap, HashSet};\nfn twice(n: isize) -> isize { n }", used)
    assert rust.count("HashMap;") == 0
    assert "use std::fmt;" in rust
    assert before("php", "<?php\ndeclare(strict_types=1);\nfunction twice($n) { return $n; }\n?>").count("<?php") == 1
    assert "export" not in before("js", "export default function twice(n) { return n; }\nexport { twice };")
    assert not before("lua", "local function twice(n) return n end\nreturn twice").rstrip().endswith("return twice")


@pytest.mark.parametrize(
    ("language", "tests", "behind"),
    [
        ("cpp", "}\nint main() {\n    check();\n    return 0;\n}\n", "check();"),
        ("java", "    }\n    public static void main(String[] args) {\n    check();\n    }\n\n}\n", "check();"),
        ("rs", "}\nfn main() {\n    check();\n}\n", "check();"),
        ("d", "unittest\n{\n    assert(twice(1) == 2);\n}\nvoid main(){}", "void main(){"),
        ("js", "check();", "check();"),
        ("lua", "lu = require('luaunit')\nos.exit(lu.LuaUnit.run())", "os.exit(1) end"),
        ("sh", "}\nrun_test", "run_test"),
    ],
)
def test_the_token_is_printed_behind_the_last_assertion(language: str, tests: str, behind: str) -> None:
    code = finished(tests, dialect(language), "T" * 32)
    assert behind in code
    end = code.index("T" * 32)
    assert code.index(behind) < end
    assert "return 0" not in code[:end]


def test_tests_that_cannot_be_used_are_the_data_sets_fault() -> None:
    def complaint(**reference: Any) -> str:
        with pytest.raises(InvalidReference) as caught:
            normalise({"tests": "int main", "language": "cpp", "prompt": PROMPTS["cpp"], **reference})
        return str(caught.value)

    assert "no main function" in complaint(tests="}\nvoid test() {}\n")
    assert "has no end" in complaint(tests="}\nint main() {")
    assert "TestName" in complaint(tests="func check() {}", language="go")
    harness = {"harness": "}\nint main() {}"}
    assert "only test" in complaint(tests=[harness, {"stdin": "", "stdout": ""}])
    assert "cannot be in python" in complaint(tests=[harness], language="python")
    assert "`language`" in complaint(tests=[harness], language=None)


@pytest.mark.parametrize(
    ("language", "tests", "false"),
    [
        ("cpp", "assert(f((1)) == (std::vector<long>({(long)7, (long)94})));", "(long)14})"),
        ("java", 'assert(f(1).equals(("a")));', '.equals(("Nota"))'),
        ("cs", "Debug.Assert(F(1L).SequenceEqual((new List<long>(new long[]{(long)4L}))));", "(long)5L"),
        ("d", "assert(f([]) == true);", "== false"),
        ("go", "     { actual: f([]int{3}), expected: []int{4, 3} },", "expected: []int{4, 4}"),
        ("rs", "assert_eq!(f(vec![1], 2), vec![0.05]);", "vec![1.05]"),
        ("js", "assert.deepEqual(f([1, 2], 3),false);", ",true)"),
        ("lua", "lu.assertEquals(f('a'), {4, 3})", "{4, 4})"),
        ("php", 'if (f("x") !== 1) { throw new Exception("Test failed!"); }', "!== 2)"),
        ("pl", 'if(eq_deeply($f->(1),"")) {', ',"Not")'),
        ("r", "stopifnot(isTRUE(all.equal(f(c(1)), c(4, 3))))", "c(4, 4))"),
        ("rb", "assert_equal([4, 3], f.call(1))", "([4, 4], f"),
        ("jl", "@test(f(1) == 2)", "== 3)"),
        ("sh", '    [[ $(candidate "a b") = "4 3" ]]', '= "Not4 3"'),
        ("scala", "assert(f(List[Long]()) == (5l));", "(6l)"),
    ],
)
def test_an_assertion_is_made_false_in_its_expected_value(language: str, tests: str, false: str) -> None:
    twin = falsified(tests, dialect(language))
    assert twin is not None
    assert twin != tests
    assert false in twin


@pytest.mark.parametrize(
    ("language", "tests"),
    [
        ("cpp", "assert(abs(f(1) - 2) < 1e-6);"),
        ("cpp", "assert(f(1) == 2 || f(1) == 3);"),
        ("cpp", "assert(f(1) == f(2));"),
        ("cpp", "assert(!(f(1) == 2));"),
        ("cpp", 'assert(f(1) == 2 && "message 3");'),
        ("rs", 'assert_eq!(f(1), 2, "message 3");'),
        ("js", "assert.deepEqual(f(1), 2, 'message 3');"),
        ("js", "assert.deepEqual(f(1), expected);"),
        ("java", "assert(!f(1).equals(2));"),
        ("lua", "lu.assertEquals(f({}), {})"),
        ("php", "if (f(1) === 1) { $passed = 1; }"),
    ],
)
def test_no_assertion_is_touched_that_may_not_be_plain_equality(language: str, tests: str) -> None:
    assert falsified(tests, dialect(language)) is None


def test_masking_keeps_every_character_in_its_place() -> None:
    text = 'a "b}\\"" \'c\' // d }\n/* e\n} */ f `g`'
    for each in DIALECTS:
        masked = mask(text, each.language)
        assert len(masked) == len(text)
        assert masked.count("\n") == text.count("\n")
    assert mask(text, "cpp").split() == ["a", "f", "`g`"]


@pytest.mark.parametrize(
    "piece", ["{", '"', "'", "`", "/*", 'R"(', 'r#"', "=/[", "import (\n", "twice(", "function  ", "\n\n"]
)
def test_a_hostile_answer_costs_time_in_proportion_to_its_length(piece: str) -> None:
    """It is looked at beside everybody else's: what is not linear would not end for many minutes."""
    for language, prompt in PROMPTS.items():
        place(piece * (60_000 // len(piece)), prompt, "}\n", dialect(language), "twice", ())


def test_java_gets_the_tuples_that_it_uses_and_no_import_of_what_is_not_there() -> None:
    source, files = beside("import org.javatuples.*;\nPair<Long, Long> p;", "java")
    assert list(files) == ["org/javatuples/Pair.java"]
    assert "import org.javatuples" in source
    source, files = beside("import java.util.*;\nimport org.javatuples.*;\nclass Problem {}", "java")
    assert not files
    assert "javatuples" not in source


# ---------------------------------------------------------------------------------------------------------------------
# Layouts and verdicts.


def test_layouts_of_test_code() -> None:
    row = {"name": "HumanEval_1_twice", "language": "rs", "prompt": PROMPTS["rs"], "stop_tokens": ["\n}"]}
    reference = normalise({**row, "tests": "}\nfn main() {\n    assert_eq!(twice(2), 4);\n}\n", "doctests": "x"})
    assert reference.speaks == "rust"
    assert reference.harness is not None
    assert reference.harness.stops == ["\n}"]
    again = CodeReference.model_validate(reference.model_dump(by_alias=True, exclude_none=True))
    assert again.harness == reference.harness
    humaneval_x = {"task_id": "CPP/0", "prompt": "int twice(int n){\n", "test": "int main(){ assert(1); }"}
    assert normalise(humaneval_x).speaks == "cpp"
    assert normalise({"tests": [{"stdin": "1", "stdout": "2"}], "language": "cpp"}).harness is None
    assert normalise({"tests": '[{"stdin": "1", "stdout": "2"}]', "language": "cpp"}).harness is None


def test_only_a_run_that_ends_well_and_prints_the_token_passes() -> None:
    harness = Harness.of("}\nint main() {\n    assert(twice(2) == 4);\n}\n", "cpp", PROMPTS["cpp"])
    made = harness.program("    return 2 * n;\n}")
    token = made.token.encode()
    assert made.judge(RunResult(Outcome.FINISHED, stdout=b"1\n" + token)).credit == 1
    early = made.judge(RunResult(Outcome.FINISHED, stdout=b"1\n"))
    assert (early.category, early.flags) == ("tampered", ("early_exit",))
    late = made.judge(RunResult(Outcome.RAISED, "exit status 3", exit_status=3, stdout=token, stderr=b"x"))
    assert (late.category, late.credit) == ("runtime_error", 0)
    failed = RunResult(Outcome.RAISED, "exit status 1", exit_status=1, stderr=b"f: Assertion failed")
    assert made.judge(failed).category == "wrong_answer"
    assert made.judge(RunResult(Outcome.TIME_LIMIT)).category == "time_limit"
    other = harness.program("    return 3 * n;\n}")
    false = harness.false_program("    return 2 * n;\n}")
    assert false is not None
    assert len({made.token, other.token, false.token}) == 3
    assert harness.program("    return 2 * n;\n}") == made  # is compiled once


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    try:
        opened = await open_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield opened
    await opened.stop()


async def judged(sandbox: Sandbox, response: str, reference: dict[str, Any]) -> Verdict:
    with boundary("verifier 'code'") as outcome:
        call = Call(response, normalise(reference), CodeOptions(cpu_s=20))
        return await Code().verify(call, Context(sandbox))
    assert outcome.failure is not None
    return outcome.failure


JAVASCRIPT = {
    "language": "js",
    "prompt": "// The number of vowels.\nfunction vowels(text){\n",
    "tests": "const assert = require('node:assert');\n\nfunction test() {\n  let candidate = vowels;\n"
    "  assert.deepEqual(candidate('sky'),0);\n  assert.deepEqual(candidate('aEon'),3);\n}\n\ntest();",
    "stop_tokens": ["\nfunction ", "\n//"],
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("answer", "category", "flags"),
    [
        ("  return (text.match(/[aeiou]/gi) || []).length;\n}", "correct", []),
        (
            "const assert = require('assert');\nexport const vowels = t => t.split(/[aeiou]/i).length - 1;",
            "correct",
            [],
        ),
        ("  return text.length - 1;\n}", "wrong_answer", []),
        ("  return missing(text);\n}", "runtime_error", []),
        ("  return 0;", "compile_error", []),
        ("  process.exit(0);\n}", "tampered", ["early_exit"]),
        ("require('assert').deepEqual = () => {};\nfunction vowels(text) {}", "tampered", ["tripwire_passed"]),
    ],
)
async def test_javascript(sandbox: Sandbox, answer: str, category: str, flags: list[str]) -> None:
    if "javascript" not in sandbox.languages():
        pytest.skip("no toolchain for javascript")
    verdict = await judged(sandbox, f"```js\n{answer}\n```", JAVASCRIPT)
    assert (verdict.status, verdict.category, verdict.flags) == ("ok", category, flags), verdict.reason
    assert verdict.reward == (category == "correct")
    assert verdict.trust == "in_process"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_language_that_is_not_the_tests_is_refused(sandbox: Sandbox) -> None:
    with boundary("verifier 'code'") as outcome:
        call = Call("```lua\nprint(1)\n```", normalise(JAVASCRIPT), CodeOptions(language="lua"))
        await Code().verify(call, Context(sandbox))
    assert outcome.failure is not None
    assert outcome.failure.status == "invalid_task"


# ---------------------------------------------------------------------------------------------------------------------
# MultiPL-E in every language that is here.


def multipl_e() -> ModuleType:
    name = "adjudge_multipl_e"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / "multipl_e.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.mark.languages
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("language", [name for name in PROMPTS if name != "kotlin"])
async def test_answers_to_multipl_e(sandbox: Sandbox, language: str) -> None:
    if not DATA.is_file():
        pytest.skip(f"the shared data is not there: {DATA} (set ADJUDGE_SHARED)")
    if dialect(language).language not in sandbox.languages():
        pytest.skip(f"no toolchain for {language}")
    cases = [case for case in multipl_e().read_cases(DATA) if case.language == language]
    assert {case.kind for case in cases} >= {"completion", "wrong", "cheat"}
    slots = asyncio.Semaphore(2)

    async def exception(case: Any) -> str | None:
        async with slots:
            verdict = await judged(sandbox, case.response, case.row)
        if verdict.reward == case.reward and (case.kind != "wrong" or verdict.category == "wrong_answer"):
            return None
        return f"{case.name} ({case.kind}): {verdict.status} {verdict.category}: {verdict.reason[:300]}"

    assert [found for found in await asyncio.gather(*map(exception, cases)) if found] == []
