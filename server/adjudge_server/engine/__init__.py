"""From tasks to verdicts: plans, cache, lanes. :class:`Engine` is all that the rest of the server needs."""

from .core import Engine
from .execution import NotExecuted
from .job import Submission

__all__ = ["Engine", "NotExecuted", "Submission"]
