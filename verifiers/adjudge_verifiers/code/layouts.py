"""From every layout of tests that data sets use to the native one of :class:`.reference.CodeReference`.

A layout is recognised by its keys. Functions here take what was parsed from JSON and give back a plain dict in the
native form; whatever cannot be used raises ``ValueError`` with a sentence that names the test and what is wrong.

================================================================== =====================================================
keys                                                               seen in
================================================================== =====================================================
``tests``                                                          native
``inputs``, ``outputs``, ``fn_name``?                              APPS, TACO, verl, PrimeIntellect, NeMo-Gym
``assert_case``                                                    verl
``test_cases``, ``case_type``?, ``language``?                      SYNTHETIC-1/2, open-r1, ROLL
``test``, ``entry_point``, ``prompt``?                             HumanEval
``test_list``, ``test_setup_code``?, ``test_imports``?             MBPP
``functional``                                                     Guru (Reasoning360), rLLM
``public_tests``, ``private_tests``, ``generated_tests``           CodeContests
``public_test_cases``, ``private_test_cases``                      LiveCodeBench rows
a list of tests, of assert strings                                 LiveCodeBench, SandboxFusion, AceCoder, open-instruct
text: JSON, JSON in JSON, base64(zlib(JSON or pickle)), asserts    everywhere
================================================================== =====================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import asserts
from .blobs import decode_blob, looks_like_blob
from .cases import agree_on_wrapping, as_text, case, parallel_cases
from .literals import parse_json, parse_literal, short

__all__ = ["to_native"]

Native = dict[str, Any]

_NATIVE_KEYS = ("fn_name", "entry_point", "setup", "prelude", "prompt", "language", "solution")
_UNWRAP_KEYS = ("verification_info", "ground_truth", "unit_tests", "input_output", "official_tests")
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
    return found | {key: value for key, value in native.items() if value is not None}


# ---------------------------------------------------------------------------------------------------------------------
# One function per layout.


def _native(raw: Native) -> Native:
    kept = {key: raw[key] for key in _NATIVE_KEYS if key in raw}
    unknown = set(raw) - {*_NATIVE_KEYS, "tests", "prefix", "canonical_solution", "func_name", "metadata"}
    if unknown:
        raise ValueError(f"unknown keys beside `tests`: {', '.join(sorted(map(str, unknown)))}")
    return {**kept, "tests": _cases(raw["tests"], _fn_name(raw))}


def _inputs_outputs(raw: Native) -> Native:
    return {"tests": parallel_cases(raw["inputs"], raw["outputs"], _fn_name(raw))}


def _assert_case(raw: Native) -> Native:
    return {"tests": _cases(raw["assert_case"], None)}


def _test_cases(raw: Native) -> Native:
    kind = raw.get("case_type")
    if kind in ("pytest", "check_based"):
        raise ValueError(f"tests of case_type {kind!r} need a {_KINDS[kind]}, which this version does not run")
    return {"tests": _cases(raw["test_cases"], _fn_name(raw))}


_KINDS = {"pytest": "pytest session", "check_based": "checker program"}


def _humaneval(raw: Native) -> Native:
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
    (("inputs", "outputs"), _inputs_outputs),
    (("test_cases",), _test_cases),
    (("test_list",), _mbpp),
    (("functional",), _functional),
    (("test",), _humaneval),
    (("public_tests",), _codecontests),
    (("private_tests",), _codecontests),
    (("generated_tests",), _codecontests),
    (("public_test_cases",), _livecodebench),
    (("private_test_cases",), _livecodebench),
)

_UNSUPPORTED = {
    "pytest": "tests in pytest form (`pytest`) need a pytest session, which this version does not run",
    "solution_file": "tests that import a `solution_file` need a pytest session, which this version does not run",
    "checker": "these tests need a checker program (`checker`), which this version does not run",
    "generated_checker": "these tests need a checker program (`generated_checker`), which this version does not run",
    "plus_input": "EvalPlus inputs (`plus_input`) have no expected values without running a reference solution",
}
