"""What a trainer is told about an answer that could not be judged.

A trainer wants a number for every answer; a verdict has none when the data set's row is broken or when something of
ours failed. ``on_error`` says, once and openly, what stands in its place:

========== =========================================================================================================
on_error   an answer without a reward
========== =========================================================================================================
``raise``  stops the step with :class:`adjudge.VerdictFailed`, which holds the first such verdict
``mask``   is left out: ``None``, for trainers that can leave an answer out (TRL, ms-swift)
``mean``   gets the mean of what was judged in its group (the other answers to its prompt), so that its advantage is
           about 0; without one, the mean of the whole batch; without any, it is masked or raised
``zero``   gets 0, as if it were wrong. This teaches the model that whatever broke was its fault
========== =========================================================================================================

Whatever the policy, failures are counted in the metrics and logged as warnings: no zero is silent. Mistakes that every
step would repeat (a wrong key, a request that the server refuses, an unusable setting) are raised under every policy.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, get_args

from adjudge import (
    AdjudgeError,
    AsyncClient,
    AuthenticationFailed,
    ConfigurationError,
    InvalidRequest,
    VerdictFailed,
)
from adjudge.types import TaskDefaults, Verdict

__all__ = ["OnError", "check_on_error", "collect", "metrics_of", "rewards_of", "warn_about"]

log = logging.getLogger("adjudge.trainer")

OnError = Literal["raise", "mask", "zero", "mean"]


def check_on_error(on_error: str) -> None:
    """Raises ``ValueError`` unless ``on_error`` is a policy."""
    if on_error not in get_args(OnError):
        raise ValueError(f"on_error is {on_error!r}; it has to be one of {', '.join(get_args(OnError))}")


async def collect(
    client: AsyncClient, tasks: Iterable[Mapping[str, Any]], count: int, *, defaults: TaskDefaults | None = None
) -> list[Verdict]:
    """One verdict for each of ``count`` tasks, whatever happens on the way.

    When the call fails, the tasks that have no verdict yet get an ``unavailable`` one. Raises only what every later
    call would run into as well: :class:`ConfigurationError`, :class:`AuthenticationFailed`, :class:`InvalidRequest`.
    """
    verdicts: list[Verdict | None] = [None] * count
    missing = Verdict.failed("unavailable", "The server sent no verdict.")
    try:
        async with aclosing(client.verify_many(tasks, defaults=defaults)) as items:
            async for index, verdict in items:
                verdicts[index] = verdict
    except (ConfigurationError, AuthenticationFailed, InvalidRequest):
        raise
    except AdjudgeError as error:
        missing = Verdict.failed("unavailable", f"{type(error).__name__}: {error}")
    return [missing if verdict is None else verdict for verdict in verdicts]


def rewards_of(
    verdicts: Sequence[Verdict],
    on_error: OnError,
    *,
    groups: Sequence[Hashable] | None = None,
    can_mask: bool = True,
) -> list[float | None]:
    """The rewards of ``verdicts`` under a policy; see the module docstring.

    Args:
        verdicts: one for each answer.
        on_error: the policy.
        groups: what tells the answers of one prompt from those of another; without it all are one group.
        can_mask: does the trainer know answers without a reward? If not, ``mask`` raises as ``raise`` does.

    Raises:
        VerdictFailed: the policy is ``raise``, or there is neither a mask nor a mean.
    """
    check_on_error(on_error)
    rewards = [verdict.reward for verdict in verdicts]
    if on_error == "zero":
        return [0.0 if reward is None else reward for reward in rewards]
    if on_error == "mean":
        rewards = _with_means(rewards, groups if groups is not None else [None] * len(rewards))
    if on_error == "raise" or not can_mask:
        for verdict, reward in zip(verdicts, rewards, strict=True):
            if reward is None:
                raise VerdictFailed(verdict)
    return rewards


def _with_means(rewards: Sequence[float | None], groups: Sequence[Hashable]) -> list[float | None]:
    judged: defaultdict[Hashable, list[float]] = defaultdict(list)
    for reward, group in zip(rewards, groups, strict=True):
        if reward is not None:
            judged[group].append(reward)
    everything = [reward for found in judged.values() for reward in found]
    overall = sum(everything) / len(everything) if everything else None
    means = {group: sum(found) / len(found) for group, found in judged.items()}
    return [
        means.get(group, overall) if reward is None else reward for reward, group in zip(rewards, groups, strict=True)
    ]


def metrics_of(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Numbers worth a curve in a trainer's log.

    The keys are always the same: trainers average metrics over their processes name by name, and some hang when one
    process has a name that another has not.
    """
    judged = [verdict for verdict in verdicts if verdict.reward is not None]
    return {
        "failed_share": _share(verdicts, [verdict.reward is None for verdict in verdicts]),
        "invalid_task_share": _share(verdicts, [verdict.status == "invalid_task" for verdict in verdicts]),
        "correct_share": _share(judged, [bool(verdict.correct) for verdict in judged]),
        "no_answer_share": _share(judged, [verdict.category == "no_answer" for verdict in judged]),
        "truncated_share": _share(judged, [verdict.category == "truncated" for verdict in judged]),
        "flagged_share": _share(judged, [bool(verdict.flags) for verdict in judged]),
        "cached_share": _share(judged, [verdict.cached for verdict in judged]),
    }


def _share(of: Sequence[Verdict], holds: Iterable[bool]) -> float:
    return sum(holds) / len(of) if of else 0.0


def warn_about(verdicts: Sequence[Verdict], on_error: OnError) -> None:
    """Log one line that says how many answers have no reward, why, and what they are given."""
    failed = [verdict for verdict in verdicts if verdict.reward is None]
    if not failed:
        return
    counts = ", ".join(f"{count} {status}" for status, count in Counter(v.status for v in failed).most_common())
    log.warning(
        "%d of %d answers have no reward (%s); on_error=%s applies. First: %s",
        len(failed),
        len(verdicts),
        counts,
        on_error,
        failed[0].reason[:300],
    )
