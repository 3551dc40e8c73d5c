"""``<answer> ... </answer>`` and blocks like it, under any names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Tagged", "find_tags"]


@dataclass(frozen=True, slots=True)
class Tagged:
    """One block: ``text[start:end]`` with its tags, holding ``content``; ``closed`` unless the text ends first."""

    name: str
    start: int
    end: int
    content: str
    closed: bool


def find_tags(text: str, names: tuple[str, ...]) -> list[Tagged]:
    """The blocks of these names in order of appearance; names are compared without regard to case.

    Blocks do not nest: an opening tag inside a block of the same name starts the block anew, so that a mention of the
    tag before the block does no harm. A closing tag without an opening one is no block.
    """
    found: list[Tagged] = []
    opened: dict[str, tuple[int, int]] = {}
    for match in _pattern(names).finditer(text):
        name = match.group("name").lower()
        if not match.group("slash"):
            opened[name] = match.span()
        elif name in opened:
            start, content = opened.pop(name)
            found.append(Tagged(name, start, match.end(), text[content : match.start()], True))
    found += [Tagged(name, start, len(text), "", False) for name, (start, _) in opened.items()]
    return sorted(found, key=lambda block: block.start)


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(name) for name in names) or r"(?!)"
    return re.compile(rf"<(?P<slash>/?)\s{{0,4}}(?P<name>{alternatives})\s{{0,4}}>", re.IGNORECASE)
