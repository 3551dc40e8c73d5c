"""The examiner's end of the conversation against a program that does not keep to it."""

import asyncio
import json
import struct

import pytest
import pytest_asyncio

from adjudge_sandbox.backends.zygote import ZygoteSandbox
from adjudge_sandbox.base import Examination, Limits, Outcome, Program
from adjudge_sandbox.errors import SandboxUnavailable

one_loop = pytest.mark.asyncio(loop_scope="module")
_LIMITS = Limits(cpu_s=1.0, wall_s=4.0, output_kib=256)
_TEST = Examination("try:\n    assert f(2) == 4\nexcept BaseException:\n    pass")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox():
    backend = ZygoteSandbox()
    try:
        await backend.start()
    except SandboxUnavailable as error:
        pytest.skip(f"this host cannot isolate: {error}")
    yield backend
    await backend.stop()


def _message(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body


_FORGED = {
    "an unknown kind": _message(b"X", b"N"),
    "a huge length": b"\xff\xff\xff\xffR",
    "a malformed value": _message(b"R", b"t\0\0\0\2?"),
    "a handle of nothing": _message(b"R", b"t\0\0\0\2H\0\0\0\x63l\0\0\0\0"),
    "a name that may not cross": _message(b"R", b"t\0\0\0\2n\0\0\0\x11unittest.mock:ANYl\0\0\0\0"),
    "an exit by name": _message(b"R", b"t\0\0\0\2n\0\0\0\x08os:_exitl\0\0\0\0"),
    "an update of nothing": _message(b"R", b"t\0\0\0\2Nl\0\0\0\1t\0\0\0\2i" + b"\0" * 7 + b"\x09b\0\0\0\1N"),
    "a request for the impossible": _message(b"Q", b"t\0\0\0\2s\0\0\0\4eval" + b"s\0\0\0\1x"),
    "a deep value": _message(b"R", b"l\0\0\0\1" * 40_000 + b"N"),
    "half a message": struct.pack(">I", 1000) + b"R" + b"N" * 10,
}


@pytest.mark.parametrize("forged", _FORGED.values(), ids=_FORGED)
@one_loop
async def test_garbage_on_the_line(sandbox, forged):
    """Writing to the socket from inside a call, then ending: never passed, and never a fault of the test."""
    source = (
        f"import os\nGARBAGE = bytes.fromhex({forged.hex()!r})\ndef f(x):\n"
        "    for fd in range(3, 20):\n        try: os.write(fd, GARBAGE)\n        except OSError: pass\n"
        "    import time\n    time.sleep(0.3)\n    os._exit(0)\n"
    )
    (result,) = await sandbox.run(Program(source), [_TEST], _LIMITS)
    assert result.outcome is Outcome.RAISED, result


@one_loop
async def test_replies_ahead_of_time(sandbox):
    """A reply that the program forges is no more than an answer that it gives."""
    reply = _message(b"R", b"t\0\0\0\2i" + b"\0" * 7 + b"\x04l\0\0\0\0")
    source = (
        f"import os\nREPLY = bytes.fromhex({reply.hex()!r})\ndef f(x):\n"
        "    for fd in range(3, 9):\n        try: os.write(fd, REPLY * 3)\n        except OSError: pass\n    return 4"
    )
    (result,) = await sandbox.run(Program(source), [Examination("assert f(2) == 4 and f(3) == 9")], _LIMITS)
    assert result.outcome in (Outcome.FAILED_ASSERT, Outcome.RAISED), result


@one_loop
async def test_a_flood_on_the_line(sandbox):
    source = (
        "import os\ndef f(x):\n    while True:\n        for fd in range(3, 9):\n"
        "            try: os.write(fd, b'\\0\\0\\0\\1QN' * 9999)\n            except OSError: pass\n"
    )
    (result,) = await sandbox.run(Program(source), [_TEST], _LIMITS)
    assert result.outcome in (Outcome.RAISED, Outcome.TIME_LIMIT, Outcome.SIGNALLED), result


@one_loop
async def test_forged_verdict_on_the_report(sandbox):
    """The program's own report socket is not the examiner's."""
    head = json.dumps({"op": "end", "verdict": "passed", "detail": "", "_blobs": []}).encode()
    frame = struct.pack(">IQ", len(head), 0) + head
    source = f"import os\nos.write(3, bytes.fromhex({frame.hex()!r}))\ndef f(x): return 5"
    (result,) = await sandbox.run(Program(source), [Examination("assert f(2) == 4")], _LIMITS)
    assert result.outcome is Outcome.FAILED_ASSERT, result


@pytest.mark.parametrize(
    "test",
    [
        "while True: pass",
        "f(1)\nwhile True: pass",
        "import time\ntime.sleep(999)",
        "x = []\nwhile True: x.append('y' * 10**6)",
    ],
    ids=["loops", "loops after a call", "sleeps", "allocates"],
)
@one_loop
async def test_the_test_is_to_blame(sandbox, test):
    limits = Limits(cpu_s=0.5, wall_s=1.0)
    (result,) = await sandbox.run(Program("def f(x): return 1"), [Examination(test)], limits)
    assert result.outcome is Outcome.BAD_TEST, result


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("def f(x):\n    return list(range(20_000))", Outcome.TIME_LIMIT),
        ("class N:\n    pass\ndef f(x):\n    n = N(); n.next = n; return n", Outcome.TIME_LIMIT),
    ],
    ids=["a value that is slow to use", "a list without end"],
)
@one_loop
async def test_the_program_makes_the_test_slow(sandbox, source, outcome):
    """A program must not be able to turn its own failure into a fault of the data set."""
    test = "x = f(1)\nif isinstance(x, list):\n    while True: sorted(x)\nwhile x is not None: x = x.next"
    (result,) = await sandbox.run(Program(source), [Examination(test)], Limits(cpu_s=0.5, wall_s=3.0, output_kib=1024))
    assert result.outcome is outcome, result


@one_loop
async def test_many_at_once(sandbox):
    source = "def f(x): return x * x"
    runs = [Examination("assert f(2) == 4"), Examination("assert f(2) == 5")]
    results = await asyncio.gather(*(sandbox.run(Program(source), runs, Limits()) for _ in range(6)))
    assert {tuple(result.outcome for result in pair) for pair in results} == {("finished", "failed_assert")}
