"""``adjudge verify`` and ``preflight``: verdicts, tables, expectations, exit codes; here and at a server."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import testing
from adjudge_server import cli

Run = Callable[..., tuple[int, str, str]]

RIGHT = {"verifier": "exact_match", "response": "<answer>Paris</answer>", "reference": "Paris"}
WRONG = {**RIGHT, "response": "<answer>Rome</answer>"}
UNKNOWN = {**RIGHT, "verifier": "exact_mash"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in [name for name in os.environ if name.upper().startswith("ADJUDGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ADJUDGE_SANDBOX__ENABLED", "false")  # nothing here runs a program, and it starts sooner
    monkeypatch.setenv("ADJUDGE_LANES__CPU_WORKERS", "1")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write_lines(*lines: Any, name: str = "lines.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return str(path)

    return write_lines


def verdicts(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_verdicts_on_stdout_and_the_table_on_stderr(run: Run, write: Callable[..., str]) -> None:
    code, out, err = run("verify", write({**RIGHT, "id": 7}, WRONG))
    assert code == 0
    first, second = verdicts(out)
    assert (first["id"], first["status"], first["reward"], first["category"]) == (7, "ok", 1.0, "correct")
    assert (second["reward"], second["category"]) == (0.0, "wrong_answer")
    assert first["where"].endswith("lines.jsonl:1")
    assert "exact_match" in err
    assert "mean reward 0.500 over 2 ok" in err


def test_verdicts_in_a_file_and_the_table_on_stdout(run: Run, write: Callable[..., str], tmp_path: Path) -> None:
    code, out, _ = run("verify", write(RIGHT), "--out", "verdicts.jsonl")
    assert code == 0
    assert "exact_match" in out
    assert verdicts((tmp_path / "verdicts.jsonl").read_text())[0]["reward"] == 1.0
    code, out, err = run("verify", write(RIGHT), "--out", "no/such/folder/x.jsonl")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no/such/folder" in err


def test_the_summary_as_json(run: Run, write: Callable[..., str]) -> None:
    code, out, _ = run("verify", write(RIGHT, WRONG, UNKNOWN, "{"), "--json")
    summary = json.loads(out)
    assert code == 1
    assert (summary["lines"], summary["fine"], summary["unmet"]) == (4, False, 1)
    found = {(one["verifier"], one["status"], one["category"]): one["count"] for one in summary["verdicts"]}
    assert found[("exact_match", "ok", "correct")] == found[("exact_match", "ok", "wrong_answer")] == 1
    assert sum(found.values()) == 3
    assert summary["malformed"][0]["where"].endswith(":4")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([RIGHT, WRONG], 0),
        ([RIGHT, UNKNOWN], 1),
        ([RIGHT, "not json"], 1),
        ([], 1),
        ([{**UNKNOWN, "expect": {"status": "invalid_task", "reward": None}}], 0),
        ([{**UNKNOWN, "expect": {"status": "invalid_task", "reason": "exact_match"}}], 0),
        ([{**RIGHT, "expect": {"reward": 1, "category": "correct", "correct": True}}], 0),
        ([{**RIGHT, "expect": {"reward": 0}}], 1),
        ([{**UNKNOWN, "expect": {"reward": 0}}], 1),
        ([{**RIGHT, "expect": {"rewards": 1}}], 1),
        ([{"task": RIGHT, "expect": {"reward": 1}, "note": "n"}, {"task": {"response": "x"}}], 1),
        ([{"task": {"verifier": "exact_match"}, "expect": {"status": "invalid_task"}}], 0),
        ([{**RIGHT, "refrence": "x", "expect": {"status": "invalid_task", "reason": "reference"}}], 0),
        ([{**RIGHT, "response": "", "expect": {"reward": 0, "category": "no_answer"}}], 0),
    ],
)
def test_exit_codes(run: Run, write: Callable[..., str], lines: list[Any], code: int) -> None:
    assert run("verify", write(*lines), "--json")[0] == code


def test_a_malformed_line_is_named_and_the_others_are_judged(run: Run, write: Callable[..., str]) -> None:
    code, out, err = run("verify", write(RIGHT, '{"verifier": ', RIGHT))
    assert code == 1
    assert [line.get("reward", line.get("problem")) for line in verdicts(out)][::2] == [1.0, 1.0]
    assert "lines.jsonl:2: not JSON" in err


def test_a_mismatch_is_shown(run: Run, write: Callable[..., str]) -> None:
    _, out, _ = run("verify", write({**WRONG, "expect": {"reward": 1, "category": "correct"}}), "--out", "v.jsonl")
    assert "Not as expected" in out
    assert "wrong_answer" in out
    assert "1 NOT as expected" in out


def test_stdin_several_files_and_defaults(run: Run, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {key: RIGHT[key] for key in ("response", "reference")}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(bare).encode())))
    code, out, _ = run("verify", write(bare), "-", "--verifier", "exact_match")
    assert code == 0
    assert [line["reward"] for line in verdicts(out)] == [1.0, 1.0]


def test_a_recipe_of_the_file(run: Run, write: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "adjudge.toml").write_text(
        '[recipes.half]\ncombine = "weighted_sum"\n'
        'parts = [{name = "a", verifier = "exact_match"},\n'
        '  {name = "b", verifier = "length", options = {max_length = 9}}]\n'
    )
    task = {key: RIGHT[key] for key in ("response", "reference")}
    code, out, err = run("verify", write(task), "--recipe", "half")
    assert code == 0, err
    assert (verdicts(out)[0]["verifier"], verdicts(out)[0]["reward"]) == ("recipe:half", 0.0)
    code, out, _ = run(
        "verify", write({**task, "expect": {"status": "invalid_task", "reason": "half"}}), "--recipe", "hal"
    )
    assert code == 0


GSM_ROW = {
    "data_source": "openai/gsm8k",
    "prompt": [{"role": "user", "content": "2+2?"}],
    "reward_model": {"style": "rule", "ground_truth": "4"},
}


def test_rows_of_data_sets(run: Run, write: Callable[..., str]) -> None:
    lines = [
        {"row": GSM_ROW, "response": "It is #### 4", "expect": {"reward": 1}},
        {"row": GSM_ROW, "response": "It is #### 5", "expect": {"reward": 0}},
        {"row": {**GSM_ROW, "data_source": "openai/gsm9k"}, "response": "4", "expect": {"status": "invalid_task"}},
        {"row": GSM_ROW, "expect": {"status": "invalid_task"}},
        {"row": GSM_ROW, "response": "#### 4", "format": "no-such", "expect": {"status": "invalid_task"}},
    ]
    code, out, err = run("verify", write(*lines))
    assert code == 0, err
    assert len(verdicts(out)) == 5
    code, out, _ = run("verify", write({**GSM_ROW, "response": "#### 4"}), "--format", "auto")
    assert (code, verdicts(out)[0]["reward"]) == (0, 1.0)


def test_many_lines_come_out_in_order(run: Run, write: Callable[..., str]) -> None:
    lines = [{**(RIGHT if number % 3 else WRONG), "id": number} for number in range(2500)]
    lines[1234] = "broken"  # type: ignore[call-overload]
    code, out, _ = run("verify", write(*lines))
    assert code == 1
    found = verdicts(out)
    assert [int(line["where"].rpartition(":")[2]) for line in found] == list(range(1, 2501))
    assert all(line["reward"] == float(bool(line["id"] % 3)) for line in found if "id" in line)


def test_progress_is_a_line_now_and_then(run: Run, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr("adjudge_server.cli.console.time.monotonic", lambda: next(ticks))
    _, _, err = run("verify", write(RIGHT, WRONG, UNKNOWN))
    shown = [line for line in err.splitlines() if line.startswith("judging: ")]
    assert 1 <= len(shown) <= 3
    assert "judging: 3/3" in shown[-1]
    assert "1 not ok" in shown[-1]


# --- at a server -----------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[testing.FakeServer]:
    with testing.FakeServer() as fake:
        yield fake


def test_lines_are_judged_by_a_server(run: Run, write: Callable[..., str], server: testing.FakeServer) -> None:
    code, out, err = run("verify", write({**RIGHT, "id": 1}, {**RIGHT, "id": 2}), "--url", server.base_url)
    assert code == 0, err
    assert [(line["id"], line["status"]) for line in verdicts(out)] == [(1, "ok"), (2, "ok")]


def test_a_server_that_is_not_there(run: Run, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_MAX_RETRIES", "0")
    code, _, err = run("verify", write(RIGHT), "--url", "http://127.0.0.1:9")
    assert code == 1
    assert "http://127.0.0.1:9" in err.splitlines()[-1]
    assert "Traceback" not in err
    code, _, err = run("verify", write(RIGHT), "--url", "nonsense")
    assert code != 0
    assert "nonsense" in err


# --- preflight -------------------------------------------------------------------------------------------------------


def test_preflight_tells_good_from_bad_references(run: Run, write: Callable[..., str]) -> None:
    lines = [
        {"verifier": "numeric", "reference": "42"},
        {"verifier": "numeric", "reference": "forty-two"},
        {"verifier": "numeric", "reference": "42", "response": "#### 41"},
        {"verifier": "nummeric", "reference": "42"},
        {"row": GSM_ROW},
        "broken",
    ]
    code, out, _ = run("preflight", write(*lines), "--json")
    assert code == 1
    report = json.loads(out)
    assert report["lines"] == 6
    problems = {int(found["where"].rpartition(":")[2]): found["problem"] for found in report["problems"]}
    assert problems == {
        2: "reference_unusable",
        3: "gold_not_rewarded",
        4: "reference_unusable",
        6: "unreadable_line",
    }
    code, out, _ = run("preflight", write(*lines))
    assert code == 1
    assert "gold_not_rewarded" in out
    assert run("preflight", write(lines[0], lines[4]))[0] == 0


# --- bench -----------------------------------------------------------------------------------------------------------


def test_bench_prints_ratios(run: Run) -> None:
    code, out, err = run("bench", "--tasks", "20", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [one["tasks"] for one in found] == [20, 20, 20]
    assert found[0]["ratio"] == 1.0
    assert found[0]["p99_ms"] >= found[0]["p50_ms"] > 0
    code, out, _ = run("bench", "--tasks", "5")
    assert code == 0
    assert "tasks/s" in out
