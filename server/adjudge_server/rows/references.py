"""From the right answer as a row writes it to the reference that its verifier takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge_verifiers.code.literals import parse_json
from adjudge_verifiers.extract.code import canonical_language, spoken_language

from .base import Reading
from .fields import parsed_list

__all__ = ["options_for", "reference_for"]


def reference_for(verifier: str | None, truth: Any, reading: Reading) -> Any:
    """``truth`` in the form that ``verifier`` takes; what it cannot make sense of, the verifier itself refuses."""
    shape = _SHAPES.get(verifier or "")
    return shape(truth, reading) if shape else truth


def options_for(verifier: str | None, reading: Reading) -> dict[str, Any]:
    """Options that the row itself asks for."""
    language = reading.extra.get("language")
    if verifier == "code" and isinstance(language, str) and canonical_language(language) != "python":
        return {"language": spoken_language(language)}
    return {}


def _texts(truth: Any, reading: Reading) -> Any:
    """Text, or a list of accepted texts."""
    if isinstance(truth, dict):
        truth = next((truth[key] for key in ("target", "ground_truth", "answer", "answers") if key in truth), truth)
    truth = parsed_list(truth)
    if isinstance(truth, list) and truth:
        return [_text(item) for item in truth]
    return _text(truth)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) and _printable(value) else value


def _printable(value: int | float) -> bool:
    return isinstance(value, float) or value.bit_length() < 10_000  # Python writes no longer integers


def _numbers(truth: Any, reading: Reading) -> Any:
    found = _texts(truth, reading)
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def _choice(truth: Any, reading: Reading) -> Any:
    choices = reading.extra.get("options")
    choices = parsed_list(choices)
    if isinstance(choices, dict) and set(choices) == {"text", "label"}:  # ARC, CommonsenseQA
        choices = _labelled(choices)
    if isinstance(truth, dict) or not choices:
        return truth
    return {"answer": truth, "options": choices}


def _labelled(choices: dict[str, Any]) -> Any:
    labels, texts = choices["label"], choices["text"]
    if isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts):
        return {str(label): text for label, text in zip(labels, texts, strict=True)}
    return choices


def _code(truth: Any, reading: Reading) -> Any:
    beside = {"prelude": reading.extra.get("prefix"), "solution": reading.extra.get("solution")}
    beside = {key: value for key, value in beside.items() if isinstance(value, str) and value.strip()}
    return {"ground_truth": truth, **beside} if beside else truth


_PREDICTION_KEYS = ("functional", "code", "snippet", "program")


def _prediction(truth: Any, reading: Reading) -> Any:
    """A function with a call of it; Guru's rows hold the call in their prompt. Without code, the value alone."""
    if isinstance(truth, str):
        try:
            truth = parse_json(truth)
        except ValueError:
            return {"output": truth, "has_output": True}
    if not isinstance(truth, dict):
        return {"output": truth, "has_output": True}
    if any(key in truth for key in _PREDICTION_KEYS):
        prompt = reading.prompt if "functional" in truth and isinstance(reading.prompt, str | list) else None
        return {**truth, "prompt": _prompt_text(prompt)} if prompt else truth
    for key in ("output", "code_output", "ground_truth", "input"):
        if key in truth:
            return {"output": truth[key], "has_output": True}
    return {"output": truth, "has_output": True}


def _prompt_text(prompt: Any) -> str:
    """The texts of a prompt, one after the other."""
    if isinstance(prompt, str):
        return prompt
    contents = [message.get("content") for message in prompt if isinstance(message, dict)]
    return "\n".join(content for content in contents if isinstance(content, str))


_SHAPES: dict[str, Callable[[Any, Reading], Any]] = {
    "code": _code,
    "code_input_prediction": _prediction,
    "code_output_prediction": _prediction,
    "exact_match": _texts,
    "math": _texts,
    "multiple_choice": _choice,
    "numeric": _numbers,
}
