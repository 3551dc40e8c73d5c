"""What can go over the wire, and what becomes an ``invalid_task`` verdict before it is sent."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Message, Task, Verdict
from adjudge._batches import Envelope, Lines, batches_of
from adjudge._encode import encode_object, encode_task


class Array:
    """Stands for numpy and torch values, which have ``tolist``."""

    def tolist(self) -> list[float]:
        return [1.5, 2.0]


def test_a_task_is_sent_as_it_was_set() -> None:
    task = Task(verifier="math", response=[Message(role="assistant", content="4", tool_calls=[])], reference=None)
    assert json.loads(encode_task(task, {"id": 3})) == {
        "verifier": "math",
        "response": [{"role": "assistant", "content": "4", "tool_calls": []}],
        "reference": None,
        "id": 3,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, 3), "2026-01-02T03:00:00"),
        (decimal.Decimal("0.10"), "0.10"),
        (Array(), [1.5, 2.0]),
        ((1, 2), [1, 2]),
        ("\u2028\x85\x00", "\u2028\x85\x00"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ({1: "x"}, {"1": "x"}),
    ],
)
def test_values_of_data_sets(value: Any, expected: Any) -> None:
    assert json.loads(encode_object({"v": value})) == {"v": expected}


def deep() -> Any:
    value: Any = []
    for _ in range(200_000):
        value = [value]
    return value


UNSENDABLE = {
    "nan": float("nan"),
    "inf": [float("inf")],
    "object": object(),
    "set": {1, 2},
    "bytes": b"raw",
    "key": {(1, 2): 3},
    "huge": 10**5000,
    "deep": deep(),
}


@pytest.mark.parametrize("value", UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_what_json_cannot_say_is_an_invalid_task(value: Any) -> None:
    verdict = encode_task({"id": "a", "response": "x", "reference": value})
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.reward, verdict.id) == ("invalid_task", None, "a")
    assert "JSON" in verdict.reason


@pytest.mark.parametrize("task", ["text", 3, ["response"]])
def test_what_is_no_task_at_all_is_a_type_error(task: Any) -> None:
    with pytest.raises(TypeError, match="a task is"):
        encode_task(task)


@given(st.text(st.characters(codec=None), max_size=50))
def test_every_text_can_be_sent(text: str) -> None:
    sent = json.loads(encode_object({"response": text}))["response"]
    assert sent.encode("utf-8").decode("utf-8") == sent
    if text.isprintable():
        assert sent == text


@given(st.lists(st.text(max_size=20)), st.integers(1, 7))
def test_lines_are_cut_at_newlines_only(texts: list[str], step: int) -> None:
    whole = b"".join(json.dumps(text, ensure_ascii=False).encode() + b"\n" for text in texts)
    lines = Lines()
    found = [line for at in range(0, len(whole), step) for line in lines.feed(whole[at : at + step])]
    assert [json.loads(line) for line in found] == texts


def test_batches_are_cut_by_number_and_by_size() -> None:
    small = list(batches_of([b"x"] * 7, 3))
    assert [[position for position, _ in batch] for batch in small] == [[0, 1, 2], [3, 4, 5], [6]]
    big = list(batches_of([b"x" * (5 << 20)] * 3, 100))
    assert [len(batch) for batch in big] == [1, 1, 1]
    assert list(batches_of([], 3)) == []
    with pytest.raises(ValueError, match="batch_size"):
        list(batches_of([b"x"], 0))


def test_envelope_is_json() -> None:
    body = Envelope("/p", "tasks", (("defaults", b'{"verifier":"math"}'),)).body([b'{"response":"1"}', b"{}"])
    assert json.loads(body) == {"tasks": [{"response": "1"}, {}], "defaults": {"verifier": "math"}}
