"""From flags, environment and file to :class:`Settings`, knowing where each value came from.

A key that is unknown, wherever it is written, is an error that names the nearest known one: a misspelt limit that is
silently ignored is worse than a server that does not start. Environment variables are shared with others, so there an
unknown name counts only if it addresses one of our tables or resembles one of our keys.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, SettingsError, TomlConfigSettingsSource

from adjudge_verifiers.errors import nearest
from adjudge_verifiers.recipes import Part, Recipe, Route

from .rows.routing import RowRoute
from .settings import Settings, Source

__all__ = ["BadSettings", "Override", "fields", "load_settings", "setting_keys"]

_PREFIX = "ADJUDGE_"
_RECIPE_KEYS = {*Recipe.model_fields, *Part.model_fields, *Route.model_fields, *RowRoute.model_fields} - {"name"}
_FREE = ("recipes", "routes", "api_keys")
"""Keys whose value is a table or a list of the user's own making."""
_NOT_OURS = frozenset({"CONFIG", "BASE_URL", "API_KEY", "TIMEOUT_S", "MAX_RETRIES", "MAX_CONCURRENCY", "LOG", "SHARED"})
"""Variables of the client library and of the test-suite."""
_KUBERNETES = re.compile(r"SERVICE_(HOST|PORT).*|PORT_\d+_(TCP|UDP|SCTP).*")
"""What Kubernetes sets in every pod beside a service that is called ``adjudge``."""


class BadSettings(Exception):
    """A setting is unknown or its value is wrong; one line that says which, where it is written, and what to write."""


@dataclass(frozen=True, slots=True)
class Override:
    """A value given on the command line. ``flag`` is how it was given, for `adjudge config show`."""

    key: str
    value: Any
    flag: str

    @classmethod
    def parse(cls, assignment: str) -> Override:
        """``lanes.cpu_workers=4``; the value is TOML, or else a plain string."""
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise BadSettings(f"--set {assignment}: write --set KEY=VALUE, for instance --set lanes.cpu_workers=4")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):  # not TOML, or a number or a nesting beyond what Python reads
            value = text
        return cls(key.strip(), value, f"--set {key.strip()}")


def load_settings(overrides: Sequence[Override] = (), config: Path | None = None) -> Settings:
    """Merge all sources. ``config`` is the file of ``--config``; else ``ADJUDGE_CONFIG``, else ``./adjudge.toml``.

    Raises:
        BadSettings: an unknown key, a wrong value, or a file that cannot be read.
    """
    path = _config_path(config)
    values: dict[str, tuple[Any, Source]] = {}
    for layer in (_from_file(path) if path else (), _from_environment(), _from_flags(overrides)):
        for key, value, source in layer:
            _check_key(key, source)
            for covered in [known for known in values if known.startswith(f"{key}.")]:
                del values[covered]
            values[key] = (value, source)
    sources = {key: source for key, (_, source) in values.items()}
    try:
        settings = Settings(**_nest({key: value for key, (value, _) in values.items()}))
    except ValidationError as error:
        raise BadSettings(_describe(error, sources)) from None
    settings._sources = sources
    return settings


def setting_keys() -> list[str]:
    """All dotted keys, in the order of the file; ``recipes`` and ``routes`` as one key each."""
    return [key for key, _ in fields()]


