"""The words of adjudge: what goes over the wire, in both directions.

A **Task** is one answer to be judged. A **Verdict** is what comes back, always with the same keys. Three things that
other reward services fold into the number 0 stay apart here:

* the answer is wrong           -> ``status="ok"``, a number in ``reward``, and a ``category`` saying how it is wrong;
* the data set's row is broken  -> ``status="invalid_task"``, ``reward=None``;
* our own machinery failed      -> any other ``status``, ``reward=None``.

``reward`` is a finite number if and only if ``status == "ok"``. A verdict can be made in two ways only,
:meth:`Verdict.scored` and :meth:`Verdict.failed`; both end in a validator that refuses every other combination, so that
a zero cannot come out of an ``except``.

The server and every client share this one module; it needs pydantic and nothing else.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

__all__ = [
    "CATEGORIES",
    "FAILURES",
    "RETRYABLE",
    "BatchReply",
    "BatchRequest",
    "Category",
    "ContentPart",
    "Failure",
    "Message",
    "Status",
    "StreamItem",
    "Task",
    "TaskDefaults",
    "Timing",
    "Trust",
    "Verdict",
    "text_of",
]

Failure = Literal[
    "invalid_task",
    "verifier_timeout",
    "verifier_error",
    "unavailable",
    "overloaded",
    "cancelled",
]
"""Why there is no reward.

=================== ============================== ======= ==========================================================
status              whose fault                    retry?  meaning
=================== ============================== ======= ==========================================================
``invalid_task``    the data set                   no      unknown verifier, unusable reference or options
``verifier_timeout`` ours                          no      the verifier used up its own time on this answer
``verifier_error``  ours                           no      the verifier crashed, ran out of memory, or abstained
``unavailable``     ours                           yes     a judge, a sandbox or a worker is down
``overloaded``      ours                           yes     the queue was full, or the task waited in it for too long
``cancelled``       the client                     yes     the client went away, or its deadline passed
=================== ============================== ======= ==========================================================
"""

Status = Literal[
    "ok",
    "invalid_task",
    "verifier_timeout",
    "verifier_error",
    "unavailable",
    "overloaded",
    "cancelled",
]
"""``ok`` (judged; ``reward`` is a number) or one of :data:`Failure`."""

Category = Literal[
    "correct",
    "partial",
    "wrong_answer",
    "no_answer",
    "wrong_format",
    "truncated",
    "ambiguous",
    "hedged",
    "compile_error",
    "runtime_error",
    "time_limit",
    "memory_limit",
    "output_limit",
    "tampered",
]
"""What an ``ok`` verdict found. All but ``correct`` and ``partial`` are faults of the answer, a program's own
time limit included: a program that is too slow is wrong, a *verifier* that is too slow is ``verifier_timeout``."""

Trust = Literal["rules", "in_process", "model"]
"""What the reward rests on: ``rules`` that the answer cannot reach; checks that ran ``in_process`` beside untrusted
code, which could have touched them; the opinion of a ``model``."""

FAILURES: frozenset[str] = frozenset(Failure.__args__)  # type: ignore[attr-defined]
CATEGORIES: frozenset[str] = frozenset(Category.__args__)  # type: ignore[attr-defined]
RETRYABLE: frozenset[str] = frozenset({"unavailable", "overloaded", "cancelled"})


class ContentPart(BaseModel):
    """One part of a chat message's content, as in the OpenAI chat format. Only ``text`` is read by text verifiers."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["text"])
    text: str | None = None


class Message(BaseModel):
    """One chat message. Further keys (``tool_calls``, ``name``, ``reasoning_content``, ...) are kept."""

    model_config = ConfigDict(extra="allow")

    role: str = Field(examples=["assistant"])
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The text of this message; parts of other kinds contribute nothing."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text or "" for part in self.content or () if part.type in ("text", "output_text"))


def text_of(content: str | list[Message] | None) -> str:
    """The text to be judged: a string as it is; of a conversation, the text of its last assistant message.

    A conversation without an assistant message has no answer, and its text is empty.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return next((message.text for message in reversed(content) if message.role == "assistant"), "")


class TaskDefaults(BaseModel):
    """What every task of a batch takes unless it says otherwise.

    ``options`` and ``metadata`` are merged key by key, the task's own keys winning; the rest is replaced as a whole.
    """

    model_config = ConfigDict(extra="forbid")

    verifier: str | None = Field(default=None, description="Name of a verifier, see `GET /v1/verifiers`.")
    recipe: str | None = Field(default=None, description="Name of a recipe, see `GET /v1/recipes`.")
    prompt: str | list[Message] | None = Field(default=None, description="What the model was asked.")
    reference: JsonValue = Field(default=None, description="What is right; its schema is the verifier's own.")
    options: dict[str, JsonValue] = Field(default_factory=dict, description="How to judge; the verifier's own schema.")
    metadata: dict[str, JsonValue] = Field(
        default_factory=dict, description="Yours. Recorded, never judged; `data_source` may route a recipe."
    )
    timeout_s: float | None = Field(
        default=None, gt=0, le=3600, allow_inf_nan=False, description="Seconds of judging, counted from its start."
    )
    queue_timeout_s: float | None = Field(
        default=None, gt=0, le=3600, allow_inf_nan=False, description="Seconds to wait for a free worker at most."
    )


class Task(TaskDefaults):
    """One answer to be judged, by a ``verifier`` or by a ``recipe`` (exactly one of them)."""

    id: str | int | None = Field(default=None, description="Yours; returned on the verdict.")
    response: str | list[Message] = Field(description="The model's answer: text, or chat messages.")

    @property
    def text(self) -> str:
        """The text of the response that is judged, see :func:`text_of`."""
        return text_of(self.response)


class Timing(BaseModel):
    """Where the time went, in milliseconds. Waiting is never charged to the answer's own limits."""

    model_config = ConfigDict(extra="allow")

    queue_ms: float = 0.0
    run_ms: float = 0.0


