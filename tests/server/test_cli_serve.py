"""``adjudge serve`` as a process: the curl line works, the port is free or said to be taken, SIGTERM drains."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

START_S = 90.0


def environment(tmp_path: Path) -> dict[str, str]:
    ours = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("ADJUDGE_")} | ours


@contextlib.contextmanager
def serving(tmp_path: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A server process and what it printed once it was ready."""
    command = [
        sys.executable,
        "-m",
        "adjudge_server",
        "serve",
        "--port",
        "0",
        "--set",
        "lanes.cpu_workers=1",
        *arguments,
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        watchdog = threading.Timer(START_S, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            banner = [process.stdout.readline(), process.stdout.readline()]
            watchdog.cancel()
            assert banner[0], process.stderr.read() if process.stderr else ""
            yield process, banner
        finally:
            watchdog.cancel()
            if process.poll() is None:
                process.kill()


def request(url: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    made = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(made, timeout=30) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def address(banner: list[str]) -> str:
    found = re.search(r"http://\S+?:\d+", banner[0])
    assert found, banner
    return found[0]


def test_the_printed_request_works_and_sigterm_ends_it_well(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, banner):
        words = shlex.split(banner[1])
        assert words[0] == "curl"
        (url,) = [word for word in words if word.startswith("http")]
        status, verdict = request(url, json.loads(words[words.index("-d") + 1]))
        assert (status, verdict["status"], verdict["reward"]) == (200, "ok", 1.0)
        assert request(address(banner) + "/readyz")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert "Traceback" not in log
    for line in log.splitlines():
        json.loads(line)
    assert r"\frac" not in log
    assert (tmp_path / "state" / "adjudge" / "verdicts.sqlite3").exists()


def test_ctrl_c_ends_it_well_and_keys_are_asked_for(tmp_path: Path) -> None:
    arguments = ("--host", "0.0.0.0", "--api-key", "trainer=opensesame", "--set", "store.enabled=false")
    with serving(tmp_path, *arguments) as (process, banner):
        url = address(banner) + "/v1/verify"
        assert url.startswith("http://127.0.0.1:")
        assert "$ADJUDGE_API_KEY" in banner[1]
        assert "opensesame" not in "".join(banner)
        task = {"verifier": "exact_match", "response": "a", "reference": "a"}
        assert request(url, task)[0] == 401
        assert request(url, task, {"Authorization": "Bearer wrong"})[0] == 401
        assert request(url, task, {"Authorization": "Bearer opensesame"})[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        log = process.stderr.read()
    assert "opensesame" not in log
    assert "Traceback" not in log


def test_verify_and_bench_at_a_server(tmp_path: Path) -> None:
    row = {"data_source": "openai/gsm8k", "prompt": "2+2?", "reward_model": {"style": "rule", "ground_truth": "4"}}
    lines = [
        {"verifier": "exact_match", "response": "a", "reference": "a", "expect": {"reward": 1}},
        {"row": row, "response": "#### 4", "expect": {"reward": 1}, "id": "row"},
        {"verifier": "exact_mash", "response": "a", "reference": "a", "expect": {"status": "invalid_task"}},
        {"row": row, "response": "#### 5", "expect": {"reward": 0}},
        {"verifier": "exact_match", "reference": "a", "expect": {"status": "invalid_task"}},
        {"verifier": "math", "response": "\\boxed{1/2}", "reference": "0.5", "expect": {"reward": 1}},
        {"row": {"data_source": "openai/gsm8k"}, "response": "4", "expect": {"status": "invalid_task"}},
        {"verifier": "exact_match", "response": "a", "reference": float("nan"), "expect": {"status": "invalid_task"}},
    ]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with serving(tmp_path, "--api-key", "opensesame") as (_, banner):
        command = [sys.executable, "-m", "adjudge_server"]
        where = ["--url", address(banner), "--api-key", "opensesame"]
        env = environment(tmp_path)
        for words in (["verify", "lines.jsonl", *where], ["bench", "--tasks", "20", *where]):
            done = subprocess.run([*command, *words], cwd=tmp_path, env=env, text=True, capture_output=True, timeout=90)
            assert done.returncode == 0, done.stderr + done.stdout
            if words[0] == "verify":
                found = [json.loads(line) for line in done.stdout.splitlines()]
                assert [int(line["where"].rpartition(":")[2]) for line in found] == list(range(1, 9))
                assert found[1]["id"] == "row"
        done = subprocess.run(
            [*command, "verify", "lines.jsonl", "--url", address(banner)],
            cwd=tmp_path, env=env, text=True, capture_output=True, timeout=90,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("adjudge: http://")
        assert "key" in done.stderr


def test_a_running_request_is_finished_after_sigterm(tmp_path: Path) -> None:
    program = "import time\ntime.sleep(2)\nprint(input())"
    task = {
        "verifier": "code",
        "response": f"```python\n{program}\n```",
        "reference": {"tests": [{"stdin": "1", "stdout": "1"}]},
    }
    with serving(tmp_path) as (process, banner):
        if (
            not str(request(address(banner) + "/readyz")[1].get("sandbox", "none"))
            .strip()
            .startswith(("zygote", "jail"))
        ):
            pytest.skip("this host has no sandbox, so nothing here takes two seconds")
        replies: list[Any] = []
        thread = threading.Thread(target=lambda: replies.append(request(address(banner) + "/v1/verify", task)))
        thread.start()
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        thread.join(timeout=60)
        assert process.wait(timeout=60) == 0
    (reply,) = replies
    assert (reply[0], reply[1]["status"], reply[1]["reward"]) == (200, "ok", 1.0)


def failed_start(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "adjudge_server", "serve", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), text=True, capture_output=True, timeout=START_S
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, err = failed_start(tmp_path, "--port", str(port))
    assert code == 1
    assert err.count("\n") == 1
    assert f"port {port}" in err
    assert "--port" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--host", "192.0.2.1", "--insecure"), "--host"),
        (("--host", "no such host", "--insecure"), "no such host"),
        (("--port", "0", "--require-isolation", "jail", "--set", "sandbox.backend=landlock"), "isolates less"),
        (("--port", "0", "--set", "plugins=['no_such_module_of_mine']"), "no_such_module_of_mine"),
    ],
)
def test_a_start_that_fails_is_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    code, err = failed_start(tmp_path, *arguments)
    assert code == 1
    assert err.count("\n") == 1, err
    assert err.startswith("adjudge: ")
    assert says in err


def test_a_wrong_recipe_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "adjudge.toml").write_text(
        '[recipes.mine]\ncombine = "weighted_sum"\nparts = [{name = "a", verifier = "exact_mash"}]\n'
    )
    code, err = failed_start(tmp_path, "--port", "0")
    assert code in (1, 2)
    assert err.count("\n") == 1, err
    assert "mine" in err
    assert "exact_match" in err
