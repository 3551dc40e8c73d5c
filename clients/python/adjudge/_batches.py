"""One batch of tasks on its way to a verdict for each, without any input or output.

A batch is sent as often as needed, each time only with the tasks that have no final verdict yet:

* a stream that breaks, or a request that is refused for now, is tried again under :class:`Retry`;
* a verdict that may yet become better (``overloaded``, ``unavailable``, ``cancelled``) is kept in hand and its task is
  sent again; when the tries are used up the verdict in hand is the answer;
* a request that is too large for the server (413), or that its JSON parser refuses (one text of it is nested too
  deeply, say), is halved until the task at fault stands alone; that one is ``invalid_task``.

A final verdict is never asked for again. A try that brought at least one starts the count of tries anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from ._policy import Retry
from .errors import AdjudgeError, ConnectionFailed, InvalidRequest, ProtocolError, ServerError
from .types import StreamItem, Verdict

__all__ = ["Batch", "Envelope", "Item", "Lines", "batches_of"]

MAX_BATCH_BYTES = 8 * 1024 * 1024
"""A batch is closed before it grows beyond this, so that it stays below the body limit of the server."""

Item = tuple[int, Verdict]
"""The position of a task among all tasks of the call, and its verdict."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What stands around the encoded tasks of a request."""

    path: str
    key: str
    fields: tuple[tuple[str, bytes], ...] = ()

    def body(self, encoded: Iterable[bytes]) -> bytes:
        head = b'{"%s":[' % self.key.encode()
        rest = b"".join(b',"%s":%s' % (name.encode(), value) for name, value in self.fields)
        return head + b",".join(encoded) + b"]" + rest + b"}"


class Batch:
    """The tasks of one batch and what is known about each. Driven by ``_fleet.py``."""

    def __init__(
        self, envelope: Envelope, tasks: Iterable[tuple[int, bytes | Verdict]], retry: Retry, *, retry_failed: bool
    ) -> None:
        self.envelope = envelope
        self.retry = retry
        self._retry_failed = retry_failed
        self._open: dict[int, bytes] = {}
        self._in_hand: dict[int, Verdict] = {}
        self._sent: list[int] = []
        self._ready: list[Item] = []
        for position, task in tasks:
            if isinstance(task, Verdict):
                self._ready.append((position, task))
            else:
                self._open[position] = task
        self._most = len(self._open)
        self._progress = False
        self._suspicious = False

    @property
    def done(self) -> bool:
        """Has every task a final verdict?"""
        return not self._open

    def ready(self) -> list[Item]:
        """The final verdicts since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def body(self) -> bytes:
        """The next request."""
        self._sent = list(self._open)[: self._most]
        self._progress = False
        return self.envelope.body(self._open[position] for position in self._sent)

    def take(self, line: bytes) -> None:
        """Note one line of the reply. Raises :class:`ProtocolError` for what is no line of ours."""
        try:
            item = StreamItem.model_validate_json(line)
        except ValidationError:
            shown = line[:200].decode("utf-8", "replace")
            raise ProtocolError(f"A line of the reply is not a verdict: {shown!r}. Is base_url right?") from None
        if item.index >= len(self._sent):
            raise ProtocolError(f"The reply has a verdict for task {item.index} of a batch of {len(self._sent)}.")
        position = self._sent[item.index]
        if position not in self._open:
            return
        if self._retry_failed and item.verdict.retryable:
            self._in_hand[position] = item.verdict
        else:
            self._settle(position, item.verdict)

    def after_reply(self, error: AdjudgeError | None) -> float:
        """Take stock when the reply has ended, by ``error`` or whole. Returns seconds to wait before the next request.

        Raises the error that is left when the tries are used up and a task has no verdict at all.
        """
        if self._progress:
            self.retry.reset()
        if isinstance(error, InvalidRequest) and _one_task_may_be_at_fault(error):
            self._halve(error)
            return 0.0
        if self._suspicious and error is None:
            self._most *= 2
        left = [position for position in self._sent if position in self._open]
        if not left:
            return 0.0
        if error is None:
            error = self._why_again(left)
        try:
            return self.retry.pause_s(error)
        except AdjudgeError:
            self._settle_in_hand()
            if any(position in self._open for position in left):
                raise
            return 0.0

    def _why_again(self, left: list[int]) -> AdjudgeError:
        if any(position not in self._in_hand for position in left):
            return ConnectionFailed("The reply ended before every task had its verdict.")
        status = self._in_hand[left[0]].status
        return ServerError(f"The server could not judge every task now ({status}).", status_code=503)

    def _halve(self, error: InvalidRequest) -> None:
        # What is too large stays too large: only after a task that cannot be parsed do requests grow again.
        self._suspicious = error.status_code != 413
        if len(self._sent) > 1:
            self._most = (len(self._sent) + 1) // 2
            return
        self._settle(self._sent[0], Verdict.failed("invalid_task", f"The server cannot read this task: {error}"))
        self._most *= 2 if self._suspicious else 1

    def _settle(self, position: int, verdict: Verdict) -> None:
        self._ready.append((position, verdict))
        self._in_hand.pop(position, None)
        del self._open[position]
        self._progress = True

    def _settle_in_hand(self) -> None:
        for position, verdict in list(self._in_hand.items()):
            self._settle(position, verdict)


def _one_task_may_be_at_fault(error: InvalidRequest) -> bool:
    return error.status_code == 413 or error.problem.get("type") == "urn:adjudge:invalid-json"


def batches_of(tasks: Iterable[bytes | Verdict], size: int) -> Iterator[list[tuple[int, bytes | Verdict]]]:
    """Cut ``tasks`` into batches of at most ``size`` tasks and about :data:`MAX_BATCH_BYTES`, numbering them."""
    if size < 1:
        raise ValueError(f"batch_size is {size}; it has to be 1 or more")
    batch: list[tuple[int, bytes | Verdict]] = []
    weight = 0
    for position, task in enumerate(tasks):
        grows = len(task) if isinstance(task, bytes) else 0
        if batch and (len(batch) >= size or weight + grows > MAX_BATCH_BYTES):
            yield batch
            batch, weight = [], 0
        batch.append((position, task))
        weight += grows
    if batch:
        yield batch


class Lines:
    """Cuts a stream of bytes into lines at ``\\n`` only: JSON text may hold every other line separator."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, without the empty ones."""
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join([*self._rest, whole[0]])
            self._rest = []
        if rest:
            self._rest.append(rest)
        return [line for line in whole if line.strip()]
