"""What the lines of a file mean, and how a verdict is compared with what its line expects."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.types import Verdict
from adjudge_server.cli.expect import check_expectation, mismatches
from adjudge_server.cli.lines import Defaults, Item, count_lines, read_items
from adjudge_server.cli.problems import UsageProblem
from adjudge_server.cli.summary import Summary

TASK = {"verifier": "math", "response": "4", "reference": "4"}


def items(tmp_path: Path, *lines: Any, defaults: Defaults | None = None) -> list[Item]:
    path = tmp_path / "lines.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8", errors="surrogatepass")
    return list(read_items([str(path)], defaults or Defaults()))


def test_the_three_kinds_of_line(tmp_path: Path) -> None:
    row = {"prompt": "2+2?", "response": "of the row"}
    found = items(
        tmp_path,
        {**TASK, "expect": {"reward": 1}, "note": "for people"},
        {"task": TASK, "expect": {"reward": 1}, "anything": "else"},
        {"row": row, "response": "4", "format": "verl", "expect": {"status": "ok"}, "id": 7},
        {"row": row},
    )
    assert [item.problem for item in found] == [""] * 4
    assert [item.task for item in found] == [TASK, TASK, None, None]
    assert [item.row for item in found[2:]] == [
        {"row": row, "format": "verl", "response": "4", "id": 7},
        {"row": row, "format": "auto"},
    ]
    assert [item.expect for item in found] == [{"reward": 1}, {"reward": 1}, {"status": "ok"}, {}]
    assert [item.where.rpartition(":")[2] for item in found] == ["1", "2", "3", "4"]


def test_defaults_fill_what_a_line_leaves_open(tmp_path: Path) -> None:
    bare = {"response": "4", "reference": "4"}
    math = Defaults(verifier="math")
    assert items(tmp_path, bare, defaults=math)[0].task == {**bare, "verifier": "math"}
    assert items(tmp_path, {**bare, "verifier": "numeric"}, defaults=math)[0].task == {**bare, "verifier": "numeric"}
    assert items(tmp_path, {**bare, "recipe": "r"}, defaults=math)[0].task == {**bare, "recipe": "r"}
    rows = items(tmp_path, {"prompt": "p", "expect": {}}, {"row": {"a": 1}}, defaults=Defaults(format="verl"))
    assert [item.row for item in rows] == [
        {"row": {"prompt": "p"}, "format": "verl"},
        {"row": {"a": 1}, "format": "verl"},
    ]


def test_a_response_beside_a_task_belongs_to_it(tmp_path: Path) -> None:
    (item,) = items(tmp_path, {"task": {"verifier": "math", "reference": "4"}, "response": "4", "id": 1})
    assert item.task == {"verifier": "math", "reference": "4", "response": "4", "id": 1}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("nonsense", "not JSON"),
        ("[1, 2]", "a JSON object, not a list"),
        ("null", "a JSON object, not null"),
        ('"text"', "a JSON object, not a string"),
        ("true", "a JSON object, not a boolean"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("1" * 5000, "4300"),
        ({"row": [1]}, "'row' is a JSON object"),
        ({"task": "x"}, "'task' is a JSON object"),
        ({**TASK, "expect": [1]}, "'expect' is a JSON object"),
        ({**TASK, "expect": {"rewrad": 1}}, "'reward'"),
    ],
)
def test_a_line_that_cannot_be_read_spoils_only_itself(tmp_path: Path, line: Any, says: str) -> None:
    before, bad, after = items(tmp_path, TASK, line, TASK)
    assert before.task == after.task == TASK
    assert says in bad.problem
    assert bad.where.endswith(":2")
    assert bad.task is None
    assert bad.row is None


def test_blank_lines_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    good = json.dumps(TASK).encode()
    path.write_bytes(
        b"\xef\xbb\xbf\n  \r\n" + good + b"\r\n\xff\xfe\n" + good + b'\n{"response": "a\xff", "verifier": "math"}'
    )
    found = list(read_items([str(path)], Defaults()))
    assert [(item.line, bool(item.problem)) for item in found] == [(3, False), (4, True), (5, False), (6, False)]
    assert count_lines([str(path)]) == 4
    assert found[3].task == {"response": "a\ufffd", "verifier": "math"}


def test_line_separators_within_strings_do_not_split_lines(tmp_path: Path) -> None:
    path = tmp_path / "separators.jsonl"
    path.write_text(json.dumps({**TASK, "response": "a\u2028b\u0085c\x0bd"}, ensure_ascii=False), encoding="utf-8")
    (item,) = read_items([str(path)], Defaults())
    assert item.task is not None
    assert item.task["response"] == "a\u2028b\u0085c\x0bd"


def test_gzip_and_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.write(json.dumps(TASK) + "\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(TASK).encode())))
    found = list(read_items([str(path), "-"], Defaults()))
    assert [item.task for item in found] == [TASK, TASK]
    assert [item.where for item in found] == [f"{path}:1", "stdin:1"]
    assert count_lines([str(path)]) == 1
    assert count_lines([str(path), "-"]) is None


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"{}" * 1000)[:-20], None])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.jsonl.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageProblem, match=r"broken\.jsonl\.gz cannot be read"):
        list(read_items([str(path)], Defaults()))
    with pytest.raises(UsageProblem):
        count_lines([str(tmp_path)])


# --- expectations ----------------------------------------------------------------------------------------------------

SCORED = Verdict.scored(
    0.5, "partial", "Half of it.", parts={"a": 1.0, "b": None}, flags=["x", "y"], evidence={"n": 3, "deep": {"m": [1]}}
)
INVALID = Verdict.failed("invalid_task", "No such verifier.")


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"reward": 0.5},
        {"reward": 0.5 + 1e-12},
        {"status": "ok", "category": "partial", "correct": False},
        {"flags": ["y", "x"]},
        {"parts": {"a": 1}},
        {"parts": {"a": 1, "b": None}},
        {"evidence": {"deep": {"m": [1]}}},
        {"reason": "Half"},
        {"verifier": None},
    ],
)
def test_a_verdict_as_expected(expect: dict[str, Any]) -> None:
    check_expectation(expect)
    assert list(mismatches("f:1", expect, SCORED)) == []


@pytest.mark.parametrize(
    ("expect", "key"),
    [
        ({"reward": 0.5001}, "reward"),
        ({"reward": None}, "reward"),
        ({"reward": float("nan")}, "reward"),
        ({"reward": 10**400}, "reward"),
        ({"correct": 0}, "correct"),
        ({"correct": True}, "correct"),
        ({"status": "invalid_task"}, "status"),
        ({"category": "correct"}, "category"),
        ({"flags": []}, "flags"),
        ({"flags": ["x"]}, "flags"),
        ({"parts": {"c": 1}}, "parts"),
        ({"parts": {"b": 0}}, "parts"),
        ({"evidence": {"deep": {"m": [2]}}}, "evidence"),
        ({"reason": "Whole"}, "reason"),
    ],
)
def test_a_verdict_that_differs(expect: dict[str, Any], key: str) -> None:
    (found,) = mismatches("f:1", expect, SCORED)
    assert (found.where, found.key, found.expected) == ("f:1", key, expect[key]) or expect[key] != expect[key]


def test_an_expectation_that_names_no_status_expects_ok() -> None:
    assert [found.key for found in mismatches("f:1", {"reward": 0}, INVALID)] == ["status", "reward"]
    assert [found.key for found in mismatches("f:1", {}, INVALID)] == ["status"]
    assert list(mismatches("f:1", {"status": "invalid_task", "reward": None}, INVALID)) == []


# --- the summary -----------------------------------------------------------------------------------------------------


def test_the_summary_counts_and_tells_what_is_not_fine() -> None:
    summary = Summary()
    assert not summary.fine
    summary.add(Item("f:1", 1, expect={"reward": 0.5}), SCORED)
    summary.add(Item("f:2", 2, expect={"status": "invalid_task"}), INVALID)
    assert summary.fine
    summary.add(Item("f:3", 3), INVALID)
    assert not summary.fine
    summary.add(Item("f:4", 4, problem="not JSON"), None)
    plain = summary.as_dict()
    assert (plain["lines"], plain["expecting"], plain["unmet"], plain["fine"]) == (4, 2, 1, False)
    assert plain["malformed"] == [{"where": "f:4", "problem": "not JSON"}]
    assert [(one["status"], one["count"], one["mean_reward"]) for one in plain["verdicts"]] == [
        ("invalid_task", 2, None),
        ("ok", 1, 0.5),
    ]
    assert [(one["where"], one["key"]) for one in plain["mismatches"]] == [("f:3", "status")]


def test_hostile_text_in_a_summary_is_shown_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary()
    reason = "[red]markup[/red] \x1b[31mescape \udc80 " + "x" * 5000
    summary.add(Item("f:1", 1), Verdict.failed("invalid_task", reason))
    summary.add(Item("f:2", 2, problem="[/bold] \x1b]0;title\x07"), None)
    summary.show(as_json=False, stderr=False)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[red]markup[/red]" in shown
    assert "[/bold]" in shown
    assert len(shown) < 5000
