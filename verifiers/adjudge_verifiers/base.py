"""The contract of a verifier.

A verifier is a class in a file of its own::

    class EqualsOptions(Options):
        ignore_case: bool = False

    @register
    class Equals(Verifier[str, EqualsOptions]):
        '''Is the answer the reference, letter for letter?'''

        name, version, lane = "equals", "1", "inline"
        Reference, Options = str, EqualsOptions

        def verify(self, call: Call[str, EqualsOptions], ctx: Context) -> Verdict:
            ...

* ``verify`` is a plain function of its input on the ``inline`` and ``cpu`` lanes, and ``async`` on the others, where
  ``ctx`` hands out what may be used (``ctx.sandbox``) and nothing else.
* ``extract``, optional, is bounded and cheap. It runs in the API process; its result is the cache key and is all that
  ``verify`` may look at besides the reference and the options, so that answers that end alike are judged once.
* A verifier returns :meth:`Verdict.scored` or raises from :mod:`adjudge_verifiers.errors`. It catches nothing broad,
  keeps no state, reads no clock and no environment, and never calls another verifier: a recipe does that.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from adjudge.types import Category, Message, Status, Verdict
from adjudge_sandbox.base import Sandbox
from adjudge_sandbox.container.base import Boxes

from .errors import Unavailable

__all__ = [
    "Call",
    "Context",
    "Example",
    "Extraction",
    "ExtractionOutcome",
    "Lane",
    "NoReference",
    "Options",
    "Verifier",
]

Lane = Literal["inline", "cpu", "sandbox", "judge", "gpu"]
"""Where a verifier runs: ``inline`` (bounded string work in the API process), ``cpu`` (killable worker processes),
``sandbox`` (programs in jails), ``judge`` (calls to a model server), ``gpu`` (a worker that holds a model)."""

ExtractionOutcome = Literal["answered", "none", "truncated", "ambiguous", "hedged"]
"""What looking for the final answer found: one answer; none; one that was cut off; several equally final ones that
differ; or a text that offers several answers at once."""

R = TypeVar("R")
O = TypeVar("O", bound="Options")  # noqa: E741


@dataclass(frozen=True, slots=True)
class Extraction:
    """The final answer of a response. ``text`` is empty unless ``outcome`` is ``answered``."""

    outcome: ExtractionOutcome
    text: str = ""
    method: str = ""
    """How it was found: ``boxed``, ``answer_tag``, ``anchor``, ``hash``, ``last_number``, ``whole``, ..."""
    candidates: tuple[str, ...] = ()
    """What stood to choose from when the outcome is ``ambiguous`` or ``hedged``."""


class Options(BaseModel):
    """Base of every verifier's options: unknown keys are refused, values are finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


NoReference = type(None)
"""``Reference`` of a verifier that needs none."""


@dataclass(frozen=True, slots=True)
class Call(Generic[R, O]):
    """One call of a verifier: a task whose reference and options have been checked against its schemas."""

    response: str
    """The text to be judged, at most ``limits.max_response_chars`` long."""
    reference: R
    options: O
    prompt: str | list[Message] | None = None
    extraction: Extraction | None = None
    """Set if and only if the verifier has ``extract``; then ``response`` is empty."""
    timeout_s: float | None = None
    """The task's own limit; ``None`` leaves the verifier's default."""
    metadata: dict[str, JsonValue] = field(default_factory=dict)


class Context:
    """What a verifier may use. A handle that is not there raises :class:`Unavailable` when asked for."""

    def __init__(self, sandbox: Sandbox | None = None, boxes: Boxes | None = None) -> None:
        self._sandbox = sandbox
        self._boxes = boxes

    @property
    def sandbox(self) -> Sandbox:
        """Runs programs in jails, see :mod:`adjudge_sandbox.base`."""
        if self._sandbox is None:
            raise Unavailable("This server runs no sandbox. Start it on a host where `adjudge doctor` finds one.")
        return self._sandbox

    @property
    def boxes(self) -> Boxes:
        """Throw-away machines for whole repositories, see :mod:`adjudge_sandbox.container.base`."""
        if self._boxes is None:
            raise Unavailable("This server has no container engine. Start Docker and set sandbox.container_image.")
        return self._boxes


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example for the catalogue. The test-suite runs every one of them."""

    response: str
    reference: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    reward: float | None = 1.0
    status: Status = "ok"
    category: Category | None = None
    note: str = ""


class Verifier(ABC, Generic[R, O]):
    """One way of judging. The class docstring says what counts as correct and what it cannot judge."""

    name: ClassVar[str]
    """Snake case, unique."""
    version: ClassVar[str]
    """Part of the cache key and of every verdict; raise it whenever a verdict may change."""
    lane: ClassVar[Lane]
    Reference: ClassVar[Any]
    """A type that pydantic can check: a model, ``str``, ``list[str]``, or :data:`NoReference`."""
    Options: ClassVar[type[BaseModel]]
    source: ClassVar[str] = ""
    """Paper, or the grader whose published behaviour this is."""
    examples: ClassVar[tuple[Example, ...]] = ()
    timeout_s: ClassVar[float] = 5.0
    """Seconds of CPU time (``cpu``) or wall time (the other lanes) for one call, unless the task says otherwise."""
    reads_metadata: ClassVar[bool] = False
    """Does a verdict depend on ``call.metadata``? Then it is part of the cache key."""
    preload: ClassVar[tuple[str, ...]] = ()
    """``cpu`` lane: modules to import before workers are forked."""

    def extract(self, response: str, options: O) -> Extraction | None:
        """Find the final answer. ``None``, the default: this verifier looks at the whole response."""
        return None

    def extract_for(self, response: str, options: O, reference: R) -> Extraction | None:
        """:meth:`extract`, for a verifier whose reference says what to look for. What the engine calls."""
        return self.extract(response, options)

    def costly(self, call: Call[R, O]) -> bool:
        """May this call cost far more than most? Such calls start at the lowest priority; no verdict depends on it.

        Runs in the API process for ``cpu`` verifiers, so it looks at the text and computes nothing.
        """
        return False

    def gold(self, reference: R, options: O) -> str | None:
        """A response that this reference makes right, for checking a data set; ``None`` if none can be written."""
        return None

    @abstractmethod
    def verify(self, call: Call[R, O], ctx: Context) -> Verdict | Awaitable[Verdict]:
        """Judge. Raises from :mod:`adjudge_verifiers.errors`; anything else is a bug and becomes ``verifier_error``."""

    @classmethod
    def has_extract(cls) -> bool:
        return cls.extract is not Verifier.extract

    @classmethod
    def description(cls) -> str:
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def reference_adapter(cls) -> TypeAdapter[Any]:
        """Checks references; built once per class."""
        if "_reference_adapter" not in cls.__dict__:
            cls._reference_adapter = TypeAdapter(cls.Reference)
        return cls._reference_adapter

    _reference_adapter: ClassVar[TypeAdapter[Any]]
