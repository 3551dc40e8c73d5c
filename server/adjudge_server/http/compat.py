"""What the trainers' own wire formats share: how a sample of theirs becomes a task, and a verdict a number.

Their clients send no headers and one label, so everything else is in the URL: ``?verifier=math`` or ``?recipe=NAME``,
``key=...``, ``on_error=...``, and options of the verifier as ``opt.NAME=VALUE`` (VALUE is read as JSON if it is JSON).
A label that is itself a data set's row (an object, or a string that holds one) brings its own verifier.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from adjudge.types import Task, Verdict
from adjudge_verifiers.errors import InvalidTask, boundary

from ..engine import Engine, Submission
from ..engine.prepare import describe_error
from ..rows import to_task
from .problems import Problem

__all__ = ["CompatOptions", "cut_prompt", "numeric_log", "options_of", "refuse", "sample"]

SPECIAL_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<pad>",
    "<|pad|>",
    "<｜end▁of▁sentence｜>",
    "[EOS]",
    "<|END_OF_TURN_TOKEN|>",
    "<|eos|>",
)  # fmt: skip
"""Tokens that end or pad a turn in the common chat templates; cut from the end of a response."""

_ASSISTANT_HEADERS = (
    "<|im_start|>assistant\n",
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "<start_of_turn>model\n",
    "<｜Assistant｜>",
    "<|assistant|>\n",
    "[/INST]",
)


class CompatOptions(BaseModel):
    """The URL's parameters."""

    model_config = ConfigDict(extra="forbid")

    verifier: str | None = None
    recipe: str | None = None
    on_error: Literal["raise", "zero"] = Field(
        default="raise",
        description="Without a reward: `raise` is an HTTP error, which the trainer retries; `zero` is 0 and `valid` 0.",
    )
    keep_special_tokens: bool = False
    timeout_s: float | None = Field(default=None, gt=0, le=3600)
    queue_timeout_s: float | None = Field(default=None, gt=0, le=3600)
    reward_key: str = Field(default="reward", description="slime with reply=dict: the name of the reward's key.")
    reply: Literal["number", "dict"] = "number"
    options: dict[str, Any] = Field(default_factory=dict)


def options_of(request: Request) -> CompatOptions:
    """Read the URL's parameters; raises :class:`Problem` that names a parameter that is not one."""
    values: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in request.query_params.items():
        if name.startswith("opt."):
            options[name[4:]] = _json_or_text(value)
        elif name not in ("key", "options"):
            values[name] = value
    try:
        return CompatOptions.model_validate({**values, "options": options})
    except ValidationError as error:
        raise Problem("invalid-request", f"URL parameters: {describe_error(error, CompatOptions)}") from None


def sample(
    engine: Engine, options: CompatOptions, response: Any, label: Any, prompt: Any = None
) -> Submission | Verdict:
    """One sample of a trainer as a submission; an ``invalid_task`` verdict when it cannot be one."""
    with boundary("Reading the sample") as outcome:
        if not isinstance(response, str | list):
            raise InvalidTask("The response is text or chat messages.")
        limits = {"timeout_s": options.timeout_s, "queue_timeout_s": options.queue_timeout_s}
        row = _row(label)
        if row is not None and not (options.verifier or options.recipe):
            found = to_task(row, response, format="auto", routes=engine.routes)
            task = found.task.model_copy(update={**limits, "options": {**found.task.options, **options.options}})
            return Submission(task, found.recipe)
        if not (options.verifier or options.recipe):
            raise InvalidTask(
                "Name a verifier in the URL (?verifier=math), or send labels that are rows of a data set."
            )
        return Submission(
            Task.model_validate(
                {
                    "verifier": options.verifier,
                    "recipe": options.recipe,
                    "response": response,
                    "prompt": prompt if isinstance(prompt, str | list) else None,
                    "reference": None if label == "" else label,
                    "options": options.options,
                    **limits,
                }
            )
        )
    assert outcome.failure is not None
    return outcome.failure


def cut_prompt(query: str, prompt: Any, *, keep_special_tokens: bool = False) -> str:
    """The response within ``query`` = prompt + response + special tokens.

    Where the prompt is not a prefix (a tokenizer may change spaces on the way), the response starts after as many
    assistant headers as the prompt has; later headers are the answer's own and hide nothing.
    """
    text = query
    if isinstance(prompt, str) and prompt:
        text = query[len(prompt) :] if query.startswith(prompt) else _after_headers(query, prompt)
    if keep_special_tokens:
        return text
    while True:
        stripped = text.rstrip()
        ending = next((token for token in SPECIAL_TOKENS if stripped.endswith(token)), None)
        if ending is None:
            return text
        text = stripped[: -len(ending)]


def _after_headers(query: str, prompt: str) -> str:
    for header in _ASSISTANT_HEADERS:
        if count := prompt.count(header):
            pieces = query.split(header, count)
            if len(pieces) == count + 1:
                return pieces[-1]
    return query


def numeric_log(verdict: Verdict) -> dict[str, float]:
    """Always the same keys, always numbers: what a trainer may log about one verdict."""
    return {
        "valid": float(verdict.ok),
        "correct": float(bool(verdict.correct)),
        "cached": float(verdict.cached),
        "run_ms": verdict.timing.run_ms,
        "queue_ms": verdict.timing.queue_ms,
    }


def refuse(verdict: Verdict, *, hint: bool = True) -> Problem:
    """The HTTP error for a verdict without a reward: retried by the trainer, and read by a person in its log."""
    slug = "no-reward" if verdict.status == "invalid_task" else "no-reward-now"
    more = "" if slug == "no-reward-now" or not hint else " (?on_error=zero gives such samples 0 and valid=0 instead.)"
    return Problem(slug, f"{verdict.status}: {verdict.reason}{more}", verdict=verdict.model_dump(mode="json"))


def _row(label: Any) -> dict[str, Any] | None:
    value = _json_or_text(label) if isinstance(label, str) and label.lstrip().startswith("{") else label
    return value if isinstance(value, dict) else None


def _json_or_text(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
