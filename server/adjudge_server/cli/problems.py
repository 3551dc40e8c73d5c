"""How a command says that it cannot go on: one line on stderr, which ends with what to do."""

from __future__ import annotations

__all__ = ["CommandFailed", "UsageProblem"]


class CommandFailed(Exception):
    """The command could not do its work. ``str()`` is the line that the user sees."""

    exit_code = 1


class UsageProblem(CommandFailed):
    """The command was asked for something that does not exist or makes no sense."""

    exit_code = 2
