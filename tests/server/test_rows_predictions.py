"""Rows of data sets that ask for predictions and queries, from the row to the verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge_server.rows import to_task
from adjudge_verifiers import registry

F = "def f(x):\n    return 2 * x"
ROWS: list[tuple[dict[str, Any], str, str]] = [
    (
        {
            "data_source": "simulation__cruxeval-o",
            "prompt": [{"role": "user", "content": f"{F}\nassert f(4) == ??"}],
            "reward_model": {"ground_truth": json.dumps({"functional": F})},
        },
        "code_output_prediction",
        "4",
    ),
    (
        {
            "data_source": "simulation__cruxeval-i",
            "prompt": [{"role": "user", "content": f"{F}\nassert f(??) == 8"}],
            "reward_model": {"ground_truth": json.dumps({"functional": F})},
        },
        "code_input_prediction",
        "8",
    ),
    (
        {
            "data_source": "simulation__codeio",
            "prompt": "?",
            "reward_model": {"ground_truth": '{"a": [1, "x"]}'},
        },
        "code_output_prediction",
        "{'a': [1, 'x']}",
    ),
    (
        {"task_type": "code_output_prediction", "prompt": "?", "verification_info": {"code_output": "3\n"}},
        "code_output_prediction",
        "'3\\n'",
    ),
]


@pytest.mark.parametrize(("row", "verifier", "given"), ROWS)
def test_a_row_says_what_is_given(row: dict[str, Any], verifier: str, given: str) -> None:
    task = to_task(row, "<answer>0</answer>").task
    assert task.verifier == verifier
    chosen = registry.get(verifier)
    reference = type(chosen).reference_adapter().validate_python(task.reference)
    type(chosen).Options.model_validate(task.options)
    shown = reference.input if reference.input is not None else reference.output
    assert (
        shown if isinstance(shown, str) and verifier.endswith("output_prediction") and reference.code else repr(shown)
    ) == given


@pytest.mark.parametrize(
    ("source", "options"), [("spider", {"rule": "auto", "any_column_order": True}), ("bird", {"rule": "set"})]
)
def test_queries_are_compared_as_their_data_set_does(source: str, options: dict[str, Any]) -> None:
    truth = {"query": "SELECT 1", "script": "CREATE TABLE t (i)"}
    task = to_task({"data_source": source, "prompt": "?", "reward_model": {"ground_truth": truth}}, "SELECT 1").task
    assert (task.verifier, task.options) == ("sql", options)
    registry.get("sql").reference_adapter().validate_python(task.reference)
