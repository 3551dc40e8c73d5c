"""How a verifier says that there will be no reward.

::

    VerifierFailure                 carries the status of the verdict that it becomes
    ├── InvalidTask                 the data set's fault             -> invalid_task
    │   ├── UnknownVerifier         no verifier (or recipe) of that name
    │   ├── InvalidReference        the reference does not parse
    │   └── InvalidOptions          an option is unknown or out of range
    ├── Abstained                   the verifier cannot decide       -> verifier_error
    ├── OutOfTime                   the verifier's own time is up    -> verifier_timeout
    └── Unavailable                 what it needs is down            -> unavailable (retry later)
        └── Overloaded              ... or has far too much to do    -> overloaded (retry later)

Any other exception that escapes a verifier is a bug of the verifier and becomes ``verifier_error`` in
:func:`boundary`, the only place that catches everything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from adjudge.types import Failure, Verdict

__all__ = [
    "Abstained",
    "InvalidOptions",
    "InvalidReference",
    "InvalidTask",
    "OutOfTime",
    "Overloaded",
    "Unavailable",
    "UnknownVerifier",
    "VerifierFailure",
    "boundary",
    "nearest",
]


class VerifierFailure(Exception):
    """There is no reward; ``str()`` is the reason for the verdict."""

    status: ClassVar[Failure] = "verifier_error"

    def verdict(self) -> Verdict:
        return Verdict.failed(self.status, str(self))


class InvalidTask(VerifierFailure):
    """The task itself is unusable: the data set's fault, not the answer's and not ours."""

    status = "invalid_task"


class UnknownVerifier(InvalidTask):
    """No verifier or recipe has this name."""


class InvalidReference(InvalidTask):
    """The reference does not say what is right."""


class InvalidOptions(InvalidTask):
    """An option is unknown, or its value is."""


class Abstained(VerifierFailure):
    """The verifier looked and cannot decide."""


class OutOfTime(VerifierFailure):
    """The verifier used up its own time."""

    status = "verifier_timeout"


class Unavailable(VerifierFailure):
    """Something that the verifier needs is down; the same task may succeed later."""

    status: ClassVar[Failure] = "unavailable"


class Overloaded(Unavailable):
    """What the verifier needs has far too much to do; the same task may succeed later."""

    status = "overloaded"


class _Outcome:
    """Filled by :func:`boundary` when something was caught."""

    def __init__(self) -> None:
        self.failure: Verdict | None = None


@contextmanager
def boundary(what: str) -> Iterator[_Outcome]:
    """Run foreign judging code; whatever escapes it becomes ``outcome.failure``, never a reward.

    ``what`` names the code for the reason ("verifier 'math'"). Exceptions that are no ``Exception`` (cancellation,
    interpreter exit) pass through.
    """
    outcome = _Outcome()
    try:
        yield outcome
    except VerifierFailure as failure:
        outcome.failure = failure.verdict()
    except MemoryError:
        outcome.failure = Verdict.failed("verifier_error", f"{what} ran out of memory on this answer.")
    except Exception as error:  # noqa: BLE001 - the one broad except: see the module docstring
        outcome.failure = Verdict.failed("verifier_error", f"{what} crashed: {type(error).__name__}: {error}"[:500])


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'math'?"`` or the list of what is known; for error messages."""
    names = sorted(known)
    close = difflib.get_close_matches(name[:100], names, n=3, cutoff=0.6)
    if close:
        return " Did you mean " + " or ".join(repr(match) for match in close) + "?"
    return f" Known: {', '.join(names)}." if names else ""
