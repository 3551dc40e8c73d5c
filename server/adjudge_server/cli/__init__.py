"""The command ``adjudge``.

One file per command. Nothing heavy is imported before a command needs it, so that ``adjudge --help`` is quick, and a
base install (which has the SDK only) says what is missing instead of showing a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 if all is well, 1 if not, 2 if the command was used wrongly."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"adjudge: {error.name} is not installed: pip install 'adjudge[server]'", file=sys.stderr)
        return 2
    from .app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
