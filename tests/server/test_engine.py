"""What the engine promises, whatever the verifiers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adjudge.types import Task, Verdict
from adjudge_server.engine import Engine, Submission


def exact(response: str, reference: Any = "yes", **fields: Any) -> Task:
    return Task(verifier="exact_match", response=response, reference=reference, **fields)


def act(name: str, act: str = "score", seconds: float = 0.0, response: str = "x", **fields: Any) -> Task:
    return Task(verifier=name, response=response, options={"act": act, "seconds": seconds}, **fields)


async def test_each_index_once_and_ids_kept(engine: Engine) -> None:
    tasks = [exact("yes" if index % 2 else "no", id=index) for index in range(50)]
    tasks[10:10] = [act("test_cpu", response=str(index), id=f"c{index}") for index in range(10)]
    seen = {index: verdict async for index, verdict in engine.submit(tasks)}
    assert sorted(seen) == list(range(60))
    assert [seen[index].id for index in range(60)] == [task.id for task in tasks]
    assert all(verdict.ok for verdict in seen.values())
    assert sum(verdict.reward or 0 for verdict in seen.values()) == 35


async def test_a_bad_task_spoils_only_itself(engine: Engine) -> None:
    verdicts = await engine.judge_all(
        [
            exact("yes"),
            Task(verifier="exact_macth", response="yes", reference="yes"),
            Task(response="yes"),
            Task(verifier="exact_match", recipe="both", response="yes"),
            Task(recipe="nowhere", response="yes"),
            exact("yes", reference=None),
            exact("yes", options={"ignore_cases": True}),
            Verdict.failed("invalid_task", "could not be read"),
            exact("no"),
        ]
    )
    assert [verdict.status for verdict in verdicts] == ["ok", *["invalid_task"] * 7, "ok"]
    assert [verdict.reward for verdict in verdicts] == [1.0, *[None] * 7, 0.0]
    assert "'exact_match'" in verdicts[1].reason
    assert "'ignore_case'" in verdicts[6].reason
    assert all(verdict.reason for verdict in verdicts[1:8])


async def test_a_response_over_the_limit_is_no_answer_of_the_model(make_engine: Callable[..., Any]) -> None:
    engine = await make_engine(limits={"max_response_chars": 10})
    verdict = (await engine.judge_all([exact("y" * 11)]))[0]
    assert verdict.status == "invalid_task"
    assert "limits.max_response_chars" in verdict.reason


async def test_crashes_are_not_zeros(engine: Engine) -> None:
    verdicts = await engine.judge_all(
        [act("test_cpu", "raise"), act("test_cpu", "lie"), act("test_cpu", "hog", timeout_s=30)]
    )
    assert [verdict.status for verdict in verdicts] == ["verifier_error"] * 3
    assert all(verdict.reward is None for verdict in verdicts)
    assert "ZeroDivisionError" in verdicts[0].reason
    assert "memory" in verdicts[2].reason


async def test_only_the_guilty_pays_for_a_bomb(engine: Engine) -> None:
    tasks = [act("test_cpu", response=str(index)) for index in range(60)]
    bombs = {5, 6, 7, 20, 40, 59}
    for index in bombs:
        tasks[index] = act("test_cpu", "spin", 60.0, response=str(index))
    order: list[int] = []
    verdicts: dict[int, Verdict] = {}
    async for index, verdict in engine.submit(tasks):
        order.append(index)
        verdicts[index] = verdict
    assert set(order[-len(bombs) :]) == bombs, "healthy calls do not wait for bombs"
    assert all(verdicts[index].status == "verifier_timeout" for index in bombs)
    assert all(verdict.ok for index, verdict in verdicts.items() if index not in bombs)


async def test_a_slow_but_honest_call_gets_its_whole_limit(engine: Engine) -> None:
    verdict = (await engine.judge_all([act("test_cpu", "spin", 0.6)]))[0]
    assert verdict.ok, verdict.reason


async def test_a_longer_limit_can_be_asked_for(engine: Engine) -> None:
    slow = act("test_cpu", "spin", 1.5, timeout_s=5.0)
    short = act("test_cpu", "spin", 1.5, timeout_s=0.1)
    verdicts = await engine.judge_all([slow, short])
    assert [verdict.status for verdict in verdicts] == ["ok", "verifier_timeout"]


async def test_a_worker_killed_from_outside_costs_nobody_a_reward(engine: Engine) -> None:
    tasks = [act("test_cpu", "spin", 0.02, response=str(index)) for index in range(40)]
    work = asyncio.ensure_future(engine.judge_all(tasks))
    workers: list[dict[str, Any]] = []
    for _ in range(500):
        await asyncio.sleep(0.01)
        if workers := [child for child in engine.children() if child["lane"] == "cpu"]:
            break
    for child in workers:
        child["kill"]()
    verdicts = await work
    assert all(verdict.ok and verdict.reward == 1.0 for verdict in verdicts)


async def test_a_call_that_kills_its_worker_is_given_up_after_three_tries(engine: Engine) -> None:
    verdicts = await engine.judge_all([act("test_cpu", "die"), *(act("test_cpu", response=str(i)) for i in range(10))])
    assert verdicts[0].status == "verifier_error"
    assert "Three workers died" in verdicts[0].reason
    assert all(verdict.ok for verdict in verdicts[1:])


async def test_a_dead_nursery_is_replaced(engine: Engine) -> None:
    for child in engine.children():
        if child["lane"] == "cpu-nursery":
            child["kill"]()
    await asyncio.sleep(0.1)
    verdicts = await engine.judge_all([act("test_cpu", response=str(index)) for index in range(10)])
    assert all(verdict.ok for verdict in verdicts)


async def test_equal_answers_are_judged_once(engine: Engine) -> None:
    task = {"verifier": "test_extract", "reference": "42", "options": {"seconds": 0.2}}
    endings = ["so 42", "thus it is 42", "no: 41", "I say 42"]
    first = await engine.judge_all([Task(response=ending, **task) for ending in endings])
    assert [verdict.reward for verdict in first] == [1, 1, 0, 1]
    assert [verdict.cached for verdict in first] == [False, True, False, True], "equal calls in flight are joined"
    again = await engine.judge_all([Task(response="once more 42", id="x", **task)])
    assert again[0].cached
    assert again[0].id == "x"
    assert again[0].timing.run_ms == 0
    other = await engine.judge_all([Task(response="once more 42", **{**task, "reference": "41"})])
    assert (other[0].cached, other[0].reward) == (False, 0.0)


async def test_failures_are_never_cached(engine: Engine) -> None:
    for _ in range(2):
        verdict = (await engine.judge_all([act("test_cpu", "raise")]))[0]
        assert (verdict.status, verdict.cached) == ("verifier_error", False)


async def test_a_full_queue_sheds_at_once(make_engine: Callable[..., Any]) -> None:
    engine = await make_engine(lanes={"cpu_workers": 1, "cpu_queue": 5, "sandbox_queue": 3, "sandbox_slots": 1})
    tasks = [act("test_cpu", response=str(index)) for index in range(50)]
    tasks += [act("test_sandbox", seconds=0.01, response=str(index)) for index in range(50)]
    verdicts = await engine.judge_all(tasks)
    shed = [verdict for verdict in verdicts if verdict.status == "overloaded"]
    assert len(shed) >= 80
    assert all(verdict.retryable and verdict.reward is None for verdict in shed)
    assert sum(verdict.ok for verdict in verdicts) >= 8


async def test_waiting_and_running_have_separate_limits(make_engine: Callable[..., Any]) -> None:
    engine = await make_engine(lanes={"sandbox_slots": 1})
    verdicts = await engine.judge_all(
        [
            act("test_sandbox", seconds=2.5, response="a", timeout_s=5.0),
            act("test_sandbox", seconds=0.0, response="b", queue_timeout_s=0.2),
            act("test_sandbox", seconds=0.3, response="c"),
            act("test_sandbox", seconds=9.0, response="d"),
        ]
    )
    assert [verdict.status for verdict in verdicts] == ["ok", "overloaded", "ok", "verifier_timeout"]
    assert "queue_timeout_s" in verdicts[1].reason
    assert verdicts[2].timing.queue_ms > 2000
    assert verdicts[2].timing.run_ms < 2000


async def test_the_deadline_of_a_call_cancels_the_rest(engine: Engine) -> None:
    tasks = [exact("yes"), act("test_sandbox", seconds=9, timeout_s=60), act("test_cpu", "spin", 30, timeout_s=60)]
    verdicts = await engine.judge_all(tasks, deadline_s=0.3)
    assert [verdict.status for verdict in verdicts] == ["ok", "cancelled", "cancelled"]


async def test_closing_the_stream_cancels_the_work(engine: Engine) -> None:
    tasks = [exact("yes"), *(act("test_sandbox", seconds=9, timeout_s=60, response=str(i)) for i in range(8))]
    stream = engine.submit(tasks)
    assert (await anext(stream))[0] == 0
    await stream.aclose()
    await asyncio.sleep(0.05)
    verdict = (await engine.judge_all([act("test_sandbox", response="next")]))[0]
    assert verdict.ok
    assert verdict.timing.queue_ms < 5000, "the slots are free again"


async def test_joined_work_goes_on_while_anybody_waits(engine: Engine) -> None:
    task = act("test_sandbox", seconds=0.3, timeout_s=5.0)
    first = asyncio.ensure_future(engine.judge_all([task]))
    await asyncio.sleep(0.05)
    second = asyncio.ensure_future(engine.judge_all([task]))
    await asyncio.sleep(0.05)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await second)[0].ok


async def test_long_responses_leave_the_api_process(engine: Engine) -> None:
    long = "y" * 200_000
    verdicts = await engine.judge_all(
        [
            exact(long, long),
            exact(long + "n", long),
            Task(verifier="test_extract", response=f"{long} 42", reference="42"),
        ]
    )
    assert [verdict.reward for verdict in verdicts] == [1.0, 0.0, 1.0]
    assert verdicts[0].timing.queue_ms > 0


RECIPES = {
    "both": {
        "combine": "weighted_sum",
        "parts": [
            {"name": "accuracy", "verifier": "exact_match", "weight": 0.9},
            {"name": "cpu", "verifier": "test_cpu", "weight": 0.1},
        ],
    },
    "broken": {
        "combine": "weighted_sum",
        "parts": [
            {"name": "accuracy", "verifier": "exact_match", "weight": 0.5},
            {"name": "cpu", "verifier": "test_cpu", "weight": 0.5, "options": {"act": "raise"}},
        ],
    },
    "by_source": {"routes": [{"match": "a/*", "verifier": "exact_match"}, {"match": ["b"], "recipe": "both"}]},
}


async def test_recipes(make_engine: Callable[..., Any]) -> None:
    engine = await make_engine(recipes=RECIPES)
    verdicts = await engine.judge_all(
        [
            Task(recipe="both", response="yes", reference="yes"),
            Task(recipe="both", response="no", reference="yes"),
            Task(recipe="broken", response="yes", reference="yes"),
            Task(recipe="by_source", response="yes", reference="yes", metadata={"data_source": "a/b"}),
            Task(recipe="by_source", response="no", reference="yes", metadata={"data_source": "b"}),
            Task(recipe="by_source", response="yes", reference="yes", metadata={"data_source": "c"}),
        ]
    )
    assert [verdict.status for verdict in verdicts] == ["ok", "ok", "verifier_error", "ok", "ok", "invalid_task"]
    assert [verdict.reward for verdict in verdicts] == pytest.approx([1.0, 0.1, None, 1.0, 0.1, None])
    assert verdicts[0].parts.keys() == verdicts[1].parts.keys() == {"accuracy", "cpu"}
    assert verdicts[0].verifier == "recipe:both"
    assert verdicts[3].verifier == "exact_match"


async def test_a_submission_may_bring_its_own_recipe(engine: Engine) -> None:
    from adjudge_verifiers.compose import load_recipes

    recipe = load_recipes({"own": RECIPES["both"]})["own"]
    verdict = (await engine.judge_all([Submission(Task(response="no", reference="yes"), recipe)]))[0]
    assert verdict.reward == pytest.approx(0.1)


async def test_wrong_recipes_stop_the_start(make_settings: Callable[..., Any]) -> None:
    engine = Engine(make_settings(recipes={"r": {"combine": "gate", "parts": [{"name": "a", "verifier": "mth"}]}}))
    with pytest.raises(ValueError, match="r"):
        await engine.start()


async def test_verdicts_are_recorded(make_engine: Callable[..., Any], tmp_path: Any) -> None:
    import sqlite3

    engine = await make_engine()
    await engine.judge_all([exact("yes", id="t1"), act("test_cpu", "raise", id="t2")], request_id="req_1")
    await engine.stop()
    with sqlite3.connect(tmp_path / "verdicts.sqlite3") as connection:
        rows = connection.execute("select task_id, status, reward, request_id, task from verdicts order by task_id")
        assert rows.fetchall() == [("t1", "ok", 1.0, "req_1", None), ("t2", "verifier_error", None, "req_1", None)]


async def test_a_lost_store_loses_no_reward(make_engine: Callable[..., Any]) -> None:
    engine = await make_engine(store={"url": "sqlite:////proc/none/verdicts.sqlite3"})
    assert (await engine.judge_all([exact("yes")]))[0].reward == 1.0
    for _ in range(100):
        await asyncio.sleep(0.05)
        if engine.state()["store"] != "ok":
            break
    assert engine.state()["store"] != "ok"
    assert (await engine.judge_all([exact("yes")]))[0].reward == 1.0


async def test_what_a_short_limit_did_is_not_remembered(engine: Engine) -> None:
    if engine.sandbox is None:
        pytest.skip(engine.sandbox_problem)
    program = "```python\nimport time\ndef f(x):\n    time.sleep(0.6)\n    return 4\n```"
    for timeout_s, category in ((1.2, "time_limit"), (60.0, "correct"), (1.2, "time_limit")):
        task = Task(verifier="code", response=program, reference=["assert f(2) == 4"], timeout_s=timeout_s)
        (verdict,) = await engine.judge_all([task])
        assert (verdict.status, verdict.category) == ("ok", category), verdict
