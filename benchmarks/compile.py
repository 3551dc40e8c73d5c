"""What does a compiled answer cost: compile and 20 tests, cold, warm, and when the same answer comes again?

    python benchmarks/compile.py [--languages cpp,java,go,rust] [--rounds 5]

Each answer reads two numbers and writes their sum; C++ includes `bits/stdc++.h`. Printed for each language, as medians
in milliseconds and through the sandbox alone:

    cold    the first answer of a server: nothing is prepared yet (C++: without the precompiled header)
    warm    another answer, never seen before, once what can be prepared is (C++: with the precompiled header)
    again   the same answer again: its artefact is cached
    test    one run of those 20, of the warm answer

and what the toolchain takes when it is called by hand, once for the whole answer: compile, then 20 runs.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from adjudge_sandbox.base import Limits, Outcome, Program, RunResult, Sandbox, Script
from adjudge_sandbox.registry import open_sandbox

TESTS = [(n, n * n + 1) for n in range(20)]
LIMITS = Limits(cpu_s=10.0, memory_mib=1024, processes=64, compile_cpu_s=60.0)
WARM_UP_TRIES, WARM_UP_PAUSE_S = 60, 0.5

SOURCES = {
    "cpp": "#include <bits/stdc++.h>\nusing namespace std;\n"
    "int main() { map<string, vector<long long>> m; long long a, b; cin >> a >> b; m[to_string(NUMBER)] = {a, b};\n"
    "  for (auto &[k, v] : m) { sort(v.begin(), v.end()); cout << accumulate(v.begin(), v.end(), 0LL) << endl; } }\n",
    "c": '#include <stdio.h>\nint main(void) { long long a, b; if (scanf("%lld %lld", &a, &b) != 2) return 1;\n'
    '  printf("%lld\\n", a + b + 0 * NUMBER); return 0; }\n',
    "java": "import java.util.*;\npublic class Main { static final long ID = NUMBERL;\n"
    "  public static void main(String[] args) { Scanner in = new Scanner(System.in);\n"
    "    System.out.println(in.nextLong() + in.nextLong() + 0 * ID); } }\n",
    "go": 'package main\n\nimport (\n\t"bufio"\n\t"fmt"\n\t"os"\n)\n\nconst id = NUMBER\n\nfunc main() {\n'
    "\tvar a, b int64\n\tfmt.Fscan(bufio.NewReader(os.Stdin), &a, &b)\n\tfmt.Println(a + b + 0*id)\n}\n",
    "rust": "use std::io::Read;\nconst ID: i64 = NUMBER;\nfn main() {\n    let mut text = String::new();\n"
    "    std::io::stdin().read_to_string(&mut text).unwrap();\n"
    "    let sum: i64 = text.split_whitespace().map(|w| w.parse::<i64>().unwrap()).sum();\n"
    '    println!("{}", sum + 0 * ID);\n}\n',
}
BY_HAND: dict[str, tuple[str, list[str], list[str]]] = {
    "cpp": ("a.cpp", ["g++", "-O2", "-std=c++17", "a.cpp", "-o", "a"], ["./a"]),
    "c": ("a.c", ["gcc", "-O2", "a.c", "-o", "a"], ["./a"]),
    "java": ("Main.java", ["javac", "Main.java"], ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "Main"]),
    "go": ("a.go", ["go", "build", "-o", "a", "a.go"], ["./a"]),
    "rust": ("a.rs", ["rustc", "-O", "a.rs", "-o", "a"], ["./a"]),
}
_number = int(time.time() * 1000) % 10**9


def fresh(language: str) -> str:
    """An answer that nobody has compiled."""
    global _number
    _number += 1
    return SOURCES[language].replace("NUMBER", str(_number))


async def judged(sandbox: Sandbox, language: str, source: str) -> tuple[float, list[RunResult]]:
    """Milliseconds for the whole answer, and its results, all of which are right."""
    runs = [Script(f"{n} {n * n + 1 - n}\n".encode()) for n, _ in TESTS]
    began = time.perf_counter()
    results = await sandbox.run(Program(source, language), runs, LIMITS)
    took_ms = 1000 * (time.perf_counter() - began)
    for (_, wanted), result in zip(TESTS, results, strict=True):
        if result.outcome is not Outcome.FINISHED or result.stdout.strip() != str(wanted).encode():
            sys.exit(f"{language}: not {wanted}: {result}"[:3000])
    return took_ms, results


async def measure(language: str, rounds: int) -> dict[str, float]:
    """In a sandbox of its own, so that nothing of an earlier language or run is warm."""
    sandbox = await open_sandbox()
    try:
        if language not in sandbox.languages():
            return {}
        cold_ms, _ = await judged(sandbox, language, fresh(language))
        warm, again, tests = [], [], []
        await _until_steady(sandbox, language, cold_ms)
        for _ in range(rounds):
            source = fresh(language)
            took_ms, results = await judged(sandbox, language, source)
            warm.append(took_ms)
            tests += [result.wall_ms for result in results[1:]]
            again.append((await judged(sandbox, language, source))[0])
    finally:
        await sandbox.stop()
    return {
        "cold": cold_ms,
        "warm": statistics.median(warm),
        "again": statistics.median(again),
        "test": statistics.median(tests),
    }


async def _until_steady(sandbox: Sandbox, language: str, cold_ms: float) -> None:
    """What is prepared in the background is ready when an answer takes clearly less than the first, or never does."""
    if language != "cpp":
        await judged(sandbox, language, fresh(language))
        return
    for _ in range(WARM_UP_TRIES):
        took_ms, _ = await judged(sandbox, language, fresh(language))
        if took_ms < 0.6 * cold_ms:
            return
        await asyncio.sleep(WARM_UP_PAUSE_S)


def by_hand(language: str, rounds: int) -> tuple[float, float] | None:
    """Medians of milliseconds: the compiler alone, and 20 runs after it."""
    name, compiler, command = BY_HAND[language]
    if shutil.which(compiler[0]) is None:
        return None
    compiles, runs = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, name).write_text(fresh(language))
            compiles.append(_took_ms(lambda folder=folder: subprocess.run(compiler, cwd=folder, check=True)))
            runs.append(_took_ms(lambda folder=folder: _run_all(command, folder)))
    return statistics.median(compiles), statistics.median(runs)


def _run_all(command: list[str], folder: str) -> None:
    for n, wanted in TESTS:
        done = subprocess.run(command, cwd=folder, input=f"{n} {n * n + 1 - n}\n".encode(), capture_output=True)
        if done.stdout.strip() != str(wanted).encode():
            sys.exit(f"{command}: {done}")


def _took_ms(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--languages", default="cpp,c,java,go,rust")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(
        f"{'compile + 20 tests, ms':<24}{'cold':>9}{'warm':>9}{'again':>9}{'test':>8}   {'compiler alone, 20 runs':>24}"
    )
    for language in arguments.languages.split(","):
        figures = asyncio.run(measure(language, arguments.rounds))
        if not figures:
            print(f"{language:<24}no toolchain here")
            continue
        hand = by_hand(language, max(1, arguments.rounds // 2))
        beside = f"{hand[0]:,.0f} + {hand[1]:,.0f}" if hand else "not on the PATH"
        columns = f"{figures['cold']:>9,.0f}{figures['warm']:>9,.0f}{figures['again']:>9,.0f}{figures['test']:>8,.1f}"
        print(f"{language:<24}{columns}   {beside:>24}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
