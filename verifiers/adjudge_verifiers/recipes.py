"""Recipes: how several judgements become one reward. Data in the configuration, never an expression to evaluate.

A recipe either *combines* parts or *routes*::

    [recipes.math_with_format]
    combine = "weighted_sum"
    parts = [
      { name = "accuracy", verifier = "math", weight = 0.9 },
      { name = "format", verifier = "format", weight = 0.1, options = { require = ["think", "answer"] } },
    ]

    [recipes.by_source]
    route_by = "data_source"
    routes = [
      { match = "openai/gsm8k", verifier = "numeric" },
      { match = ["math__*", "aime*"], recipe = "math_with_format" },
    ]

=================== ==========================================================================================
``combine``         the reward before ``normalise``, ``rescale`` and ``clip`` (in this order)
=================== ==========================================================================================
``weighted_sum``    the sum of weight x reward over all parts
``gate``            the first part must reach its threshold, else ``gate_reward``; then the weighted sum of the
                    others (they run only then); a gate alone passes its own reward on
``veto``            ``veto_reward`` if any part with ``veto = true`` stays below its threshold, else the weighted
                    sum of the other parts
``first_of``        the reward of the first part that reaches its threshold, tried one after the other; else the
                    largest reward among them
=================== ==========================================================================================

This module holds the words and checks them; :mod:`adjudge_verifiers.compose` runs them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from .errors import nearest

__all__ = ["Part", "Recipe", "Route", "check_recipes", "load_recipes"]

Combine = Literal["weighted_sum", "gate", "veto", "first_of"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Part(_Strict):
    """One judgement of a recipe."""

    name: str = Field(min_length=1, description="Its key in the verdict's `parts`; unique in the recipe.")
    verifier: str = Field(description="The verifier that makes it.")
    weight: float = Field(default=1.0, description="Its factor in the sum; not 0, may be negative.")
    options: dict[str, JsonValue] = Field(default_factory=dict, description="Options, below those of the task.")
    reference: JsonValue = Field(default=None, description="A fixed reference, in place of the task's.")
    reference_key: str | None = Field(default=None, description="The key of the task's reference that is meant.")
    threshold: float = Field(default=1.0, description="The reward from which on a gate, veto or first_of is passed.")
    veto: bool = Field(default=False, description="In a `veto` recipe: may this part forbid?")

    @model_validator(mode="after")
    def _one_reference(self) -> Self:
        if self.reference is not None and self.reference_key is not None:
            raise ValueError("reference and reference_key exclude each other")
        return self


class Route(_Strict):
    """Where tasks of certain sources go."""

    match: tuple[str, ...] = Field(min_length=1, description="Names or patterns with `*`; a name beats a pattern.")
    verifier: str | None = None
    recipe: str | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict, description="Options, below those of the task.")

    @field_validator("match", mode="before")
    @classmethod
    def _one_or_several(cls, match: Any) -> Any:
        return (match,) if isinstance(match, str) else match

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.verifier is None) == (self.recipe is None):
            raise ValueError("a route names either a verifier or a recipe")
        return self


class Recipe(_Strict):
    """A named combination of verifiers, or a table of routes to other recipes and verifiers."""

    name: str = Field(min_length=1)
    description: str = ""
    combine: Combine = "weighted_sum"
    parts: tuple[Part, ...] = ()
    route_by: str = Field(default="data_source", description="The key of `metadata` that routes are matched with.")
    routes: tuple[Route, ...] = ()
    default: Route | None = Field(
        default=None, description="Where a task goes that no route matches; its match is `*`."
    )
    gate_reward: float = Field(default=0.0, description="Reward where the gate is not passed.")
    veto_reward: float = Field(default=0.0, description="Reward where a part forbids.")
    normalise: bool = Field(default=False, description="Divide a weighted sum by the sum of the weights' sizes.")
    rescale: tuple[float, float] | None = Field(default=None, description="Map 0..1 to these two.")
    clip: tuple[float, float] | None = Field(default=None, description="Bounds of the reward.")

    @field_validator("default", mode="before")
    @classmethod
    def _default_matches_all(cls, default: Any) -> Any:
        return {"match": "*", **default} if isinstance(default, Mapping) else default

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.parts) == bool(self.routes or self.default):
            raise ValueError("a recipe has either parts or routes")
        names = [part.name for part in self.parts]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"parts: the name {repeated[0]!r} occurs twice")
        for part in self.parts:
            if part.weight == 0:
                raise ValueError(f"parts.{part.name}.weight: a part of weight 0 has no effect; leave it out")
            if part.veto and self.combine != "veto":
                raise ValueError(f"parts.{part.name}.veto: only a recipe with combine = 'veto' knows it")
        if self.combine == "veto" and self.parts and not 0 < sum(part.veto for part in self.parts) < len(self.parts):
            raise ValueError("parts: a veto recipe needs a part with veto = true and one without")
        for key, bounds in (("clip", self.clip), ("rescale", self.rescale)):
            if bounds is not None and (bounds[0] > bounds[1] if key == "clip" else bounds[0] == bounds[1]):
                raise ValueError(f"{key}: {list(bounds)} are not two bounds")
        return self

    @property
    def targets(self) -> list[tuple[str, Route]]:
        """Every route, the default included, with its place in the configuration."""
        named = [(f"routes.{index}", route) for index, route in enumerate(self.routes)]
        return [*named, ("default", self.default)] if self.default is not None else named


def load_recipes(table: Mapping[str, Any]) -> dict[str, Recipe]:
    """The recipes of a TOML table ``[recipes]``. Raises ``ValueError`` that names the recipe and the key."""
    recipes: dict[str, Recipe] = {}
    for name, body in table.items():
        if not isinstance(body, Mapping):
            raise ValueError(f"recipe {name!r}: a table is expected")
        try:
            recipes[name] = Recipe.model_validate({**body, "name": name})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise ValueError(f"recipe {name!r}: {where + ': ' if where else ''}{first['msg']}") from None
    return recipes


def check_recipes(recipes: Mapping[str, Recipe], verifiers: Collection[str]) -> None:
    """Does every recipe name only what exists, and does no route run in a circle? Raises ``ValueError`` if not."""
    for name, recipe in recipes.items():
        if name in verifiers:
            raise ValueError(f"recipe {name!r}: a verifier has this name; choose another")
        for part in recipe.parts:
            if part.verifier not in verifiers:
                raise ValueError(_unknown(name, f"parts.{part.name}.verifier", part.verifier, verifiers))
        for where, route in recipe.targets:
            if route.verifier is not None and route.verifier not in verifiers:
                raise ValueError(_unknown(name, f"{where}.verifier", route.verifier, verifiers))
            if route.recipe is not None and route.recipe not in recipes:
                raise ValueError(_unknown(name, f"{where}.recipe", route.recipe, recipes))
    settled: set[str] = set()
    for name in recipes:
        _walk(name, recipes, [], settled)


def _walk(name: str, recipes: Mapping[str, Recipe], path: list[str], settled: set[str]) -> None:
    if name in path:
        raise ValueError(f"recipe {name!r}: routes run in a circle: {' -> '.join([*path[path.index(name) :], name])}")
    if name in settled:
        return
    recipe = recipes[name]
    for _, route in recipe.targets:
        if route.recipe is not None:
            _walk(route.recipe, recipes, [*path, name], settled)
    settled.add(name)


def _unknown(recipe: str, where: str, name: str, known: Collection[str]) -> str:
    return f"recipe {recipe!r}: {where}: there is no {where.rpartition('.')[2]} {name!r}.{nearest(name, known)}"
