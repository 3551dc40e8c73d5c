"""How true is ``math``? Accuracy on labelled cases, false positives and false negatives by name, and its speed.

    python benchmarks/math_truth.py ../shared/cases/math_answers.jsonl [--all]

A line of the file has ``id``, ``gold``, ``answer`` (a whole response), ``equal``, ``kind`` and perhaps ``debatable``;
debatable cases are left out unless ``--all`` is given. Runs in this process, without time limits: feed it no bombs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from adjudge.types import Verdict
from adjudge_verifiers.answers.math import Math, MathOptions
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.errors import boundary


def judge(verifier: Math, gold: str, answer: str) -> Verdict:
    options = MathOptions()
    with boundary("verifier 'math'") as outcome:
        extraction = verifier.extract(answer, options)
        return verifier.verify(Call("", gold, options, extraction=extraction), Context())
    assert outcome.failure is not None
    return outcome.failure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--all", action="store_true", help="debatable cases too")
    arguments = parser.parse_args()
    cases = [json.loads(line) for line in arguments.cases.read_text().splitlines()]
    cases = [case for case in cases if arguments.all or not case.get("debatable")]
    verifier = Math()
    judge(verifier, "x+1", "$1+x$")  # imports sympy
    tally: Counter[str] = Counter()
    times: list[float] = []
    for case in cases:
        start = time.process_time()
        verdict = judge(verifier, case["gold"], case["answer"])
        times.append(time.process_time() - start)
        said = verdict.reward == 1.0
        outcome = "right" if said == case["equal"] else "false positive" if said else "false negative"
        tally[outcome if verdict.ok or outcome == "right" else verdict.status] += 1
        if outcome != "right":
            print(f"{outcome:15} {case['id']} {case['kind']:14} {case['gold']!r:.60} <- {case['answer']!r:.80}")
            print(f"{'':15} {verdict.status} {verdict.category} {verdict.reason:.150}")
    times.sort()
    print(f"\n{len(cases)} cases: accuracy {tally['right'] / len(cases):.3f}; {dict(tally)}")
    print(
        f"{len(cases) / sum(times):.0f} verifies per CPU-second; median {1e3 * times[len(times) // 2]:.2f} ms, "
        f"p99 {1e3 * times[int(0.99 * len(times))]:.0f} ms, max {1e3 * times[-1]:.0f} ms"
    )


if __name__ == "__main__":
    main()
