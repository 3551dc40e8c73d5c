"""TRL: a reward function for ``GRPOTrainer``, ``RLOOTrainer``, ``AsyncGRPOTrainer`` and Unsloth.

::

    from adjudge_trainer.adapters.trl import reward_function

    trainer = GRPOTrainer(..., reward_funcs=reward_function(verifier="math", reference_column="solution"))

What TRL wants of such a function differs between versions, and this one is made to fit them all:

* a *coroutine function*, so that reward functions run concurrently: TRL asks ``inspect.iscoroutinefunction``. TRL up
  to 0.26 cannot await at all; use ``blocking=True`` there;
* *picklable*, because ``AsyncGRPOTrainer`` sends it to a spawned process; a closure is not;
* with a ``__name__`` of its own, which becomes the name of the metric. Newer TRL looks through a ``functools.partial``
  and would call every one of ours by the name of the function inside.

So it is an object of a module-level class with an ``async def __call__`` that also has what makes Python take an object
for a function (``__code__`` and its kin, as compiled functions have them).

An answer that could not be judged is ``None``. TRL from 1.6 leaves such an answer out of its group (advantage 0); TRL
up to 1.3 counts it as 0 when no other reward function has a number for it, so choose ``on_error="mean"`` there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, cast

from adjudge import AsyncClient, ConfigurationError
from adjudge._portal import portal
from adjudge.types import TaskDefaults, Verdict

from ..policy import OnError, check_on_error, collect, metrics_of, rewards_of, warn_about

__all__ = ["BlockingRewardFunction", "RewardFunction", "RewardSettings", "reward_function"]


@dataclass(frozen=True)
class RewardSettings:
    """What :func:`reward_function` was given. Printing it shows no key."""

    client: AsyncClient = field(repr=False)
    verifier: str | None
    recipe: str | None
    reference_column: str | None
    options: Mapping[str, Any]
    options_column: str | None
    metadata_columns: Sequence[str]
    send_prompt: bool
    on_error: OnError
    log_prefix: str
    timeout_s: float | None


def reward_function(
    *,
    verifier: str | None = None,
    recipe: str | None = None,
    reference_column: str | None = "solution",
    options: Mapping[str, Any] | None = None,
    options_column: str | None = None,
    metadata_columns: Sequence[str] = ("data_source",),
    send_prompt: bool = True,
    on_error: OnError = "mask",
    name: str | None = None,
    log_prefix: str = "adjudge",
    task_timeout_s: float | None = None,
    blocking: bool = False,
    client: AsyncClient | None = None,
    **client_options: Any,
) -> RewardFunction | BlockingRewardFunction:
    """A reward function for TRL that asks an adjudge server.

    Args:
        verifier: name of the verifier; or give ``recipe``.
        recipe: name of a recipe of the server.
        reference_column: the data set's column that holds what is right; ``None`` if the verifier needs nothing.
        options: options of the verifier, for every row.
        options_column: a column with further options for each row, which win.
        metadata_columns: columns to send along, as far as the data set has them; ``data_source`` may route a recipe.
            The number of tokens of each completion is sent as well, as ``response_tokens``.
        send_prompt: send the text of the prompt, too.
        on_error: what an answer without a reward becomes, see :mod:`adjudge_trainer.policy`.
        name: the name in TRL's metrics; by default ``adjudge_<verifier or recipe>``.
        log_prefix: begins the names of logged metrics and of the columns in the table of completions.
        task_timeout_s: limit for judging one answer; by default the verifier's own.
        blocking: make a plain function that waits, for TRL without support for async ones.
        client: the client to use; by default ``AsyncClient(**client_options)``.
        **client_options: ``base_url``, ``api_key``, ``timeout_s``, ``max_retries``, ``max_concurrency``; what is not
            given comes from ``ADJUDGE_BASE_URL`` and so on, now and not in a later process.

    Returns:
        ``async (prompts, completions, completion_ids=None, **columns) -> list[float | None]``
    """
    if (verifier is None) == (recipe is None):
        raise ConfigurationError("Give reward_function() either a verifier or a recipe.")
    if client is not None and client_options:
        raise ConfigurationError(f"Give a client or options for one, not both: {', '.join(client_options)}.")
    check_on_error(on_error)
    settings = RewardSettings(
        client=client if client is not None else AsyncClient(**client_options),
        verifier=verifier,
        recipe=recipe,
        reference_column=reference_column,
        options=dict(options or {}),
        options_column=options_column,
        metadata_columns=tuple(metadata_columns),
        send_prompt=send_prompt,
        on_error=on_error,
        log_prefix=log_prefix,
        timeout_s=task_timeout_s,
    )
    return (BlockingRewardFunction if blocking else RewardFunction)(settings, name or f"adjudge_{verifier or recipe}")


class BlockingRewardFunction:
    """What :func:`reward_function` returns with ``blocking=True``."""

    def __init__(self, settings: RewardSettings, name: str) -> None:
        self.settings = settings
        self.__name__ = name

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], *args: Any, **kw: Any) -> list[float | None]:
        return portal().run(_score(self.settings, prompts, completions, *args, **kw))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__} {self.settings}>"


class RewardFunction:
    """What :func:`reward_function` returns. See the module docstring."""

    def __init__(self, settings: RewardSettings, name: str) -> None:
        self.settings = settings
        self.__name__ = name
        self.__qualname__ = name

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], *args: Any, **kw: Any
    ) -> list[float | None]:
        return await _score(self.settings, prompts, completions, *args, **kw)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__} {self.settings}>"

    @property
    def __code__(self) -> CodeType:
        return type(self).__call__.__code__

    @property
    def __defaults__(self) -> None:
        return None

    @property
    def __kwdefaults__(self) -> None:
        return None

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return type(self).__call__.__annotations__

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__call__)


async def _score(
    settings: RewardSettings,
    prompts: Sequence[Any],
    completions: Sequence[Any],
    completion_ids: Any = None,
    *,
    log_extra: Callable[[str, list[Any]], Any] | None = None,
    log_metric: Callable[[str, float], Any] | None = None,
    trainer_state: Any = None,
    environments: Any = None,
    **columns: Any,
) -> list[float | None]:
    """One call of TRL: all completions of this process. ``columns`` are the data set's, one value per completion."""
    tasks = _tasks(settings, prompts, completions, columns)
    if completion_ids is not None:
        # What the `length` verifier counts: only the trainer has the tokenizer.
        for task, tokens in zip(tasks, completion_ids, strict=True):
            task["metadata"] = {**task.get("metadata", {}), "response_tokens": len(tokens)}
    defaults = TaskDefaults(verifier=settings.verifier, recipe=settings.recipe, timeout_s=settings.timeout_s)
    verdicts = await collect(settings.client, tasks, len(tasks), defaults=defaults)
    warn_about(verdicts, settings.on_error)
    _report(settings.log_prefix, verdicts, log_extra, log_metric)
    return rewards_of(verdicts, settings.on_error, groups=[_group(prompt) for prompt in prompts])


