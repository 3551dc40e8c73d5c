"""NeMo-Gym's rows: ``responses_create_params`` and, at the top level, what the row's resources server wants.

The row may name its server (``agent_ref.name``); what kind of server that is shows in its fields, so the kind is a name
too (``nemo_gym/math``), and either can be routed.
"""

from __future__ import annotations

from typing import Any

from .base import Layout, Reading, Row, RowError, Target
from .fields import as_object, first_name, needed, pick

__all__ = ["NEMO_GYM"]


def _matches(row: Row) -> bool:
    return "responses_create_params" in row


def _read(row: Row) -> Reading:
    kind, truth = _kind(row)
    agent = row.get("agent_ref")
    name = agent.get("name") if isinstance(agent, dict) else agent
    params = row["responses_create_params"]
    return Reading(
        (Target(first_name(name, row.get("dataset"), f"nemo_gym/{kind}"), truth),),
        response=row.get("response"),
        prompt=params.get("input") if isinstance(params, dict) else None,
        extra={"options": row.get("options")},
        identity=pick(row, ("id", "uuid", "_ng_task_index")),
        unknown_as="agent_ref.name",
    )


def _kind(row: Row) -> tuple[str, Any]:
    """What the row's fields say is to be judged, and against what."""
    if "verifier_metadata" in row:
        metadata = as_object(row["verifier_metadata"], "verifier_metadata", "nemo_gym")
        if "unit_tests" in metadata:
            return "code", as_object(metadata["unit_tests"], "verifier_metadata.unit_tests", "nemo_gym")
    if "instruction_id_list" in row:
        return "ifeval", {"instruction_id_list": row["instruction_id_list"], "kwargs": row.get("kwargs")}
    if "schema_str" in row:
        return "structured_outputs", row["schema_str"]
    if "formal_statement" in row:
        return "lean", {"header": row.get("header", ""), "formal_statement": row["formal_statement"]}
    if "options" in row:
        return "multiple_choice", needed(row, "expected_answer", "nemo_gym")
    if "extraction_mode" in row:
        return "string_match", needed(row, "expected_answer", "nemo_gym")
    made_by = row.get("metadata")
    if isinstance(made_by, dict) and "source_dataset" in made_by:
        return "reasoning_gym", {"answer": row.get("answer"), "metadata": made_by}
    if "expected_answer" in row:
        return "math", needed(row, "expected_answer", "nemo_gym")
    raise RowError(
        "Read as layout 'nemo_gym': none of expected_answer, verifier_metadata.unit_tests, instruction_id_list, "
        "schema_str and formal_statement is there, so nothing says what is right."
    )


NEMO_GYM = Layout("nemo_gym", _matches, _read, "responses_create_params")
