"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .problems import UsageProblem

if TYPE_CHECKING:
    from ..settings import Settings

__all__ = ["AsJson", "ConfigFile", "Setting", "Url", "load"]

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file. Default: $ADJUDGE_CONFIG, else ./adjudge.toml.", show_default=False),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as `lanes.cpu_workers=4`. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Url = Annotated[
    str | None,
    typer.Option("--url", help="Use the server at this address. Default: judge in this process.", show_default=False),
]


def load(config: Path | None, assignments: list[str] | None, /, **flags: Any) -> Settings:
    """Settings from all sources. ``flags`` are options of the command by key, ``__`` for the dot; ``None`` is unset.

    Raises:
        UsageProblem: a key is unknown or a value is wrong.
    """
    from ..settings_load import BadSettings, Override, load_settings

    try:
        overrides = [Override.parse(text) for text in assignments or ()]
        for name, value in flags.items():
            if value is not None and value != []:
                key = name.replace("__", ".")
                overrides.append(Override(key, value, flag=f"--{key.rpartition('.')[2].replace('_', '-')}"))
        return load_settings(overrides, config)
    except BadSettings as error:
        raise UsageProblem(str(error)) from error
