"""Rows of data sets, as trainers ship them, to tasks. See :mod:`.detect`."""

from .base import RowError, RowTask
from .detect import known_formats, to_task
from .routing import RowRoute, load_routes

__all__ = ["RowError", "RowRoute", "RowTask", "known_formats", "load_routes", "to_task"]
