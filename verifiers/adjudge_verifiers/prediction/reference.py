"""What a prediction is about: a function, and one of its calls.

Native form: ``code``, ``function``, ``args`` and ``kwargs`` (JSON values) or ``input`` (text as between the parentheses
of a call), ``output`` (text as ``repr`` writes it, or another JSON value). Rows of CRUXEval (``code``, ``input``,
``output``), Absolute Zero (``snippet`` or ``program``, ``input``, ``output``, ``imports``), Guru (``functional``, and a
``prompt`` with ``assert f(1) == ??``) and SYNTHETIC (``code_output`` without code) are taken as they are.
"""

from __future__ import annotations

import re
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from ..code.asserts import functions_of, parse
from ..code.literals import parse_json, parse_python, short
from .written import NotWritten, arguments, statement, value_of

__all__ = ["PredictionReference"]

_ALIASES = {
    "code": ("code", "snippet", "program", "functional", "func", "context"),
    "function": ("function", "entry_point", "fn_name", "func_name", "function_name"),
    "input": ("input", "gold_input"),
    "output": ("output", "gold_output", "code_output", "expected_output", "ground_truth"),
}
_BESIDE = frozenset(
    """id task_id question_id index idx problem_type task_type data_source message messages difficulty
    composite_functions known_error_types thought language prompt metadata""".split()  # noqa: SIM905
)
_OPEN = re.compile(r"^[ \t]*(assert[ \t].{0,20000}\?\?.{0,20000})$", re.MULTILINE)
_METHOD = re.compile(r"[^\W\d]\w{0,199}(?:\(\)\.[^\W\d]\w{0,199})?")
_HOLE = "__hole__"


class PredictionReference(BaseModel):
    """A function with one call of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str = Field(default="", description="Python code that defines the function.")
    function: str = Field(default="f", description="Its name: `f`, or `Solution().f`.")
    imports: str = Field(default="", description="Code that is put before `code`.")
    input: str | None = Field(default=None, description="The arguments as text: `[1, 2], x='a'`.")
    args: list[Any] | None = Field(default=None, description="The arguments as JSON values, in place of `input`.")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="Arguments by name, as JSON values.")
    output: Any = Field(
        default=None,
        description="The value: text as Python's repr writes it (without `code`: the text itself), or a JSON value. "
        "Without it, the function is run on the input.",
    )
    has_output: bool = Field(default=False, description="Set from `output`; give it with `output: null`.")
    _computed: list[Any] = PrivateAttr(default_factory=list)

    @property
    def computed(self) -> list[Any]:
        """What the function was found to return on its own input, kept for the next answer."""
        return self._computed

    @model_validator(mode="before")
    @classmethod
    def _from_any_layout(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = _from_text(value)
        return _native(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _usable(self) -> PredictionReference:
        if not self.code and not self.has_output and not self.has_input:
            raise ValueError("there is neither `code` nor an `output` or `input` to compare with")
        if self.code and not self.has_input and not self.has_output:
            raise ValueError("there is neither an `input` nor an `output`: nothing says what is asked")
        if self.args is not None and self.input is not None:
            raise ValueError("give `args` or `input`, not both")
        if not _METHOD.fullmatch(self.function):
            raise ValueError(f"{short(self.function)} is not the name of a function")
        if self.input is not None:
            try:
                arguments(self.input)
            except NotWritten as error:
                raise ValueError(f"`input` {short(self.input)}: {error}") from None
        return self

    @property
    def has_input(self) -> bool:
        return self.input is not None or self.args is not None or bool(self.kwargs)

    @property
    def source(self) -> str:
        """The program that is run."""
        return f"{self.imports}\n{self.code}\n" if self.imports.strip() else self.code

    def recorded_output(self) -> Any:
        """The expected value as the data set has it. Raises :class:`NotWritten` for text that is no value."""
        if isinstance(self.output, str) and self.code:
            return value_of(self.output)
        return self.output


def _from_text(text: str) -> Any:
    """A row that is JSON, or a dict as Python writes it, in text."""
    try:
        value = parse_json(text)
    except ValueError:
        try:
            value = value_of(text)
        except NotWritten:
            raise ValueError("it is neither JSON nor a Python dict") from None
    return value if isinstance(value, dict) else {"output": value}


def _native(raw: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: value for key, value in raw.items() if key not in _BESIDE}
    for name, aliases in _ALIASES.items():
        present = [alias for alias in aliases if found.get(alias) is not None]
        value = found[present[0]] if present else None
        for alias in aliases:
            found.pop(alias, None)
        if value is not None:
            found[name] = value
    found.setdefault("has_output", "output" in found)
    if isinstance(found.get("imports"), list | tuple):
        found["imports"] = "\n".join(map(str, found["imports"]))
    found = {key: value for key, value in found.items() if not (key == "imports" and not value)}
    given = found.get("input")
    if isinstance(given, dict):
        found["kwargs"] = found.pop("input")
    elif given is not None and not isinstance(given, str):
        found["args"] = list(given) if isinstance(given, list) else [given]
        del found["input"]
    code = found.get("code")
    if isinstance(code, str):
        _check(code)
        found.setdefault("function", _only_function(code))
        prompt = raw.get("prompt")
        if "input" not in found and "args" not in found and not found["has_output"] and isinstance(prompt, str):
            found |= _from_prompt(prompt, cast("str", found["function"]))
    return found


def _check(code: str) -> None:
    try:
        parse_python(code)
    except SyntaxError as error:
        raise ValueError(f"`code` is not Python: {error.msg} in line {error.lineno}") from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"`code` is not Python: {error}") from None


def _only_function(code: str) -> str:
    """``f`` if there is one, else the last function that the code defines."""
    names = functions_of(code)[0]
    if "f" in names or not names:
        return "f"
    tree = parse(code)
    ordered = [node.name for node in tree.body if getattr(node, "name", None) in names] if tree else []  # type: ignore[attr-defined]
    return ordered[-1] if ordered else "f"


def _from_prompt(prompt: str, function: str) -> dict[str, Any]:
    """The given side of the last ``assert f(1) == ??`` or ``assert f(??) == 2`` of a prompt."""
    lines = _OPEN.findall(prompt[-40_000:])
    if not lines:
        return {}
    try:
        said = statement(lines[-1].replace("??", _HOLE), function)
        if said.call is None or said.value is None:
            return {}
        inside = said.call.source()
        if inside == _HOLE:
            return {"output": value_of(said.value), "has_output": True}
        return {"input": inside}
    except NotWritten:
        return {}
