"""Frames: how the processes of the sandbox talk over stream sockets.

A frame is a small JSON header and any number of byte strings behind it::

    u32 length of the header | u64 length of all byte strings | header | byte strings

The header's ``"_blobs"`` lists the length of each byte string. JSON and bytes only: nothing that arrives is ever
unpickled or evaluated, and a reader says how much it is ready to take before it reads.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Frame",
    "FrameError",
    "from_bytes",
    "pack",
    "receive",
    "receive_async",
    "receive_file",
    "send",
    "send_async",
]

_PREFIX = struct.Struct(">IQ")
_MAX_HEADER = 4 << 20
_CHUNK = 1 << 20
NO_LIMIT = 1 << 62


class FrameError(ValueError):
    """What arrived is not a frame, or it is larger than the reader takes."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A header and its byte strings."""

    header: dict[str, Any]
    blobs: list[bytes] = field(default_factory=list)


def pack(header: dict[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """The bytes of one frame."""
    head = json.dumps({**header, "_blobs": [len(blob) for blob in blobs]}).encode()
    return b"".join((_PREFIX.pack(len(head), sum(map(len, blobs))), head, *blobs))


def parse_prefix(prefix: bytes, max_bytes: int) -> tuple[int, int]:
    """Lengths of the header and of the byte strings. Raises :class:`FrameError` above ``max_bytes``."""
    head, body = _PREFIX.unpack(prefix)
    if head > _MAX_HEADER or body > max_bytes:
        raise FrameError(f"a frame of {head + body} bytes is too large")
    return head, body


def unpack(head: bytes, body: bytes) -> Frame:
    """A frame from its two parts. Raises :class:`FrameError`."""
    try:
        header = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise FrameError("the header of a frame is not JSON") from error
    lengths = header.pop("_blobs", None) if isinstance(header, dict) else None
    if (
        not isinstance(lengths, list)
        or not all(type(n) is int and n >= 0 for n in lengths)
        or sum(lengths) != len(body)
    ):
        raise FrameError("the lengths in a frame do not add up")
    blobs, at = [], 0
    for length in lengths:
        blobs.append(body[at : at + length])
        at += length
    return Frame(header, blobs)


def send(sock: socket.socket, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
    """Send one frame on a blocking socket."""
    sock.sendall(pack(header, blobs))


def receive(sock: socket.socket, max_bytes: int = NO_LIMIT) -> Frame:
    """Receive one frame from a blocking socket. Raises :class:`EOFError` at its end, :class:`FrameError`."""
    head, body = parse_prefix(_receive_exactly(sock, _PREFIX.size), max_bytes)
    return unpack(_receive_exactly(sock, head), _receive_exactly(sock, body))


def receive_file(fd: int) -> Frame:
    """The frame in an anonymous file, which is closed."""
    content = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    return from_bytes(content)


def from_bytes(content: bytes) -> Frame:
    """The one frame that ``content`` is."""
    head, _ = parse_prefix(content[: _PREFIX.size], NO_LIMIT)
    return unpack(content[_PREFIX.size : _PREFIX.size + head], content[_PREFIX.size + head :])


def _receive_exactly(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = sock.recv(min(size, _CHUNK))
        if not part:
            raise EOFError("the other side is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


async def send_async(sock: socket.socket, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
    """Send one frame on a non-blocking socket."""
    import asyncio  # not in every process that uses frames: it is large

    await asyncio.get_running_loop().sock_sendall(sock, pack(header, blobs))


async def receive_async(sock: socket.socket, max_bytes: int = NO_LIMIT) -> Frame:
    """Receive one frame from a non-blocking socket. Raises :class:`EOFError` at its end, :class:`FrameError`."""
    head, body = parse_prefix(await _receive_exactly_async(sock, _PREFIX.size), max_bytes)
    return unpack(await _receive_exactly_async(sock, head), await _receive_exactly_async(sock, body))


async def _receive_exactly_async(sock: socket.socket, size: int) -> bytes:
    import asyncio

    loop, parts = asyncio.get_running_loop(), []
    while size:
        part = await loop.sock_recv(sock, min(size, _CHUNK))
        if not part:
            raise EOFError("the other side is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
