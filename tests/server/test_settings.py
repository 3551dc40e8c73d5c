"""Settings: precedence, sources, errors in one line, and secrets that never show."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adjudge_server.api_keys import ApiKey, name_of_key, parse_api_key
from adjudge_server.host import memory_mib, usable_cores
from adjudge_server.settings import Settings, StoreSettings, is_loopback
from adjudge_server.settings_load import BadSettings, Override, fields, load_settings, setting_keys


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of ours, and a working directory without an ``adjudge.toml``."""
    for name in [name for name in os.environ if name.upper().startswith("ADJUDGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def toml(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "some.toml"
        path.write_text(text)
        return path

    return write


def failure(overrides: list[Override] | None = None, config: Path | None = None) -> str:
    with pytest.raises(BadSettings) as caught:
        load_settings(overrides or [], config)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_defaults_stand_without_any_source() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.api_keys, settings.insecure) == ("127.0.0.1", 8080, (), False)
    assert (settings.log_level, settings.log_format, settings.drain_s) == ("info", "auto", 20.0)
    assert settings.limits.model_dump() == {"max_body_mib": 32, "max_tasks": 10_000, "max_response_chars": 1_000_000}
    assert settings.lanes.cpu_workers == settings.lanes.sandbox_slots == usable_cores() >= 1
    assert settings.cache.entries == 100_000
    assert {source.kind for source in settings.sources().values()} == {"default"}


def test_flag_beats_environment_beats_file_beats_default(
    monkeypatch: pytest.MonkeyPatch, toml: Callable[[str], Path]
) -> None:
    path = toml(
        "port = 1\nhost = '127.0.0.2'\nlog_level = 'error'\n[lanes]\ncpu_workers = 1\ncpu_chunk = 1\ncpu_queue = 1"
    )
    monkeypatch.setenv("ADJUDGE_PORT", "2")
    monkeypatch.setenv("ADJUDGE_HOST", "127.0.0.3")
    monkeypatch.setenv("ADJUDGE_LANES__CPU_WORKERS", "2")
    monkeypatch.setenv("adjudge_lanes__cpu_chunk", "2")
    settings = load_settings([Override("port", 3, "--port"), Override.parse("lanes.cpu_workers=3")], path)
    assert (settings.port, settings.host, settings.log_level) == (3, "127.0.0.3", "error")
    assert (settings.lanes.cpu_workers, settings.lanes.cpu_chunk, settings.lanes.cpu_queue) == (3, 2, 1)
    sources = settings.sources()
    assert {key: str(sources[key]) for key in ("port", "host", "log_level", "drain_s")} == {
        "port": "flag --port",
        "host": "env ADJUDGE_HOST",
        "log_level": f"file {path}",
        "drain_s": "default",
    }
    assert str(sources["lanes.cpu_workers"]) == "flag --set lanes.cpu_workers"
    assert str(sources["lanes.cpu_chunk"]) == "env adjudge_lanes__cpu_chunk"
    assert str(sources["lanes.cpu_queue"]) == f"file {path}"


def test_file_of_the_environment_and_of_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, toml: Callable[[str], Path]
) -> None:
    (tmp_path / "adjudge.toml").write_text("port = 1")
    assert load_settings().port == 1
    monkeypatch.setenv("ADJUDGE_CONFIG", str(toml("port = 2")))
    assert load_settings().port == 2
    other = tmp_path / "other.toml"
    other.write_text("port = 3")
    assert load_settings(config=other).port == 3


def test_settings_made_by_hand_read_neither_environment_nor_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "adjudge.toml").write_text("port = 1")
    monkeypatch.setenv("ADJUDGE_PORT", "2")
    assert Settings().port == 8080


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        ("prot=1", "'port'"),
        ("max_body_mib=1", "'limits.max_body_mib'"),
        ("limits.max_body_mb=1", "'limits.max_body_mib'"),
        ("lane.cpu_workers=1", "'lanes.cpu_workers'"),
        ("lanes.cpu_workers.x=1", "'lanes.cpu_workers'"),
        ("sandbox.alow_none=true", "'sandbox.allow_none'"),
        ("zzzzzzzz=1", "`adjudge config show`"),
    ],
)
def test_an_unknown_key_names_the_nearest(assignment: str, named: str) -> None:
    message = failure([Override.parse(assignment)])
    assert assignment.partition("=")[0] in message
    assert named in message


