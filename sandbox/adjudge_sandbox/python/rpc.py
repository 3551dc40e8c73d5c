"""Calls between a program and its examiner, which do not share a process and do not trust each other.

Both sides are a :class:`Peer` on one socket. A message is a length, a kind and one encoded value::

    u32 length | Q | (operation, operands...)            a request
    u32 length | R | (value, updates)                    its reply
    u32 length | E | (exception, updates)                its reply, if the operation raised

Requests nest: whoever waits for a reply serves the other side's requests meanwhile, so a function that the examiner
passes as an argument can be called back.

Plain data crosses by value (:mod:`adjudge_sandbox.values`). Everything else crosses as a *handle*: a number that its
owner knows; the other side holds a proxy (:mod:`adjudge_sandbox.python.proxies`) that turns what is done to it into
requests.
Lists, dicts, sets, bytearrays and deques in a request are numbered in the order in which they are met; a reply carries
the new content of those that the operation changed, and they are updated in place, so that functions which work in
place can be examined.

What differs between the two sides, namely what may be exported, which operations the other side may ask for, and how
its exceptions are made, is in :mod:`adjudge_sandbox.python.candidate` and :mod:`adjudge_sandbox.python.examiner`.
"""

from __future__ import annotations

import collections
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from ..values import MAX_CONTAINERS, Decoder, Encoder, Malformed, NotPlain, TooLarge

__all__ = ["MAX_REQUEST_BYTES", "Disconnected", "Forged", "Peer", "is_iterator"]

MAX_REQUEST_BYTES = 64 << 20
_LENGTH = struct.Struct(">I")
_CHUNK_S = 0.005


class Disconnected(Exception):
    """The other side is gone, or has sent what is no message."""


class Forged(Disconnected):
    """It has sent what is no message: no driver of ours does that."""


