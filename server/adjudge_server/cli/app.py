"""The commands, put together, and the one place where their errors become one line each."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
import typer.main
from typer.exceptions import TyperException

from . import bench, config, doctor, preflight, serve, verifiers, verify
from .problems import CommandFailed

__all__ = ["app", "command_names", "run"]

_INTERNAL_ERROR = 70  # EX_SOFTWARE: a bug of ours must not look like "a verdict was not ok"
_INTERRUPTED = 130
_POSSIBLE = re.compile(r"\.? \((?:Possible options: |Did you mean )([^)?]*)\??\)")

app = typer.Typer(
    name="adjudge",
    help="Rewards for reinforcement learning that a trainer can trust: a verdict, not a float.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from adjudge._version import __version__

        print(f"adjudge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the traceback of an error.")] = False,
) -> None:
    pass


app.command("serve")(serve.serve)
app.command("verify")(verify.verify)
app.command("preflight")(preflight.preflight)
app.command("doctor")(doctor.doctor)
app.command("bench")(bench.bench)
app.add_typer(verifiers.app, name="verifiers")
app.add_typer(config.app, name="config")


def command_names() -> list[str]:
    """Every command as it is typed, sub-commands included: ``verifiers list``."""
    names: list[str] = []
    root = typer.main.get_command(app)
    for name, command in getattr(root, "commands", {}).items():
        inner = getattr(command, "commands", None)
        names += [f"{name} {sub}" for sub in inner] if inner else [name]
    return names


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code. Every error is one line, or a traceback with ``--traceback``."""
    traceback = "--traceback" in arguments
    words = [word for word in arguments if word != "--traceback"]
    try:
        return int(app(words, prog_name="adjudge", standalone_mode=False) or 0)
    except CommandFailed as error:
        return _report(str(error), error.exit_code, traceback)
    except TyperException as error:
        message = error.format_message()
        if not message:  # `adjudge` alone: its help has been printed
            return error.exit_code
        return _report(_with_hint(message), error.exit_code, traceback)
    except (KeyboardInterrupt, typer.Abort):
        return _report("interrupted", _INTERRUPTED, traceback)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets one line and a way to see more
        line = f"{type(error).__name__}: {error}".strip()
        return _report(f"internal error: {line} (--traceback shows where)", _INTERNAL_ERROR, traceback)


def _report(message: str, code: int, traceback: bool) -> int:
    if traceback:
        import traceback as traceback_module

        traceback_module.print_exc()
    print(f"adjudge: {' '.join(message.split())}", file=sys.stderr)
    return code


def _with_hint(message: str) -> str:
    """The parser's message as a sentence, with the near match or the way to the help."""
    message = _POSSIBLE.sub(lambda found: f". Did you mean {found[1].replace(', ', ' or ')}?", message)
    if message.startswith("No such command") and "mean" not in message:
        wrong = message.partition("'")[2].partition("'")[0]
        words = {word for name in command_names() for word in name.split()}
        close = difflib.get_close_matches(wrong, words, n=1)
        message += f" Did you mean {close[0]!r}?" if close else ""
    if message.endswith("?"):
        return message
    return message.rstrip(".") + ". `adjudge --help` lists commands and options."
