"""``adjudge verifiers``: the catalogue on the command line."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .console import console, print_json, table
from .options import AsJson
from .problems import UsageProblem

__all__ = ["app"]

app = typer.Typer(help="List and describe the verifiers.", no_args_is_help=True)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the verifiers, those of installed packages included."""
    from adjudge_verifiers import registry

    from ..catalogue import card

    cards = [card(registry.get(name)) for name in registry.names()]
    if as_json:
        print_json([{"name": c.name, "version": c.version, "lane": c.lane, "summary": _summary(c)} for c in cards])
        return
    made = table("", "name", "version", "lane", "what it judges")
    for one in cards:
        made.add_row(one.name, one.version, one.lane, _summary(one))
    console().print(made)


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of a verifier.")], as_json: AsJson = False) -> None:
    """Describe one verifier: what it takes, which options it has, and worked examples."""
    from adjudge_verifiers import registry
    from adjudge_verifiers.errors import UnknownVerifier

    from ..catalogue import card

    try:
        found = card(registry.get(name))
    except UnknownVerifier as error:
        raise UsageProblem(str(error)) from error
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    out = console()
    out.print(f"[bold]{found.name}[/bold] version {found.version}, lane {found.lane}, at most {found.timeout_s:g} s\n")
    out.print(found.description + "\n", markup=False)
    if found.source:
        out.print(f"Source: {found.source}\n", markup=False)
    reference = "none" if found.reference_schema is None else json.dumps(found.reference_schema, indent=2)
    out.print(f"Reference: {reference}\n", markup=False)
    _show_options(found.options_schema)
    _show_examples(found.examples)


def _summary(found: Any) -> str:
    return str(found.description.partition("\n\n")[0].replace("\n", " "))


def _show_options(schema: dict[str, Any]) -> None:
    properties = schema.get("properties", {})
    if not properties:
        console().print("Options: none\n")
        return
    made = table("Options", "name", "type", "default", "meaning")
    for name, option in properties.items():
        default = json.dumps(option["default"]) if "default" in option else "required"
        made.add_row(name, _type(option, schema), default, option.get("description", ""))
    console().print(made)


def _type(option: dict[str, Any], schema: dict[str, Any]) -> str:
    """A JSON schema in a few words: ``string``, ``"a" | "b"``, ``list of number``."""
    if "$ref" in option:
        name = option["$ref"].rpartition("/")[2]
        return _type(schema.get("$defs", {}).get(name, {}), schema) or name
    if "enum" in option:
        return " | ".join(json.dumps(value) for value in option["enum"])
    if "const" in option:
        return json.dumps(option["const"])
    for key in ("anyOf", "oneOf"):
        if key in option:
            return " | ".join(dict.fromkeys(_type(inner, schema) for inner in option[key]))
    if option.get("type") == "array":
        return f"list of {_type(option.get('items', {}), schema) or 'anything'}"
    return str(option.get("type", ""))


def _show_examples(examples: list[dict[str, Any]]) -> None:
    if not examples:
        return
    from rich.text import Text

    made = table("Examples", "response", "reference", "options", "reward", "category or status", "note")
    for example in examples:
        reward = "-" if example["reward"] is None else f"{example['reward']:g}"
        outcome = (example["category"] or "") if example["status"] == "ok" else example["status"]
        cells = (
            example["response"],
            json.dumps(example["reference"], ensure_ascii=False),
            json.dumps(example["options"], ensure_ascii=False) if example["options"] else "",
            reward,
            outcome,
            example["note"],
        )
        made.add_row(*(Text(str(cell)[:200]) for cell in cells))
    console().print(made)