def _tasks(
    settings: RewardSettings, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]
) -> list[dict[str, Any]]:
    references = _column(columns, settings.reference_column, "reference_column")
    own_options = _column(columns, settings.options_column, "options_column")
    metadata = {name: columns[name] for name in settings.metadata_columns if name in columns}
    tasks: list[dict[str, Any]] = []
    for i, completion in enumerate(completions):
        task: dict[str, Any] = {"response": completion}
        if settings.send_prompt:
            task["prompt"] = _text_only(prompts[i])
        if references is not None:
            task["reference"] = references[i]
        if settings.options or own_options is not None:
            task["options"] = {**settings.options, **_options(own_options[i] if own_options is not None else None)}
        if metadata:
            task["metadata"] = {name: values[i] for name, values in metadata.items()}
        tasks.append(task)
    return tasks


def _column(columns: Mapping[str, Any], name: str | None, setting: str) -> Sequence[Any] | None:
    if name is None:
        return None
    if name not in columns:
        there = ", ".join(sorted(columns)) or "none"
        raise ConfigurationError(f"The data set has no column {name!r}; set {setting}. Its columns: {there}.")
    return cast("Sequence[Any]", columns[name])


def _options(own: Any) -> Mapping[str, Any]:
    """Options of one row. A table gives every row all keys; those that this row does not have are ``None`` there."""
    if isinstance(own, str):
        own = json.loads(own)
    return {key: value for key, value in own.items() if value is not None} if own else {}


def _text_only(prompt: Any) -> Any:
    """A prompt without what cannot be sent: of each message its role, and of its content the text."""
    if not isinstance(prompt, list):
        return prompt
    messages = []
    for message in prompt:
        content = message.get("content")
        if isinstance(content, list):
            content = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        messages.append({"role": message.get("role", "user"), "content": content})
    return messages


def _group(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else json.dumps(_text_only(prompt), sort_keys=True, default=repr)


def _report(
    prefix: str,
    verdicts: Sequence[Verdict],
    log_extra: Callable[[str, list[Any]], Any] | None,
    log_metric: Callable[[str, float], Any] | None,
) -> None:
    """Columns for TRL's table of completions, and metrics. TRL before 1.0 has neither."""
    if log_extra is not None:
        log_extra(f"{prefix}_status", [verdict.status for verdict in verdicts])
        log_extra(f"{prefix}_category", [verdict.category or "" for verdict in verdicts])
        log_extra(f"{prefix}_extracted", [verdict.extracted or "" for verdict in verdicts])
        log_extra(f"{prefix}_reason", [verdict.reason for verdict in verdicts])
        log_extra(f"{prefix}_parts", [json.dumps(verdict.parts) for verdict in verdicts])
    if log_metric is not None:
        for name, value in metrics_of(verdicts).items():
            log_metric(f"{prefix}/{name}", value)
