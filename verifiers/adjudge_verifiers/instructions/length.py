"""``length``: is the response as long as it may be, and what does it cost if it is longer?"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from adjudge.types import Category, Verdict

from ..base import Call, Context, Example, NoReference, Options, Verifier
from ..errors import InvalidOptions, InvalidTask
from ..extract.hidden import visible
from ..extract.thinking import strip_thinking
from ..registry import register

__all__ = ["Length", "LengthOptions", "soft_overlong"]


class LengthOptions(Options):
    """What is counted, and where the limits are."""

    max_length: int | None = Field(default=None, ge=1, description="The limit, in units.")
    min_length: int = Field(default=0, ge=0, description="Units that there must be, runs of white space counted once.")
    buffer: int = Field(
        default=0, ge=0, description="Units before `max_length` within which the reward falls to `penalty` (DAPO)."
    )
    mode: Literal["soft_overlong", "window"] = Field(
        default="soft_overlong",
        description="`soft_overlong`: 0 down to `penalty`. `window`: 1 from min_length to max_length, else 0.",
    )
    penalty: float = Field(default=-1.0, le=0, description="Reward at `max_length` and beyond, and below `min_length`.")
    unit: Literal["tokens", "words", "chars"] = Field(default="chars", description="What is counted.")
    tokens: int | None = Field(
        default=None, ge=0, description="How many tokens the response has, counted by whoever made it."
    )
    tokens_key: str = Field(default="response_tokens", description="Key of `metadata` that holds it otherwise.")
    text: Literal["all", "answer"] = Field(
        default="all", description="`answer` leaves thinking blocks out; tokens are taken as they were counted."
    )


@register
class Length(Verifier[None, LengthOptions]):
    """Soft overlong punishment (DAPO), or a plain window of lengths. Needs no reference and judges no content.

    With limit M and buffer C a response of L units gets 0 up to M - C, then (M - C - L) / C down to -1 at M, and -1
    beyond; `penalty` takes the place of -1. Tokens are never counted here, since only the trainer has the tokenizer:
    their number comes in `options.tokens` or in `metadata.response_tokens`.
    """

    name, version, lane = "length", "1", "inline"
    Reference, Options = NoReference, LengthOptions
    source = "DAPO (2503.14476), soft overlong punishment"
    reads_metadata: ClassVar[bool] = True
    """The number of tokens may come in the metadata, which is then a part of what is judged."""
    examples = (
        Example("x" * 80, None, {"max_length": 100, "buffer": 20}, reward=0.0, category="correct"),
        Example("x" * 90, None, {"max_length": 100, "buffer": 20}, reward=-0.5, category="partial"),
        Example("x" * 101, None, {"max_length": 100, "buffer": 20}, reward=-1.0, category="wrong_format"),
        Example("x", None, {"unit": "tokens", "tokens": 900, "max_length": 1000, "buffer": 200}, -0.5),
        Example("one two three", None, {"unit": "words", "mode": "window", "min_length": 2, "max_length": 3}),
        Example("one", None, {"unit": "words", "mode": "window", "min_length": 2}, reward=0.0, category="wrong_format"),
        Example("x", None, {"unit": "tokens", "max_length": 9}, reward=None, status="invalid_task", note="no count"),
        Example("x", None, {}, reward=None, status="invalid_task", note="no limit"),
    )

    def verify(self, call: Call[None, LengthOptions], ctx: Context) -> Verdict:
        options = call.options
        _check(options)
        length = _length(call)
        reward = _reward(length, _unpadded_length(call, length), options)
        worst = 0.0 if options.mode == "window" else options.penalty
        best = 1.0 if options.mode == "window" else 0.0
        category: Category = "correct" if reward == best else "wrong_format" if reward == worst else "partial"
        limits = f"at least {options.min_length}" if options.max_length is None else f"at most {options.max_length}"
        return Verdict.scored(
            reward,
            category,
            f"{length} {options.unit}; asked for are {limits}, with a buffer of {options.buffer}.",
            parts={"length": reward},
            evidence={"length": length, "unit": options.unit},
        )


def soft_overlong(length: int, max_length: int, buffer: int, penalty: float = -1.0) -> float:
    """0 up to ``max_length - buffer``, then linear down to ``penalty`` at ``max_length`` and beyond."""
    if length <= max_length - buffer:
        return 0.0
    if length >= max_length and (buffer > 0 or length > max_length):
        return penalty
    return penalty * (length - (max_length - buffer)) / buffer


def _check(options: LengthOptions) -> None:
    if options.max_length is None and not options.min_length:
        raise InvalidOptions("There is no limit: set max_length or min_length.")
    if options.max_length is not None and options.buffer > options.max_length:
        raise InvalidOptions(f"buffer ({options.buffer}) is more than max_length ({options.max_length}).")
    if options.max_length is not None and options.min_length > options.max_length:
        raise InvalidOptions(f"min_length ({options.min_length}) is more than max_length ({options.max_length}).")
    if options.mode == "soft_overlong" and options.penalty == 0:
        raise InvalidOptions("A penalty of 0 tells no lengths apart.")


def _reward(length: int, unpadded: int, options: LengthOptions) -> float:
    if options.mode == "window":
        within = options.min_length <= unpadded and (options.max_length is None or length <= options.max_length)
        return float(within)
    if unpadded < options.min_length:
        return options.penalty
    return (
        0.0
        if options.max_length is None
        else soft_overlong(length, options.max_length, options.buffer, options.penalty)
    )


def _length(call: Call[None, LengthOptions]) -> int:
    options = call.options
    if options.unit == "tokens":
        count = options.tokens if options.tokens is not None else call.metadata.get(options.tokens_key)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidTask(
                f"Tokens are to be counted, but options.tokens and metadata[{options.tokens_key!r}] hold no number."
            )
        return count
    text = _text(call)
    return len(text) if options.unit == "chars" else len(text.split())


def _unpadded_length(call: Call[None, LengthOptions], length: int) -> int:
    """The length that counts towards ``min_length``: padding is no text. Tokens are taken as they were counted."""
    if call.options.unit == "tokens" or not call.options.min_length:
        return length
    words = [word for word in map(visible, _text(call).split()) if word]
    return len(" ".join(words)) if call.options.unit == "chars" else len(words)


def _text(call: Call[None, LengthOptions]) -> str:
    return call.response if call.options.text == "all" else strip_thinking(call.response)[0]
