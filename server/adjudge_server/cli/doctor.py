"""``adjudge doctor``: what this host can run and hold, and how to mend what it lacks."""

from __future__ import annotations

import typer

from .console import console, print_json, table
from .options import AsJson, ConfigFile, Setting, load

__all__ = ["doctor"]

_MARKS = {"ok": "[green]ok[/green]", "warning": "[yellow]warning[/yellow]", "failure": "[red]FAILURE[/red]"}


def doctor(config: ConfigFile = None, set_: Setting = None, as_json: AsJson = False) -> None:
    """Look at Python, the machine, the sandbox, the store, the port and the libraries; name the fix for each lack.

    Exit code 1 if something that the server needs is missing.
    """
    from ..checkup import examine_host

    checks = examine_host(load(config, set_))
    if as_json:
        print_json([check.model_dump() for check in checks])
    else:
        made = table("", "what", "", "found", "fix")
        for check in checks:
            made.add_row(check.name, _MARKS[check.state], check.detail, check.fix)
        console().print(made)
    raise typer.Exit(1 if any(check.state == "failure" for check in checks) else 0)
