"""Write the reference pages that the code already knows: settings, verifiers, command line, metrics.

    python docs/generate.py            write docs/reference/{settings,verifiers,cli,metrics}.md
    python docs/generate.py --check    only say which of them are out of date

What stands in these pages is the code's own words: descriptions of fields, docstrings, worked examples. So a page is
mended by mending the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parent / "reference"

SETTINGS_HEAD = """# Settings

One TOML file (`--config FILE`, else `$ADJUDGE_CONFIG`, else `./adjudge.toml` if it is there), the environment, and
flags. A flag beats the environment, the environment beats the file, the file beats the default. `adjudge config show`
prints every value and where it came from, `adjudge config example` a file with all of them.

`limits.max_tasks` is the key `max_tasks` in the table `[limits]` of the file. Any setting can be given on the command
line as `--set KEY=VALUE`; the commonest have a flag of their own.
"""

VERIFIERS_HEAD = """# Verifiers

`adjudge verifiers show NAME` prints the same for every verifier of an installation, yours included, and
`GET /v1/verifiers/NAME` has it with the JSON schemas.
"""

CLI_HEAD = """# Command line

Every command has `--help`. With `--traceback` an error shows where it comes from. Exit codes: 0 all is well, 1 a
verdict or a check is not as it should be, 2 the command was used wrongly, 70 a bug.
"""

METRICS_HEAD = """# Metrics

`GET /metrics` serves them in OpenMetrics text, for Prometheus. No label ever holds text of a user.
"""


def settings_page() -> str:
    from pydantic import BaseModel

    from adjudge_server.settings import Settings

    def of_section(model: type[BaseModel], prefix: str) -> Iterator[str]:
        for name, field in model.model_fields.items():
            key = f"{prefix}{name}"
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from of_section(field.annotation, f"{key}.")
                continue
            variable = "ADJUDGE_" + key.upper().replace(".", "__")
            default = (
                "depends on the machine"
                if field.default_factory in _MACHINE
                else _literal(field.get_default(call_default_factory=True))
            )
            yield f"## {key}\n\n{field.description}\n\nDefault: {default}. Environment: `{variable}`.\n"

    return "\n".join([SETTINGS_HEAD, *of_section(Settings, "")])


def _machine_defaults() -> tuple[Any, ...]:
    from adjudge_server.host import usable_cores

    return (usable_cores,)


_MACHINE = _machine_defaults()


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        value = list(value)
    return f"`{json.dumps(value)}`" if value not in ("", [], {}) else "empty"


def verifiers_page() -> str:
    from adjudge_verifiers import registry

    parts = [VERIFIERS_HEAD]
    for name in registry.names():
        verifier = registry.get(name)
        description = verifier.description().replace("``", "`")
        parts.append(f"## {name}\n\nLane `{verifier.lane}`, version `{verifier.version}`.\n\n{description}\n")
        if verifier.source:
            parts.append(f"Source: {verifier.source}\n")
        parts += [_reference(verifier), _options(verifier), _examples(verifier)]
    return "\n".join(part for part in parts if part)


def _reference(verifier: Any) -> str:
    schema = verifier.reference_adapter().json_schema()
    if schema.get("type") == "null":
        return "Reference: none.\n"
    kinds = " or ".join(_kind(each, schema.get("$defs", {})) for each in schema.get("anyOf", [schema]))
    text = f"Reference: {kinds}."
    if schema.get("properties"):
        text += "\n\n" + _table(schema)
    return text + "\n"


def _options(verifier: Any) -> str:
    schema = verifier.Options.model_json_schema()
    return f"Options:\n\n{_table(schema)}\n" if schema.get("properties") else "Options: none.\n"


def _table(schema: dict[str, Any]) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        kinds = " or ".join(_kind(each, schema.get("$defs", {})) for each in field.get("anyOf", [field]))
        default = (
            "required"
            if name in schema.get("required", ())
            else f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
        )
        if len(default) > 60:
            default = "see the schema"
        lines.append(f"| `{name}` | {_cell(kinds)} | {_cell(default)} | {_cell(field.get('description', ''))} |")
    return "\n".join(lines)


def _kind(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        target = definitions.get(name, {})
        return _kind(target, definitions) if "enum" in target or "const" in target else f"object `{name}`"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        inner = schema.get("items") or {}
        return f"list of {_kind(inner, definitions)}" if inner else "list"
    return str(schema.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _examples(verifier: Any) -> str:
    if not verifier.examples:
        return ""
    lines = ["Examples:\n", "| response | reference | options | reward | category |", "|---|---|---|---|---|"]
    for example in verifier.examples:
        outcome = example.category or (example.status if example.status != "ok" else "")
        cells = [
            _shown(example.response),
            _shown(example.reference),
            _shown(example.options or None),
            _shown(example.reward),
        ]
        lines.append(f"| {' | '.join(cells)} | {outcome} |")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= 90 else text[:87] + "..."
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def cli_page() -> str:
    import typer.main

    from adjudge_server.cli.app import app

    def of_command(command: Any, name: str, depth: int) -> Iterator[str]:
        yield f"{'#' * depth} {name}\n\n{' '.join((command.help or '').split())}\n"
        options = [parameter for parameter in command.params if parameter.name != "help"]
        if options and not getattr(command, "commands", None):
            yield _options_of_command(options)
        for key, inner in getattr(command, "commands", {}).items():
            yield from of_command(inner, f"{name} {key}", depth + 1)

    root = typer.main.get_command(app)
    commands: dict[str, Any] = getattr(root, "commands", {})
    texts = (text for name, command in commands.items() for text in of_command(command, f"adjudge {name}", 2))
    return "\n".join([CLI_HEAD, *texts])


def _options_of_command(parameters: list[Any]) -> str:
    lines = ["| argument | meaning |", "|---|---|"]
    for parameter in parameters:
        names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        lines.append(f"| {names} | {_cell(getattr(parameter, 'help', None) or '')} |")
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    from adjudge_server.metrics import Metrics

    parts = [METRICS_HEAD]
    for collector in Metrics().registry._collector_to_names:
        described: Any = collector
        (family,) = described.describe()
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in described._labelnames) or "none"
        parts.append(f"## {name}\n\n{family.documentation} A {family.type}; labels: {labels}.\n")
    return "\n".join(parts)


PAGES = {"settings": settings_page, "verifiers": verifiers_page, "cli": cli_page, "metrics": metrics_page}


def main() -> int:
    stale = []
    for name, page in PAGES.items():
        path = REFERENCE / f"{name}.md"
        text = page()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in sys.argv[1:]:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        print(f"out of date: {', '.join(stale)}; run python docs/generate.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
