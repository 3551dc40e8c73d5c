"""What rows of programming contests say beside their tests: limits, checkers, interactors, graders, sub-tasks, files.

=========================================== ==========================================================================
keys                                        seen in
=========================================== ==========================================================================
``time_limit``, ``memory_limit``            everywhere; seconds or ``{seconds, nanos}`` or text; megabytes or text
``memory_limit_bytes``                      CodeContests
``generated_checker``                       open-r1/codeforces: Python; input, answer and output as arguments; a score
``checker``, ``checker_files``              testlib checkers (CodeContests+); ``testlib.h`` has to be among the files
``interactor``, ``interactor_files``        testlib interactors
``input_mode``, ``input_file``, ...         problems that read and write named files
``grader_files``, ``test_names``            open-r1/ioi: C++ graders that are compiled together with the answer
=========================================== ==========================================================================
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from .cases import as_text
from .literals import parse_json, parse_value, short

__all__ = ["BESIDE_KEYS", "beside", "ioi"]

Native = dict[str, Any]

BESIDE_KEYS = ("checker", "interactor", "project", "module", "groups", "level_scores", "input_file", "output_file")
"""Taken as they are, from every layout."""
_TIME = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(ms|millis\w*|s|sec\w*)?\s*", re.IGNORECASE)
_MEMORY = re.compile(
    r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(b|bytes|kb|kib|kilo\w*|mb|mib|mega\w*|gb|gib|giga\w*)?\s*", re.IGNORECASE
)
_UNITS = {"b": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0}
_MOST_SECONDS, _MOST_MIB = 600.0, 65_536.0


def beside(raw: Native) -> Native:
    """What a row says beside its tests. Raises ``ValueError`` for what cannot be judged."""
    found = {key: raw[key] for key in BESIDE_KEYS if raw.get(key) or (key == "project" and raw.get(key) == {})}
    if isinstance(raw.get("generated_checker"), str) and raw["generated_checker"].strip():
        found["checker"] = {"source": raw["generated_checker"], "language": "python", "protocol": "score"}
    for kind in ("checker", "interactor"):
        if kind in found:
            found[kind] = _helper(found[kind], raw, kind)
    if raw.get("interaction_format") and "interactor" not in found:
        raise ValueError("the problem is interactive (`interaction_format`), and there is no `interactor` to talk to")
    if raw.get("input_mode") == "file":
        found.setdefault("input_file", "input.txt")
        found.setdefault("output_file", "output.txt")
    for key, value in (("time_limit_s", _seconds(raw)), ("memory_limit_mib", _mebibytes(raw))):
        if value is not None:
            found[key] = value
    return {key: _file_name(value) if key.endswith("_file") else value for key, value in found.items()}


def _file_name(value: Any) -> Any:
    """``stdin`` and ``stdout`` are no files."""
    return None if value in ("stdin", "stdout", "") else value


def _helper(value: Any, raw: Native, kind: str) -> Any:
    """A checker or an interactor: source text, an object, or JSON of one; its files may stand beside it."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):  # a program may begin with a brace, too
            value = parse_json(value)
    files = raw.get(f"{kind}_files")
    if isinstance(value, str):
        value = {"source": value}
    if isinstance(value, dict) and "code" in value and "source" not in value:
        value = {**{key: item for key, item in value.items() if key != "code"}, "source": value["code"]}
    if isinstance(value, dict) and isinstance(files, dict):
        value = {**value, "files": {**files, **(value.get("files") or {})}}
    language = raw.get(f"{kind}_language")
    if isinstance(value, dict) and isinstance(language, str) and not value.get("language"):
        value = {**value, "language": language}
    return value


