"""The reward function for TRL, called as TRL calls it. ``test_live.py`` runs TRL itself."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge import AsyncClient, AuthenticationFailed, ConfigurationError, Task, Verdict, VerdictFailed
from adjudge.testing import Failed, FakeServer, compare_text
from adjudge_trainer.adapters.trl import reward_function


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def made(server: FakeServer, **arguments: Any) -> Any:
    return reward_function(**{"verifier": "fake", "base_url": server.base_url, "max_retries": 0, **arguments})


def call(function: Any, completions: list[Any], prompts: list[Any] | None = None, **columns: Any) -> list[float | None]:
    """As TRL does: keywords only, every column a list, on a loop of its own."""
    prompts = prompts or ["What?"] * len(completions)
    given = {"prompts": prompts, "completions": completions, "completion_ids": [[1]] * len(completions)}
    result = function(**given, trainer_state=object(), **columns)
    return asyncio.run(result) if inspect.isawaitable(result) else result


def test_what_trl_asks_of_a_reward_function(server: FakeServer) -> None:
    function = made(server)
    assert inspect.iscoroutinefunction(function)
    assert asyncio.iscoroutinefunction(function)
    assert inspect.iscoroutinefunction(function.__call__)
    assert callable(function)
    assert function.__name__ == "adjudge_fake"
    assert list(inspect.signature(function).parameters)[:2] == ["prompts", "completions"]
    assert not isinstance(function, functools.partial), "newer TRL would look through it for the name"
    named = made(server, name="accuracy", verifier=None, recipe="r")
    assert named.__name__ == "accuracy"
    assert {function.__name__, named.__name__} == {"adjudge_fake", "accuracy"}, "each has its own name"


def test_a_blocking_one_for_trl_that_cannot_await(server: FakeServer) -> None:
    function = made(server, blocking=True)
    assert not inspect.iscoroutinefunction(function)
    assert function.__name__ == "adjudge_fake"
    assert call(function, ["4", "5"], solution=["4", "4"]) == [1.0, 0.0]


def test_standard_and_conversational_completions(server: FakeServer) -> None:
    function = made(server)
    assert call(function, ["4", "5"], solution=["4", "4"]) == [1.0, 0.0]
    chats = [
        [{"role": "assistant", "content": "4"}],
        [
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function"}]},
            {"role": "tool", "name": "calculator", "content": "4"},
            {"role": "assistant", "content": "5"},
        ],
    ]
    prompts = [[{"role": "user", "content": "2+2?"}]] * 2
    assert call(function, chats, prompts, solution=["4", "4"]) == [1.0, 0.0]
    assert server.judged[-1]["prompt"] == [{"role": "user", "content": "2+2?"}]


def test_prompts_with_images_are_sent_as_text(server: FakeServer) -> None:
    parts = [{"type": "image", "image": object()}, {"type": "text", "text": "What is it?"}]
    assert call(made(server), ["4"], [[{"role": "user", "content": parts}]], solution=["4"], images=[object()]) == [1.0]
    assert server.judged[0]["prompt"][0]["content"] == [{"type": "text", "text": "What is it?"}]
    call(made(server, send_prompt=False), ["4"], solution=["4"])
    assert "prompt" not in server.judged[1]


def test_columns_become_reference_options_and_metadata(server: FakeServer) -> None:
    function = made(
        server,
        reference_column="answer",
        options={"a": 1, "b": 1},
        options_column="how",
        metadata_columns=("data_source", "level"),
        task_timeout_s=2.5,
    )
    call(
        function,
        ["4", "5", "6"],
        answer=[{"value": 4}, ["5"], None],
        how=[{"b": 2, "c": None}, None, '{"b": 3}'],
        data_source=["gsm8k", "math", "math"],
        other=[object()] * 3,
    )
    body = server.requests[0].body
    assert body["defaults"] == {"verifier": "fake", "recipe": None, "timeout_s": 2.5}
    assert [task["reference"] for task in body["tasks"]] == [{"value": 4}, ["5"], None]
    assert [task["options"] for task in body["tasks"]] == [{"a": 1, "b": 2}, {"a": 1, "b": 1}, {"a": 1, "b": 3}]
    assert body["tasks"][0]["metadata"] == {"data_source": "gsm8k", "response_tokens": 1}


def test_a_missing_column_is_named(server: FakeServer) -> None:
    with pytest.raises(ConfigurationError, match=r"no column 'solution'; set reference_column.*answer"):
        call(made(server), ["4"], answer=["4"])
    assert call(made(server, reference_column=None), ["None"]) == [1.0]


def test_logging(server: FakeServer) -> None:
    columns: dict[str, list[Any]] = {}
    metrics: dict[str, float] = {}
    server.judge = lambda task: (
        Verdict.failed("verifier_error", "crash") if task.text == "x" else Verdict.scored(0.5, "partial", extracted="5")
    )
    call(made(server), ["4", "x"], solution=["4", "4"], log_extra=columns.__setitem__, log_metric=metrics.__setitem__)
    assert columns["adjudge_status"] == ["ok", "verifier_error"]
    assert columns["adjudge_category"] == ["partial", ""]
    assert columns["adjudge_extracted"] == ["5", ""]
    assert columns["adjudge_reason"][1] == "crash"
    assert columns["adjudge_parts"] == ['{"accuracy": 0.5}', "{}"]
    assert metrics["adjudge/failed_share"] == 0.5


def test_failures_of_ours_under_each_policy(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    def judge(task: Task) -> Verdict:
        if task.text == "lost":
            raise Failed("verifier_timeout")
        return compare_text(task)

    server.judge = judge
    answers, golds = ["4", "lost", "5", "lost"], ["4"] * 4
    prompts = ["p", "p", "p", "q"]
    expected = {"mask": [1, None, 0, None], "zero": [1, 0, 0, 0], "mean": [1, 0.5, 0, 0.5]}
    for policy, rewards in expected.items():
        assert call(made(server, on_error=policy), answers, prompts, solution=golds) == rewards
    with pytest.raises(VerdictFailed, match="verifier_timeout"):
        call(made(server, on_error="raise"), answers, prompts, solution=golds)
    assert caplog.text.count("2 of 4 answers have no reward") == 4


def test_no_server_at_all(server: FakeServer) -> None:
    server.close()
    assert call(made(server), ["4", "5"], solution=["4", "4"]) == [None, None]


def test_a_wrong_key_stops_the_run(server: FakeServer) -> None:
    server.api_key = "secret"
    with pytest.raises(AuthenticationFailed):
        call(made(server), ["4"], solution=["4"])
    assert call(made(server, api_key="secret"), ["4"], solution=["4"]) == [1.0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"verifier": None},
        {"recipe": "also"},
        {"client": AsyncClient(), "base_url": "http://x"},
        {"timeout_s": -1},
    ],
)
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        reward_function(**{"verifier": "fake", **arguments})
    with pytest.raises(ValueError, match="on_error"):
        reward_function(verifier="fake", on_error="nothing")  # type: ignore[arg-type]


@pytest.mark.parametrize("blocking", [False, True])
def test_it_is_picklable_and_shows_no_key(server: FakeServer, blocking: bool) -> None:
    server.api_key = "very-secret"
    function = made(server, api_key="very-secret", blocking=blocking, name="mine")
    assert "very-secret" not in repr(function)
    copy = pickle.loads(pickle.dumps(function))  # noqa: S301
    assert copy.__name__ == "mine"
    assert inspect.iscoroutinefunction(copy) is not blocking
    assert call(copy, ["4", "5"], solution=["4", "4"]) == [1.0, 0.0]


def test_it_works_in_a_spawned_process(server: FakeServer, tmp_path: Any) -> None:
    function = made(server, api_key="k")
    (tmp_path / "function.pickle").write_bytes(pickle.dumps(function))
    code = (
        "import asyncio, pickle, sys; f = pickle.load(open(sys.argv[1], 'rb'));"
        "print(f.__name__, asyncio.run(f(prompts=['p'], completions=['4'], completion_ids=[[1]], solution=['4'])))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "function.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["adjudge_fake", "[1.0]"]


def test_a_step_is_a_few_requests(server: FakeServer) -> None:
    assert call(made(server), ["4"] * 512, solution=["4"] * 512) == [1.0] * 512
    assert len(server.requests) == 2
