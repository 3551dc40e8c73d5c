"""The ``serve`` role: the program, loaded as a module, answers the calls of an examiner.

It hides nothing and is told nothing: the examiner's test text never comes here, only single calls with their arguments.
Every object that is not plain data may be handed out, and every operation may be asked for, because this process holds
nothing but the answer.

An exception that is an ``Exception`` travels to the examiner. ``SystemExit``, ``KeyboardInterrupt`` and their like end
the process, and with it the examination.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import socket
import types
from collections.abc import Callable
from typing import Any, NoReturn

from .. import frames
from ..values import Encoder, Malformed, NotPlain, TooLarge
from . import proxies, shared_names
from .call import Missing, describe, resolve
from .honesty import equals_everything
from .process import Loaded, allow_for_our_frames, flush, module_of
from .proxies import BINARY, UNARY, Proxy
from .rpc import Disconnected, Peer, is_iterator
from .surroundings import Captured

__all__ = ["serve"]

_MAX_TEXT = 1500
_MAX_PLAIN_BYTES = 1 << 16


def serve(report: socket.socket, loaded: Loaded, peer_fd: int, max_bytes: int) -> NoReturn:
    """Load the program, then serve the examiner until it goes away. Ends the process."""
    module = module_of(loaded, "solution")
    peer = CandidatePeer(socket.socket(fileno=peer_fd), module, max_bytes, report)
    exit_, send, detail = os._exit, frames.send, describe
    status = 1
    try:
        allow_for_our_frames()
        exec(loaded.code, module.__dict__)  # noqa: S102 - in the jail
        send(report, {"op": "loaded"})
        peer.serve_forever()
    except Disconnected:
        status = 0
    except _TooMuch as error:
        send(report, {"op": "large_value", "detail": str(error)})
    except BaseException as error:  # noqa: BLE001 - whatever the program raises ends the examination
        header = {"op": "raised", "detail": detail(error), "memory": isinstance(error, MemoryError)}
        header["exit"] = isinstance(error, SystemExit)
        send(report, header)
    flush()
    exit_(status)


class CandidatePeer(Peer):
    """The program's side of the conversation."""

    def __init__(self, sock: socket.socket, module: types.ModuleType, max_bytes: int, report: socket.socket) -> None:
        super().__init__(sock, max_receive_bytes=1 << 30, max_send_bytes=max_bytes, trusts_references=True)
        self._module = module
        self.captured = Captured()
        self._report: socket.socket | None = report

    def kind_of(self, value: object) -> str:
        kind = type(value)
        if isinstance(value, type):
            return f"exception:{_builtin_base(value)}" if issubclass(value, Exception) else "class"
        if inspect.iscoroutine(value):
            return "coroutine"
        if is_iterator(value):
            return "iterator"
        if kind.__module__.partition(".")[0] == "numpy" or kind in _VIEWS:
            return ""
        return "object"

    def name_of(self, value: object) -> str | None:
        return shared_names.name_of(value)

    def find(self, name: str) -> Any:
        try:
            return shared_names.find(name)
        except LookupError as error:
            raise Malformed(str(error)) from error

    def proxy(self, number: int, kind: str, name: str) -> Any:
        if kind == "iterator":
            return proxies.RemoteIterator(self, number, name)
        if kind == "function":
            return _function_of(Proxy(self, number, name))
        return Proxy(self, number, name)

    def number_of_proxy(self, value: object) -> int | None:
        value = getattr(value, "_adjudge_target", value) if type(value) is types.FunctionType else value
        if type(value) in (Proxy, proxies.RemoteIterator):
            return proxies.peer_and_number(value)[1]
        return None

    def pack_error(self, error: Exception) -> tuple[Any, ...]:
        kind = type(error)
        name = _builtin_base(kind)
        own = None if kind.__module__ == "builtins" or kind in _OURS else kind
        attributes = {key: value for key, value in vars(error).items() if not key.startswith("_") and _is_plain(value)}
        args = error.args if _is_plain(error.args) else (_text(error),)
        return (name, own, args, _text(error), attributes, describe(error))

    def unpack_error(self, packed: Any) -> BaseException:
        """An exception of a function of the test, called back."""
        name, args, text = packed
        kind: type[Exception] = proxies.builtin_exception(name) or RuntimeError
        try:
            return kind(*args)
        except Exception:  # noqa: BLE001 - a class with other arguments
            return RuntimeError(text)

    def too_large(self, error: TooLarge) -> NoReturn:
        raise _TooMuch(str(error))

    def perform(self, operation: str, operands: list[Any]) -> Any:
        try:
            value = _OPERATIONS[operation](self, *operands)
            if operation == "call" and self._report is not None and equals_everything(value):
                frames.send(self._report, {"op": "always_equal"})
                self._report = None  # once is enough
            return value
        finally:
            flush()

    # Operations that need this side's state

    def resolve(self, path: str) -> Any:
        """A function under test, always as a handle; or a sentence that says what is missing."""
        try:
            return _ByHandle(resolve(self._module.__dict__, path))
        except Missing as error:
            return str(error)

    def globals_of(self, names: list[str], where: str = "") -> dict[str, Any]:
        """Those of these names that a module of the program defines and that can cross."""
        found, defined = {}, self._names(where)
        for name in names:
            if name in defined:
                value = _as_global(name, defined[name])
                try:
                    Encoder(max_bytes=self._max_send_bytes, hook=self._write_handle).write(value)
                except (NotPlain, TooLarge, RecursionError):
                    continue
                found[name] = value
        return found

    def public_names(self, where: str = "") -> list[str]:
        defined = self._names(where)
        listed = defined.get("__all__")
        names = listed if isinstance(listed, list | tuple) else defined
        return [str(name) for name in names if not str(name).startswith("_")]

    def _names(self, where: str) -> dict[str, Any]:
        """What a module defines: the main one, or one of the program's other files."""
        return self._module.__dict__ if not where else importlib.import_module(where).__dict__

    def has_module(self, name: str) -> bool:
        """Is there such a module, or a folder of that name with modules in it, among the program's own files?"""
        path = os.path.join(os.path.dirname(self._module.__file__ or ""), *name.split("."))
        return os.path.isfile(f"{path}.py") or os.path.isdir(path)

    def set_global(self, name: str, value: Any, where: str = "") -> None:
        self._names(where)[name] = value

    def delete_global(self, name: str, where: str = "") -> None:
        self._names(where).pop(name, None)

    def _write_handle(self, encoder: Encoder, value: object, depth: int) -> bool:
        if type(value) is _ByHandle:
            return self.write_own(encoder, value.value)
        return super()._write_handle(encoder, value, depth)


