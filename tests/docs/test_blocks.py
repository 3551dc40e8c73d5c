"""What the documentation shows is run: requests against a real server, Python, configuration, JSON lines."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adjudge.types import Task, Verdict
from adjudge_server.cli.expect import check_expectation
from adjudge_server.settings import Settings
from adjudge_verifiers import compose, registry
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.errors import boundary

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"])
ADDRESS = "http://127.0.0.1:8080"


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^(`{3,})(\w*)\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(page.relative_to(ROOT)), line, match[2], match[3]))
    assert found
    return [block for block in found if block.language in languages]


def requests() -> list[tuple[Block, str]]:
    return [(block, line) for block in blocks("bash") for line in block.text.splitlines() if line.startswith("curl ")]


PYTHON = [block for block in blocks("python") if "from adjudge import Client" in block.text]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the example configuration."""
    state = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-m", "adjudge_server", "serve", "--port", "0"]
    command += ["--config", str(ROOT / "examples" / "adjudge.toml")]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ADJUDGE_")}
    with (
        (state / "log").open("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**environment, "XDG_STATE_HOME": str(state)}
        ) as process,
    ):
        assert process.stdout is not None
        address = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert address is not None, (state / "log").read_text()
        yield address[0]
        process.terminate()


def answer(address: str, curl: str) -> Any:
    """What the server replies to a curl line of the documentation."""
    words = shlex.split(curl)
    url = next(word for word in words if word.startswith("http"))
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
    data = words[words.index("-d") + 1].encode() if "-d" in words else None
    json.loads(data or b"null")
    request = urllib.request.Request(url.replace(ADDRESS, address), data, headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def rewards(value: Any) -> list[float]:
    """Every reward in a reply, in whichever form it has."""
    if isinstance(value, float | int):
        return [value]
    if "verdicts" in value:
        return [verdict["reward"] for verdict in value["verdicts"]]
    return list(value["rewards"]) if "rewards" in value else [value["reward"]]


@pytest.mark.parametrize(
    ("block", "curl"), requests(), ids=lambda value: str(value) if isinstance(value, Block) else ""
)
def test_requests_get_a_reward(server: str, block: Block, curl: str) -> None:
    assert ADDRESS in curl
    assert rewards(answer(server, curl))[0] == 1.0


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_reply_that_is_shown_is_the_reply(server: str, page: str) -> None:
    curl = next(line for block, line in requests() if block.page == page)
    shown = next(json.loads(block.text) for block in blocks("json") if block.page == page)
    given = answer(server, curl)
    assert list(shown) == list(given)
    changing = {"timing", "cached"}
    assert {key: value for key, value in shown.items() if key not in changing} == {
        key: value for key, value in given.items() if key not in changing
    }


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_does_what_its_comments_say(server: str, block: Block) -> None:
    environment = {**os.environ, "ADJUDGE_BASE_URL": server}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^\s*print\(.*?\)  # (.+)$", block.text, re.MULTILINE)
    if expected:
        assert done.stdout.splitlines() == expected
    elif done.stdout.startswith("None"):
        pytest.skip("this host cannot isolate programs")
    else:
        assert done.stdout.startswith("1.0 ")


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


def test_the_verifier_that_the_guide_writes() -> None:
    """Its class works, and its examples give what they say."""
    source = next(block.text for block in blocks("python") if "class WordCount(" in block.text)
    assert "word_count" not in registry.names()
    try:
        exec(compile(source, "word_count.py", "exec"), {"__name__": "word_count"})  # noqa: S102
        verifier = registry.get("word_count")
        for example in verifier.examples:
            options = verifier.Options.model_validate(example.options)
            with boundary("word_count") as outcome:
                verdict = verifier.verify(Call(example.response, example.reference, options), Context())
            verdict = outcome.failure or verdict
            assert isinstance(verdict, Verdict)
            assert (verdict.status, verdict.reward) == (example.status, example.reward)
            assert example.category in (None, verdict.category)
    finally:
        registry._registered.pop("word_count", None)


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_configuration_is_valid(block: Block) -> None:
    table = tomllib.loads(block.text)
    if "project" in table:
        return
    settings = Settings(store={"enabled": False}, **table)  # type: ignore[arg-type]
    assert all(type(settings).model_fields.get(key) for key in table)
    compose.check_recipes(settings.recipes, registry.names())


def test_lines_of_json_are_lines_that_verify_reads() -> None:
    shown = [line for block in blocks("") for line in block.text.splitlines() if line.startswith("{")]
    assert shown
    for line in shown:
        value = json.loads(line)
        Task.model_validate(value["task"])
        check_expectation(value["expect"])


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if path.startswith(("http:", "https:")):
                continue
            goal = (page.parent / path).resolve() if path else page
            if not goal.exists() or (anchor and anchor not in anchors(goal)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,6} +(.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
