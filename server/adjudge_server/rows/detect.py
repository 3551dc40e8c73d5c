"""``to_task``: a row of a data set, as its trainer ships it, to a task.

The layout is told by the row's keys, in a fixed order from the most telling key to the least; ``format`` names it
outright. Then the layout says where things stand, and the routing table says who judges. Anything that does not fit
raises :class:`RowError` with the layout that was assumed: an unknown name is never a reward of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from adjudge.types import Task
from adjudge_verifiers.compose import Part, Recipe
from adjudge_verifiers.errors import nearest

from .answers import RESPONSE_KEYS, read_prompt, read_response
from .base import Layout, Reading, Row, RowError, RowTask, Target
from .fields import drop_none, pick
from .nemo_gym import NEMO_GYM
from .open_instruct import OPEN_INSTRUCT
from .plain import PLAIN
from .references import options_for, reference_for
from .roll import ROLL
from .routing import RowRoute, route_for
from .skyrl import SKYRL
from .synthetic import SYNTHETIC
from .verl import VERL

__all__ = ["known_formats", "to_task"]

_LAYOUTS = (VERL, SKYRL, SYNTHETIC, OPEN_INSTRUCT, NEMO_GYM, ROLL, PLAIN)
_BY_NAME = {layout.name: layout for layout in _LAYOUTS} | {"guru": VERL}
_MAX_METADATA_CHARS = 200
_METADATA_KEYS = ("split", "index", "ability", "domain", "level", "difficulty", "subject")


def known_formats() -> list[str]:
    """Names that ``format`` may have, besides ``auto``."""
    return sorted(_BY_NAME)


def to_task(
    row: dict[str, Any],
    response: str | list[Any] | dict[str, Any] | None = None,
    *,
    format: str = "auto",
    routes: Sequence[RowRoute] = (),
    fallback: RowRoute | None = None,
) -> RowTask:
    """The task that ``row`` asks for.

    Args:
        row: The row; ``None`` values count as absent.
        response: The answer to judge. Without it, the row's own (``response``, ``llm_response``, ``completion``, ...).
        format: A name of :func:`known_formats`, or ``auto``.
        routes: Tried before the built-in table.
        fallback: For rows that no route knows.

    Raises:
        RowError: the row is of no known layout, lacks something, or asks for a verifier that is not there.
    """
    if not isinstance(row, dict):
        raise RowError(f"A row is an object, not {type(row).__name__}.")
    present = drop_none(row)
    layout = _layout(present, format)
    reading = layout.read(present)
    given = response
    if given is None:
        given = reading.response if reading.response is not None else pick(present, RESPONSE_KEYS)
    answer = read_response(given, layout.name)
    chosen = [(target, _route(target, routes, layout, reading, fallback)) for target in reading.targets]
    fields = {
        "id": reading.identity if isinstance(reading.identity, str | int) else None,
        "response": answer,
        "prompt": read_prompt(reading.prompt),
        "metadata": _metadata(present, reading, layout),
    }
    try:
        if len(chosen) == 1:
            return _single(fields, reading, *chosen[0])
        return _several(fields, reading, chosen, layout)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RowError(f"Read as layout {layout.name!r}: the row makes no task ({where}: {first['msg']}).") from None


def _layout(row: Row, name: str) -> Layout:
    if name != "auto":
        if name not in _BY_NAME:
            raise RowError(f"There is no row format {name[:100]!r}.{nearest(name, ['auto', *_BY_NAME])}")
        layout = _BY_NAME[name]
        if not layout.matches(row):
            raise RowError(f"Read as layout {layout.name!r}: the row lacks what tells it ({layout.needs}).")
        return layout
    for layout in _LAYOUTS:
        if layout.matches(row):
            return layout
    keys = ", ".join(repr(str(key)[:40]) for key in list(row)[:12]) or "none"
    known = "; ".join(f"{layout.name} ({layout.needs})" for layout in _LAYOUTS)
    raise RowError(f"The row's layout cannot be told from its keys ({keys}). Known layouts: {known}.")


def _route(
    target: Target, routes: Sequence[RowRoute], layout: Layout, reading: Reading, fallback: RowRoute | None
) -> RowRoute:
    try:
        return route_for(target.names, routes, layout.name, reading.unknown_as)
    except RowError:
        if fallback is None:
            raise
        return fallback


def _single(fields: dict[str, Any], reading: Reading, target: Target, route: RowRoute) -> RowTask:
    reference = reference_for(route.verifier, target.reference, reading)
    options = {**options_for(route.verifier, reading), **route.options}
    if route.rescale is None:
        task = {"verifier": route.verifier, "recipe": route.recipe, "reference": reference, "options": options}
        return RowTask(Task.model_validate({**fields, **task}))
    part = Part(name="accuracy", verifier=str(route.verifier), options=options)
    recipe = Recipe(name=f"rescaled_{route.verifier}", combine="weighted_sum", parts=(part,), rescale=route.rescale)
    return RowTask(Task.model_validate({**fields, "reference": reference}), recipe)


def _several(
    fields: dict[str, Any], reading: Reading, chosen: list[tuple[Target, RowRoute]], layout: Layout
) -> RowTask:
    """Several verifiers on one answer: the mean of their rewards."""
    parts = []
    for number, (target, route) in enumerate(chosen, 1):
        if route.verifier is None:
            raise RowError(f"Read as layout {layout.name!r}: a row with several verifiers cannot be routed to recipes.")
        parts.append(
            Part(
                name=f"{route.verifier}_{number}",
                verifier=route.verifier,
                options={**options_for(route.verifier, reading), **route.options},
                reference=reference_for(route.verifier, target.reference, reading),
            )
        )
    recipe = Recipe(name=f"{layout.name}_row", combine="weighted_sum", parts=tuple(parts), normalise=True)
    return RowTask(Task.model_validate(fields), recipe)


def _metadata(row: Row, reading: Reading, layout: Layout) -> dict[str, Any]:
    """What is recorded with the verdict: where the row is from, and short scalars that say which one it is."""
    names = [name for target in reading.targets for name in target.names[:1]]
    found: dict[str, Any] = {"row_format": layout.name}
    if names:
        found["data_source"] = names[0] if len(names) == 1 else names
    for key in _METADATA_KEYS:
        value = row.get(key, reading.extra.get(key))
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            found[key] = value
        elif isinstance(value, str):
            found[key] = value[:_MAX_METADATA_CHARS]
    return found
