"""From every layout of tests that data sets use to the native one of :class:`.reference.CodeReference`.

A layout is recognised by its keys. Functions here take what was parsed from JSON and give back a plain dict in the
native form; whatever cannot be used raises ``ValueError`` with a sentence that names the test and what is wrong.

================================================================== =====================================================
keys                                                               seen in
================================================================== =====================================================
``tests``                                                          native
``tests`` or ``test`` (text), ``language``, ``prompt``?            MultiPL-E, HumanEval-X, McEval
``inputs``, ``outputs``, ``fn_name``?                              APPS, TACO, verl, PrimeIntellect, NeMo-Gym
``assert_case``                                                    verl
``test_cases``, ``case_type``?, ``language``?                      SYNTHETIC-1/2, open-r1, ROLL
``test``, ``entry_point``, ``prompt``?                             HumanEval
``test_list``, ``test_setup_code``?, ``test_imports``?             MBPP
``functional``, ``pytest``                                         Guru (Reasoning360), rLLM
``test`` with ``from solution import``, ``test_info``?             KodCode
``official_tests``, ``generated_checker``                          open-r1/codeforces
``grader_files``, ``test_names``, ``test_cases``                   open-r1/ioi
``public_tests``, ``private_tests``, ``generated_tests``           CodeContests
``public_test_cases``, ``private_test_cases``                      LiveCodeBench rows
a list of tests, of assert strings                                 LiveCodeBench, SandboxFusion, AceCoder, open-instruct
text: JSON, JSON in JSON, base64(zlib(JSON or pickle)), asserts    everywhere
================================================================== =====================================================

What stands beside the tests (limits, checkers, graders) is read by :mod:`.contests`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

from ..extract.code import canonical_language
from . import asserts
from .blobs import decode_blob, looks_like_blob
from .cases import agree_on_wrapping, as_text, case, parallel_cases
from .contests import BESIDE_KEYS, beside, ioi
from .literals import parse_json, parse_literal, short
from .multipl.dialects import dialect_of

__all__ = ["to_native"]

Native = dict[str, Any]

_NATIVE_KEYS = ("fn_name", "entry_point", "setup", "prelude", "prompt", "language", "solution")
_UNWRAP_KEYS = ("verification_info", "ground_truth", "unit_tests", "input_output")
_CONTEXT_KEYS = (
    *("prefix", "canonical_solution", "func_name", "metadata", *BESIDE_KEYS, "time_limit_s", "memory_limit_mib"),
    *("time_limit", "memory_limit", "memory_limit_bytes", "checker_files", "interactor_files", "generated_checker"),
    *("checker_language", "interactor_language", "input_mode"),
)
_IS_FILE = re.compile(r"^[ \t]*(?:from[ \t]+solution[ \t]+import\b|import[ \t]+solution\b)", re.MULTILINE)
_MAX_NESTING = 6


def to_native(raw: Any, depth: int = 0) -> Native:
    """The native form of ``raw``. Raises ``ValueError``."""
    if depth > _MAX_NESTING:
        raise ValueError("the tests are wrapped in too many layers of text or keys")
    if isinstance(raw, str):
        return to_native(_from_text(raw), depth + 1)
    if isinstance(raw, list | tuple):
        return _from_list(list(raw))
    if isinstance(raw, dict):
        return _from_dict({key: value for key, value in raw.items() if value is not None}, depth)
    raise ValueError(f"tests are an object, a list or text, not {short(raw)}")


def _from_text(text: str) -> Any:
    stripped = text.strip()
    if not stripped:
        raise ValueError("the tests are empty")
    if stripped[0] in '{["':
        try:
            return parse_json(stripped)
        except ValueError as error:
            return _from_python(stripped, f"the tests are not JSON: {error}")
    if looks_like_blob(stripped):
        return decode_blob(stripped)
    return _from_python(stripped, "the tests are neither JSON nor Python test code")


def _from_python(text: str, otherwise: str) -> Any:
    """A Python literal, or test code; ``otherwise`` is the complaint if it is neither."""
    if text[0] in "{[(\"'":
        try:
            return parse_literal(text)
        except ValueError:
            raise ValueError(otherwise) from None
    if _IS_FILE.search(text):
        return {"pytest": text}
    if "assert" in text or "check(" in text:
        return {"functional": text}
    raise ValueError(f"{otherwise}: {short(text)}")


def _from_list(items: list[Any]) -> Native:
    if not items:
        raise ValueError("there are no tests")
    return {"tests": _cases(items, None)}


def _cases(items: Any, fn_name: str | None) -> list[Native]:
    if isinstance(items, str):
        items = _from_text(items)
    if isinstance(items, dict) and isinstance(items.get("tests"), list):
        items = items["tests"]
    if not isinstance(items, list | tuple):
        raise ValueError(f"the tests should be a list, not {short(items)}")
    if not items:
        raise ValueError("there are no tests")
    found: list[Native] = []
    for number, item in enumerate(items, 1):
        try:
            found += case(item, fn_name)
        except ValueError as error:
            raise ValueError(f"test {number}: {error}") from None
    return agree_on_wrapping(found)


def _from_dict(raw: Native, depth: int) -> Native:
    if not raw:
        raise ValueError("there are no tests: the object is empty")
    for key, reason in _UNSUPPORTED.items():
        if raw.get(key):
            raise ValueError(reason)
    for keys, layout in _LAYOUTS:
        if all(key in raw for key in keys):
            return _with_context(layout(raw), raw)
    for key in _UNWRAP_KEYS:
        if key in raw:
            inner = to_native(raw[key], depth + 1)
            return _with_context(inner, {**raw, **inner})
    try:
        return _with_context({"tests": case(raw, _fn_name(raw))}, raw)
    except ValueError:
        known = ", ".join(sorted({key for keys, _ in _LAYOUTS for key in keys}))
        raise ValueError(
            f"no tests found under the keys {short(', '.join(map(str, raw)), 200)}; known: {known}"
        ) from None


def _fn_name(raw: Native) -> str | None:
    metadata = raw.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    for name in (raw.get("fn_name"), raw.get("func_name"), inner.get("func_name"), inner.get("fn_name")):
        if isinstance(name, str) and name.strip():
            return name.strip()
    return None


def _with_context(native: Native, raw: Native) -> Native:
    """Add what stands beside the tests: the function's name, the language, code around the answer, a solution."""
    found: Native = {"fn_name": _fn_name(raw), "prelude": raw.get("prelude") or raw.get("prefix")}
    found |= {key: raw[key] for key in ("entry_point", "setup", "language", "solution") if raw.get(key)}
    for key in ("canonical_solution", "gold_standard_solution"):
        if raw.get(key) and "solution" not in found:
            found["solution"] = raw[key]
    found = {key: value for key, value in found.items() if isinstance(value, str) and value.strip()}
    found |= beside({**raw, **native})
    return found | {key: value for key, value in native.items() if value is not None and key not in BESIDE_KEYS}


