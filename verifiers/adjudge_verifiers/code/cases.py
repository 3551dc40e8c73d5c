"""Single tests, in every shape that a data set writes one, to native tests.

A test that reads and writes has text on both sides; text may come as a list of lines. A function-call test has an input
that is either a list, which holds the arguments, or text with one JSON value on each line; the expected value is then a
plain value or text of one JSON value, in the same way.
"""

from __future__ import annotations

from typing import Any

from .literals import parse_json, parse_value, short

__all__ = ["agree_on_wrapping", "as_text", "call_case", "case", "parallel_cases"]

Native = dict[str, Any]

_CALL_KINDS = frozenset({"function_call", "functional", "call", "call_based", "function"})
_STDIN_KINDS = frozenset({"stdin_stdout", "stdin", "stdio", "standard_input", "input", "text"})
_IO_KEYS = (
    ("input", "output"),
    ("input", "expected_output"),
    ("stdin", "expected_stdout"),
    ("stdin", "expected_output"),
    ("stdin", "output"),
    ("inputs", "outputs"),
)


def as_text(value: Any, what: str) -> str:
    """Text; a list of lines is joined, a number is written. Raises ``ValueError``."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and not any(isinstance(line, list | tuple) for line in value):
        return "\n".join(as_text(line, what) for line in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return _refuse(value, what)


def _refuse(value: Any, what: str) -> str:
    raise ValueError(f"`{what}` should be text or a list of lines, not {short(value)}")


def case(item: Any, fn_name: str | None = None) -> list[Native]:
    """One test of a list. Raises ``ValueError``."""
    if isinstance(item, str):
        return _from_text(item, fn_name)
    if not isinstance(item, dict):
        raise ValueError(f"a test is an object or assert code, not {short(item)}")
    item = {key: value for key, value in item.items() if value is not None}
    if _is_native(item):
        return [_native(item)]
    if "assert_code" in item:
        return [_assert_code(item)]
    if "testtype" not in item and isinstance(item.get("input"), dict) and isinstance(item.get("output"), dict):
        return [_weighted(item, _common_oj(item["input"], item["output"]))]
    for given, expected in _IO_KEYS:
        if given in item and expected in item:
            return [_weighted(item, _in_out(item, item[given], item[expected], fn_name))]
    raise ValueError(f"a test with the keys {short(', '.join(map(str, item)), 120)} is of no known kind")


def _is_native(item: Native) -> bool:
    if not {"assert", "pytest", "harness"}.isdisjoint(item) or ("call" in item and "expect" in item):
        return True
    return set(item) <= _STREAM_KEYS and not _STREAM_KEYS.isdisjoint(set(item) - _WEIGHT_KEYS)


_WEIGHT_KEYS = frozenset({"group", "points", "level"})
_STREAM_KEYS = _WEIGHT_KEYS | {"stdin", "stdout", "args", "files", "expect_files"}


def _weighted(item: Native, test: Native) -> Native:
    """With what the test says of its place among the others."""
    group = item.get("group", item.get("subtask"))
    found = {"group": group, "points": item.get("points"), "level": item.get("level")}
    return test | {key: value for key, value in found.items() if value is not None}


def _from_text(text: str, fn_name: str | None) -> list[Native]:
    stripped = text.strip()
    if stripped.startswith("{"):
        return case(parse_json(stripped), fn_name)
    if "assert" in stripped:
        return [{"assert": text.replace("\r\n", "\n").strip("\n")}]
    raise ValueError(f"{short(text)} holds no assert")


def _native(item: Native) -> Native:
    texts: Native = {key: as_text(item[key], key) for key in ("stdin", "stdout") if key in item}
    return {**item, **texts}


def _assert_code(item: Native) -> Native:
    """ROLL: assert code with what it imports; a ``check`` function in it is called with the entry point."""
    code = as_text(item["assert_code"], "assert_code")
    entry_point = item.get("entry_point")
    if isinstance(entry_point, str) and "def check(" in code and f"check({entry_point}" not in code:
        code += f"\ncheck({entry_point})"
    prefix = as_text(item.get("import_prefix", ""), "import_prefix")
    return {"assert": f"{prefix}\n{code}".strip("\n")}


def _common_oj(given: Native, expected: Native) -> Native:
    """SandboxFusion: ``input{stdin, name: text...}``, ``output{stdout, name: text...}``."""
    files, wanted = (
        {name: as_text(text, name) for name, text in side.items() if name not in ("stdin", "stdout", "args")}
        for side in (given, expected)
    )
    if "stdout" not in expected and not wanted:
        raise ValueError("the output has no `stdout` and no file")
    test: Native = {"stdin": as_text(given.get("stdin", ""), "stdin"), "files": files, "expect_files": wanted}
    if "stdout" in expected:
        test["stdout"] = as_text(expected["stdout"], "stdout")
    if isinstance(given.get("args"), list):
        test["args"] = given["args"]
    return test


def _in_out(item: Native, given: Any, expected: Any, fn_name: str | None) -> Native:
    metadata = item.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    name = item.get("fn_name") or item.get("func_name") or inner.get("func_name") or fn_name
    kind = item.get("type") or item.get("testtype")
    if kind is not None and not (isinstance(kind, str) and kind in _CALL_KINDS | _STDIN_KINDS):
        raise ValueError(f"type {short(kind)} is not known; use stdin_stdout or function_call")
    if kind in _CALL_KINDS or (kind is None and name):
        if not isinstance(name, str) or not name.strip():
            raise ValueError("a function_call test needs fn_name")
        return call_case(name.strip(), given, expected)
    return {"stdin": as_text(given, "input"), "stdout": as_text(expected, "output")}


def call_case(name: str, given: Any, expected: Any) -> Native:
    """A test that calls ``name``. Raises ``ValueError``."""
    if isinstance(given, str):
        args = [parse_value(line) for line in given.split("\n") if line.strip()]
        expect = _decoded(expected)
    elif isinstance(given, list | tuple):
        args, expect = [_with_int_keys(value) for value in given], expected
    else:
        raise ValueError(f"the arguments should be a list or text with one JSON value per line, not {short(given)}")
    return {
        "call": {"function": name, "args": [_listed(value) for value in args]},
        "expect": _listed(expect),
        "unwrap": isinstance(expect, list) and len(expect) == 1 and not isinstance(given, str),
    }


def _decoded(expected: Any) -> Any:
    """A value written as text, like the arguments beside it; text that is no JSON stands for itself."""
    if not isinstance(expected, str):
        return expected
    try:
        return parse_value(expected)
    except ValueError:
        return expected


def _with_int_keys(value: Any) -> Any:
    """An argument that is a dict with whole numbers for keys: JSON turned them into text, as APPS turns them back."""
    if isinstance(value, dict) and value and all(isinstance(key, str) and _is_int(key) for key in value):
        return {int(key): item for key, item in value.items()}
    return value


def _is_int(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) < 19 and digits.isascii() and digits.isdigit()


def _listed(value: Any) -> Any:
    """Python literals may hold tuples, which JSON has not."""
    if isinstance(value, tuple | list):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return value


def parallel_cases(inputs: Any, outputs: Any, fn_name: str | None) -> list[Native]:
    """Tests from a list of inputs and a list of outputs beside it. Raises ``ValueError``."""
    inputs, outputs = _parallel(inputs, "inputs"), _parallel(outputs, "outputs")
    if len(inputs) != len(outputs):
        raise ValueError(f"there are {len(inputs)} inputs but {len(outputs)} outputs")
    if not inputs:
        raise ValueError("there are no tests: inputs and outputs are empty")
    tests: list[Native] = []
    for number, (given, expected) in enumerate(zip(inputs, outputs, strict=True), 1):
        try:
            tests.append(
                call_case(fn_name, given, expected)
                if fn_name
                else {"stdin": as_text(given, "inputs"), "stdout": as_text(expected, "outputs")}
            )
        except ValueError as error:
            raise ValueError(f"test {number}: {error}") from None
    return agree_on_wrapping(tests)


def agree_on_wrapping(tests: list[Native]) -> list[Native]:
    """Every expected value of a suite stands in a list of its own, or none does."""
    if all(test.get("unwrap", True) for test in tests):
        return tests
    return [{**test, "unwrap": False} if "unwrap" in test else test for test in tests]


def _parallel(values: Any, what: str) -> list[Any]:
    if isinstance(values, str):
        values = parse_value(values) if values.strip().startswith("[") else [values]
    if not isinstance(values, list | tuple):
        raise ValueError(f"`{what}` should be a list, not {short(values)}")
    return list(values)
