"""From tasks to verdicts: plans, cache, lanes. :class:`Engine` is all that the rest of the server needs."""

from .core import Engine
from .job import Submission

__all__ = ["Engine", "Submission"]
