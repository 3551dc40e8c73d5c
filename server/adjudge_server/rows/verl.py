"""verl's rows, and those of Guru (Reasoning360), which share them; SkyRL's differ in two names.

``data_source``, ``prompt``, ``ability``, ``reward_model {style, ground_truth}``, ``extra_info``. Guru names its sources
``domain__name`` and puts code that belongs before a program into ``extra_info.prefix``.
"""

from __future__ import annotations

from typing import Any

from .base import Layout, Reading, Row, RowError, Target
from .fields import as_object, first_name, needed

__all__ = ["VERL"]

_JUDGED = frozenset({"math_llm_judge", "llm_judge"})


def _matches(row: Row) -> bool:
    return "reward_model" in row


def _read(row: Row) -> Reading:
    reward_model = as_object(row["reward_model"], "reward_model", "verl")
    extra = extra_info(row, "verl")
    source = needed(row, "data_source", "verl")
    if not isinstance(source, str):
        raise RowError("Read as layout 'verl': `data_source` should be text.")
    if reward_model.get("style") == "model" and "ground_truth" not in reward_model:
        raise RowError(
            "Read as layout 'verl': reward_model.style is `model`, which asks for a reward model, not a verifier."
        )
    truth = needed(reward_model, "ground_truth", "verl", "reward_model")
    metric = extra.get("reward_metric")
    names = first_name(f"{source}+{metric}" if metric in _JUDGED else None, source)
    return Reading(
        (Target(names, truth),),
        prompt=row.get("prompt"),
        extra=extra,
        identity=row.get("id", row.get("uid")),
        unknown_as="data_source",
    )


def extra_info(row: Row, layout: str) -> dict[str, Any]:
    """``extra_info`` as an object; it is context, so a row without one has an empty one."""
    value = row.get("extra_info")
    return as_object(value, "extra_info", layout) if isinstance(value, dict | str) and value else {}


VERL = Layout("verl", _matches, _read, "data_source, reward_model.ground_truth")
