"""SkyRL's rows: verl's with ``reward_spec {method, ground_truth}`` and ``env_class``."""

from __future__ import annotations

from .base import Layout, Reading, Row, RowError, Target
from .fields import as_object, first_name, needed
from .verl import extra_info

__all__ = ["SKYRL"]


def _matches(row: Row) -> bool:
    return "reward_spec" in row


def _read(row: Row) -> Reading:
    spec = as_object(row["reward_spec"], "reward_spec", "skyrl")
    if spec.get("method") == "reward_model":
        raise RowError(
            "Read as layout 'skyrl': reward_spec.method is `reward_model`, which asks for a model, not a verifier."
        )
    names = first_name(row.get("data_source"), row.get("env_class"))
    if not names:
        raise RowError("Read as layout 'skyrl': neither `data_source` nor `env_class` says what is to be judged.")
    return Reading(
        (Target(names, needed(spec, "ground_truth", "skyrl", "reward_spec")),),
        prompt=row.get("prompt"),
        extra=extra_info(row, "skyrl"),
        identity=row.get("id", row.get("uid")),
        unknown_as="data_source or env_class",
    )


SKYRL = Layout("skyrl", _matches, _read, "reward_spec.ground_truth, data_source or env_class")