# ---------------------------------------------------------------------------------------------------------------------
# One function per layout.


def _harness(raw: Native, key: str) -> Native | None:
    """Test code in another language than Python, which is put behind the answer."""
    tests, language = raw[key], raw.get("language") or str(raw.get("task_id") or "").partition("/")[0]
    if not isinstance(tests, str) or not isinstance(language, str) or looks_like_blob(tests.strip()):
        return None
    with contextlib.suppress(ValueError):
        parse_json(tests)
        return None
    dialect = dialect_of(language)
    if dialect is None and "stop_tokens" in raw and canonical_language(language) != "python":
        raise ValueError(f"test code that is put behind an answer cannot be in {short(language)}")
    if dialect is None or not tests.strip():
        return None
    stops, name = raw.get("stop_tokens"), raw.get("entry_point")
    test = {"harness": tests, "stop_tokens": list(stops) if isinstance(stops, list | tuple) else []}
    prompt = raw.get("prompt")
    return {
        "tests": [test],
        "language": dialect.language,
        "prompt": prompt if isinstance(prompt, str) else "",
        "entry_point": name if isinstance(name, str) and name else None,
    }


def _native(raw: Native) -> Native:
    if (harness := _harness(raw, "tests")) is not None:
        return harness
    kept = {key: raw[key] for key in _NATIVE_KEYS if key in raw}
    unknown = set(raw) - {*_NATIVE_KEYS, *_CONTEXT_KEYS, "tests"}
    if unknown:
        raise ValueError(f"unknown keys beside `tests`: {', '.join(sorted(map(str, unknown)))}")
    return {**kept, "tests": _cases(raw["tests"], _fn_name(raw))}


def _inputs_outputs(raw: Native) -> Native:
    return {"tests": parallel_cases(raw["inputs"], raw["outputs"], _fn_name(raw))}


def _assert_case(raw: Native) -> Native:
    return {"tests": _cases(raw["assert_case"], None)}


def _test_cases(raw: Native) -> Native:
    kind = raw.get("case_type")
    if kind == "pytest":
        return {"tests": [_test_file(item) for item in _listed(raw["test_cases"])]}
    if kind == "check_based" and not raw.get("checker"):
        raise ValueError("tests of case_type 'check_based' need a checker program, and there is no `checker`")
    return {"tests": _cases(raw["test_cases"], _fn_name(raw))}


