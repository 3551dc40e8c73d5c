"""The ``call`` role: load the program as a module, call one function, send its value as plain data."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from .. import frames, values
from .honesty import equals_everything
from .process import Loaded, flush, module_of

__all__ = ["Missing", "call", "describe", "resolve"]

_METHOD = re.compile(r"(\w+)\(\)\.(\w+)")
_MAX_DETAIL = 1500


class Missing(Exception):
    """The program has no function of the asked name."""


def call(report: socket.socket, loaded: Loaded, request_fd: int) -> NoReturn:
    """Serve the one request that lies in ``request_fd`` and end the process."""
    request = frames.receive_file(request_fd)
    # before the program can replace them
    _send, _exit, _encode, _flush, _claims = frames.send, os._exit, values.encode, flush, equals_everything
    args, kwargs = values.decode(request.blobs[0])
    header: dict[str, Any]
    blobs: list[bytes] = []
    try:
        module = module_of(loaded, "solution")
        exec(loaded.code, module.__dict__)  # noqa: S102 - in the jail
        function = resolve(module.__dict__, request.header["function"])
        value = function(*args, **kwargs)
        blobs = [_encode(value, max_bytes=request.header["max_bytes"])]
        header = {"op": "value", "always_equal": _claims(value)}
    except Missing as error:
        header = {"op": "missing", "detail": str(error)}
    except values.NotPlain as error:
        header = {"op": "bad_value", "detail": str(error)[:_MAX_DETAIL]}
    except values.TooLarge as error:
        header = {"op": "large_value", "detail": str(error)[:_MAX_DETAIL]}
    except BaseException as error:  # noqa: BLE001 - whatever the program raises ends the call
        header = {"op": "raised", "detail": describe(error), "memory": isinstance(error, MemoryError)}
        header["exit"] = isinstance(error, SystemExit)
    _flush()
    _send(report, header, blobs)
    _exit(0)


def resolve(names: dict[str, Any], path: str) -> Callable[..., Any]:
    """``function`` or ``Class().method``. Raises :class:`Missing`."""
    match = _METHOD.fullmatch(path)
    if match is None:
        target = names.get(path) if "." not in path else _attribute(names, path)
        what = f"function {path}"
    else:
        owner = names.get(match[1])
        if owner is None:
            raise Missing(f"The program defines no class {match[1]}.")
        target = getattr(owner(), match[2], None)
        what = f"method {match[2]} of class {match[1]}"
    if target is None or not callable(target):
        raise Missing(f"The program defines no {what}.")
    found: Callable[..., Any] = target
    return found


def _attribute(names: dict[str, Any], path: str) -> Any:
    first, *rest = path.split(".")
    target = names.get(first)
    for name in rest:
        target = getattr(target, name, None)
    return target


def describe(error: BaseException) -> str:
    """``ValueError: bad digit (line 3)``, whatever the exception's own methods do."""
    try:
        message = str(error)[:_MAX_DETAIL]
    except BaseException:  # noqa: BLE001 - a hostile __str__
        message = "(its text cannot be had)"
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith("/solution.py"):
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" (line {line})" if line is not None else ""
    return f"{type(error).__name__}{': ' if message else ''}{message}{where}"
