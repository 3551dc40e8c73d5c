"""``format``: has the response the structure that was asked for, whatever it says?"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from adjudge.types import Verdict

from ..base import Call, Context, Example, NoReference, Options, Verifier
from ..errors import InvalidOptions
from ..extract.boxed import find_boxes
from ..extract.hidden import visible
from ..registry import register

__all__ = ["Format", "FormatOptions"]

Check = tuple[bool, str]
"""Whether a demand is met, and what is wrong if it is not."""


class FormatOptions(Options):
    """What is demanded. Nothing is demanded unless it is named here; at least one demand must be."""

    require: tuple[str, ...] = Field(
        default=(), description="Names of blocks such as `think`, `answer`: each exactly once, closed, in this order."
    )
    nonempty: bool = Field(default=True, description="The required blocks hold more than white space.")
    only_blocks: bool = Field(default=False, description="Nothing but white space stands outside the required blocks.")
    nothing_after: bool = Field(default=False, description="Nothing but white space follows the last required block.")
    prefilled: bool = Field(
        default=False, description="The prompt already opened the first block; its opening tag may be missing."
    )
    boxed: Literal["any", "once", "some", "none"] = Field(
        default="any", description="How many `\\boxed{}` there are; every one must be closed and hold something."
    )
    json_value: Literal["any", "object", "array", "valid"] = Field(
        default="any", description="The response, or the last required block, is JSON of this kind."
    )
    json_keys: tuple[str, ...] = Field(default=(), description="Keys that the JSON object must have.")
    contains: tuple[str, ...] = Field(default=(), description="Texts that must occur, letter for letter.")
    excludes: tuple[str, ...] = Field(default=(), description="Texts that must not occur.")
    starts_with: str = Field(default="", description="Text at the start, white space aside.")
    ends_with: str = Field(default="", description="Text at the end, white space aside.")
    scoring: Literal["all", "share"] = Field(
        default="all", description="`all`: pass or fail. `share`: in between, by the share of demands that are met."
    )
    reward_pass: float = Field(default=1.0, description="Reward if every demand is met.")
    reward_fail: float = Field(default=0.0, description="Reward if not (with `share`: if none is).")


@register
class Format(Verifier[None, FormatOptions]):
    """Passes if the response has every structure that the options demand: blocks, boxes, JSON, fixed texts.

    Needs no reference and judges no content. With `scoring="share"` each of the four tags of think and answer, each
    box, JSON and text demand counts as one demand.
    """

    name, version, lane = "format", "1", "inline"
    Reference, Options = NoReference, FormatOptions
    source = "format and tag-count rewards of DeepSeek-R1's replications (2505.00551)"
    examples = (
        Example("<think>2+2</think><answer>4</answer>", None, {"require": ["think", "answer"]}),
        Example("<answer>4</answer>", None, {"require": ["think", "answer"]}, reward=0.0, category="wrong_format"),
        Example(
            "<answer>4</answer>",
            None,
            {"require": ["think", "answer"], "scoring": "share"},
            reward=0.5,
            category="partial",
        ),
        Example("so </think> \\boxed{4}", None, {"require": ["think"], "prefilled": True, "boxed": "once"}),
        Example("\\boxed{4} or \\boxed{5}", None, {"boxed": "once"}, reward=0.0, category="wrong_format"),
        Example('{"answer": 4}', None, {"json_value": "object", "json_keys": ["answer"]}),
        Example(
            '{"answer": 4', None, {"json_value": "valid", "reward_fail": -1.0}, reward=-1.0, category="wrong_format"
        ),
        Example("", None, {"require": ["think"]}, reward=0.0, category="no_answer"),
        Example("x", None, {}, reward=None, status="invalid_task", note="nothing is demanded"),
    )

    def verify(self, call: Call[None, FormatOptions], ctx: Context) -> Verdict:
        options, text = call.options, call.response
        checks = [*_blocks(text, options), *_texts(text, options), *_boxes(text, options), *_json(text, options)]
        if not checks:
            raise InvalidOptions(
                "The options demand nothing; name at least one of require, boxed, json_value, contains."
            )
        met = sum(1 for passed, _ in checks if passed)
        share = met / len(checks)
        reason = next((fault for passed, fault in checks if not passed), "Every demand is met.")
        parts: dict[str, float | None] = {"format": float(met == len(checks)), "share": share}
        if met == len(checks):
            return Verdict.scored(options.reward_pass, "correct", reason, parts=parts)
        reward = options.reward_fail
        if options.scoring == "share":
            reward += share * (options.reward_pass - options.reward_fail)
        blank = not visible(text)
        partial = options.scoring == "share" and met > 0 and not blank
        return Verdict.scored(
            reward, "no_answer" if blank else "partial" if partial else "wrong_format", reason, parts=parts
        )


def _blocks(text: str, options: FormatOptions) -> list[Check]:
    """Two demands per block, each tag exactly once; and one that fails if the blocks are not as they should be."""
    checks: list[Check] = []
    places: list[tuple[int, int, int, int]] = []
    for index, name in enumerate(options.require):
        opening, closing = f"<{name}>", f"</{name}>"
        opened, closed = text.count(opening), text.count(closing)
        may_lack = options.prefilled and index == 0
        checks.append((opened == 1 or (may_lack and opened == 0), f"{opening} must occur exactly once."))
        checks.append((closed == 1, f"{closing} must occur exactly once."))
        start, end = (text.find(opening), text.find(closing)) if opened else (0, text.find(closing))
        places.append((start, start + len(opening) if opened else 0, end, end + len(closing)))
    if places and all(passed for passed, _ in checks):
        fault = _arrangement(text, places, options)
        checks += [(False, fault)] if fault else []
    return checks


def _arrangement(text: str, places: list[tuple[int, int, int, int]], options: FormatOptions) -> str:
    """What is wrong with blocks whose tags are all there; empty if nothing is."""
    position = 0
    for name, (start, content, content_end, end) in zip(options.require, places, strict=True):
        if start < position or content_end < content:
            return f"The blocks must stand one after the other: {', '.join(options.require)}."
        if options.only_blocks and text[position:start].strip():
            return f"Text stands before the block {name!r}, outside any block."
        if options.nonempty and not visible(text[content:content_end]):
            return f"The block {name!r} is empty."
        position = end
    if (options.only_blocks or options.nothing_after) and text[position:].strip():
        return "Text follows the last block."
    return ""


def _texts(text: str, options: FormatOptions) -> list[Check]:
    checks = [(wanted in text, f"{wanted!r} must occur.") for wanted in options.contains]
    checks += [(unwanted not in text, f"{unwanted!r} must not occur.") for unwanted in options.excludes]
    if options.starts_with:
        checks.append((text.lstrip().startswith(options.starts_with), f"The start must be {options.starts_with!r}."))
    if options.ends_with:
        checks.append((text.rstrip().endswith(options.ends_with), f"The end must be {options.ends_with!r}."))
    return checks


def _boxes(text: str, options: FormatOptions) -> list[Check]:
    if options.boxed == "any":
        return []
    boxes = find_boxes(text)
    whole = all(box.closed and visible(box.content) for box in boxes)
    fits = {"once": len(boxes) == 1, "some": len(boxes) >= 1, "none": not boxes}[options.boxed]
    return [
        (fits and whole, f"There are {len(boxes)} boxes where {options.boxed!r} is demanded, or one is unfinished.")
    ]


def _json(text: str, options: FormatOptions) -> list[Check]:
    if options.json_value == "any" and not options.json_keys:
        return []
    if options.require:
        text = text.rpartition(f"<{options.require[-1]}>")[2].partition(f"</{options.require[-1]}>")[0]
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return [(False, "The text is not JSON.")]
    if (options.json_value == "object" or options.json_keys) and not isinstance(value, dict):
        return [(False, "The JSON is not an object.")]
    if options.json_value == "array" and not isinstance(value, list):
        return [(False, "The JSON is not an array.")]
    missing = [wanted for wanted in options.json_keys if wanted not in value]
    return [(not missing, f"The JSON object lacks {', '.join(missing)}.")]


def _no_constant(name: str) -> None:
    raise ValueError(name)
