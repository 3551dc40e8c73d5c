"""Which verifier judges a row: by the name of its kind, with glob patterns, the caller's routes before ours.

The built-in table (:mod:`.known`) follows what the data sets' own trainers do. A route may name a verifier that this
version does not have; the row is then refused with that name, never scored, and never judged by a near miss.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from adjudge_verifiers import registry
from adjudge_verifiers.errors import nearest

from .base import RowError
from .known import BUILT_IN, REFUSED

__all__ = ["RowRoute", "built_in_routes", "load_routes", "route_for"]


class RowRoute(BaseModel):
    """Rows whose name matches go to this verifier or recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: str | list[str] = Field(description="Glob patterns for data_source, task_type, dataset, domain, ...")
    verifier: str | None = Field(default=None, description="Name of a verifier.")
    recipe: str | None = Field(default=None, description="Name of a recipe, in place of a verifier.")
    options: dict[str, JsonValue] = Field(default_factory=dict, description="Options of the verifier.")
    rescale: tuple[float, float] | None = Field(
        default=None, description="Map rewards of 0 and 1 to these, such as [-1, 1] for verl's math_dapo."
    )

    @model_validator(mode="after")
    def _one_judge(self) -> RowRoute:
        if (self.verifier is None) == (self.recipe is None):
            raise ValueError("name either a verifier or a recipe")
        if self.recipe is not None and self.rescale is not None:
            raise ValueError("rescale belongs into the recipe")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        return (self.match,) if isinstance(self.match, str) else tuple(self.match)


def load_routes(tables: Iterable[Mapping[str, Any]]) -> list[RowRoute]:
    """Routes from the configuration's ``[[routes]]``. Raises ``ValueError`` naming the table."""
    routes = []
    for number, table in enumerate(tables, 1):
        try:
            routes.append(RowRoute.model_validate(dict(table)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"routes[{number}]{'.' + where if where else ''}: {first['msg']}") from None
    return routes


@lru_cache(maxsize=1)
def built_in_routes() -> tuple[RowRoute, ...]:
    """Our own table; the first match counts."""
    return tuple(
        RowRoute(match=list(patterns), verifier=verifier, options=dict(options))
        for patterns, verifier, options in BUILT_IN
    )


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob), re.IGNORECASE)


def route_for(names: Sequence[str], routes: Sequence[RowRoute], layout: str, unknown_as: str | None) -> RowRoute:
    """The route of the first of ``names`` that matches one; ``routes`` are tried on all names before the built-in ones.

    Raises :class:`RowError`: no route, or one to a verifier that is not there.
    """
    for table in (routes, built_in_routes()):
        for name in names:
            for route in table:
                if any(_pattern(glob).match(name) for glob in route.patterns):
                    return _usable(route, name, layout)
    what = unknown_as or "name"
    if not names:
        raise RowError(
            f"Read as layout {layout!r}: nothing says how to judge the answer. Give the row a `{what}` or `verifier`, "
            "or name a verifier for all rows."
        )
    for name in names:
        if name in registry.names():
            return RowRoute(match=name, verifier=name)
    raise RowError(f"Read as layout {layout!r}: no route for {what} {names[0]!r}.{nearest(names[0], _known(routes))}")


def _usable(route: RowRoute, name: str, layout: str) -> RowRoute:
    if route.verifier is None or route.verifier in registry.names():
        return route
    if route.verifier in REFUSED:
        raise RowError(f"Read as layout {layout!r}: {name!r} {REFUSED[route.verifier]}")
    raise RowError(
        f"Read as layout {layout!r}: {name!r} needs verifier {route.verifier!r}, which this version does not have."
    )


def _known(routes: Sequence[RowRoute]) -> set[str]:
    return {glob for route in (*routes, *built_in_routes()) for glob in route.patterns}