class Peer:
    """One end of a conversation."""

    made: set[int] | None = None
    """Numbers of the other side's objects that this side made by calling a class of theirs, and has not been handed
    since; ``None`` where it makes no difference."""

    def __init__(
        self, sock: socket.socket, *, max_receive_bytes: int, max_send_bytes: int, trusts_references: bool
    ) -> None:
        self._sock = sock
        self._max_receive_bytes = max_receive_bytes
        self._max_send_bytes = max_send_bytes
        self._trusts_references = trusts_references
        self._exports: list[tuple[object, str]] = []
        self._export_ids: dict[int, int] = {}
        self._imports: dict[int, Any] = {}
        self._pending: dict[int, BaseException] = {}
        self._lock = threading.RLock()

    # What the two sides do differently

    def kind_of(self, value: object) -> str:
        """As what an object is exported: ``function``, ``class``, ``iterator``, ``object``... Raises NotPlain."""
        raise NotImplementedError

    def name_of(self, value: object) -> str | None:
        """``module:name`` of an object that both sides have, or ``None``."""
        raise NotImplementedError

    def find(self, name: str) -> Any:
        """The object of that name. Raises :class:`Malformed`."""
        raise NotImplementedError

    def proxy(self, number: int, kind: str, name: str) -> Any:
        """A stand-in for an object of the other side."""
        raise NotImplementedError

    def number_of_proxy(self, value: object) -> int | None:
        """The number of an object of the other side for which ``value`` stands in."""
        raise NotImplementedError

    def perform(self, operation: str, operands: list[Any]) -> Any:
        """Do what the other side asks for."""
        raise NotImplementedError

    def pack_error(self, error: Exception) -> tuple[Any, ...]:
        """An exception of ours as plain data."""
        raise NotImplementedError

    def unpack_error(self, packed: Any) -> BaseException:
        """The exception that stands for one of the other side."""
        raise NotImplementedError

    def too_large(self, error: TooLarge) -> NoReturn:
        """A reply of ours is over the limit."""
        raise Disconnected(str(error)) from error

    def waiting(self, on: bool) -> None:
        """Called when this side starts and ends waiting for the other."""

    # Talking

    def request(self, operation: str, *operands: Any) -> Any:
        """Ask the other side. Raises what its operation raised, :class:`Disconnected`, :class:`NotPlain`."""
        with self._lock:
            sent: list[Any] = []
            references: dict[int, int] | None = {} if not self._trusts_references else None
            encoder = Encoder(
                max_bytes=self._max_send_bytes, hook=self._write_handle, references=references, numbered=sent
            )
            encoder.write((operation, *operands))
            self._send(b"Q", encoder.out)
            while True:
                kind, body = self._receive()
                if kind == b"Q":
                    self._serve(body)
                    continue
                return self._finish(kind, body, sent)

    def serve_forever(self) -> NoReturn:
        """Serve requests until the other side goes away, which raises :class:`Disconnected`."""
        while True:
            kind, body = self._receive()
            if kind != b"Q":
                raise Forged("a reply that nobody asked for")
            self._serve(body)

    def _finish(self, kind: bytes, body: bytes, sent: list[Any]) -> Any:
        decoder = self._decoder(body, references=sent)
        result = self._decode(decoder)
        if not (type(result) is tuple and len(result) == 2 and type(result[1]) is list):
            raise Forged("a malformed reply")
        value, updates = result
        self._apply(updates, sent)
        if kind == b"E":
            raise self.unpack_error(value)
        return value

    def _serve(self, body: bytes) -> None:
        received: list[Any] = []
        decoder = self._decoder(body, references=received if self._trusts_references else None, numbered=received)
        request = self._decode(decoder)
        if not (type(request) is tuple and request and type(request[0]) is str):
            raise Forged("a malformed request")
        references = {id(container): number for number, container in enumerate(received)}
        encoder = Encoder(max_bytes=self._max_send_bytes, hook=self._write_handle, references=references)
        before = [encoder.content(container) for container in received]
        try:
            value, kind = self.perform(request[0], list(request[1:])), b"R"
        except Exception as error:  # noqa: BLE001 - it belongs to the other side
            value, kind = self.pack_error(error), b"E"
        self._reply(kind, value, encoder, received, before)

    def _reply(self, kind: bytes, value: Any, encoder: Encoder, received: list[Any], before: list[bytes]) -> None:
        try:
            updates = []
            for number, container in enumerate(received):
                content = encoder.content(container)
                if content != before[number]:
                    updates.append((number, content))
            encoder.out.clear()
            encoder.write((value, updates))
        except TooLarge as error:
            self.too_large(error)
        except (NotPlain, RecursionError) as error:
            kind = b"E"
            encoder.out.clear()
            encoder.write((self.pack_error(error), []))
        self._send(kind, encoder.out)

    def _apply(self, updates: list[Any], sent: list[Any]) -> None:
        for update in updates:
            if not (type(update) is tuple and len(update) == 2 and type(update[0]) is int and type(update[1]) is bytes):
                raise Forged("a malformed update")
            number, content = update
            if not 0 <= number < len(sent):
                raise Forged("an update of nothing")
            new = self._decode(self._decoder(content, references=sent))
            if not _replace(sent[number], new):
                raise Forged("an update of another type")

    def _decoder(self, body: bytes, **how: Any) -> Decoder:
        room = None if self._trusts_references else MAX_CONTAINERS
        return Decoder(body, handle=self._read_handle, max_containers=room, **how)

    def _decode(self, decoder: Decoder) -> Any:
        try:
            value = decoder.read()
            decoder.end()
        except (Malformed, RecursionError) as error:
            raise Forged(f"malformed data: {error}") from error
        return value

    def _send(self, kind: bytes, body: bytes | bytearray) -> None:
        try:
            self._sock.sendall(_LENGTH.pack(len(body)) + kind + body)
        except OSError as error:
            raise Disconnected(str(error)) from error

    def _receive(self) -> tuple[bytes, bytes]:
        self.waiting(True)
        prefix = self._receive_exactly(_LENGTH.size + 1)
        length, kind = _LENGTH.unpack_from(prefix)[0], prefix[_LENGTH.size :]
        if length > self._max_receive_bytes or kind not in (b"Q", b"R", b"E"):
            raise Forged("a message that is none, or too large")
        body = self._receive_exactly(length)
        self.received(length)
        self.waiting(False)
        return kind, body

    def received(self, size: int) -> None:
        """Called for each message with its length."""

    def _receive_exactly(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self._sock.recv(min(size, 1 << 20))
            except OSError as error:
                raise Disconnected(str(error)) from error
            if not part:
                raise Disconnected("the other side has ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    # Handles: h (ours: number, kind, name), H (theirs: number), n (both have it: name)

    def _write_handle(self, encoder: Encoder, value: object, depth: int) -> bool:
        number = self.number_of_proxy(value)
        if number is not None:
            encoder.count(b"H", number)
            return True
        name = self.name_of(value)
        if name is not None:
            encoder.tagged(b"n", name.encode())
            return True
        return self.write_own(encoder, value)

    def write_own(self, encoder: Encoder, value: object) -> bool:
        """Write a handle of an object of ours; false if it is none that has a kind."""
        number = self._export_ids.get(id(value))
        if number is None:
            kind = self.kind_of(value)
            if kind == "":
                return False
            number = len(self._exports)
            self._exports.append((value, kind))
            self._export_ids[id(value)] = number
        kind = self._exports[number][1]
        encoder.count(b"h", number)
        encoder.tagged(b"", kind.encode())
        encoder.tagged(b"", type.__dict__["__name__"].__get__(_class_of(value)).encode("utf-8", "replace")[:200])
        return True

    def _read_handle(self, decoder: Decoder, tag: int) -> Any:
        if tag == 0x48:  # H
            return self.exported(decoder.number())[0]
        if tag == 0x6E:  # n
            return self.find(decoder.payload().decode("utf-8", "replace"))
        if tag != 0x68:  # h
            raise Malformed(f"unknown tag {tag}")
        number, kind, name = decoder.number(), decoder.payload().decode("utf-8", "replace"), decoder.payload()
        if self.made:
            self.made.discard(number)  # handed out again, it is what a function returned
        if number not in self._imports:
            self._imports[number] = self.proxy(number, kind, name.decode("utf-8", "replace"))
        return self._imports[number]

    def exported(self, number: int) -> tuple[Any, str]:
        """An object of ours by its number, with its kind. Raises :class:`Malformed`."""
        if not 0 <= number < len(self._exports):
            raise Malformed("a handle of nothing")
        return self._exports[number]

    def kind_exported(self, value: object) -> str | None:
        """As what this object has been exported; ``None`` if it has not."""
        number = self._export_ids.get(id(value))
        return None if number is None else self._exports[number][1]

    def next_items(self, iterator: Any, count: int) -> tuple[list[Any], bool]:
        """Up to ``count`` items of an iterator of ours, and is it exhausted? Stops early when items take long."""
        key = id(iterator)
        if key in self._pending:
            raise self._pending.pop(key)
        items: list[Any] = []
        until = time.monotonic() + _CHUNK_S
        while len(items) < count and (not items or time.monotonic() < until):
            try:
                items.append(next(iterator))
            except StopIteration:
                return items, True
            except Exception as error:
                if not items:
                    raise
                self._pending[key] = error  # the items before it come first
                break
        return items, False


def is_iterator(value: object) -> bool:
    """An iterator of the standard library's own making."""
    kind = type(value)
    return hasattr(kind, "__next__") and hasattr(kind, "__iter__") and kind.__module__ in ("builtins", "itertools")


def _class_of(value: object) -> type:
    return value if isinstance(value, type) else type(value)


def _replace(container: Any, new: Any) -> bool:
    """Give a container the content of another one of its kind. Is it of its kind?"""
    rules: tuple[tuple[type, Callable[[], None]], ...] = (
        (list, lambda: list.__setitem__(container, slice(None), new)),
        (bytearray, lambda: bytearray.__setitem__(container, slice(None), new)),
        (dict, lambda: (container.clear(), container.update(new))[1]),
        (set, lambda: (set.clear(container), set.update(container, new))[1]),
        (collections.deque, lambda: (container.clear(), container.extend(new))[1]),
    )
    for kind, apply in rules:
        if isinstance(container, kind):
            if not isinstance(new, kind):
                return False
            apply()
            return True
    return False
