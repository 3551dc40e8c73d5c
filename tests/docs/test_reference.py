"""The reference pages have a heading for every setting, verifier, command, metric, route and error type."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from adjudge_server.cli.app import command_names
from adjudge_server.http.problems import PROBLEMS
from adjudge_server.metrics import Metrics
from adjudge_server.settings import Settings
from adjudge_server.settings_load import setting_keys
from adjudge_verifiers import registry

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def headings(markdown: str) -> set[str]:
    """The text of all headings outside fenced code, without back-ticks."""
    found = set()
    fence = ""
    for line in markdown.splitlines():
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
        elif fence:
            if line.strip().startswith(fence):
                fence = ""
        elif match := re.fullmatch(r" {0,3}#{1,6}\s+(.+?)\s*#*\s*", line):
            found.add(match[1].replace("`", "").strip())
    return found


def missing(page: str, names: list[str], folder: Path = REFERENCE) -> list[str]:
    """Those of ``names`` that have no heading on ``page``."""
    assert names
    known = headings((folder / page).read_text(encoding="utf-8"))
    return [name for name in names if name not in known]


def exceptions(module: str) -> list[str]:
    loaded = importlib.import_module(module)
    return [name for name in loaded.__all__ if inspect.isclass(getattr(loaded, name))]


def metric_names() -> list[str]:
    """As they are on ``/metrics``: counters end in ``_total``."""
    return [
        f"{family.name}_total" if family.type == "counter" else family.name for family in Metrics().registry.collect()
    ]


def routes() -> list[str]:
    """``POST /v1/verify``, ..."""
    from adjudge_server.app import create_app

    paths = create_app(Settings(store={"enabled": False})).openapi()["paths"]  # type: ignore[arg-type]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def test_the_reader_of_headings() -> None:
    page = (
        "# One\n```sh\n# not a heading\n```\n### `two.three`  \ntext # no\n~~~\n# nor this\n~~~\n## adjudge x ##\n#none"
    )
    assert headings(page) == {"One", "two.three", "adjudge x"}


def test_a_missing_heading_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("## here\n")
    assert missing("page.md", ["here", "there"], tmp_path) == ["there"]


def test_every_setting() -> None:
    assert missing("settings.md", setting_keys()) == []


def test_every_verifier() -> None:
    shipped = [
        name for name in registry.names() if type(registry.get(name)).__module__.startswith("adjudge_verifiers.")
    ]
    assert missing("verifiers.md", shipped) == []


def test_every_command() -> None:
    assert missing("cli.md", [f"adjudge {name}" for name in command_names()]) == []


def test_every_problem_of_the_server() -> None:
    assert missing("errors.md", list(PROBLEMS)) == []


@pytest.mark.parametrize("module", ["adjudge.errors", "adjudge_verifiers.errors", "adjudge_sandbox.errors"])
def test_every_exception(module: str) -> None:
    assert missing("errors.md", exceptions(module)) == []


def test_every_metric() -> None:
    assert missing("metrics.md", metric_names()) == []


def test_every_route() -> None:
    assert missing("http.md", routes()) == []
