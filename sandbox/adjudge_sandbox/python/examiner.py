"""The ``examine`` role: the test code of the data set, in a jail of its own, calls the program and asserts.

Names that the test code uses and does not define are looked up in the program: its functions and classes appear as
proxies, its plain values as copies, standard modules and their functions as the examiner's own. The verdict is this
process's to give, over its own report socket, and the program cannot reach it: the only thing that comes from there is
decoded by :mod:`adjudge_sandbox.values` or stays there behind a handle. Whatever the program hands out as a callable
runs over there; whatever it asks of an object of the test is checked (:class:`ExaminerPeer`): functions can be called
and nothing else, names that begin with an underscore do not exist, and an assertion that fails in a function that the
program called back fails the examination even if the program swallows it.
"""

from __future__ import annotations

import builtins
import collections
import mmap
import os
import socket
import struct
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .. import frames
from ..values import Malformed, NotPlain, TooLarge
from . import influence, proxies, remote_modules, shared_names
from .process import lay_files, module_of_test
from .proxies import NotSupported, Proxy, RemoteIterator
from .rpc import MAX_REQUEST_BYTES, Disconnected, Forged, Peer, is_iterator
from .session import run_session
from .surroundings import SURROUNDING, Surroundings, concern

__all__ = ["STATE", "STATE_BYTES", "examine"]

STATE = struct.Struct("<??Qd")
"""What the runner can see at any time: is it waiting for the program, has the program sent anything that could make the
test slow, how many bytes has it sent, and how many CPU seconds had the examiner used when it last talked to it."""
STATE_BYTES = mmap.PAGESIZE
_MAX_DETAIL = 1500
_MAX_LINE = 300


def examine(report: socket.socket, peer_fd: int, state_fd: int, request_fd: int, results_fd: int) -> NoReturn:
    """Run one examination and report how it went. Ends the process."""
    request = frames.receive_file(request_fd)
    header, (setup_text, test_text, *contents) = request.header, request.blobs
    setup, test = (text.decode("utf-8", "surrogatepass") for text in (setup_text, test_text))
    state = mmap.mmap(state_fd, STATE_BYTES)
    peer = ExaminerPeer(socket.socket(fileno=peer_fd), state, header["max_bytes"], report)
    remote_modules.provide(peer, header["modules"])
    examination = _Examination(peer, setup, test, header["bind"])
    if concern(setup, test):
        peer.surroundings = Surroundings(peer.request)
    files = dict(zip(header["files"], contents, strict=True))
    if header["session"] is not None:
        verdict, detail = examination.session(header["session"], test_text, files, results_fd)
    else:
        lay_files(list(files), list(files.values()), os.getcwd())
        verdict, detail = examination.verdict()
    frames.send(report, {"op": "end", "verdict": verdict, "detail": detail[:_MAX_DETAIL]})
    os._exit(0)


