"""Every row of ``examples/rows`` gets the verdict that it states; and the rows are as varied as they claim."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adjudge.types import FAILURES, Category
from adjudge_server.cli.expect import mismatches
from adjudge_server.cli.judges import local_judge, run_windows
from adjudge_server.cli.lines import Defaults, read_items
from adjudge_server.rows import known_formats, to_task
from adjudge_server.rows.base import RowError
from adjudge_server.settings_load import load_settings
from adjudge_verifiers import registry

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = sorted((EXAMPLES / "rows").glob("*.jsonl"))
CONFIG = EXAMPLES / "adjudge.toml"


def lines(*names: str) -> list[dict[str, Any]]:
    chosen = [file for file in FILES if not names or file.stem in names]
    return [json.loads(line) for file in chosen for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_every_row_gets_its_verdict(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ADJUDGE_")]:
        monkeypatch.delenv(name)
    settings = load_settings(config=CONFIG)
    wrong = []
    async with local_judge(settings) as judge:
        if file.stem in ("broken", "code", "formats", "hostile") and judge.engine.sandbox is None:
            pytest.skip(f"this host cannot isolate programs: {judge.engine.sandbox_problem}")
        async for item, verdict in run_windows(judge, read_items([str(file)], Defaults()), lambda verdict: None):
            assert verdict is not None, item.problem
            wrong += mismatches(item.where, item.expect, verdict)
    assert wrong == []


def test_every_line_says_what_must_come_out_and_why() -> None:
    assert len(lines()) >= 60
    for line in lines():
        assert {"status", "reward"} <= set(line["expect"]), line
        assert line["note"], line
        assert ("task" in line) != ("row" in line), line


def test_every_verifier_layout_and_kind_of_verdict_occurs() -> None:
    shipped = {
        name for name in registry.names() if type(registry.get(name)).__module__.startswith("adjudge_verifiers.")
    }
    assert shipped <= {line["task"].get("verifier") for line in lines() if "task" in line}

    layouts = set()
    for line in lines("formats"):
        try:
            layouts.add(to_task(line["row"], line.get("response")).task.metadata["row_format"])
        except RowError:
            continue
    assert layouts >= set(known_formats()) - {"guru"}  # another name of verl's layout

    expected = [line["expect"] for line in lines()]
    assert {each["status"] for each in expected} >= {"ok", "invalid_task", "verifier_timeout"}
    assert {each.get("category") for each in expected} >= set(Category.__args__) - {"tampered"}  # type: ignore[attr-defined]
    assert all((each["reward"] is None) == (each["status"] in FAILURES) for each in expected)


def test_the_demo_starts_its_own_server(tmp_path: Path) -> None:
    """``examples/demo.py`` on a free port, with one cheap file in place of all rows."""
    copy = tmp_path / "examples"
    (copy / "rows").mkdir(parents=True)
    for file in (EXAMPLES / "demo.py", CONFIG):
        shutil.copy(file, copy)
    shutil.copy(EXAMPLES / "rows" / "math.jsonl", copy / "rows")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ADJUDGE_")}
    done = subprocess.run(
        [sys.executable, str(copy / "demo.py"), "--port", "0"],
        env={**environment, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong_answer" in done.stdout