def _seconds(raw: Native) -> float | None:
    if raw.get("time_limit_s") is not None:
        return float(raw["time_limit_s"])
    value = raw.get("time_limit")
    if isinstance(value, dict):
        parts = [value.get("seconds") or 0, value.get("nanos") or 0]
        if not all(isinstance(part, int | float) for part in parts):
            return None
        value = float(parts[0]) + float(parts[1]) / 1e9
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value) / 1000 if value > _MOST_SECONDS else float(value)  # nobody allows ten minutes
    elif isinstance(value, str) and (match := _TIME.fullmatch(value[:100])) is not None:
        seconds = float(match[1]) / (1000 if (match[2] or "").lower().startswith("m") else 1)
    else:
        return None
    return min(seconds, _MOST_SECONDS) if seconds > 0 else None


def _mebibytes(raw: Native) -> float | None:
    if raw.get("memory_limit_mib") is not None:
        return float(raw["memory_limit_mib"])
    count = raw.get("memory_limit_bytes")
    if isinstance(count, int | float) and not isinstance(count, bool) and count > 0:
        return min(float(count) / (1 << 20), _MOST_MIB)
    value = raw.get("memory_limit")
    if isinstance(value, int | float) and not isinstance(value, bool):
        mib = float(value) / (1 << 20) if value > _MOST_MIB else float(value)
    elif isinstance(value, str) and (match := _MEMORY.fullmatch(value[:100])) is not None:
        mib = float(match[1]) * _UNITS[(match[2] or "m")[0].lower()]
    else:
        return None
    return min(mib, _MOST_MIB) if mib > 0 else None


def ioi(raw: Native) -> Native:
    """One sub-task of an olympiad: tests by name, graders that are compiled together with the answer."""
    names = raw["test_names"]
    names = parse_value(names) if isinstance(names, str) else names
    cases = raw.get("test_cases")
    cases = parse_json(cases) if isinstance(cases, str) else cases
    if isinstance(cases, list | tuple):
        cases = dict(zip(names, cases, strict=False))
    if not isinstance(cases, dict) or not all(name in cases for name in names):
        raise ValueError("`test_cases` does not hold every test of `test_names`")
    group = str(raw.get("subtask") or "1")
    tests = [{**_pair(cases[name], name), "group": group} for name in names]
    native: Native = {"tests": tests, "language": raw.get("language") or "cpp"}
    if isinstance(raw.get("score"), int | float):
        native["groups"] = {group: float(raw["score"])}
    files = {name: text for name, text in _named_files(raw["grader_files"]) if text}
    if any("manager" in name for name in files):
        raise ValueError("a problem of several communicating programs (`manager`) cannot be judged")
    checker = next((name for name in files if re.fullmatch(r"checker/[^/]+\.(?:cpp|cc|py)", name)), None)
    if checker is not None:
        beside_it = {name.removeprefix("checker/"): text for name, text in files.items() if name.startswith("checker/")}
        source = beside_it.pop(checker.removeprefix("checker/"))
        language = "python" if checker.endswith(".py") else "cpp"
        native["checker"] = {"source": source, "language": language, "protocol": "score", "files": beside_it}
    graders = {name.rpartition("/")[2]: text for name, text in files.items() if not name.startswith("checker/")}
    own = f"{str(raw.get('id') or 'solution').lower()}.cpp"
    native["project"] = {"files": {name: text for name, text in graders.items() if name != own}, "main": own}
    return native


def _pair(case: Any, name: Any) -> Native:
    if isinstance(case, dict):
        case = [case.get("input", case.get("test_input")), case.get("output", case.get("test_output"))]
    if not isinstance(case, list | tuple) or len(case) != 2:
        raise ValueError(f"test {short(name)} is no pair of input and output")
    return {"stdin": as_text(case[0], "input"), "stdout": as_text(case[1] if case[1] is not None else "", "output")}


def _named_files(value: Any) -> list[tuple[str, Any]]:
    value = parse_json(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple) and all(isinstance(each, list | tuple) and len(each) == 2 for each in value):
        return [(str(name), text) for name, text in value]
    raise ValueError("`grader_files` should be pairs of a name and a text")
