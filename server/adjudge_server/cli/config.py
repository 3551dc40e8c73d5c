"""``adjudge config``: what is set, and by whom; and a file to start from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer

from .console import console, print_json, table
from .options import AsJson, ConfigFile, Setting, load

__all__ = ["app"]

app = typer.Typer(help="Show the settings.", no_args_is_help=True)


@app.command("show")
def show(config: ConfigFile = None, set_: Setting = None, as_json: AsJson = False) -> None:
    """Print every setting with its value and where that came from. Keys and passwords are not shown."""
    settings = load(config, set_)
    values, sources = settings.shown(), settings.sources()
    if as_json:
        print_json(
            {
                key: {"value": value, "source": sources[key].kind, "name": sources[key].name}
                for key, value in values.items()
            }
        )
        return
    made = table("", "setting", "value", "source")
    for key, value in values.items():
        source = sources[key]
        made.add_row(
            key, json.dumps(value, default=str), str(source), style="dim" if source.kind == "default" else None
        )
    console().print(made)


@app.command("example")
def example() -> None:
    """Print a TOML file of all settings with their defaults, each commented out."""
    print("\n".join(_example_lines()))


def _example_lines() -> Iterator[str]:
    from ..settings_load import fields

    yield "# adjudge.toml: every setting with its default. A flag beats the environment, which beats this file."
    yield "# The variable of `limits.max_tasks` is ADJUDGE_LIMITS__MAX_TASKS."
    table_name = ""
    for key, field in fields():
        if key == "recipes":
            yield from _free_tables()
            return
        section, _, name = key.rpartition(".")
        if section != table_name:
            table_name = section
            yield from ("", f"[{section}]")
        yield from (f"# {line}" for line in _wrapped(field.description or ""))
        yield f"# {name} = {_toml(field.get_default(call_default_factory=True))}"


def _free_tables() -> Iterator[str]:
    yield from (
        "",
        "# Combinations of verifiers, one table each; a task names one as its `recipe`.",
        "# [recipes.answer_and_format]",
        '# combine = "weighted_sum"',
        "# parts = [",
        '#   { name = "accuracy", verifier = "math", weight = 0.9 },',
        '#   { name = "format", verifier = "format", weight = 0.1, options = { require = ["think", "answer"] } },',
        "# ]",
        "",
        "# Which verifier or recipe judges which rows of a data set; tried before the built-in table.",
        "# [[routes]]",
        '# match = "my_math__*"',
        '# verifier = "math"',
    )


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100)


def _toml(value: Any) -> str:
    """A default as TOML; JSON agrees with TOML on strings, numbers, booleans and lists."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)
