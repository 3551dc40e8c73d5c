"""``POST /compat/slime``: slime's ``--rm-type remote_rm --rm-url``.

Request ``{"prompt", "response", "label"}``, one sample. Reply: the reward as a bare JSON number, or with
``reply=dict`` an object of numbers (``--reward-key reward``). A list of samples, which may be empty, gets a list.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from adjudge.types import Verdict

from ..body import body_schema, parse, read_json
from ..compat import CompatOptions, cut_prompt, numeric_log, options_of, refuse, sample
from ..disconnect import while_connected
from ..middleware import request_facts
from ..tasks import check_count
from .verify import engine_of

__all__ = ["BODIES", "SlimeRequest", "router"]

router = APIRouter(prefix="/compat", tags=["compat"])


class SlimeRequest(BaseModel):
    """What slime sends for one sample; ``metadata`` never arrives."""

    prompt: Any = None
    response: str
    label: Any = Field(default="", description="The reference, or a data set's row.")


BODIES = (SlimeRequest,)


@router.post(
    "/slime",
    summary="slime's remote reward model",
    response_model=None,
    openapi_extra={
        **body_schema(SlimeRequest),
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
            for name in ("verifier", "recipe", "on_error", "reply", "reward_key", "key")
        ],
    },
)
async def slime(request: Request) -> Response:
    """The reward of one sample. Without one it is an HTTP error, unless ``on_error=zero``."""
    options = options_of(request)
    body = await read_json(request)
    engine = engine_of(request)
    samples = [parse(SlimeRequest, item) for item in (body if isinstance(body, list) else [body])]
    check_count(len(samples), engine.settings.limits)
    tasks = [
        sample(
            engine,
            options,
            cut_prompt(item.response, item.prompt, keep_special_tokens=options.keep_special_tokens),
            item.label,
            item.prompt,
        )
        for item in samples
    ]
    verdicts = await while_connected(request, engine.judge_all(tasks, request_id=request.state.request_id))
    request_facts.get().update(task_count=len(verdicts), ok=sum(verdict.ok for verdict in verdicts))
    replies = [_reply(verdict, options) for verdict in verdicts]
    return JSONResponse(replies if isinstance(body, list) else replies[0])


def _reply(verdict: Verdict, options: CompatOptions) -> float | dict[str, float]:
    if verdict.reward is None and options.on_error == "raise":
        raise refuse(verdict)
    reward = 0.0 if verdict.reward is None else verdict.reward
    if options.reply == "number":
        return reward
    return {options.reward_key: reward, **numeric_log(verdict)}
