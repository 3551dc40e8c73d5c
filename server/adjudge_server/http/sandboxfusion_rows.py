"""SandboxFusion's ``/submit`` for everything but input and output: its rows as tasks of our ``code`` verifier.

Its oracle there is the exit status of the answer with the test code behind it, which ``os._exit(0)`` passes. Here the
test code is an examination: it runs in a jail of its own, out of the answer's reach.
"""

from __future__ import annotations

import re
from typing import Any

from adjudge.types import Task, Verdict
from adjudge_verifiers.code.multipl.dialects import dialect_of

from .problems import Problem
from .programs import language_of
from .sandboxfusion_oj import ExtractedType, extract, from_text

__all__ = ["fenced", "is_io", "read_row", "tests_reply"]

_INSERT = "#<INSERT>"
_BEFORE = " before"
"""Where code of the data set waits that is put before the answer's here, and not by the verifier."""
_EXAMPLE = "# Example usage"
_MAIN = re.compile(r"^if[ \t]+__name__[ \t]*==", re.MULTILINE)
_CONTINUED = re.compile(r"\n(?=[^\s])")


def is_io(kind: str, tests: Any) -> bool:
    """Is it a list of tests with an input and an output?"""
    return kind.startswith("CommonOJ") or (
        isinstance(tests, list)
        and bool(tests)
        and all(isinstance(each, dict) and isinstance(each.get("input"), dict) for each in tests)
    )


def fenced(code: str, language: str) -> str:
    """``code`` as a response that holds nothing else."""
    fence = "~~~~" if "```" in code else "```"
    while fence in code:
        fence += fence[0]
    return f"{fence}{language}\n{code}\n{fence}"


def read_row(
    kind: str, row: dict[str, Any], completion: str, language: str | None, extra: dict[str, Any], cpu_s: float
) -> tuple[Task, str, ExtractedType]:
    """The task, the program that was found, and how. Raises :class:`Problem`."""
    if kind.startswith("AutoEval"):
        reference, language = _auto_eval(row, extra)
    else:
        reference, language = _other(row, language)
    code, how = _continuation(completion, language) if _is_continued(row, extra) else extract(completion, language)
    code = code.replace("\r\n", "\n")
    if language == "python" and how != "empty":
        code = _without_main(code)
    before = reference.pop(_BEFORE, "")
    whole = f"{before}\n{code}" if before.strip() else code
    options: dict[str, Any] = {"language": language, "cpu_s": min(cpu_s, 120.0), "memory_mib": 2048}
    return Task(verifier="code", response=fenced(whole, language), reference=reference, options=options), code, how


def _auto_eval(row: dict[str, Any], extra: dict[str, Any]) -> tuple[dict[str, Any], str]:
    labels, test = from_text(row.get("labels"), "labels"), from_text(row.get("test"), "test")
    if not isinstance(labels, dict) or not isinstance(test, dict) or not isinstance(test.get("code"), str):
        raise Problem("invalid-request", "AutoEval needs config.provided_data with labels and test.code.")
    if extra.get("repr_code"):
        raise Problem("invalid-request", "repr_code is not supported: the answer would run inside its own test.")
    language = _auto_eval_language(labels)
    before, marker, after = test["code"].partition(_INSERT)
    before, code = (before, after) if marker else ("", before)
    files = {name: {"base64": text} for name, text in _assets(test).items() if isinstance(text, str)}
    if language != "python":
        if files:
            raise Problem("invalid-request", f"AutoEval in {language!r} takes no assets.")
        return {"test": code, "language": language, _BEFORE: before}, language
    reference: dict[str, Any] = {"tests": [{"assert": code}]}
    if not files:
        return reference | ({"prelude": before} if before.strip() else {}), language
    return reference | {"project": {"files": files, "main": "solution.py"}, _BEFORE: before}, language


def _auto_eval_language(labels: dict[str, Any]) -> str:
    """The answer's language, if its tests are plain code that is put behind it."""
    spoken = str(labels.get("programming_language") or "python")
    runner = str(labels.get("execution_language") or spoken)
    language = language_of(spoken).name
    plain = language_of(runner).name == language or (language, runner) == ("go", "go_test")
    if not plain or (language != "python" and (language == "java" or dialect_of(language) is None)):
        raise Problem("invalid-request", f"AutoEval of {spoken[:40]!r} by {runner[:40]!r} is not supported here.")
    return language


def _assets(test: dict[str, Any]) -> dict[str, Any]:
    asset = from_text(test.get("asset"), "test.asset")
    return asset if isinstance(asset, dict) else {}


def _other(row: dict[str, Any], language: str | None) -> tuple[dict[str, Any], str]:
    """HumanEval, MultiPL-E, MBPP and whatever else the verifier knows by its keys."""
    named = str(row.get("language") or language or "python")
    dialect = dialect_of(named)
    spoken = dialect.language if dialect is not None else language_of(named).name
    kept = {key: value for key, value in row.items() if key not in ("id", "content", "labels")}
    if spoken == "python":
        kept = {key: value for key, value in kept.items() if key not in ("language", "task_id", "stop_tokens")}
        if "tests" in kept and "entry_point" in kept and isinstance(kept["tests"], str):
            kept["test"] = kept.pop("tests")
    for key in ("test_list", "test"):
        if isinstance(kept.get(key), str) and kept[key].lstrip()[:1] in ("[", "{"):
            kept[key] = from_text(kept[key], key)
    return kept, spoken


def _is_continued(row: dict[str, Any], extra: dict[str, Any]) -> bool:
    """Does the completion go on where the row's prompt stops, as HumanEval's do unless they are chat?"""
    completes = bool(row.get("entry_point")) or isinstance(row.get("tests"), str)
    return bool(row.get("prompt")) and completes and not extra.get("is_freeform")


def _continuation(completion: str, language: str) -> tuple[str, ExtractedType]:
    """A Python function's body ends before the first line that is not indented. With a fence it is chat after all."""
    if "```" in completion:
        return extract(completion, language)
    if not completion.strip():
        return "", "empty"
    if language != "python" or not completion[:1].isspace():
        return completion, "heuristic"
    end = _CONTINUED.search(completion)
    return (completion[: end.start()] if end else completion), "heuristic"


def _without_main(code: str) -> str:
    """What would only show how the functions are used: below the ``__main__`` guard, or marked as an example."""
    guard = _MAIN.search(code)
    code = code[: guard.start()] if guard else code
    return code.partition(_EXAMPLE)[0]


def tests_reply(verdict: Verdict) -> list[dict[str, Any]]:
    """``tests`` of the reply: the suite as one test, as SandboxFusion has it."""
    late = verdict.category == "time_limit"
    passed = bool(verdict.correct)
    return [
        {
            "passed": passed,
            "exec_info": {
                "status": "Success" if passed else "Failed",
                "message": verdict.reason,
                "compile_result": None,
                "run_result": {
                    "status": "TimeLimitExceeded" if late else "Finished",
                    "execution_time": round(verdict.timing.run_ms / 1000, 6),
                    "return_code": None if late else int(not passed),
                    "stdout": "",
                    "stderr": "" if passed else verdict.reason,
                },
                "executor_pod_name": None,
                "files": {},
            },
            "test_info": None,
        }
    ]