class _Examination:
    def __init__(self, peer: ExaminerPeer, setup: str, test: str, bind: dict[str, str]) -> None:
        self._peer = peer
        self._sources: dict[str, str] = {"<setup>": setup, "<test>": test}
        self._bind = bind

    def verdict(self) -> tuple[str, str]:
        """``passed``, ``failed``, ``raised``, ``memory``, ``missing`` or ``bad_test``, and a sentence."""
        try:
            codes = [compile(text, name, "exec", dont_inherit=True) for name, text in self._sources.items()]
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            return "bad_test", f"the test code does not compile: {type(error).__name__}: {error}"
        module = module_of_test()
        influence.watch_unittest(self._peer.note_failed_case)
        try:
            self._provide(module.__dict__, codes)
        except _MissingFunction as error:
            return "missing", str(error)
        except Exception as error:  # noqa: BLE001 - raised by the program
            return self._remote(error)
        for code in codes:
            try:
                exec(code, module.__dict__)  # noqa: S102 - in the jail
            except SystemExit as stop:
                if stop.code not in (None, 0, False):
                    return "failed", f"the test code exits with status {_safe_str(stop)}"
            except BaseException as error:  # noqa: BLE001 - this is what an examination is for
                return self._classify(error, code.co_filename)
        if self._peer.failed_callback is not None:
            return "failed", self._peer.failed_callback
        if self._peer.failed_case is not None:
            return "failed", self._peer.failed_case
        if not self._peer.consulted:
            return "bad_test", "the test code ends without having asked anything of the program"
        return "passed", ""

    def session(self, name: str, test: bytes, files: dict[str, bytes], results_fd: int) -> tuple[str, str]:
        """Likewise, of a test file, whose tests report for themselves."""
        self._sources[os.path.join(os.getcwd(), "tests", name)] = self._sources["<test>"]

        def classify(error: BaseException) -> tuple[str, str]:
            return self._classify(error, "<test>")

        def complaint() -> str | None:
            found, self._peer.failed_callback = self._peer.failed_callback, None
            return found

        verdict, detail = run_session(name, test, files, results_fd, classify, complaint)
        if verdict == "passed" and not self._peer.consulted:
            return "bad_test", "the test file asks nothing of the program"
        return verdict, detail

    def _provide(self, names: dict[str, Any], codes: list[types.CodeType]) -> None:
        """Put the program's part of what the test code uses into its namespace."""
        wanted = {name for code in codes for name in _names_used(code)} - set(dir(builtins)) - set(names)
        names.update(self._peer.request("globals", sorted(wanted)))
        for name, path in self._bind.items():
            function = self._peer.request("resolve", path)
            if not isinstance(function, Proxy):
                raise _MissingFunction(str(function))
            names[name] = function

    def _classify(self, error: BaseException, file: str) -> tuple[str, str]:
        if self._peer.is_remote(error):
            return self._remote(error)
        if isinstance(error, AssertionError):
            return "failed", self._assertion(error)
        if isinstance(error, NotPlain | TooLarge) and self._peer.influenced:
            return "failed", f"what the program returned cannot be passed on: {error}"
        if isinstance(error, NotSupported | NotPlain | TooLarge):
            return "bad_test", f"the test code does what cannot be done from outside the program: {error}"
        if isinstance(error, NameError) and type(error) is NameError and error.name:
            if error.name in {path.partition("(")[0] for path in self._bind.values()} | self._peer.not_found:
                return "missing", f"The program defines no function {error.name}."
            return "bad_test", f"neither the test code nor the program defines {error.name!r}"
        if isinstance(error, ModuleNotFoundError):
            if error.name in self._peer.not_found:
                return "missing", f"The program has no module {error.name}."
            return "bad_test", f"the test code imports a module that is not here: {error.name}"
        where = f"the {file.strip('<>')} code raised {type(error).__name__}: {_safe_str(error)}"
        blameless = file == "<setup>" and not self._peer.consulted
        return ("bad_test" if blameless else "failed"), f"{where}{self._at(error)}"

    def _remote(self, error: BaseException) -> tuple[str, str]:
        kind = "memory" if isinstance(error, MemoryError) else "raised"
        return kind, self._peer.remote_text(error)

    def _assertion(self, error: AssertionError) -> str:
        message = _safe_str(error)
        return f"{self._line(error) or 'an assertion'}{': ' if message else ''}{message[:_MAX_LINE]}"

    def _at(self, error: BaseException) -> str:
        line = self._line(error)
        return f" in {line}" if line else ""

    def _line(self, error: BaseException) -> str:
        """The innermost line of the test code that the exception passed through."""
        trace, found = error.__traceback__, ""
        while trace is not None:
            source = self._sources.get(trace.tb_frame.f_code.co_filename)
            lines = source.splitlines() if source is not None else []
            if 0 < trace.tb_lineno <= len(lines):
                found = lines[trace.tb_lineno - 1].strip()
            trace = trace.tb_next
        return found[:_MAX_LINE]


class _MissingFunction(Exception):
    """The program lacks a function that is to be examined."""


