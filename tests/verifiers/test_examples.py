"""Every worked example of every verifier that runs without a sandbox gets the verdict that the catalogue promises."""

from __future__ import annotations

import pytest

from adjudge_verifiers import registry
from adjudge_verifiers.base import Example

IN_PROCESS = [name for name in registry.names() if registry.get(name).lane in ("inline", "cpu")]
EXAMPLES = [(name, example) for name in IN_PROCESS for example in type(registry.get(name)).examples]


@pytest.mark.parametrize(
    ("name", "example"), EXAMPLES, ids=[f"{name}-{index}" for index, (name, _) in enumerate(EXAMPLES)]
)
def test_example(judge, name: str, example: Example) -> None:
    verdict = judge(name, example.response, example.reference, example.options)
    assert (verdict.status, verdict.reward) == (example.status, example.reward), verdict.reason
    assert example.category is None or verdict.category == example.category
    assert verdict.reason


@pytest.mark.parametrize("name", IN_PROCESS)
def test_catalogue_is_complete(name: str) -> None:
    verifier = type(registry.get(name))
    assert verifier.description()
    rewards = {example.reward for example in verifier.examples if example.status == "ok"}
    assert len(rewards) > 1, "show an answer that is right and one that is not"
    assert any(example.status == "invalid_task" for example in verifier.examples)


@pytest.mark.parametrize("name", IN_PROCESS)
def test_parts_have_the_same_keys_in_every_verdict(judge, name: str) -> None:
    verdicts = [judge(name, one.response, one.reference, one.options) for one in type(registry.get(name)).examples]
    assert len({tuple(sorted(verdict.parts)) for verdict in verdicts if verdict.ok}) == 1


@pytest.mark.parametrize("name", IN_PROCESS)
def test_gold_answer_of_a_reference_scores_full_marks(judge, name: str) -> None:
    verifier = registry.get(name)
    for example in type(verifier).examples:
        if example.status != "ok":
            continue
        options = type(verifier).Options.model_validate(example.options)
        gold = verifier.gold(type(verifier).reference_adapter().validate_python(example.reference), options)
        if gold is not None:
            verdict = judge(name, gold, example.reference, example.options)
            assert verdict.category == "correct", (example, gold, verdict.reason)