def test_an_unknown_key_of_the_file_names_the_file(toml: Callable[[str], Path]) -> None:
    path = toml("[limits]\nmax_task = 5")
    message = failure(config=path)
    assert str(path) in message
    assert "'limits.max_tasks'" in message


@pytest.mark.parametrize(
    ("variable", "named"),
    [
        ("ADJUDGE_PROT", "ADJUDGE_PORT"),
        ("ADJUDGE_LANES__CPU_WORKER", "ADJUDGE_LANES__CPU_WORKERS"),
        ("ADJUDGE_CPU_WORKERS", "ADJUDGE_LANES__CPU_WORKERS"),
        ("ADJUDGE_LIMIT__MAX_TASKS", "ADJUDGE_LIMITS__MAX_TASKS"),
    ],
)
def test_a_misspelt_variable_names_the_nearest(monkeypatch: pytest.MonkeyPatch, variable: str, named: str) -> None:
    monkeypatch.setenv(variable, "1")
    message = failure()
    assert variable in message
    assert named in message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ADJUDGE_BASE_URL", "http://127.0.0.1:1"),
        ("ADJUDGE_API_KEY", "the client's"),
        ("ADJUDGE_TIMEOUT_S", "3"),
        ("ADJUDGE_PORT", "tcp://10.0.0.1:8080"),
        ("ADJUDGE_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("ADJUDGE_SERVICE_HOST", "10.0.0.1"),
        ("ADJUDGE_SERVICE_PORT_HTTP", "8080"),
        ("ADJUDGE_TEAM_OF_SOMEONE_ELSE", "x"),
        ("ADJUDGE_LANES__CPU_WORKERS", ""),
    ],
)
def test_variables_of_others_do_no_harm(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    assert load_settings() == Settings()


@pytest.mark.parametrize(
    "assignment",
    [
        "port=-1",
        "port=65536",
        "port=x",
        "port=nan",
        "port=1.5",
        f"port={'9' * 5000}",
        "host=''",
        "limits.max_tasks=0",
        "limits.max_tasks=[]",
        "lanes.cpu_slice_s=inf",
        "lanes.cpu_slice_s=nan",
        "lanes.queue_timeout_s=0",
        "cache.entries=-1",
        "store.enabled=maybe",
        "log_level=loud",
        "log_format=xml",
        "lanes=3",
        "recipes=3",
        "routes=3",
    ],
)
def test_a_wrong_value_names_the_key_and_the_place(assignment: str) -> None:
    key = assignment.partition("=")[0]
    message = failure([Override.parse(assignment)])
    assert message.startswith(key)
    assert f"(flag --set {key})" in message
    assert len(message) < 400


def test_several_wrong_values_are_told_at_once(toml: Callable[[str], Path]) -> None:
    message = failure([Override("port", "x", "--port")], toml("drain_s = -1\n[cache]\nentries = -1"))
    assert all(part in message for part in ("port (flag --port)", "drain_s (file ", "cache.entries (file "))


@pytest.mark.parametrize("text", ["port = ", "port = 1\nport = 2", "[lanes", "\x00", "port = '\xff'"])
def test_a_file_that_is_not_toml(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    assert str(path) in failure(config=path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "no configuration file" in failure(config=tmp_path / "none.toml")
    assert "no configuration file" in failure(config=tmp_path)


@pytest.mark.parametrize("assignment", ["", "=", "port", "=1"])
def test_set_wants_key_and_value(assignment: str) -> None:
    with pytest.raises(BadSettings, match="--set KEY=VALUE"):
        Override.parse(assignment)


@pytest.mark.parametrize(
    ("name", "value"), [("ADJUDGE_LANES", "{"), ("ADJUDGE_API_KEYS", "[1"), ("ADJUDGE_LANES", "3")]
)
def test_json_in_a_variable_that_is_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert name in failure()


def test_a_whole_table_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_LANES", '{"cpu_workers": 3}')
    settings = load_settings()
    assert settings.lanes.cpu_workers == 3
    assert str(settings.sources()["lanes.cpu_workers"]) == "env ADJUDGE_LANES"


# --- who may listen where, with which keys ---------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "2001:db8::1"])
def test_beyond_loopback_a_key_or_a_word_is_needed(host: str) -> None:
    message = failure([Override("host", host, "--host")])
    assert all(part in message for part in (host, "--api-key", "127.0.0.1", "--insecure"))
    assert load_settings([Override("host", host, "--host"), Override("insecure", True, "--insecure")]).host == host
    assert load_settings([Override("host", host, "--host"), Override("api_keys", ["k"], "--api-key")]).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_key(host: str) -> None:
    assert is_loopback(host)
    assert load_settings([Override("host", host, "--host")]).host == host


def test_keys_are_kept_as_hashes_and_found_again() -> None:
    digest = hashlib.sha256(b"third").hexdigest()
    settings = load_settings([Override("api_keys", ["first", "trainer=second", f"eval=sha256:{digest}"], "--api-key")])
    assert [key.name for key in settings.api_keys] == ["key-1", "trainer", "eval"]
    assert [settings.key_name(text) for text in ("first", "second", "third")] == ["key-1", "trainer", "eval"]
    for wrong in ("", "fourth", "FIRST", "first ", digest, f"sha256:{digest}", "trainer=second", "é\udc80"):
        assert settings.key_name(wrong) is None


@pytest.mark.parametrize("text", ["a,trainer=b", '["a", "trainer=b"]', " a , trainer=b ,"])
def test_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ADJUDGE_API_KEYS", text)
    settings = load_settings()
    assert [settings.key_name(key) for key in ("a", "b")] == ["key-1", "trainer"]


@pytest.mark.parametrize(
    ("text", "name", "secret"),
    [
        ("c2VjcmV0", "key", "c2VjcmV0"),
        ("c2VjcmV0==", "key", "c2VjcmV0=="),
        ("c2VjcmV0=", "key", "c2VjcmV0="),
        ("me=c2VjcmV0==", "me", "c2VjcmV0=="),
        ("a/b=c", "key", "a/b=c"),
    ],
)
def test_a_key_with_an_equals_sign(text: str, name: str, secret: str) -> None:
    key = parse_api_key(text)
    assert key.name == name
    assert name_of_key([key], secret) == name


@pytest.mark.parametrize("text", ["", " ", "two words", "name=two words", "é", "a\x00", "sha256:12", "a=sha256:xyz", 5])
def test_a_wrong_key_is_refused_without_showing_it(text: Any) -> None:
    message = failure([Override("api_keys", [text], "--api-key")])
    assert message.startswith("api_keys (flag --api-key)")
    assert len(str(text)) < 5 or str(text) not in message


def test_two_keys_of_one_name() -> None:
    assert "'a'" in failure([Override("api_keys", ["a=x", "a=y"], "--api-key")])


def test_secrets_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_STORE__URL", "postgresql://me:hunter2@db/adjudge")
    monkeypatch.setenv("ADJUDGE_API_KEYS", "trainer=opensesame")
    settings = load_settings()
    digest = hashlib.sha256(b"opensesame").hexdigest()
    shown = [repr(settings), str(settings), json.dumps(settings.shown(), default=str), repr(settings.api_keys[0])]
    for text in shown:
        assert all(secret not in text for secret in ("hunter2", "opensesame", digest))
    assert settings.shown()["store.url"] == "postgresql://me:***@db/adjudge"
    monkeypatch.setenv("ADJUDGE_PORT", "opensesame")
    assert "opensesame" not in failure()
    with pytest.raises(ValidationError) as caught:
        Settings(api_keys=["open sesame"])  # type: ignore[arg-type]
    assert "open sesame" not in str(caught.value)
    with pytest.raises(ValidationError) as caught:
        ApiKey(name="x", sha256="opensesame")
    assert "opensesame" not in str(caught.value)


# --- what follows from the values ------------------------------------------------------------------------------------


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Settings().lanes.cpu_workers = 1  # type: ignore[misc]


def test_the_store_lies_in_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    expected = f"sqlite:///{tmp_path}/home/.local/state/adjudge/verdicts.sqlite3"
    assert StoreSettings().resolved_url() == expected
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert StoreSettings().resolved_url() == expected
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert StoreSettings().resolved_url() == f"sqlite:///{tmp_path}/state/adjudge/verdicts.sqlite3"
    assert StoreSettings(url="sqlite://").resolved_url() == "sqlite://"
    assert StoreSettings(enabled=False, url="sqlite://").resolved_url() == ""
    assert not (tmp_path / "home").exists()


def test_every_field_says_what_it_does() -> None:
    assert len(setting_keys()) == len(set(setting_keys())) > 20
    for key, field in fields():
        assert field.description, key
        assert key.count(".") <= 1


def test_the_host_is_measured_within_its_limits() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    memory = memory_mib()
    assert memory is None or memory > 100
