"""``POST /compat/openrlhf/get_reward``: OpenRLHF's ``--reward.remote_url`` (formerly ``--remote_rm_url``).

Request ``{"query": [str], "prompts": [str], "labels": [any]}``, lists of equal length, often of length 1 and sometimes
empty; ``query`` is prompt and response in one, special tokens included. Reply ``{"rewards", "scores", "extra_logs"}``,
lists of numbers: ``rewards`` as judged, ``scores`` the same clipped to 0..1 for dynamic filtering. A string anywhere in
``extra_logs`` would crash the trainer, so there are only numbers.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from ..body import body_schema, read_model
from ..compat import cut_prompt, numeric_log, options_of, refuse, sample
from ..disconnect import while_connected
from ..middleware import request_facts
from ..problems import Problem
from ..tasks import check_count
from .verify import engine_of

__all__ = ["BODIES", "OpenRLHFReply", "OpenRLHFRequest", "router"]

router = APIRouter(prefix="/compat/openrlhf", tags=["compat"])


class OpenRLHFRequest(BaseModel):
    """What OpenRLHF sends."""

    query: list[str] = Field(default_factory=list)
    prompts: list[Any] = Field(default_factory=list)
    labels: list[Any] = Field(default_factory=list)


class OpenRLHFReply(BaseModel):
    """What OpenRLHF reads."""

    rewards: list[float]
    scores: list[float]
    extra_logs: dict[str, list[float]]


BODIES = (OpenRLHFRequest,)


@router.post(
    "/get_reward",
    summary="OpenRLHF's remote reward",
    openapi_extra={
        **body_schema(OpenRLHFRequest),
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in ("verifier", "recipe", "on_error", "key")
        ],
    },
)
async def get_reward(request: Request) -> OpenRLHFReply:
    """Rewards for a list of samples. A sample without a reward fails the request, unless ``on_error=zero``."""
    options = options_of(request)
    body = await read_model(request, OpenRLHFRequest)
    engine = engine_of(request)
    count = len(body.query)
    check_count(count, engine.settings.limits)
    prompts = body.prompts or [None] * count
    labels = body.labels or [""] * count
    if not len(prompts) == len(labels) == count:
        raise Problem(
            "invalid-request",
            "query, prompts and labels must be equally long; "
            f"they have {count}, {len(prompts)} and {len(labels)} items.",
        )
    tasks = [
        sample(
            engine, options, cut_prompt(query, prompt, keep_special_tokens=options.keep_special_tokens), label, prompt
        )
        for query, prompt, label in zip(body.query, prompts, labels, strict=True)
    ]
    verdicts = await while_connected(request, engine.judge_all(tasks, request_id=request.state.request_id))
    request_facts.get().update(task_count=count, ok=sum(verdict.ok for verdict in verdicts))
    if options.on_error == "raise" and (failed := [verdict for verdict in verdicts if not verdict.ok]):
        raise refuse(failed[0])
    rewards = [0.0 if verdict.reward is None else verdict.reward for verdict in verdicts]
    logs = [numeric_log(verdict) for verdict in verdicts]
    return OpenRLHFReply(
        rewards=rewards,
        scores=[min(1.0, max(0.0, reward)) for reward in rewards],
        extra_logs={name: [log[name] for log in logs] for name in (logs[0] if logs else {})},
    )
