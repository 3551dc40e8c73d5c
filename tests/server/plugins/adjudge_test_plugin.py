"""Verifiers that misbehave on purpose, for the tests of the engine."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from adjudge.types import Verdict
from adjudge_verifiers.base import Call, Context, Extraction, NoReference, Options, Verifier
from adjudge_verifiers.registry import register


class ActOptions(Options):
    """``act`` says what the verifier does with the answer."""

    act: str = "score"
    seconds: float = 0.0


@register
class CpuActor(Verifier[None, ActOptions]):
    """Does what its options say, in the cpu lane."""

    name, version, lane = "test_cpu", "1", "cpu"
    Reference, Options = NoReference, ActOptions
    timeout_s = 1.0

    def verify(self, call: Call[None, ActOptions], ctx: Context) -> Verdict:
        act = call.options.act
        if act == "spin":
            until = time.process_time() + call.options.seconds
            while time.process_time() < until:
                pass
        elif act == "hog":
            hoard = [bytearray(64 * 1024 * 1024) for _ in range(1000)]
            return Verdict.scored(float(len(hoard)), "correct")
        elif act == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif act == "raise":
            raise ZeroDivisionError("on purpose")
        elif act == "lie":
            return 1.0  # type: ignore[return-value]
        return Verdict.scored(1.0, "correct", extracted=call.response)


@register
class CpuExtractor(Verifier[str, ActOptions]):
    """Compares the last word, slowly, so that equal answers meet in flight."""

    name, version, lane = "test_extract", "1", "cpu"
    Reference, Options = str, ActOptions

    def extract(self, response: str, options: ActOptions) -> Extraction:
        words = response.split()
        return Extraction("answered", words[-1], "last_word") if words else Extraction("none")

    def verify(self, call: Call[str, ActOptions], ctx: Context) -> Verdict:
        assert call.extraction is not None
        assert call.response == ""
        time.sleep(call.options.seconds)
        right = call.extraction.text == call.reference
        return Verdict.scored(float(right), "correct" if right else "wrong_answer", extracted=call.extraction.text)


@register
class SandboxActor(Verifier[None, ActOptions]):
    """Sleeps in the sandbox lane."""

    name, version, lane = "test_sandbox", "1", "sandbox"
    Reference, Options = NoReference, ActOptions
    timeout_s = 0.5

    async def verify(self, call: Call[None, ActOptions], ctx: Context) -> Verdict:
        await asyncio.sleep(call.options.seconds)
        return Verdict.scored(1.0, "correct")
