"""Checking a data set before a run: does each reference parse, and does each gold answer score 1?

A reference that no answer can satisfy looks, during training, like a problem that the model cannot solve. The gold
answer is the task's ``response`` if it has one, else what the verifier itself would write for the reference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from adjudge.types import Task, Verdict
from adjudge_verifiers import compose, registry
from adjudge_verifiers.errors import boundary

from .engine import Engine, Submission
from .engine.prepare import prepare

__all__ = ["PreflightItem", "Problem", "preflight_tasks"]

Problem = Literal["reference_unusable", "gold_not_rewarded", "gold_unknown", "not_judged"]
"""``reference_unusable``: the task is invalid; ``gold_not_rewarded``: its own gold answer does not score as correct;
``gold_unknown``: the reference parses, but no gold answer can be made from it (send one as ``response``);
``not_judged``: a failure of ours, nothing is known."""


class PreflightItem(BaseModel):
    """What is wrong with one task, if anything."""

    index: int
    id: str | int | None = None
    problem: Problem | None = Field(default=None, description="null: the gold answer scores 1.")
    reason: str = ""
    gold: str | None = Field(default=None, description="The gold answer that was judged.")
    verdict: Verdict | None = None


async def preflight_tasks(
    engine: Engine, tasks: Sequence[Task | Submission | Verdict], *, request_id: str = ""
) -> AsyncIterator[PreflightItem]:
    """Check ``tasks`` (an empty ``response`` means: make the gold answer); yields items as they are known."""
    golds: list[str | None] = []
    send: list[Task | Submission | Verdict] = []
    where: list[int] = []
    for index, item in enumerate(tasks):
        checked, gold = _with_gold(engine, item)
        golds.append(gold)
        if gold is None and not isinstance(checked, Verdict):
            yield PreflightItem(
                index=index,
                id=_task(checked).id,
                problem="gold_unknown",
                reason="The reference parses; no gold answer can be made from it. Send one as the response.",
            )
        else:
            send.append(checked)
            where.append(index)
    async for position, verdict in engine.submit(send, request_id=request_id):
        yield _item(where[position], golds[where[position]], verdict)


def _item(index: int, gold: str | None, verdict: Verdict) -> PreflightItem:
    problem: Problem | None = None
    if verdict.status == "invalid_task":
        problem = "reference_unusable"
    elif not verdict.ok:
        problem = "not_judged"
    elif not verdict.correct:
        problem = "gold_not_rewarded"
    reason = verdict.reason if problem else ""
    return PreflightItem(index=index, id=verdict.id, problem=problem, reason=reason, gold=gold, verdict=verdict)


def _task(item: Task | Submission) -> Task:
    return item.task if isinstance(item, Submission) else item


def _with_gold(engine: Engine, item: Task | Submission | Verdict) -> tuple[Task | Submission | Verdict, str | None]:
    """``item`` with its gold answer as the response, and that answer; a verdict if the task is unusable."""
    if isinstance(item, Verdict):
        return item, None
    task = _task(item)
    if task.text:
        return item, task.text
    with boundary("Reading the task") as outcome:
        gold = _gold(engine, task, item.recipe if isinstance(item, Submission) else None)
        if gold is None:
            return item, None
        filled = task.model_copy(update={"response": gold})
        return (Submission(filled, item.recipe) if isinstance(item, Submission) else filled), gold
    assert outcome.failure is not None
    outcome.failure.id = task.id
    return outcome.failure, None


def _gold(engine: Engine, task: Task, recipe: compose.Recipe | None) -> str | None:
    """The first gold answer that a verifier of the task's plan can write. Raises ``InvalidTask``."""
    plan = engine.resolve(task, recipe)
    longest = engine.settings.limits.max_response_chars
    if plan.verifier is not None:
        calls = [prepare(task, plan.verifier, max_response_chars=longest, options=plan.options)]
    else:
        assert plan.recipe is not None
        calls = [
            prepare(
                task,
                part.verifier,
                max_response_chars=longest,
                options=compose.part_options(plan.recipe, part, plan.options),
                reference=compose.part_reference(part, task.reference),
            )
            for part in plan.recipe.parts
        ]
    for ready in calls:
        gold = registry.get(ready.verifier.name).gold(ready.call.reference, ready.call.options)
        if gold is not None:
            return gold
    return None
