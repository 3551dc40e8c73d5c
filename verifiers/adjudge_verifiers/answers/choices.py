"""The options of a multiple-choice question, and which of them an answer names.

An answer names an option by its label (``C``, ``(C)``, ``C.``, ``\\textbf{(C)}``), by its text, or by both; label and
text must then agree. Labels are the keys of a mapping, or the letters from A on for a list.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidReference
from ..extract.text import fold, key, plain_latex, unwrap

__all__ = ["Choices", "Named", "labels_in", "read_choices"]

_LEAD_IN = re.compile(r"^(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)(?:\s+is)?[\s:]+", re.IGNORECASE)
_CONNECTOR = re.compile(r"\s*(?:,|;|/|&|\||\+|,?\s*\b(?:and|or)\b)\s*", re.IGNORECASE)
_ALSO = re.compile(r"\bor\s+(?:option\s+)?[(\[]?([A-Z])(?:[)\].]|\s|$)")
_MAX_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class Choices:
    """Labels in order, and the text of each option as :func:`.text.key` writes it; empty if only labels are known."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]

    def by_text(self, text: str) -> str | None:
        """The label of the only option with this text."""
        wanted = key(text)
        hits = [label for label, known in zip(self.labels, self.texts, strict=True) if known and known == wanted]
        return hits[0] if len(hits) == 1 else None


@dataclass(frozen=True, slots=True)
class Named:
    """The labels that an answer names, in its order; or why it names none."""

    labels: tuple[str, ...] = ()
    problem: Literal["", "nothing", "contradiction"] = ""


def read_choices(options: object, count: int) -> Choices:
    """Options as data sets write them: a list of texts, a mapping, or a list of one-entry mappings; ``None`` for none.

    Without options the labels are the first ``count`` letters. Raises :class:`InvalidReference` for anything else.
    """
    if options is None:
        return Choices(tuple(string.ascii_uppercase[:count]), ("",) * count)
    pairs: list[tuple[str, str]] = []
    if isinstance(options, Mapping):
        pairs = [(str(label), str(text)) for label, text in options.items()]
    elif isinstance(options, Sequence) and not isinstance(options, str):
        if options and all(isinstance(one, Mapping) for one in options):
            pairs = [(str(label), str(text)) for one in options for label, text in one.items() if text is not None]
        else:
            pairs = [(string.ascii_uppercase[i], str(text)) for i, text in enumerate(options[:26])]
            if len(options) > 26:
                raise InvalidReference(f"There are {len(options)} options; more than 26 have no letters.")
    labels = tuple(label.strip().strip("().").upper() for label, _ in pairs)
    if not 2 <= len(labels) <= 26 or len(set(labels)) != len(labels) or not all(labels):
        raise InvalidReference("The options must be 2 to 26 texts, or texts under labels that differ.")
    return Choices(labels, tuple(key(text) for _, text in pairs))


def labels_in(choices: Choices, text: str) -> Named:
    """Which options ``text`` names. ``text`` is an answer, not a whole response."""
    if len(text) > _MAX_TEXT:
        return Named(problem="nothing")
    whole = choices.by_text(text)
    if whole is not None and key(text) not in {label.casefold() for label in choices.labels}:
        return Named((whole,))
    text = unwrap(_LEAD_IN.sub("", unwrap(" ".join(plain_latex(fold(unwrap(text))).split()))))
    found, rest = _leading_labels(choices, text)
    if not found:
        return _trailing_label(choices, text)
    found += tuple(label for label in _ALSO.findall(rest) if label in choices.labels and label not in found)
    return _agreeing(choices, found[0], rest) if len(found) == 1 and rest else Named(found)


def _leading_labels(choices: Choices, text: str) -> tuple[tuple[str, ...], str]:
    """The labels that ``text`` begins with, joined by commas or words, and what follows them."""
    labels = "|".join(re.escape(label) for label in sorted(choices.labels, key=len, reverse=True))
    label = re.compile(rf"[(\[]?\s?({labels})(?:[)\].:]+|(?![\w'-]))\s?", re.IGNORECASE)
    found: list[str] = []
    position = 0
    while match := label.match(text, position):
        written, canonical = match[1], match[1].upper()
        if not found and match.group().strip() == written and _is_word(written, text[match.end() :]):
            break
        found.append(canonical)
        position = match.end()
        joint = _CONNECTOR.match(text, position)
        if joint is None and not label.match(text, position):
            break
        position = joint.end() if joint else position
    run = re.fullmatch(r"[A-Z]{2,26}", text)
    if not found and run and set(text) <= set(choices.labels) and len(set(text)) == len(text):
        return tuple(text), ""  # "AC"
    return tuple(dict.fromkeys(found)), text[position:].strip(" .:-–—)*")


def _is_word(written: str, after: str) -> bool:
    """``a dog`` begins with an article and ``I think`` with a pronoun, not with an option."""
    if written not in ("I", "A") and not written.islower():
        return False
    return bool(re.match(r"[a-z]", after)) and not re.match(r"(?:and|or|because|since|as|is)\b", after)


def _trailing_label(choices: Choices, text: str) -> Named:
    """``Paris (C)``, ``I choose C``: one label in brackets, or one at the end."""
    marks = [mark.upper() for mark in re.findall(r"[(\[]([A-Za-z0-9]{1,3})[)\]]", text)]
    marks = [mark for mark in dict.fromkeys(marks) if mark in choices.labels]
    last = text.split()[-1] if text.split() else ""
    if not marks and last in choices.labels:
        marks = [last]
    if len(marks) != 1:
        return Named(tuple(marks), "" if marks else "nothing")
    return _agreeing(choices, marks[0], text)


def _agreeing(choices: Choices, label: str, said: str) -> Named:
    """``C. Paris``: the text beside a label must not be that of another option."""
    said = key(said)
    own = choices.texts[choices.labels.index(label)]
    if own and said.startswith(own):
        return Named((label,))
    others = [text for other, text in zip(choices.labels, choices.texts, strict=True) if other != label and text]
    contradicted = any(said == text or (len(text) > 1 and said.startswith(text)) for text in others)
    return Named((label,), "contradiction" if contradicted else "")
