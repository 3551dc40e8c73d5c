"""Running recipes: which parts come next, and what their verdicts make together.

Pure functions for the engine, which runs the parts. Two rules hold for every recipe: a part that could not be judged
is never a number, so a verdict that needs it fails as it did; and ``parts`` always has the recipe's own keys, ``None``
for what was not run.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Mapping
from functools import lru_cache

from pydantic import JsonValue

from adjudge.types import Category, Status, Trust, Verdict

from .errors import InvalidOptions, InvalidReference, InvalidTask, nearest
from .recipes import Part, Recipe, Route, check_recipes, load_recipes

__all__ = [
    "Part",
    "Recipe",
    "Route",
    "check_recipes",
    "combine",
    "load_recipes",
    "part_options",
    "part_reference",
    "ready",
    "resolve_route",
]

_SEVERITY: tuple[Status, ...] = (
    "invalid_task",
    "verifier_error",
    "verifier_timeout",
    "unavailable",
    "overloaded",
    "cancelled",
)
"""Whichever failure is first here is that of the whole: what no retry mends comes before what one may."""

_TRUST: dict[Trust, int] = {"model": 0, "in_process": 1, "rules": 2}
"""Weakest first."""


def resolve_route(recipe: Recipe, metadata: Mapping[str, JsonValue]) -> Route:
    """The route of a task: the one that names its source, else the first whose pattern fits, else the default.

    Raises :class:`InvalidTask` if the source is missing or unknown.
    """
    source = metadata.get(recipe.route_by)
    if isinstance(source, str):
        for route in recipe.routes:
            if source in route.match:
                return route
        for route in recipe.routes:
            if any(_pattern(pattern).fullmatch(source) for pattern in route.match if "*" in pattern):
                return route
    if recipe.default is not None:
        return recipe.default
    known = [pattern for route in recipe.routes for pattern in route.match]
    if not isinstance(source, str):
        raise InvalidTask(
            f"Recipe {recipe.name!r} routes by metadata.{recipe.route_by}, which is "
            f"{'missing' if source is None else 'no string'}.{nearest('', known)}"
        )
    raise InvalidTask(f"Recipe {recipe.name!r} has no route for {source[:100]!r}.{nearest(source, known)}")


@lru_cache(maxsize=1_024)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))


def part_reference(part: Part, reference: JsonValue) -> JsonValue:
    """What ``part`` is judged by: its own fixed reference, one key of the task's, or the task's as it is.

    Raises :class:`InvalidReference` if the task's reference has no such key.
    """
    if part.reference is not None:
        return part.reference
    if part.reference_key is None:
        return reference
    if isinstance(reference, dict) and reference.get(part.reference_key) is not None:
        return reference[part.reference_key]
    raise InvalidReference(f"Part {part.name!r} needs the key {part.reference_key!r} in the task's reference.")


def part_options(recipe: Recipe, part: Part, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The options of ``part``: the recipe's, then the task's, which are keyed by part name.

    Raises :class:`InvalidOptions` if the task's options name something else.
    """
    names = {part.name for part in recipe.parts}
    for key in options:
        if key not in names:
            raise InvalidOptions(
                f"Options of a task with recipe {recipe.name!r} are keyed by its parts; there is no part "
                f"{key[:100]!r}.{nearest(key, names)}"
            )
    own = options.get(part.name, {})
    if not isinstance(own, dict):
        raise InvalidOptions(f"Options of part {part.name!r} of recipe {recipe.name!r} are an object.")
    return {**part.options, **own}


def ready(recipe: Recipe, done: Mapping[str, Verdict]) -> list[Part]:
    """The parts to run next, given the verdicts of those that were run; empty once :func:`combine` can be called."""
    if any(not verdict.ok for verdict in done.values()):
        return []
    waiting = [part for part in recipe.parts if part.name not in done]
    if not waiting:
        return []
    if recipe.combine == "gate":
        gate = recipe.parts[0]
        if gate.name not in done:
            return [gate]
        return waiting if _passes(gate, done) else []
    if recipe.combine == "first_of":
        return [] if any(_passes(part, done) for part in recipe.parts) else waiting[:1]
    return waiting