def _listed(value: Any) -> list[Any]:
    value = parse_json(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    return list(value) if isinstance(value, list | tuple) else [value]


def _test_file(item: Any) -> Native:
    """A test file: its text, or an object with it under one of several names."""
    if isinstance(item, dict):
        found = next((item[key] for key in ("pytest", "test_code", "assert_code", "code", "test") if key in item), None)
        prefix = item.get("import_prefix")
        item = f"{prefix}\n{found}" if isinstance(prefix, str) and isinstance(found, str) else found
    if not isinstance(item, str) or not item.strip():
        raise ValueError("a test of case_type 'pytest' holds no test file")
    return {"pytest": item.replace("\r\n", "\n")}


def _pytest(raw: Native) -> Native:
    return {"tests": [_test_file(item) for item in _listed(raw["pytest"])]}


def _official(raw: Native) -> Native:
    """Codeforces: inputs and outputs; an answer file may be missing where a checker decides."""
    tests = []
    for item in _listed(raw["official_tests"]):
        if isinstance(item, dict) and set(item) >= {"input"} and item.get("output") is None:
            tests.append({"stdin": as_text(item["input"], "input")})
        else:
            tests += _cases([item], None)
    if not tests:
        raise ValueError("there are no tests: official_tests is empty")
    return {"tests": tests}


def _humaneval(raw: Native) -> Native:
    if (harness := _harness(raw, "test")) is not None:
        return harness
    test = raw["test"]
    if isinstance(test, dict) and isinstance(test.get("code"), str):  # SandboxFusion's AutoEval
        test = test["code"]
    entry_point = raw.get("entry_point")
    if isinstance(test, list):
        return {"tests": _cases(test, _fn_name(raw))}
    if not isinstance(test, str) or not test.strip():
        raise ValueError("`test` holds no test code")
    if entry_point is not None and not isinstance(entry_point, str):
        raise ValueError("`entry_point` is not text")
    if _IS_FILE.search(test) and not entry_point:
        return {"tests": [{"pytest": test.replace("\r\n", "\n")}]}
    code = asserts.with_check_call(test)
    if code != test and not entry_point:
        raise ValueError("`test` defines check(candidate), and no `entry_point` says what the candidate is")
    prompt, solution = raw.get("prompt"), raw.get("canonical_solution")
    prompt = prompt if isinstance(prompt, str) else ""
    helpers = asserts.helpers_of(prompt, entry_point) if prompt and entry_point else ""
    if f"def {entry_point}" not in prompt:  # nothing to complete: LeetCode sets keep their imports and classes here
        return {"tests": [{"assert": code}], "prelude": helpers or None}
    return {
        "tests": [{"assert": code}],
        "setup": helpers,
        "prompt": prompt,
        "solution": prompt + solution if isinstance(solution, str) and solution else None,
    }


def _mbpp(raw: Native) -> Native:
    parts = [as_text(raw.get(key) or "", key) for key in ("test_imports", "test_setup_code")]
    setup = "\n".join(parts).strip()
    solution = raw.get("code")
    return {
        "tests": _cases(raw["test_list"], None),
        "setup": setup.replace("\r\n", "\n"),
        "solution": solution if isinstance(solution, str) else None,
    }


def _functional(raw: Native) -> Native:
    setup, tests = asserts.split_asserts(as_text(raw["functional"], "functional"))
    given = as_text(raw.get("setup") or "", "setup")
    return {"tests": [{"assert": test} for test in tests], "setup": "\n".join(filter(None, (given, setup)))}


def _codecontests(raw: Native) -> Native:
    tests: list[Native] = []
    for key in ("public_tests", "private_tests", "generated_tests"):
        group = raw.get(key)
        group = parse_json(group) if isinstance(group, str) else group
        if isinstance(group, dict) and group.get("input"):
            tests += parallel_cases(group["input"], group.get("output"), None)
        elif isinstance(group, list) and group:
            tests += _cases(group, None)
    if not tests:
        raise ValueError("there are no tests in public_tests, private_tests or generated_tests")
    return {"tests": tests}


def _livecodebench(raw: Native) -> Native:
    tests: list[Native] = []
    for key in ("public_test_cases", "private_test_cases"):
        group = raw.get(key)
        if isinstance(group, str):
            group = _from_text(group) if group.strip() else None
        if isinstance(group, str):  # LiveCodeBench packs JSON text in its pickles
            group = parse_json(group)
        if group:
            tests += _cases(group, _fn_name(raw))
    if not tests:
        raise ValueError("there are no tests in public_test_cases or private_test_cases")
    return {"tests": tests}


_LAYOUTS: tuple[tuple[tuple[str, ...], Callable[[Native], Native]], ...] = (
    (("tests",), _native),
    (("assert_case",), _assert_case),
    (("grader_files", "test_names"), ioi),
    (("official_tests",), _official),
    (("inputs", "outputs"), _inputs_outputs),
    (("test_cases",), _test_cases),
    (("test_list",), _mbpp),
    (("functional",), _functional),
    (("pytest",), _pytest),
    (("test",), _humaneval),
    (("public_tests",), _codecontests),
    (("private_tests",), _codecontests),
    (("generated_tests",), _codecontests),
    (("public_test_cases",), _livecodebench),
    (("private_test_cases",), _livecodebench),
)

_UNSUPPORTED = {
    "solution_file": "tests that compare with a `solution_file` run it beside the answer, which is not done here",
    "plus_input": "EvalPlus inputs (`plus_input`) have no expected values without running a reference solution",
}
