"""How verifiers get in: shipped, by decorator, and by the entry point of an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.types import Verdict
from adjudge_verifiers import registry
from adjudge_verifiers.base import Call, Context, NoReference, Options, Verifier
from adjudge_verifiers.errors import UnknownVerifier

MODULE = '''
from adjudge.types import Verdict
from adjudge_verifiers.base import NoReference, Options, Verifier

class Shouts(Verifier[None, Options]):
    """Is the answer in capitals?"""
    name, version, lane = "shouts", "7", "{lane}"
    Reference, Options = NoReference, Options

    def verify(self, call, ctx):
        loud = call.response.isupper()
        return Verdict.scored(float(loud), "correct" if loud else "wrong_format")
'''


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-m", "adjudge_server", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def install(folder: Path, lane: str, target: str = "loud:Shouts") -> None:
    """What `pip install` of a package with this entry point leaves behind."""
    (folder / "loud.py").write_text(MODULE.replace("{lane}", lane))
    info = folder / "loud-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[adjudge.verifiers]\nshouts = {target}\n")


@pytest.mark.parametrize("lane", ["inline", "cpu"])
def test_a_package_of_the_users_adds_a_verifier(tmp_path: Path, lane: str) -> None:
    install(tmp_path, lane)
    shown = run(tmp_path, "verifiers", "show", "shouts", "--json")
    assert json.loads(shown.stdout)["version"] == "7", shown.stderr
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"verifier": "shouts", "response": "YES"}\n{"verifier": "shouts", "response": "no"}\n')
    judged = run(tmp_path, "verify", str(rows), "--set", "sandbox.enabled=false")
    assert [json.loads(line)["reward"] for line in judged.stdout.splitlines()] == [1.0, 0.0], judged.stderr


def test_an_entry_point_that_is_no_verifier_is_named(tmp_path: Path) -> None:
    install(tmp_path, "inline", "loud:Verdict")
    shown = run(tmp_path, "verifiers", "list")
    assert shown.returncode != 0
    assert "shouts" in shown.stderr
    assert "not a Verifier class" in shown.stderr


def test_names_clash_loudly() -> None:
    class Imposter(Verifier[None, Options]):
        """Claims a name that is taken."""

        name, version, lane = "exact_match", "1", "inline"
        Reference, Options = NoReference, Options

        def verify(self, call: Call[None, Options], ctx: Context) -> Verdict:
            return Verdict.scored(1.0, "correct")

    registry.load()
    with pytest.raises(ValueError, match=r"two verifiers are called 'exact_match'.*Imposter"):
        registry.register(Imposter)


def test_what_a_verifier_must_have() -> None:
    class Nameless(Verifier[None, Options]):
        """Has no name."""

        def verify(self, call: Call[None, Options], ctx: Context) -> Verdict:
            return Verdict.scored(1.0, "correct")

    with pytest.raises(TypeError, match="lacks the attribute 'name'"):
        registry.register(Nameless)


def test_near_matches() -> None:
    with pytest.raises(UnknownVerifier, match="'exact_match'"):
        registry.get("exactmatch")
