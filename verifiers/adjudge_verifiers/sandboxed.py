"""What the sandbox raises, as what a verifier raises: one place for every verifier that runs programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from adjudge_sandbox.errors import InvalidProgram, SandboxOverloaded, SandboxUnavailable, UnsupportedLanguage

from .errors import InvalidTask, Overloaded, Unavailable

__all__ = ["sandbox_failures"]


@contextmanager
def sandbox_failures() -> Iterator[None]:
    """Raises :class:`Overloaded`, :class:`Unavailable`, :class:`InvalidTask` for what the sandbox raises inside."""
    try:
        yield
    except SandboxOverloaded as error:
        raise Overloaded(f"The sandbox has too much to do: {error}") from error
    except SandboxUnavailable as error:
        raise Unavailable(f"The sandbox cannot run programs now: {error}") from error
    except (UnsupportedLanguage, InvalidProgram) as error:
        raise InvalidTask(str(error)) from error
