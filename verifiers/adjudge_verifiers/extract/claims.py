"""Which of several answers is the final one.

A *claim* is a place where a response says what its answer is: a box, a block, an announced phrase. A later claim
replaces an earlier one if the text between them says that something else was done: another step, a correction, a check.
Claims with nothing of that kind between them stand side by side, and then they must agree: ``\\boxed{12}\\boxed{13}``
and "The answer is 12. The answer is 13." are two tries for one reward. Boxes joined by a comma or an "and" are the
parts of one answer. What is denied ("not \\boxed{12}", "\\boxed{12} is wrong") is no claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..base import Extraction
from .rivals import denied, other_answer
from .text import key, plain_latex, unwrap

__all__ = ["Claim", "decide"]

_FAR_APART = 200  # characters between two claims; a text of that length is a step of its own
_SHOWN = 8
_MOST_STANDING = 32
_WORD = re.compile(r"[^\W\d_]+")
_ASSIGNMENT = re.compile(r"[A-Za-z](?:_\{?\w{1,3}\}?)?\s*=")
_ALTERNATIVE = frozenset(
    ("or", "alternatively", "either", "possibly", "maybe", "perhaps", "otherwise", "could", "might", "lor", "vee")
)
_JOINING = frozenset(("and", "also", "y", "und", "et"))
_SAYS_NOTHING = frozenset(
    """a also and answer answers are be correct final get got have hence i is it my option our result so solution the
    therefore think this thus to value we would""".split()  # noqa: SIM905
)

Gap = Literal["joined", "rival", "replaced"]


@dataclass(frozen=True, slots=True)
class Claim:
    """``text[start:end]`` claims that the answer is ``content``; not ``closed`` if the text ended first."""

    start: int
    end: int
    content: str
    closed: bool = True


def decide(text: str, claims: Sequence[Claim], method: str, *, join: bool = False) -> Extraction:
    """The final answer among ``claims``, which are in order of appearance and at least one.

    With ``join``, claims that are listed in one breath form one answer, written with commas.
    """
    if not claims[-1].closed:
        return Extraction("truncated", method=method)
    upheld = (claim for claim in reversed(claims) if not claim.closed or not denied(text, claim.start, claim.end))
    last = next(upheld, None)
    if last is None or not unwrap(last.content):
        return Extraction("none", method=method)
    standing, gaps = [last], list[Gap]()
    for earlier in upheld:
        gap = _gap(text, earlier, standing[-1])
        if gap == "replaced" or not earlier.closed:
            break
        standing.append(earlier)
        gaps.append(gap)
        if len(standing) == _MOST_STANDING:
            break
    standing.reverse()
    if len({_comparable(claim.content) for claim in standing}) == 1:
        other = other_answer(text, last.start, last.end, last.content)
        if other:
            return Extraction("hedged", method=method, candidates=(unwrap(last.content)[:100], other))
        return Extraction("answered", last.content.strip(), method)
    if join and all(gap == "joined" for gap in gaps):
        return Extraction("answered", ", ".join(unwrap(claim.content) for claim in standing), method)
    candidates = tuple(unwrap(claim.content)[:100] for claim in standing[-_SHOWN:])
    return Extraction("hedged" if join else "ambiguous", method=method, candidates=candidates)


def _comparable(content: str) -> str:
    return key(content) if len(content) < 2_000 else content


def _gap(text: str, earlier: Claim, later: Claim) -> Gap:
    if later.start < earlier.end:
        return "replaced"  # one claim inside the other
    if later.start - earlier.end > _FAR_APART:
        return "replaced"
    between = plain_latex(text[earlier.end : later.start])
    words = {word.lower() for word in _WORD.findall(_ASSIGNMENT.sub(" ", between))}
    if words & _ALTERNATIVE:
        return "rival"
    if words <= _JOINING:
        if words or any(mark in between for mark in ",;&、，；"):
            return "joined"
        return "replaced" if "=" in between or "≈" in between or "approx" in between else "rival"
    return "rival" if words <= _SAYS_NOTHING else "replaced"
