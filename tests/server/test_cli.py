"""The command line as a whole: help, hints, errors in one line, and the commands that judge nothing."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from adjudge_server import cli
from adjudge_server.cli.app import command_names
from adjudge_server.settings import Settings
from adjudge_server.settings_load import load_settings, setting_keys

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("config", "show") -> (exit code, stdout, stderr)``, in an empty folder and without our variables."""
    for name in [name for name in os.environ if name.upper().startswith("ADJUDGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_version_and_help(run: Run) -> None:
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"adjudge \d+\.\d+\.\d+\S*\n", out)
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for name in command_names():
        assert name.split()[0] in out
    assert run("-h")[1] == out


@pytest.mark.parametrize("name", command_names())
def test_every_command_has_help(run: Run, name: str) -> None:
    code, out, err = run(*name.split(), "--help")
    assert (code, err) == (0, "")
    assert len(out) > 200


def test_without_arguments_there_is_help(run: Run) -> None:
    for words in ((), ("verifiers",), ("config",)):
        code, out, _ = run(*words)
        assert code == 2
        assert "Usage: adjudge" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("serv",), "'serve'"),
        (("lst",), "'list'"),
        (("verifiers", "lst"), "'list'"),
        (("config", "shwo"), "'show'"),
        (("frobnicate",), "--help"),
        (("serve", "--prot", "1"), "--port"),
        (("verify", "--formt", "x", "f"), "--format"),
        (("--vrsion",), "--version"),
        (("serve", "--frobnicate"), "--help"),
        (("verify",), "FILE"),
        (("serve", "--port", "many"), "--port"),
        (("serve", "--port"), "--port"),
        (("serve", "--port", "70000"), "port (flag --port)"),
        (("serve", "--log-level", "loud"), "log_level (flag --log-level)"),
        (("serve", "--host", "0.0.0.0"), "--insecure"),
        (("serve", "--set", "lanes.cpu_wrokers=1"), "'lanes.cpu_workers'"),
        (("serve", "--set", "x"), "KEY=VALUE"),
        (("config", "show", "--config", "no.toml"), "no.toml"),
        (("verify", "no.jsonl"), "no.jsonl"),
        (("verify", "--verifier", "a", "--recipe", "b", "-"), "not both"),
        (("verifiers", "show", "maths"), "'math'"),
        (("bench", "--verifier", "exact"), "'exact_match'"),
        (("bench", "--tasks", "0"), "--tasks"),
    ],
)
def test_wrong_use_is_one_line_with_a_way_out(run: Run, words: tuple[str, ...], says: str) -> None:
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("adjudge: ")
    assert says in err


def test_traceback_on_request(run: Run) -> None:
    assert "Traceback" not in run("verify", "no.jsonl")[2]
    for words in (("--traceback", "verify", "no.jsonl"), ("verify", "no.jsonl", "--traceback")):
        code, _, err = run(*words)
        assert code == 2
        assert "Traceback" in err
        assert err.splitlines()[-1].startswith("adjudge: no.jsonl")


def test_a_bug_is_one_line_and_an_exit_code_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjudge_server.cli.config.load", lambda *_: 1 / 0)
    code, _, err = run("config", "show")
    assert code == 70
    assert err == "adjudge: internal error: ZeroDivisionError: division by zero (--traceback shows where)\n"


def test_a_base_install_says_what_is_missing() -> None:
    script = "import sys; sys.modules['typer'] = None\nfrom adjudge_server.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "adjudge: typer is not installed: pip install 'adjudge[server]'\n"


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom adjudge_server.cli import main\nmain(['--help'])\n"
        "heavy = {'fastapi', 'sqlalchemy', 'sympy', 'math_verify', 'uvicorn', 'pydantic', 'httpx2', 'torch'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "adjudge_server", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("adjudge ")


# --- config ----------------------------------------------------------------------------------------------------------


