r"""``\boxed{...}``: every box of a text, with its braces matched, in one pass.

A box may hold braces, escaped braces and further boxes; ``\fbox`` and ``\framebox`` are boxes as well, and so is
``\boxed 5`` without braces. Two frequent accidents of escaping are read as what they were meant to be: ``\\boxed``
(escaped twice) and a backspace followed by ``oxed`` (a ``\b`` that a string literal swallowed).

A box that is not closed was cut off. It is reported as such, because the answer that the model was about to write is
unknown and an earlier box is not it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Box", "find_boxes"]

_TOKEN = re.compile(
    r"(?P<box>(?:\\{1,2}(?:boxed|fbox|framebox)|\x08oxed)(?![A-Za-z]))|(?P<escape>\\.)|(?P<open>\{)|(?P<close>\})",
    re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"[+-]?\d[\d.,/]*|[A-Za-z](?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class Box:
    """One box: ``text[start:end]``, holding ``content``."""

    start: int
    end: int
    content: str
    closed: bool


@dataclass(slots=True)
class _Span:
    """A box under way: where it stands, where its content does, and the last box that was closed inside it."""

    start: int
    first: int
    last: int = -1
    end: int = -1
    inner: _Span | None = None


def find_boxes(text: str) -> list[Box]:
    """The outermost boxes in order of appearance; of a box that holds nothing but a box, the content of the inner one.

    A box that is never closed comes with ``closed=False`` and no content; closed boxes inside it are listed as well.
    """
    braces: list[_Span | None] = []  # every open brace, with the box that it opened
    under_way: list[_Span] = []
    found: list[_Span] = []
    cut_off: list[_Span] = []
    resume = 0
    for token in _TOKEN.finditer(text):
        if token.start() < resume:
            continue
        if token.lastgroup == "open":
            braces.append(None)
        elif token.lastgroup == "box":
            resume = _open(text, token, braces, under_way, found, cut_off)
        elif token.lastgroup == "close" and braces:
            span = braces.pop()
            if span is not None:
                under_way.pop()
                _close(text, span, token.start(), under_way, found)
    boxes = [Box(span.start, span.end, text[span.first : span.last], True) for span in found]
    boxes += [Box(span.start, len(text), "", False) for span in under_way + cut_off]
    return sorted(boxes, key=lambda box: box.start)


def _open(
    text: str,
    token: re.Match[str],
    braces: list[_Span | None],
    under_way: list[_Span],
    found: list[_Span],
    cut_off: list[_Span],
) -> int:
    """A box command was met; returns where to go on."""
    after = token.end()
    start = _skip_space(text, after)
    if start == len(text):
        cut_off.append(_Span(token.start(), start))
        return start
    if text[start] == "{":
        span = _Span(token.start(), start + 1)
        braces.append(span)
        under_way.append(span)
        return start + 1
    bare = _BARE.match(text, start)
    if bare is None:
        return after
    content = bare.group().rstrip(".,/")
    found.append(_Span(token.start(), start, start + len(content), bare.end()))
    return bare.end()


def _close(text: str, span: _Span, at: int, under_way: list[_Span], found: list[_Span]) -> None:
    """The brace at ``at`` closes a box, which swallows the ones that stand inside it."""
    span.last, span.end = at, at + 1
    inner = span.inner
    if inner is not None and _skip_space(text, span.first) == inner.start and _skip_space(text, inner.end) == at:
        span.first, span.last = inner.first, inner.last
    span.inner = None
    while found and found[-1].start > span.start:
        found.pop()
    found.append(span)
    if under_way:
        under_way[-1].inner = span


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