class ExaminerPeer(Peer):
    """The examiner's side of the conversation: strict."""

    def __init__(self, sock: socket.socket, state: mmap.mmap, max_bytes: int, report: socket.socket) -> None:
        super().__init__(sock, max_receive_bytes=max_bytes, max_send_bytes=MAX_REQUEST_BYTES, trusts_references=False)
        self._state = state
        self._report = report
        self._received_bytes = 0
        self._remote: collections.deque[tuple[BaseException, str]] = collections.deque(maxlen=256)
        self._exception_classes: dict[int, tuple[type[Exception], int]] = {}
        self.made = set()
        self.failed_callback: str | None = None
        self.failed_case: str | None = None
        self.not_found: set[str] = set()
        self.surroundings: Surroundings | None = None
        self.consulted = False
        """Has the test code called the program, or been given a plain value of it?"""
        self.influenced = False
        """Has the program sent anything by which it could make the test slow, or its values impossible to pass on?"""

    def request(self, operation: str, *operands: Any) -> Any:
        self.consulted = self.consulted or operation not in _PREPARATIONS
        around, self.surroundings = self.surroundings, None  # whose own requests have none
        try:
            if around is not None:
                around.before()
            result = super().request(operation, *operands)
        except Disconnected as error:
            self._end_as_lost(error)
        finally:
            if around is not None:
                around.after()
                self.surroundings = around
        if operation == "globals":
            values = [value for value in result.values() if not isinstance(value, _ASKED_LATER)]
            self.consulted = self.consulted or bool(values)
            self._look_at(values)
        elif operation not in _PREPARATIONS:
            self._look_at(result)
        return result

    def _look_at(self, value: Any) -> None:
        if not self.influenced and not influence.is_modest(value):
            self.influenced = True
            self.waiting(False)  # the runner must know before the test code goes on with it

    def note_failed_case(self, what: str) -> None:
        self.failed_case = self.failed_case or what[:_MAX_DETAIL]

    def _end_as_lost(self, why: Disconnected) -> NoReturn:
        """Without the program there is no examination, whatever the test code would make of an exception."""
        forged = isinstance(why, Forged)
        frames.send(self._report, {"op": "lost", "detail": str(why)[:_MAX_DETAIL], "forged": forged})
        os._exit(0)

    def waiting(self, on: bool) -> None:
        STATE.pack_into(self._state, 0, on, self.influenced, self._received_bytes, time.process_time())

    def received(self, size: int) -> None:
        self._received_bytes += size

    def kind_of(self, value: object) -> str:
        if isinstance(value, _HIDDEN):
            raise NotPlain(f"a {type(value).__name__} of the test code cannot be passed to the program")
        if isinstance(value, (type, *_FUNCTIONS)):
            return "function"
        return "iterator" if is_iterator(value) else "object"

    def name_of(self, value: object) -> str | None:
        return shared_names.name_of(value)

    def find(self, name: str) -> Any:
        try:
            return shared_names.find(name)
        except LookupError as error:
            raise Malformed("a name that may not cross") from error

    def proxy(self, number: int, kind: str, name: str) -> Any:
        if kind == "iterator":
            return RemoteIterator(self, number, name)
        if kind == "coroutine":
            return proxies.awaited(Proxy(self, number, name))
        if kind.startswith("exception:"):
            return self._exception_class(number, kind.partition(":")[2], name)
        return proxies.ClassProxy(self, number, name) if kind == "class" else Proxy(self, number, name)

    def number_of_proxy(self, value: object) -> int | None:
        if type(value) in (Proxy, proxies.ClassProxy, RemoteIterator):
            return proxies.peer_and_number(value)[1]
        known = self._exception_classes.get(id(value))
        return known[1] if known is not None else None

    def _exception_class(self, number: int, base_name: str, name: str) -> type[Exception]:
        """A class of this process that stands for an exception class of the program, so that ``except`` can name it."""
        base = proxies.builtin_exception(base_name) or RuntimeError
        mirror: type[Exception] = types.new_class(name if name.isidentifier() else "RemoteError", (base,))
        self._exception_classes[id(mirror)] = (mirror, number)
        return mirror

    def unpack_error(self, packed: Any) -> BaseException:
        """An exception of the program: of the same built-in class, or of a class that stands for its own."""
        shape = (str, object, tuple, str, dict, str)
        if not (type(packed) is tuple and len(packed) == 6 and all(map(isinstance, packed, shape))):
            raise Forged("a malformed exception")
        name, own, args, text, attributes, described = packed
        kind = own if isinstance(own, type) and issubclass(own, Exception) else proxies.builtin_exception(name)
        if kind is not None and issubclass(kind, _SILENT):
            kind = None  # raised in a call, it would end a loop of the test as if that were through
        error: BaseException
        try:
            error = (kind or RuntimeError)(*args)
        except Exception:  # noqa: BLE001 - a class with other arguments
            error = RuntimeError(text)
        for key, value in attributes.items():
            if type(key) is str and not key.startswith("_"):
                _set_quietly(error, key, value)
        self._remote.append((error, described))
        return error

    def is_remote(self, error: BaseException) -> bool:
        """Was this very exception raised by the program?"""
        return any(known is error for known, _ in self._remote)

    def remote_text(self, error: BaseException) -> str:
        return next((text for known, text in self._remote if known is error), _safe_str(error))

    def pack_error(self, error: Exception) -> tuple[Any, ...]:
        """An exception of a function of the test that the program called back."""
        if isinstance(error, AssertionError):
            message = f"an assertion in a function of the test that the program called failed: {_safe_str(error)}"
            self.failed_callback = self.failed_callback or message.removesuffix(": ")
            return ("RuntimeError", (), "")
        name = next((kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), "RuntimeError")
        text = _safe_str(error)
        return (name, (text,), text)

    def perform(self, operation: str, operands: list[Any]) -> Any:
        action = _OPERATIONS.get(operation)
        if action is None or not operands or self.kind_exported(operands[0]) is None:
            raise TypeError("this cannot be done to an object of the test")
        self._look_at(operands[1:])
        try:
            return action(self, *operands)
        except SystemExit:
            self.failed_callback = self.failed_callback or "a function of the test that the program called has exited"
            raise