def fields() -> Iterator[tuple[str, FieldInfo]]:
    """Every dotted key with its field, in the order of the file."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            for inner, inner_field in field.annotation.model_fields.items():
                yield f"{name}.{inner}", inner_field
        else:
            yield name, field


def _config_path(config: Path | None) -> Path | None:
    configured = os.environ.get("ADJUDGE_CONFIG", "")
    if config is None and configured:
        config = Path(configured)
    if config is None:
        return Path("adjudge.toml") if Path("adjudge.toml").is_file() else None
    if not config.is_file():
        raise BadSettings(f"there is no configuration file {config}; `adjudge config example` prints one")
    return config


def _from_file(path: Path) -> Iterator[tuple[str, Any, Source]]:
    try:
        tables = TomlConfigSettingsSource(Settings, toml_file=path).toml_data
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"{path} is not TOML: {error}") from None
    except OSError as error:
        raise BadSettings(f"{path} cannot be read: {error.strerror}") from None
    yield from _flatten(tables, lambda key: Source(kind="file", name=str(path)))


def _from_environment() -> Iterator[tuple[str, Any, Source]]:
    _check_environment()
    try:
        tables = EnvSettingsSource(Settings)()
    except SettingsError as error:
        named = re.search(r'field "(\w+)"', str(error))
        variable = _variable(named[1]) if named else "the environment"
        raise BadSettings(f"{variable} (environment): the value is not JSON") from None
    if re.match(r"(tcp|udp)://", str(tables.get("port", ""))):  # set by Kubernetes, not by the user
        del tables["port"]
    yield from _flatten(tables, lambda key: Source(kind="env", name=_variable(key)))


def _from_flags(overrides: Sequence[Override]) -> Iterator[tuple[str, Any, Source]]:
    for override in overrides:
        yield override.key, override.value, Source(kind="flag", name=override.flag)


def _flatten(tables: Mapping[str, Any], source: Any) -> Iterator[tuple[str, Any, Source]]:
    """Dotted keys and values: the tables of ours by their keys, ``[recipes.NAME]`` as a whole."""
    for name, value in tables.items():
        field = Settings.model_fields.get(name)
        table = name == "recipes" or (field is not None and _is_section(name))
        if table and isinstance(value, Mapping):
            for key, inner in value.items():
                yield f"{name}.{key}", inner, source(f"{name}.{key}")
        else:
            yield name, value, source(name)


def _is_section(name: str) -> bool:
    annotation = Settings.model_fields[name].annotation
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in values.items():
        name, dot, rest = key.partition(".")
        if not dot:
            tables[name] = value
        else:
            table = tables.setdefault(name, {})
            if isinstance(table, dict):
                table[rest] = value
    return tables


def _check_key(key: str, source: Source) -> None:
    head = key.partition(".")[0]
    if key in setting_keys() or head in _FREE or (head in Settings.model_fields and "." not in key):
        return
    where = f" ({source})" if source.kind != "env" else ""
    name = source.name if source.kind == "env" else repr(key)
    raise BadSettings(f"there is no setting {name}{where}.{_nearest(key, source.kind)}")


def _nearest(key: str, kind: str) -> str:
    known = setting_keys()
    last = key.rpartition(".")[2]
    close = [name for name in known if name.rpartition(".")[2] == last]
    close += [name for name in difflib.get_close_matches(key, known, n=2, cutoff=0.7) if name not in close]
    tails = {name.rpartition(".")[2]: name for name in known}
    close += [
        tails[tail] for tail in difflib.get_close_matches(last, tails, n=1, cutoff=0.75) if tails[tail] not in close
    ]
    if close:
        return f" Did you mean {' or '.join(_written(name, kind) for name in close[:3])}?"
    return " `adjudge config show` lists all."


def _written(key: str, kind: str) -> str:
    return _PREFIX + key.upper().replace(".", "__") if kind == "env" else repr(key)


def _variable(key: str) -> str:
    """The variable that holds ``key``: its own, or that of its whole table (as JSON)."""
    names = {name.upper(): name for name in os.environ}
    own = _written(key, "env")
    return names.get(own) or names.get(_PREFIX + key.partition(".")[0].upper()) or own


def _check_environment() -> None:
    tops = list(Settings.model_fields)
    for variable in os.environ:
        name = variable.upper().removeprefix(_PREFIX)
        if not variable.upper().startswith(_PREFIX) or name in _NOT_OURS or _KUBERNETES.fullmatch(name):
            continue
        head, nested, _ = name.lower().partition("__")
        if head in tops:
            continue  # a key within a table is checked with the others
        keys: Iterable[str] = [key.replace(".", "__") for key in setting_keys()] + [
            key.rpartition(".")[2] for key in setting_keys()
        ]
        close = difflib.get_close_matches(name.lower(), {*keys, *tops}, n=1, cutoff=0.75)
        if close or nested:
            raise BadSettings(
                f"there is no setting {variable} (environment).{_nearest(name.lower().replace('__', '.'), 'env')}"
            )


def _describe(error: ValidationError, sources: Mapping[str, Source]) -> str:
    """Every problem of ``error`` in one line, with the place of the value and without the value of a secret."""
    problems = []
    for item in error.errors(include_url=False, include_context=False):
        location = [str(part) for part in item["loc"]]
        key = next((key for key in (".".join(location[:2]), *location[:1]) if key in sources), "")
        message = item["msg"].removeprefix("Value error, ")
        path = ".".join(location)
        if item["type"] == "extra_forbidden":
            message = f"there is no such key.{nearest(location[-1], _RECIPE_KEYS)}"
        elif item["type"] in ("model_type", "dict_type"):
            message = "this is a table"
        where = f" ({sources[key]})" if key else ""
        problems.append(f"{path}{where}: {message}" if path else message)
    shown = "; ".join(problems[:3])
    return shown + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")
