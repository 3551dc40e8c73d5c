"""Rows of every layout become tasks; what cannot says as which layout it was read and what is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.types import Message
from adjudge_server.rows import RowError, RowRoute, known_formats, load_routes, to_task
from adjudge_verifiers import registry

IO = {"inputs": ["1\n"], "outputs": ["1\n"]}
CASES = {"language": "python", "test_cases": [{"type": "stdin_stdout", "input": "1", "output": "1", "fn_name": None}]}


def verl(source: str, truth: Any, **extra: Any) -> dict[str, Any]:
    row = {"data_source": source, "prompt": [{"role": "user", "content": "?"}], "ability": "math"}
    return row | {
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": "train", "index": 3, **extra},
    }


ROWS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("verl", verl("openai/gsm8k", "#### 18"), "numeric", "#### 18"),
    ("verl", verl("openai/gsm8k", 18), "numeric", "18"),
    ("verl", verl("lighteval/MATH", "\\frac{1}{2}"), "math", "\\frac{1}{2}"),
    ("verl", verl("DigitalLearningGmbH/MATH-lighteval", "2"), "math", "2"),
    ("verl", verl("HuggingFaceH4/MATH-500", "2"), "math", "2"),
    ("verl", verl("math_dapo", '["34"]'), "math", ["34"]),
    ("verl", verl("math_dapo", "[1,2]"), "math", "[1,2]"),
    ("verl", verl("aime2024", "34"), "math", "34"),
    ("verl", verl("numina_olympiads", "34"), "math", "34"),
    ("verl", verl("math__deepscaler_preview", "34"), "math", "34"),
    ("verl", verl("hiyouga/geometry3k", "34"), "math", "34"),
    ("verl", verl("taco", json.dumps(IO)), "code", json.dumps(IO)),
    ("verl", verl("codecontests", IO), "code", IO),
    (
        "verl",
        verl("codegen__livecodebench", json.dumps({"functional": "assert f(1)"})),
        "code",
        json.dumps({"functional": "assert f(1)"}),
    ),
    (
        "verl",
        verl("codegen__leetcode2k", "{}", prefix="import math"),
        "code",
        {"ground_truth": "{}", "prelude": "import math"},
    ),
    ("verl", verl("searchR1_nq", {"target": ["Paris", "paris"]}), "exact_match", ["Paris", "paris"]),
    ("verl", verl("stem__supergpqa", "C"), "multiple_choice", "C"),
    (
        "verl",
        {**verl("openai/gsm8k", "1"), "reward_model": json.dumps({"ground_truth": "1"}), "extra_info": "{}"},
        "numeric",
        "1",
    ),
    ("verl", {**verl("openai/gsm8k", "1"), "verification_info": None, "task_type": None}, "numeric", "1"),
    ("skyrl", {"data_source": "math", "reward_spec": {"method": "rule", "ground_truth": "2"}}, "math", "2"),
    ("skyrl", {"env_class": "gsm8k", "reward_spec": {"method": "rule", "ground_truth": "2"}}, "numeric", "2"),
    ("synthetic", {"task_type": "verifiable_math", "verification_info": '{"ground_truth": "2"}'}, "math", "2"),
    ("synthetic", {"task_type": "verifiable_math", "verification_info": {"ground_truth": 2}}, "math", "2"),
    ("synthetic", {"task_type": "verifiable_code", "verification_info": json.dumps(CASES)}, "code", None),
    ("synthetic", {"task_type": "prime_rl_code", "verification_info": json.dumps(IO)}, "code", IO),
    ("synthetic", {"verification_info": CASES}, "code", None),
    ("open_instruct", {"messages": [], "ground_truth": "18", "dataset": "gsm8k"}, "numeric", "18"),
    ("open_instruct", {"messages": [], "ground_truth": ["2"], "dataset": ["MATH"]}, "math", "2"),
    ("open_instruct", {"ground_truth": "Paris", "dataset": "string_matcher"}, "exact_match", "Paris"),
    ("open_instruct", {"ground_truth": '["assert f(1)"]', "dataset": "code"}, "code", '["assert f(1)"]'),
    ("nemo_gym", {"responses_create_params": {"input": "?"}, "question": "?", "expected_answer": "2"}, "math", "2"),
    (
        "nemo_gym",
        {
            "responses_create_params": {},
            "options": [{"A": "x"}, {"B": "y"}],
            "expected_answer": "B",
            "grading_mode": "strict",
        },
        "multiple_choice",
        {"answer": "B", "options": [{"A": "x"}, {"B": "y"}]},
    ),
    ("nemo_gym", {"responses_create_params": {}, "expected_answer": "B", "extraction_mode": "all"}, "exact_match", "B"),
    ("nemo_gym", {"responses_create_params": {}, "verifier_metadata": {"unit_tests": json.dumps(IO)}}, "code", IO),
    ("roll", {"id": 1, "domain": "math_rule", "ground_truth": "2"}, "math", "2"),
    (
        "roll",
        {"domain": "code_sandbox", "case_type": "input", "test_cases": [{"stdin": "1", "expected_stdout": "1"}]},
        "code",
        {"case_type": "input", "test_cases": [{"stdin": "1", "expected_stdout": "1"}]},
    ),
    ("plain", {"question": "?", "answer": "so\n#### 18"}, "numeric", "so\n#### 18"),
    ("plain", {"data_source": "math", "solution": "2"}, "math", "2"),
    ("plain", {"verifier": "exact_match", "answer": "x"}, "exact_match", "x"),
    ("plain", {"task_info": {"data_source": "taco", "ground_truth": IO, "problem": "?"}}, "code", IO),
    (
        "plain",
        {"question": "?", "choices": ["x", "y"], "answer": 1},
        "multiple_choice",
        {"answer": 1, "options": ["x", "y"]},
    ),
    (
        "plain",
        {"choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answer": "A"},
        "multiple_choice",
        {"answer": "A", "options": {"A": "x", "B": "y"}},
    ),
    ("plain", {"task_id": 1, "test_list": ["assert f(1)"], "code": "x"}, "code", None),
    ("plain", {"task_id": "HumanEval/1", "prompt": "def f():", "entry_point": "f", "test": "x"}, "code", None),
]


@pytest.mark.parametrize(("layout", "row", "verifier", "reference"), ROWS, ids=range(len(ROWS)))
def test_rows(layout: str, row: dict[str, Any], verifier: str, reference: Any) -> None:
    for name in ("auto", layout):
        found = to_task(row, "answer", format=name)
        assert found.recipe is None
        assert found.task.verifier == verifier
        assert found.task.text == "answer"
        assert found.task.metadata["row_format"] == layout
        if reference is not None:
            assert found.task.reference == reference


@pytest.mark.parametrize(("layout", "row", "verifier", "reference"), ROWS, ids=range(len(ROWS)))
def test_options_and_references_pass_the_verifiers_own_checks(
    layout: str, row: dict[str, Any], verifier: str, reference: Any
) -> None:
    if row.get("test") == "x" or reference == {"ground_truth": "{}", "prelude": "import math"}:
        return  # these references are placeholders
    task = to_task(row, "answer").task
    registry.get(verifier).Options.model_validate(task.options)
    registry.get(verifier).reference_adapter().validate_python(task.reference)


def test_known_formats() -> None:
    assert {"verl", "guru", "synthetic", "open_instruct", "skyrl", "nemo_gym", "roll", "plain"} == set(known_formats())


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "layout cannot be told"),
    ({"strange": True}, "'strange'"),
    (verl("openai/gsm8x", "1"), "Did you mean .*gsm8k"),
    (verl("nobody/knows", "1"), "no route for data_source 'nobody/knows'"),
    (verl("", "1"), "`data_source` is missing"),
    (verl("math", None), "reward_model.ground_truth"),
    (verl("math", ""), "reward_model.ground_truth"),
    ({**verl("math", "1"), "reward_model": "no json"}, "reward_model"),
    ({**verl("math", "1"), "reward_model": {"style": "model"}}, "reward model"),
    ({**verl("math", "1"), "data_source": 5}, "data_source"),
    (verl("ood__ifeval", "1"), "needs verifier 'ifeval', which this version does not have"),
    (verl("stem_web", "1"), "needs verifier 'equivalence'"),
    (verl("math__x", "1", reward_metric="math_llm_judge"), "needs verifier 'equivalence'"),
    (verl("zebra_puzzle_dataset", "1"), "needs verifier 'zebra'"),
    (verl("reasoning_gym", "1"), "needs verifier 'reasoning_gym'"),
    ({"reward_spec": {"method": "rule", "ground_truth": "1"}}, "skyrl.*env_class"),
    ({"reward_spec": {"method": "reward_model"}, "env_class": "x"}, "reward_model"),
    ({"task_type": "no_verification", "verification_info": "{}"}, "asks for no verification"),
    ({"task_type": "verifiable_maths", "verification_info": '{"ground_truth": "1"}'}, "Did you mean .*verifiable_math"),
    ({"task_type": "verifiable_math", "verification_info": "{}"}, "ground_truth"),
    ({"task_type": "verifiable_math", "verification_info": "no json"}, "not JSON"),
    ({"verification_info": {"ground_truth": "1"}}, "task_type"),
    ({"ground_truth": "1", "dataset": "passthrough"}, "asks for no verification"),
    ({"ground_truth": "1", "dataset": "ifeval"}, "needs verifier 'ifeval'"),
    ({"ground_truth": "1", "dataset": "general-quality"}, "needs verifier"),
    ({"ground_truth": ["1"], "dataset": ["math", "gsm8k"]}, "2 names in `dataset`, but 1"),
    ({"ground_truth": "1", "dataset": 5}, "dataset"),
    ({"responses_create_params": {}}, "nemo_gym.*expected_answer"),
    ({"responses_create_params": {}, "instruction_id_list": [], "kwargs": []}, "needs verifier 'ifeval'"),
    ({"responses_create_params": {}, "expected_answer": ""}, "expected_answer"),
    ({"domain": "nobody", "ground_truth": "1"}, "no route for domain 'nobody'"),
    ({"case_type": "input", "domain": "code_sandbox"}, "test_cases"),
    ({"answer": "x"}, "nothing says how to judge"),
    ({"data_source": "nobody", "answer": "x"}, "no route for data_source"),
]


@pytest.mark.parametrize(("row", "says"), BAD, ids=range(len(BAD)))
def test_rows_that_cannot_be_judged(row: dict[str, Any], says: str) -> None:
    with pytest.raises(RowError, match=says) as caught:
        to_task(row, "answer")
    assert caught.value.status == "invalid_task"
    assert len(str(caught.value)) < 2000


def test_a_named_format_is_checked() -> None:
    with pytest.raises(RowError, match="Did you mean 'verl'"):
        to_task({"answer": "1"}, "1", format="verll")
    with pytest.raises(RowError, match="'verl': the row lacks"):
        to_task({"answer": "1"}, "1", format="verl")


RESPONSE = {
    "object": "response",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hidden"}]},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is "}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "2"}, {"type": "refusal"}],
        },
    ],
}


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("2", "2"),
        ("", ""),
        ([{"role": "user", "content": "?"}, {"role": "assistant", "content": "2"}], "2"),
        (RESPONSE, "It is 2"),
        (RESPONSE["output"], "It is 2"),
        ({"choices": [{"message": {"role": "assistant", "content": "2"}}]}, "2"),
        ({"role": "assistant", "content": "2"}, "2"),
    ],
)
def test_responses(response: Any, text: str) -> None:
    row = {"responses_create_params": {"input": [{"role": "user", "content": "?"}]}, "expected_answer": "2"}
    assert to_task(row, response).task.text == text
    assert to_task({**row, "response": response}).task.text == text
    assert to_task({**row, "response": "other"}, response).task.text == text


@pytest.mark.parametrize("response", [None, 5, {"a": 1}, [1], [{"content": "x"}], {"choices": []}])
def test_no_response(response: Any) -> None:
    with pytest.raises(RowError):
        to_task({"data_source": "math", "answer": "2"}, response)


def test_the_rows_own_answer() -> None:
    row = {"task_type": "verifiable_math", "verification_info": {"ground_truth": "2"}, "llm_response": "mine"}
    assert to_task(row).task.text == "mine"
    assert to_task(row, "other").task.text == "other"
    assert to_task(row, "").task.text == ""
    with pytest.raises(RowError, match="there is no answer"):
        to_task({**row, "llm_response": None})


def test_prompt_id_and_metadata() -> None:
    task = to_task({**verl("math", "2"), "id": "q1"}, "2").task
    assert task.prompt == [Message(role="user", content="?")]
    assert task.id == "q1"
    assert task.metadata == {
        "row_format": "verl",
        "data_source": "math",
        "ability": "math",
        "split": "train",
        "index": 3,
    }


def test_several_verifiers_become_a_weighted_sum() -> None:
    row = {"messages": [], "ground_truth": ["18", "Paris"], "dataset": ["gsm8k", "string_matcher"]}
    found = to_task(row, "x")
    assert found.recipe is not None
    assert found.task.verifier is None
    assert [(part.verifier, part.weight, part.reference) for part in found.recipe.parts] == [
        ("numeric", 1.0, "18"),
        ("exact_match", 1.0, "Paris"),
    ]
    assert len({part.name for part in found.recipe.parts}) == 2


def test_own_routes_come_first() -> None:
    routes = load_routes(
        [
            {"match": ["mine/*"], "verifier": "exact_match", "options": {"ignore_case": True}},
            {"match": "openai/gsm8k", "recipe": "house"},
            {"match": "math_dapo", "verifier": "math", "rescale": [-1, 1]},
        ]
    )
    mine = to_task(verl("mine/own", "a"), "a", routes=routes).task
    assert (mine.verifier, mine.options) == ("exact_match", {"ignore_case": True})
    house = to_task(verl("openai/gsm8k", "1"), "1", routes=routes).task
    assert (house.verifier, house.recipe, house.reference) == (None, "house", "1")
    rescaled = to_task(verl("math_dapo", "1"), "1", routes=routes)
    assert rescaled.recipe is not None
    assert rescaled.recipe.rescale == (-1, 1)
    assert to_task(verl("lighteval/MATH", "1"), "1", routes=routes).task.verifier == "math"


def test_a_fallback_takes_what_no_route_knows() -> None:
    fallback = RowRoute(match="*", verifier="exact_match")
    assert to_task(verl("nobody/knows", 5), "5", fallback=fallback).task.reference == "5"
    assert to_task(verl("math", "5"), "5", fallback=fallback).task.verifier == "math"


@pytest.mark.parametrize(
    "table", [{}, {"match": "x"}, {"match": "x", "verifier": "a", "recipe": "b"}, {"match": "x", "verifer": "a"}]
)
def test_bad_routes_name_the_table(table: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"routes\[1\]"):
        load_routes([table])


def test_a_route_to_a_missing_verifier_says_so() -> None:
    with pytest.raises(RowError, match="needs verifier 'maths'"):
        to_task(verl("x", "1"), "1", routes=[RowRoute(match="x", verifier="maths")])


def test_languages_travel_with_the_row() -> None:
    row = {"verification_info": {**CASES, "language": "C++"}}
    assert to_task(row, "x").task.options == {"language": "cpp"}
    row = {"verification_info": {**CASES, "language": "C++17"}}
    assert to_task(row, "x").task.options == {"language": "c++17"}


KEYS = sorted({key for _, row, _, _ in ROWS for key in row} | {"dataset", "response", "reward_info", "metadata"})
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["math", "code", "{}", "[1]"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=6), ANYTHING, st.sampled_from(["auto", *known_formats()])
)
def test_any_row_is_a_task_or_a_row_error(row: dict[str, Any], response: Any, name: str) -> None:
    try:
        found = to_task(row, response, format=name)
    except RowError:
        return
    assert found.recipe is not None or found.task.verifier in registry.names()
