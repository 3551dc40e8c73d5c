"""Every setting of the server: its key, its default, and what it does.

A setting has one name everywhere: ``lanes.cpu_workers`` is ``cpu_workers`` in table ``[lanes]`` of the TOML file,
``ADJUDGE_LANES__CPU_WORKERS`` in the environment and ``--set lanes.cpu_workers=4`` on the command line. Flag beats
environment, environment beats file, file beats default; :func:`adjudge_server.settings_load.load_settings` does that
and remembers which one it was. ``Settings(...)`` itself reads neither the environment nor a file.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from adjudge_verifiers.recipes import Recipe

from .api_keys import ApiKey, name_of_key, parse_api_key
from .host import usable_cores
from .rows.routing import RowRoute

__all__ = [
    "CacheSettings",
    "LaneSettings",
    "LimitSettings",
    "SandboxSettings",
    "Settings",
    "Source",
    "StoreSettings",
    "is_loopback",
]


class Source(BaseModel):
    """Where the value of a setting came from."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["flag", "env", "file", "default"]
    name: str = ""
    """The flag, the variable, or the path of the file."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)


class LimitSettings(_Section):
    """``[limits]``: what a request may ask for at most. Exceeding one is a 413 or 422 that names the limit."""

    max_body_mib: int = Field(default=32, ge=1, le=2048, description="Size of a request's body.")
    max_tasks: int = Field(default=10_000, ge=1, le=1_000_000, description="Tasks in one batch.")
    max_response_chars: int = Field(
        default=1_000_000, ge=1, le=50_000_000, description="Length of the response of one task, in characters."
    )


class LaneSettings(_Section):
    """``[lanes]``: how much is judged at once, and how much may wait."""

    cpu_workers: int = Field(
        default_factory=usable_cores, ge=1, le=1024, description="Processes of the `cpu` lane. Default: usable cores."
    )
    cpu_memory_mib: int = Field(
        default=2048, ge=256, description="Memory that one answer may cost a `cpu` worker before the worker is killed."
    )
    cpu_chunk: int = Field(default=8, ge=1, le=1000, description="Tasks that travel to a `cpu` worker together.")
    cpu_queue: int = Field(
        default=20_000, ge=1, description="Calls that may wait for the `cpu` lane; one more is `overloaded` at once."
    )
    cpu_slice_s: float = Field(
        default=0.25, gt=0, le=60, description="Seconds after which a chunk's unstarted rest goes back to the queue."
    )
    sandbox_slots: int = Field(
        default_factory=usable_cores, ge=1, le=1024, description="Programs that run at once. Default: usable cores."
    )
    sandbox_queue: int = Field(
        default=5_000, ge=1, description="Calls that may wait for the `sandbox` lane; one more is `overloaded` at once."
    )
    queue_timeout_s: float = Field(
        default=600.0,
        gt=0,
        le=86_400,
        description="Seconds that a task waits for a worker at most, unless it says otherwise.",
    )


class CacheSettings(_Section):
    """``[cache]``: verdicts of answers that were judged before."""

    entries: int = Field(default=100_000, ge=0, description="Verdicts kept in memory; 0 turns the cache off.")


class StoreSettings(_Section):
    """``[store]``: the record of every verdict. Losing it never loses a reward."""

    enabled: bool = Field(default=True, description="Record verdicts.")
    url: str = Field(
        default="",
        repr=False,
        description="SQLAlchemy URL. Empty: the SQLite file `adjudge/verdicts.sqlite3` in `$XDG_STATE_HOME` "
        "(`~/.local/state` if that is unset).",
    )
    retention_days: float = Field(default=30, gt=0, description="Days after which a record is deleted.")
    responses: bool = Field(default=False, description="Keep the text of the responses too.")

    def resolved_url(self) -> str:
        """The URL to open; empty if nothing is to be recorded.

        Raises:
            ValueError: ``url`` is empty and this user has no home directory.
        """
        if not self.enabled:
            return ""
        return self.url or f"sqlite:///{_state_directory() / 'adjudge' / 'verdicts.sqlite3'}"


Backend = Literal["auto", "zygote", "landlock", "container", "none"]


class SandboxSettings(_Section):
    """``[sandbox]``: how programs are held."""

    enabled: bool = Field(
        default=True, description="Run programs at all. Off: verifiers that need it are `unavailable`."
    )
    backend: Backend = Field(
        default="auto",
        description="What holds programs. `auto`: the strongest that works here of `zygote` and `landlock` (and "
        "`none`, if it is allowed). `container`: a Docker container for each answer, which is slow.",
    )
    require_isolation: Literal["", "none", "landlock", "jail", "zygote", "container"] = Field(
        default="",
        description="Refuse to start below this level: `landlock`, or `jail` (`zygote` and `container` are the same "
        "level: namespaces and a root of its own). Empty: whatever there is.",
    )
    allow_none: bool = Field(
        default=False,
        description="Run programs without isolation where this host offers none. Never with answers of a model.",
    )
    container_image: str = Field(
        default="",
        description="Docker image for programs with `backend` = `container`, and for repositories whose task names "
        "none. Setting it, or `container_engine`, lets repository tests use Docker.",
    )
    container_engine: str = Field(
        default="", description="URL of the Docker engine. Empty: `DOCKER_HOST`, else the usual socket."
    )
    container_runtime: str = Field(default="", description="Runtime of the containers, `runsc` for gVisor.")
    container_warm: int = Field(default=2, ge=0, le=64, description="Containers kept ready for each kind of task.")
    container_cpus: float = Field(default=2.0, gt=0, le=256, description="Cores of one container.")
    container_boxes: int = Field(default=8, ge=1, le=1024, description="Containers that exist at once at most.")

    @model_validator(mode="after")
    def _has_image(self) -> Self:
        if self.backend == "container" and not self.container_image:
            raise ValueError("backend 'container' needs container_image")
        return self


def _key_list(value: Any) -> Any:
    """``a,b`` or a JSON list, as an environment variable holds it."""
    if isinstance(value, str):
        text = value.strip()
        value = json.loads(text) if text.startswith("[") else [part for part in text.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        return value
    return [parse_api_key(key, f"key-{number}") for number, key in enumerate(value, 1)]


def _named_recipes(value: Any) -> Any:
    """The table's key is the recipe's name; writing it twice would only allow for contradictions."""
    if not isinstance(value, Mapping):
        return value
    return {key: {**body, "name": key} if isinstance(body, Mapping) else body for key, body in value.items()}


class Settings(BaseSettings):
    """All settings of one server. Immutable; made by :func:`load_settings`, or by hand in a test."""

    model_config = SettingsConfigDict(
        env_prefix="ADJUDGE_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65_535, description="Port to listen on; 0 takes any free one.")
    api_keys: Annotated[tuple[ApiKey, ...], NoDecode, BeforeValidator(_key_list)] = Field(
        default=(),
        description="Keys that clients may present, each `KEY` or `NAME=KEY`, the key itself or `sha256:HEX` of it. "
        "Empty: no key is asked for.",
    )
    insecure: bool = Field(default=False, description="Listen on an address other than loopback without any API key.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe line logged."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="Log lines for people or for machines. `auto`: `console` on a terminal, else `json`.",
    )
    drain_s: float = Field(
        default=20.0, ge=0, le=3600, description="Seconds that running requests get to finish after SIGTERM."
    )
    plugins: list[str] = Field(
        default_factory=list, description="Modules to import at start, because they register verifiers of yours."
    )
    limits: LimitSettings = Field(default_factory=LimitSettings)
    lanes: LaneSettings = Field(default_factory=LaneSettings)
    cache: CacheSettings = Field(default_factory=CacheSettings)
    store: StoreSettings = Field(default_factory=StoreSettings)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    recipes: Annotated[dict[str, Recipe], BeforeValidator(_named_recipes)] = Field(
        default_factory=dict, description="Named combinations of verifiers, one table `[recipes.NAME]` each."
    )
    routes: list[RowRoute] = Field(
        default_factory=list,
        description="Which verifier or recipe judges which rows, one table `[[routes]]` each; tried before ours.",
    )

    _sources: dict[str, Source] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The arguments only: :func:`load_settings` merges the rest, to know where each value came from."""
        return (init_settings,)

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        names = [key.name for key in self.api_keys]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"two API keys are called {doubled[0]!r}; give each a name of its own: NAME=KEY")
        if not self.api_keys and not self.insecure and not is_loopback(self.host):
            raise ValueError(
                f"host {self.host} can be reached from other machines and no API key is set. Add one (--api-key KEY, "
                "or api_keys in the file), or listen on 127.0.0.1, or accept everyone with --insecure"
            )
        return self

    def key_name(self, presented: str) -> str | None:
        """The name of the API key that a client presented, or ``None`` if it is not one of ours."""
        return name_of_key(self.api_keys, presented)

    def sources(self) -> dict[str, Source]:
        """Where each value came from, by dotted key, in the order of the file."""
        default = Source(kind="default")
        return {key: self._sources.get(key, default) for key in self.shown()}

    def shown(self) -> dict[str, Any]:
        """Every value by dotted key, plain and without secrets: for `adjudge config show` and the logs."""
        values: dict[str, Any] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, _Section):
                values |= {f"{name}.{key}": inner for key, inner in value.model_dump(mode="json").items()}
            elif name == "api_keys":
                values[name] = [key.name for key in self.api_keys]
            elif name == "recipes":
                values |= {f"recipes.{key}": _plain(recipe) for key, recipe in self.recipes.items()}
            elif name == "routes":
                values[name] = [_plain(route) for route in self.routes]
            else:
                values[name] = value
        values["store.url"] = _without_password(self.store.url)
        return values


def _plain(model: BaseModel) -> dict[str, Any]:
    """What a table of the user's own says, without the defaults of what it leaves out."""
    return model.model_dump(mode="json", exclude_defaults=True)


def is_loopback(host: str) -> bool:
    """Does this address stay within the machine? A name other than ``localhost`` does not count as one."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _state_directory() -> Path:
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    if configured.is_absolute():
        return configured
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:
        reason = "this user has no home directory to keep verdicts in; set store.url, or store.enabled=false"
        raise ValueError(reason) from None


def _without_password(url: str) -> str:
    """``postgresql://me:secret@host/db`` -> ``postgresql://me:***@host/db``."""
    scheme, separator, rest = url.partition("://")
    credentials, at, host = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    return f"{scheme}{separator}{user}{colon}***{at}{host}" if at and colon else url