def _call(peer: ExaminerPeer, target: Any, args: Any, kwargs: Any) -> Any:
    return target(*args, **kwargs)


def _on_object(action: Callable[..., Any]) -> Callable[..., Any]:
    """Only for objects, not for functions and classes, through which the test's namespace could be reached."""

    def checked(peer: ExaminerPeer, target: Any, *operands: Any) -> Any:
        if peer.kind_exported(target) != "object":
            raise TypeError("this cannot be done to a function of the test")
        return action(target, *operands)

    return checked


def _get(target: Any, name: str) -> Any:
    if type(name) is not str or name.startswith("_"):
        raise AttributeError("this name is not for the program")
    return getattr(target, name)


def _set(target: Any, name: str, value: Any) -> None:
    if type(name) is not str or name.startswith("_"):
        raise AttributeError("this name is not for the program")
    setattr(target, name, value)


def _set_item(target: Any, key: Any, value: Any) -> None:
    target[key] = value


_UNARY = {name: proxies.UNARY[name] for name in ("str", "repr", "int", "float", "len", "index", "abs")}

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": _call,
    "next": lambda peer, target, count: peer.next_items(target, min(int(count), 1024)),
    "get": _on_object(_get),
    "set": _on_object(_set),
    "get_item": _on_object(lambda target, key: target[key]),
    "set_item": _on_object(_set_item),
    "iterate": _on_object(iter),
    "unary": _on_object(lambda target, name: _UNARY[name](target)),
}
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_ASKED_LATER = (Proxy, types.ModuleType, type, *_FUNCTIONS)
_PREPARATIONS = ("globals", "resolve", "public_names", "has_module", "set_global", "delete_global", *SURROUNDING)
_SILENT = (StopIteration, StopAsyncIteration)
_HIDDEN = (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, BaseException, mmap.mmap)


def _names_used(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_used(constant)


def _safe_str(error: BaseException) -> str:
    try:
        return str(error)[:_MAX_DETAIL]
    except Exception:  # noqa: BLE001 - the text may need an object of the program
        return "(its text cannot be had)"


def _set_quietly(error: BaseException, name: str, value: Any) -> None:
    try:
        setattr(error, name, value)
    except (AttributeError, TypeError, ValueError):
        return