class _ByHandle:
    """Marks an object that crosses as a handle even where the other side has its like."""

    def __init__(self, value: object) -> None:
        self.value = value


class _TooMuch(BaseException):
    """A reply is over the limit. Ends the process: no ``except`` of the test code shall meet it."""


def _as_global(name: str, value: Any) -> Any:
    """A module, or a function under its own name, may be the examiner's own; under another name it is the program's."""
    shared = shared_names.name_of(value)
    if shared is None or shared.endswith(":") or shared.rpartition(":")[2] == name:
        return value
    return _ByHandle(value)


def _function_of(proxy: Proxy) -> Callable[..., Any]:
    """A real function, because programs look at functions (``callable``, ``functools.wraps``, ``inspect``)."""

    def callback(*args: Any, **kwargs: Any) -> Any:
        return proxy(*args, **kwargs)

    callback._adjudge_target = proxy  # type: ignore[attr-defined]
    return callback


def _builtin_base(kind: type) -> str:
    """The nearest built-in exception class that may cross."""
    return next(
        (base.__name__ for base in kind.__mro__ if proxies.builtin_exception(base.__name__) is base), "RuntimeError"
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_MAX_TEXT]
    except Exception:  # noqa: BLE001 - a hostile __str__
        return "(its text cannot be had)"


def _is_plain(value: object) -> bool:
    try:
        Encoder(max_bytes=_MAX_PLAIN_BYTES).write(value)
    except (NotPlain, TooLarge, RecursionError):
        return False
    return True


def _binary(peer: CandidatePeer, left: Any, name: str, right: Any) -> Any:
    return BINARY[name](left, right)


def _call(peer: CandidatePeer, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return target(*args, **kwargs)


def _call_method(peer: CandidatePeer, target: Any, name: str, args: tuple[Any, ...]) -> Any:
    return getattr(type(target), name)(target, *args)


def _set_item(peer: CandidatePeer, target: Any, key: Any, value: Any) -> None:
    target[key] = value


def _delete_item(peer: CandidatePeer, target: Any, key: Any) -> None:
    del target[key]


_OURS = (Disconnected, Malformed, NotPlain, TooLarge)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": _call,
    "call_method": _call_method,
    "get": lambda peer, target, name: getattr(target, name),
    "set": lambda peer, target, name, value: setattr(target, name, value),
    "delete": lambda peer, target, name: delattr(target, name),
    "get_item": lambda peer, target, key: target[key],
    "set_item": _set_item,
    "delete_item": _delete_item,
    "iterate": lambda peer, target: iter(target),
    "next": lambda peer, target, count: peer.next_items(target, count),
    "unary": lambda peer, target, name: UNARY[name](target),
    "binary": _binary,
    "is_instance": lambda peer, value, kind: isinstance(value, kind),
    "names_of": lambda peer, target: [str(name) for name in dir(target)],
    "await": lambda peer, target: asyncio.run(target),
    "resolve": CandidatePeer.resolve,
    "globals": CandidatePeer.globals_of,
    "public_names": CandidatePeer.public_names,
    "has_module": CandidatePeer.has_module,
    "set_global": CandidatePeer.set_global,
    "delete_global": CandidatePeer.delete_global,
    "capture": lambda peer: peer.captured.capture(),
    "printed": lambda peer: peer.captured.printed(),
    "patch": lambda peer, name, value: peer.captured.patch(name, value),
    "feed": lambda peer, text: peer.captured.feed(text),
}
