"""Recipes: what is refused when they are loaded, where tasks go, which parts run, and what comes out."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.types import FAILURES, Verdict
from adjudge_verifiers.compose import Recipe, check_recipes, combine, load_recipes, ready, resolve_route
from adjudge_verifiers.errors import InvalidTask

VERIFIERS = ("math", "numeric", "format", "length", "code")
RIGHT, WRONG = Verdict.scored(1.0, "correct", "right"), Verdict.scored(0.0, "wrong_answer", "wrong")


def recipe(**body: Any) -> Recipe:
    return load_recipes({"r": body})["r"]


def parts(*names: str, **common: Any) -> list[dict[str, Any]]:
    return [{"name": name, "verifier": "math", **common} for name in names]


def test_the_documented_toml_loads_and_routes() -> None:
    table = tomllib.loads("""
        [recipes.math_with_format]
        combine = "weighted_sum"
        parts = [
          { name = "accuracy", verifier = "math", weight = 0.9 },
          { name = "format", verifier = "format", weight = 0.1, options = { require = ["think", "answer"] } },
        ]
        [recipes.by_source]
        routes = [
          { match = "openai/gsm8k", verifier = "numeric" },
          { match = ["math__*", "aime*"], recipe = "math_with_format", options = { a = 1 } },
        ]
    """)
    recipes = load_recipes(table["recipes"])
    check_recipes(recipes, VERIFIERS)
    by_source = recipes["by_source"]
    assert resolve_route(by_source, {"data_source": "openai/gsm8k"}).verifier == "numeric"
    assert resolve_route(by_source, {"data_source": "aime24"}).recipe == "math_with_format"
    with pytest.raises(InvalidTask, match=r"no route for 'openai/gsm8'.*'openai/gsm8k'"):
        resolve_route(by_source, {"data_source": "openai/gsm8"})
    for metadata in ({}, {"data_source": 5}):
        with pytest.raises(InvalidTask, match=r"metadata\.data_source"):
            resolve_route(by_source, metadata)


def test_a_name_beats_a_pattern_and_the_default_comes_last() -> None:
    routed = recipe(
        route_by="domain",
        routes=[{"match": "m*", "verifier": "math"}, {"match": "mcq", "verifier": "format"}],
        default={"verifier": "length"},
    )
    assert resolve_route(routed, {"domain": "mcq"}).verifier == "format"
    assert resolve_route(routed, {"domain": "m1"}).verifier == "math"
    assert resolve_route(routed, {"domain": "x"}).verifier == "length"
    assert resolve_route(routed, {}).verifier == "length"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "either parts or routes"),
        ({"parts": parts("a"), "routes": [{"match": "x", "verifier": "math"}]}, "either parts or routes"),
        ({"parts": parts("a", "a")}, "'a' occurs twice"),
        ({"parts": parts("a", weight=0)}, "weight 0"),
        ({"parts": parts("a", weight=math.inf)}, "parts.0.weight"),
        ({"parts": parts("a", wieght=1)}, "parts.0.wieght"),
        ({"parts": parts("a"), "combine": "sum"}, "combine"),
        ({"parts": parts("a", "b"), "combine": "veto"}, "veto = true"),
        ({"parts": parts("a", veto=True)}, "veto"),
        ({"parts": parts("a"), "clip": [1, 0]}, "clip"),
        ({"parts": parts("a"), "rescale": [1, 1]}, "rescale"),
        ({"parts": parts("a", reference=1, reference_key="x")}, "exclude each other"),
        ({"routes": [{"match": "x"}]}, "verifier or a recipe"),
        ({"routes": [{"match": [], "verifier": "math"}]}, "routes.0.match"),
        ({"parts": parts("a"), "eval": "1+1"}, "eval"),
    ],
)
def test_what_is_refused_names_the_recipe_and_the_key(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"recipe 'r'") as caught:
        load_recipes({"r": body})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"r": {"parts": [{"name": "a", "verifier": "maths"}]}}, r"'r': parts\.a\.verifier: .*'maths'.*'math'"),
        ({"r": {"routes": [{"match": "x", "recipe": "s"}]}, "ss": {"parts": parts("a")}}, r"routes\.0\.recipe: .*'s'"),
        ({"r": {"default": {"verifier": "nope"}}}, r"default\.verifier"),
        ({"r": {"default": {"recipe": "r"}}}, "circle: r -> r"),
        ({"r": {"default": {"recipe": "s"}}, "s": {"default": {"recipe": "r"}}}, "circle"),
        ({"math": {"parts": parts("a")}}, "a verifier has this name"),
    ],
)
def test_what_does_not_exist_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_recipes(load_recipes(table), VERIFIERS)


def run(plan: Recipe, verdicts: dict[str, Verdict]) -> tuple[Verdict, list[str]]:
    """Run a plan as the engine does; returns the names of the parts in the order in which they ran."""
    done: dict[str, Verdict] = {}
    while waiting := ready(plan, done):
        done.update({part.name: verdicts[part.name] for part in waiting})
    return combine(plan, done), list(done)


def test_weighted_sum() -> None:
    plan = recipe(parts=[*parts("a", weight=0.9), *parts("b", weight=0.1)])
    verdict, _ = run(plan, {"a": RIGHT, "b": WRONG})
    assert verdict.reward == pytest.approx(0.9)
    assert (verdict.correct, verdict.category, verdict.parts) == (False, "wrong_answer", {"a": 1.0, "b": 0.0})
    normalised = recipe(parts=parts("a", "b", weight=2), normalise=True, rescale=[-1, 1])
    assert run(normalised, {"a": RIGHT, "b": RIGHT})[0].reward == 1.0
    assert run(normalised, {"a": RIGHT, "b": WRONG})[0].reward == 0.0
    assert run(normalised, {"a": WRONG, "b": WRONG})[0].reward == -1.0
    assert run(recipe(parts=parts("a", "b"), clip=[0, 1]), {"a": RIGHT, "b": RIGHT})[0].reward == 1.0


def test_gate() -> None:
    plan = recipe(combine="gate", gate_reward=-1.0, parts=parts("format", "accuracy"))
    verdict, ran = run(plan, {"format": WRONG, "accuracy": RIGHT})
    assert (verdict.reward, ran, verdict.parts) == (-1.0, ["format"], {"format": 0.0, "accuracy": None})
    verdict, ran = run(plan, {"format": RIGHT, "accuracy": WRONG})
    assert (verdict.reward, ran, verdict.category) == (0.0, ["format", "accuracy"], "wrong_answer")
    assert run(plan, {"format": RIGHT, "accuracy": RIGHT})[0].correct is True


def test_veto() -> None:
    plan = recipe(combine="veto", veto_reward=-2.0, parts=[*parts("accuracy"), *parts("safe", veto=True)])
    assert run(plan, {"accuracy": RIGHT, "safe": WRONG})[0].reward == -2.0
    assert run(plan, {"accuracy": RIGHT, "safe": RIGHT})[0].reward == 1.0
    assert run(plan, {"accuracy": WRONG, "safe": RIGHT})[0].reward == 0.0


def test_first_of() -> None:
    plan = recipe(combine="first_of", parts=parts("rules", "loose", "judge"))
    verdict, ran = run(plan, {"rules": WRONG, "loose": RIGHT, "judge": RIGHT})
    assert (verdict.reward, verdict.correct, ran) == (1.0, True, ["rules", "loose"])
    half = Verdict.scored(0.5, "partial", "half")
    verdict, ran = run(plan, {"rules": WRONG, "loose": half, "judge": WRONG})
    assert (verdict.reward, verdict.category, len(ran)) == (0.5, "partial", 3)


def test_flags_trust_isolation_and_extraction_are_kept() -> None:
    ran = Verdict.scored(1.0, "correct", isolation="zygote", trust="in_process", flags=["early_exit"])
    read = Verdict.scored(1.0, "correct", extracted="12", flags=["early_exit", "answer_leak"])
    verdict, _ = run(recipe(parts=parts("a", "b")), {"a": ran, "b": read})
    assert (verdict.isolation, verdict.trust, verdict.extracted) == ("zygote", "in_process", "12")
    assert verdict.flags == ["early_exit", "answer_leak"]


def test_the_worst_failure_is_that_of_the_whole() -> None:
    failures = {"a": Verdict.failed("unavailable", "down"), "b": Verdict.failed("invalid_task", "bad reference")}
    verdict, _ = run(recipe(parts=parts("a", "b")), failures)
    assert verdict.status == "invalid_task"
    assert "'b'" in verdict.reason


def test_an_unfinished_run_is_not_combined() -> None:
    with pytest.raises(ValueError, match="has not been run"):
        combine(recipe(parts=parts("a", "b")), {"a": RIGHT})


def test_a_sum_that_is_no_number_fails() -> None:
    huge = Verdict.scored(1e308, "correct")
    verdict, _ = run(recipe(parts=parts("a", "b", weight=10)), {"a": huge, "b": huge})
    assert (verdict.status, verdict.reward) == ("verifier_error", None)


SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0]).map(
    lambda reward: Verdict.scored(reward, "correct" if reward == 1 else "partial" if reward else "wrong_answer")
)
FAILED = st.sampled_from(sorted(FAILURES)).map(lambda status: Verdict.failed(status, "x"))
NAMES = ("a", "b", "c")


@st.composite
def plans(draw: st.DrawFn) -> Recipe:
    how = draw(st.sampled_from(["weighted_sum", "gate", "veto", "first_of"]))
    names = NAMES[: draw(st.integers(2, 3))]
    listed = [
        {
            "name": name,
            "verifier": "math",
            "weight": draw(st.sampled_from([0.5, 1.0, 2.0, -1.0])),
            "threshold": draw(st.sampled_from([0.25, 1.0])),
            "veto": how == "veto" and index == 0,
        }
        for index, name in enumerate(names)
    ]
    return recipe(combine=how, parts=listed, normalise=draw(st.booleans()))


@given(plans(), st.lists(st.one_of(SCORES, FAILED), min_size=3, max_size=3))
def test_a_failed_part_is_never_a_number(plan: Recipe, verdicts: list[Verdict]) -> None:
    given_verdicts = dict(zip(NAMES, verdicts, strict=True))
    verdict, ran = run(plan, given_verdicts)
    failed = [name for name in ran if not given_verdicts[name].ok]
    assert verdict.ok == (not failed)
    assert (verdict.reward is None) == bool(failed)
    if verdict.ok:
        assert list(verdict.parts) == [part.name for part in plan.parts]
        assert {name for name, reward in verdict.parts.items() if reward is not None} == set(ran)


@given(plans(), st.lists(SCORES, min_size=3, max_size=3), st.floats(-5, 5), st.floats(0, 5))
def test_clip_bounds_every_reward(plan: Recipe, verdicts: list[Verdict], low: float, width: float) -> None:
    clipped = plan.model_copy(update={"clip": (low, low + width)})
    verdict, _ = run(clipped, dict(zip(NAMES, verdicts, strict=True)))
    assert verdict.reward is not None
    assert low <= verdict.reward <= low + width


@given(st.permutations(NAMES), st.lists(SCORES, min_size=3, max_size=3))
def test_the_order_of_a_weighted_sum_does_not_matter(order: list[str], verdicts: list[Verdict]) -> None:
    given_verdicts = dict(zip(NAMES, verdicts, strict=True))
    first, _ = run(recipe(parts=parts(*NAMES)), given_verdicts)
    second, _ = run(recipe(parts=parts(*order)), given_verdicts)
    assert first.reward == second.reward
    assert first.correct == second.correct