def test_config_show_tells_value_and_source(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "adjudge.toml").write_text("drain_s = 5\n[limits]\nmax_tasks = 7\n")
    monkeypatch.setenv("ADJUDGE_PORT", "9000")
    monkeypatch.setenv("ADJUDGE_API_KEYS", "trainer=opensesame")
    code, out, _ = run("config", "show", "--json", "--set", "limits.max_tasks=8")
    assert code == 0
    shown = json.loads(out)
    assert set(setting_keys()) - {"recipes"} <= set(shown)
    assert shown["port"] == {"value": 9000, "source": "env", "name": "ADJUDGE_PORT"}
    assert shown["drain_s"] == {"value": 5.0, "source": "file", "name": "adjudge.toml"}
    assert shown["limits.max_tasks"] == {"value": 8, "source": "flag", "name": "--set limits.max_tasks"}
    assert shown["host"] == {"value": "127.0.0.1", "source": "default", "name": ""}
    assert shown["api_keys"]["value"] == ["trainer"]
    code, table, _ = run("config", "show")
    assert code == 0
    assert "env ADJUDGE_PORT" in table
    assert "file adjudge.toml" in table
    assert "opensesame" not in table + out


def test_the_example_file_holds_every_key_and_its_default(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("config", "example")
    assert code == 0
    path = tmp_path / "example.toml"
    path.write_text(out)
    assert load_settings(config=path) == Settings()
    uncommented = re.sub(r"(?m)^# ([a-z_]+ = )", r"\1", out.partition("# Combinations")[0])
    values = tomllib.loads(uncommented)
    keys = [f"{name}.{key}" for name, value in values.items() if isinstance(value, dict) for key in value]
    keys += [name for name, value in values.items() if not isinstance(value, dict)]
    assert set(keys) == set(setting_keys()) - {"recipes", "routes"}
    path.write_text(uncommented)
    settings = load_settings(config=path)
    assert settings.model_dump() == Settings().model_dump()
    assert settings.sources()["lanes.cpu_chunk"].kind == "file"


def test_the_free_tables_of_the_example_are_right(run: Run, tmp_path: Path) -> None:
    free = run("config", "example")[1].partition("# Combinations")[2]
    path = tmp_path / "free.toml"
    path.write_text(re.sub(r"(?m)^# (?=[\[\]a-z ]|  )", "", free.partition("\n")[2].replace("# Which", "## Which")))
    settings = load_settings(config=path)
    assert list(settings.recipes) == ["answer_and_format"]
    assert len(settings.routes) == 1


# --- verifiers, doctor -----------------------------------------------------------------------------------------------


def test_the_catalogue(run: Run) -> None:
    code, out, _ = run("verifiers", "list", "--json")
    assert code == 0
    listed = {one["name"]: one for one in json.loads(out)}
    assert {"exact_match", "numeric", "multiple_choice", "math", "format", "length", "code"} <= set(listed)
    code, table, _ = run("verifiers", "list")
    assert code == 0
    for name, one in listed.items():
        assert name in table
        assert one["summary"]
        code, text, _ = run("verifiers", "show", name)
        assert code == 0
        assert f"version {one['version']}" in text
        code, out, _ = run("verifiers", "show", name, "--json")
        assert code == 0
        assert json.loads(out)["lane"] == one["lane"]


def test_doctor_finds_what_is_there_and_what_is_not(run: Run, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, _ = run(
            "doctor", "--json", "--set", f"port={port}", "--set", "store.url=sqlite:////proc/no/x.sqlite3"
        )
    checks = {check["name"]: check for check in json.loads(out)}
    assert {"python", "machine", "libraries", "sandbox", "store", "port"} <= set(checks)
    assert checks["python"]["state"] == "ok"
    assert "math-verify" in checks["libraries"]["detail"]
    assert (checks["port"]["state"], checks["store"]["state"]) == ("warning", "warning")
    for check in checks.values():
        assert check["fix"] or check["state"] == "ok"
    assert code == (1 if any(check["state"] == "failure" for check in checks.values()) else 0)
    assert run("doctor", "--set", "port=0")[1].count("store") >= 1
    assert not (tmp_path / "state").exists()


def test_doctor_fails_where_the_wanted_isolation_is_not_to_be_had(run: Run) -> None:
    code, out, _ = run(
        "doctor", "--json", "--set", "sandbox.require_isolation=jail", "--set", "sandbox.backend=landlock"
    )
    checks = {check["name"]: check for check in json.loads(out)}
    assert code == 1
    assert checks["sandbox"]["state"] == "failure"
    assert checks["sandbox"]["fix"]
