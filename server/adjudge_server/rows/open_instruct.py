"""open-instruct's rows: ``messages, ground_truth, dataset``, where ``dataset`` names the verifier.

Both may be lists of equal length: then each verifier of the row judges the answer against its own ground truth, and
their scores are combined with equal weights.
"""

from __future__ import annotations

from typing import Any

from .base import Layout, Reading, Row, RowError, Target
from .fields import first_name, needed

__all__ = ["OPEN_INSTRUCT"]


def _matches(row: Row) -> bool:
    return "dataset" in row and "ground_truth" in row


def _read(row: Row) -> Reading:
    names, truths = needed(row, "dataset", "open_instruct"), needed(row, "ground_truth", "open_instruct")
    return Reading(
        tuple(_target(name, truth) for name, truth in _pairs(names, truths)),
        prompt=row.get("messages", row.get("prompt")),
        identity=row.get("id"),
        unknown_as="dataset",
    )


def _pairs(names: Any, truths: Any) -> list[tuple[Any, Any]]:
    if not isinstance(names, list):
        return [(names, truths)]
    if len(names) == 1 and not (isinstance(truths, list) and len(truths) == 1):
        return [(names[0], truths)]
    if not isinstance(truths, list) or len(truths) != len(names):
        count = len(truths) if isinstance(truths, list) else 1
        raise RowError(
            f"Read as layout 'open_instruct': {len(names)} names in `dataset`, but {count} in `ground_truth`."
        )
    return list(zip(names, truths, strict=True))


def _target(name: Any, truth: Any) -> Target:
    if not isinstance(name, str) or not name.strip():
        raise RowError("Read as layout 'open_instruct': `dataset` should be the name of a verifier.")
    if name.strip().lower() == "passthrough":
        raise RowError("Read as layout 'open_instruct': the row asks for no verification (dataset `passthrough`).")
    return Target(first_name(name.lower(), name), truth)


OPEN_INSTRUCT = Layout("open_instruct", _matches, _read, "messages, ground_truth, dataset")
