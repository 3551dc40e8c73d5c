"""Verdicts on the wire."""

from __future__ import annotations

import json

from adjudge.types import Verdict
from adjudge_server.wire import verdict_json


def test_text_that_utf8_cannot_hold() -> None:
    verdict = Verdict.scored(
        0.0, "wrong_answer", "got \ud800", extracted="\udfff", evidence={"\ud801": [float("nan"), {1}]}
    )
    found = json.loads(verdict_json(verdict))
    assert (found["status"], found["reward"], found["extracted"]) == ("ok", 0.0, "?")
    assert found["evidence"]["?"][0] is None


def test_nothing_changes_otherwise() -> None:
    verdict = Verdict.scored(1.0, "correct", "é\x00", evidence={"x": [1, 2.5, None]})
    assert Verdict.model_validate_json(verdict_json(verdict)) == verdict
