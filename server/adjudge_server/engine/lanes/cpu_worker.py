"""The child's side of the ``cpu`` lane: judge what comes in, one call after the other.

It speaks JSON frames with its parent, checks nothing twice (the parent has), and has no clock: the parent watches its
CPU time and kills it. Its own memory limit turns a greedy call into a ``MemoryError``, after which it asks to be
replaced, since nobody knows what a library leaves behind after that.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import time
from typing import Any

from pydantic_core import from_json, to_json

from adjudge.types import Verdict
from adjudge_verifiers import registry
from adjudge_verifiers.base import Call, Extraction, NoReference
from adjudge_verifiers.errors import boundary

from ...wire import verdict_json
from ..run import judge

__all__ = ["decode_call", "encode_call", "main", "warm"]

_MIB = 1024 * 1024
_REHEARSAL_S = 1.5
_FAT_MIB = 512
"""A worker whose own memory has grown by this much is replaced between two calls."""


def encode_call(verifier: str, call: Call[Any, Any], reference: Any, options: dict[str, Any]) -> bytes:
    """The frame (length, JSON) that carries a call to a worker."""
    extraction = call.extraction
    body = to_json(
        {
            "verifier": verifier,
            "response": call.response,
            "reference": reference,
            "options": options,
            "prompt": call.prompt,
            "metadata": call.metadata,
            "extraction": extraction
            and [extraction.outcome, extraction.text, extraction.method, list(extraction.candidates)],
        }
    )
    return struct.pack(">I", len(body)) + body


def decode_call(body: bytes) -> tuple[Any, Call[Any, Any]]:
    """The verifier and the call of a frame's body."""
    message = from_json(body)
    verifier = registry.get(message["verifier"])
    extraction = message["extraction"]
    options = verifier.Options.model_validate(message["options"])
    response = message["response"]
    if extraction is not None:
        extraction = Extraction(extraction[0], extraction[1], extraction[2], tuple(extraction[3]))
    elif verifier.has_extract():  # the response was too long for the API process to look for the answer
        extraction, response = verifier.extract(response, options), ""
    reference = message["reference"]
    return verifier, Call(
        response=response,
        reference=None
        if verifier.Reference is NoReference
        else verifier.reference_adapter().validate_python(reference),
        options=options,
        prompt=message["prompt"],
        extraction=extraction,
        metadata=message["metadata"],
    )


def warm(config: dict[str, Any]) -> None:
    """In the nursery: import what the verifiers of this lane need, and rehearse.

    Libraries build tables at their first use. Built here, once, they are shared by all workers; built in a worker they
    would make its first honest call look like a bomb.
    """
    registry.load()
    started = time.process_time()
    for name in registry.names():
        verifier = registry.get(name)
        for example in verifier.examples if verifier.lane == "cpu" else ():
            if time.process_time() - started > _REHEARSAL_S:
                return
            call = encode_call(name, Call(example.response, None, None), example.reference, example.options)
            _judge(call[4:])


def main(sock: socket.socket, config: dict[str, Any]) -> None:
    """In the child: serve until the parent hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit = config["memory_mib"] * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    start_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while True:
        (size,) = struct.unpack(">I", _receive(sock, 4))
        verdict = _judge(_receive(sock, size))
        grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start_kib) / 1024
        spent = "ran out of memory" in verdict.reason or grown_mib > _FAT_MIB
        body = (b"1" if spent else b"0") + verdict_json(verdict)
        sock.sendall(struct.pack(">I", len(body)) + body)
        if spent:
            os._exit(0)


def _judge(body: bytes) -> Verdict:
    with boundary("Reading the call") as outcome:
        verifier, call = decode_call(body)
        return judge(verifier, call)
    assert outcome.failure is not None
    return outcome.failure


def _receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