class Verdict(BaseModel):
    """The judgement of one task. Made by :meth:`scored` or :meth:`failed`, never field by field."""

    model_config = ConfigDict(extra="allow", ser_json_inf_nan="null")

    id: str | int | None = None
    status: Status
    reward: float | None
    correct: bool | None = Field(default=None, description="Is the answer right as a whole? null when not judged.")
    category: str | None = Field(default=None, description=f"One of {', '.join(sorted(CATEGORIES))}; null unless ok.")
    parts: dict[str, float | None] = Field(
        default_factory=dict,
        description="Named components of the reward; null for one that was not needed. Same keys for one verifier.",
    )
    flags: list[str] = Field(default_factory=list, description="Suspected reward hacks.")
    extracted: str | None = Field(default=None, description="The span of the response that was judged.")
    reason: str = Field(default="", description="One sentence: why this category, or what to change.")
    evidence: dict[str, Any] = Field(default_factory=dict, description="What the reason rests on; per verifier.")
    verifier: str | None = None
    version: str | None = None
    cached: bool = False
    isolation: str | None = Field(default=None, description="What held the answer's code; null if none ran.")
    trust: Trust | None = None
    timing: Timing = Field(default_factory=Timing)

    @model_validator(mode="after")
    def _reward_iff_ok(self) -> Self:
        if self.status == "ok":
            if self.reward is None or not math.isfinite(self.reward):
                raise ValueError("an ok verdict needs a finite reward")
        elif self.reward is not None:
            raise ValueError(f"a verdict with status {self.status!r} has no reward")
        return self

    @classmethod
    def scored(
        cls,
        reward: float,
        category: Category,
        reason: str = "",
        *,
        correct: bool | None = None,
        parts: dict[str, float | None] | None = None,
        flags: list[str] | None = None,
        extracted: str | None = None,
        evidence: dict[str, Any] | None = None,
        isolation: str | None = None,
        trust: Trust = "rules",
    ) -> Verdict:
        """The answer was judged. ``correct`` follows from ``category`` unless it is given."""
        return cls(
            status="ok",
            reward=reward,
            correct=category == "correct" if correct is None else correct,
            category=category,
            parts=parts if parts is not None else {"accuracy": reward},
            flags=flags or [],
            extracted=extracted,
            reason=reason,
            evidence=evidence or {},
            isolation=isolation,
            trust=trust,
        )

    @classmethod
    def failed(
        cls,
        status: Failure,
        reason: str,
        *,
        extracted: str | None = None,
        evidence: dict[str, Any] | None = None,
        isolation: str | None = None,
    ) -> Verdict:
        """There is no judgement, and ``reason`` says what stood in the way and what to change."""
        return cls(
            status=status,
            reward=None,
            reason=reason,
            extracted=extracted,
            evidence=evidence or {},
            isolation=isolation,
        )

    @property
    def ok(self) -> bool:
        """Was the answer judged, so that ``reward`` is a number?"""
        return self.status == "ok"

    @property
    def retryable(self) -> bool:
        """May the same task succeed if it is sent again later?"""
        return self.status in RETRYABLE


class BatchRequest(BaseModel):
    """Body of ``POST /v1/verify/batch``. Tasks are checked one by one: a bad one spoils only its own verdict."""

    model_config = ConfigDict(extra="forbid")

    tasks: list[Any] = Field(description="Tasks, each as for `POST /v1/verify`.")
    defaults: TaskDefaults = Field(default_factory=TaskDefaults)


class BatchReply(BaseModel):
    """Reply of ``POST /v1/verify/batch``: one verdict for each task, in the order of the tasks."""

    verdicts: list[Verdict]


class StreamItem(BaseModel):
    """One line of the NDJSON reply of ``POST /v1/verify/batch``: a verdict as soon as it is ready."""

    index: int = Field(ge=0, description="Position of the task in the request.")
    verdict: Verdict