def combine(recipe: Recipe, done: Mapping[str, Verdict]) -> Verdict:
    """One verdict from those of the parts. Call it when :func:`ready` has nothing left."""
    failed = [part for part in recipe.parts if part.name in done and not done[part.name].ok]
    if failed:
        return _failed(failed, done)
    if missing := ready(recipe, done):
        raise ValueError(f"recipe {recipe.name!r}: the part {missing[0].name!r} has not been run")
    reward, decider = _reward(recipe, done)
    deciding = done[decider.name]
    judged = [done[part.name] for part in recipe.parts if part.name in done]
    trusts: list[Trust] = [one.trust or "rules" for one in judged]
    flags = list(dict.fromkeys(flag for verdict in judged for flag in verdict.flags))
    reward = _shaped(recipe, reward)
    if not math.isfinite(reward):
        return Verdict.failed(
            "verifier_error", f"Recipe {recipe.name!r} adds up to no finite number; lower its weights."
        )
    return Verdict.scored(
        reward,
        _category(deciding),
        f"{decider.name}: {deciding.reason}" if deciding.reason else decider.name,
        correct=_correct(recipe, done),
        parts={part.name: done[part.name].reward if part.name in done else None for part in recipe.parts},
        flags=flags,
        extracted=next((one.extracted for one in judged if one.extracted is not None), None),
        evidence={part.name: done[part.name].evidence for part in recipe.parts if part.name in done},
        isolation=next((one.isolation for one in judged if one.isolation is not None), None),
        trust=min(trusts, key=_TRUST.__getitem__),
    )


def _passes(part: Part, done: Mapping[str, Verdict]) -> bool:
    reward = done[part.name].reward if part.name in done else None
    return reward is not None and reward >= part.threshold


def _reward(recipe: Recipe, done: Mapping[str, Verdict]) -> tuple[float, Part]:
    """The reward before shaping, and the part whose category explains it."""
    parts = recipe.parts
    if recipe.combine == "gate":
        gate, rest = parts[0], parts[1:]
        if not _passes(gate, done):
            return recipe.gate_reward, gate
        return _weighted(recipe, rest or parts, done)
    if recipe.combine == "veto":
        for part in parts:
            if part.veto and not _passes(part, done):
                return recipe.veto_reward, part
        return _weighted(recipe, tuple(part for part in parts if not part.veto), done)
    if recipe.combine == "first_of":
        winner = next((part for part in parts if _passes(part, done)), None)
        best = winner or max((part for part in parts if part.name in done), key=lambda part: _number(part, done))
        return _number(best, done), best
    return _weighted(recipe, parts, done)


def _weighted(recipe: Recipe, parts: tuple[Part, ...], done: Mapping[str, Verdict]) -> tuple[float, Part]:
    """The weighted sum, explained by the heaviest part that is not correct, else by the heaviest."""
    total = sum(part.weight * _number(part, done) for part in parts)
    if recipe.normalise:
        total /= sum(abs(part.weight) for part in parts)
    ranked = sorted(parts, key=lambda part: -abs(part.weight))
    return total, next((part for part in ranked if not done[part.name].correct), ranked[0])


def _number(part: Part, done: Mapping[str, Verdict]) -> float:
    reward = done[part.name].reward
    if reward is None:
        raise ValueError(f"the part {part.name!r} has no reward")
    return reward


def _shaped(recipe: Recipe, reward: float) -> float:
    if recipe.rescale is not None:
        low, high = recipe.rescale
        reward = low + reward * (high - low)
    if recipe.clip is not None:
        reward = min(max(reward, recipe.clip[0]), recipe.clip[1])
    return reward


def _correct(recipe: Recipe, done: Mapping[str, Verdict]) -> bool:
    """Is the answer right as a whole? For ``first_of`` if a part passes, else if every part is correct."""
    if recipe.combine == "first_of":
        return any(_passes(part, done) for part in recipe.parts)
    return all(part.name in done and bool(done[part.name].correct) for part in recipe.parts)


def _category(verdict: Verdict) -> Category:
    return verdict.category or ("correct" if verdict.correct else "wrong_answer")  # type: ignore[return-value]


def _failed(failed: list[Part], done: Mapping[str, Verdict]) -> Verdict:
    worst = min(failed, key=lambda part: _SEVERITY.index(done[part.name].status))
    verdict = done[worst.name]
    return Verdict.failed(
        verdict.status,  # type: ignore[arg-type]
        f"The part {worst.name!r} could not be judged: {verdict.reason}",
        evidence={part.name: done[part.name].evidence for part in failed},
        isolation=verdict.isolation,
    )
