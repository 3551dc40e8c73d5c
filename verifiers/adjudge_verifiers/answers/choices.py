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
from ..extract.hidden import hides_text
from ..extract.surroundings import alters_before
from ..extract.text import fold, key, plain_latex, unwrap

__all__ = ["Choices", "Named", "labels_in", "read_choices"]

_LEAD_IN = re.compile(
    r"^(?:(?:so|thus|hence|therefore|clearly|both|i (?:think|believe|choose|pick|select|would (?:say|choose))(?: that)?"
    r"|it is|it's|must be|definitely|(?:the |my )?(?:final |correct |right |best )?(?:option|choice|answer)s?"
    r"(?: (?:is|are|must be|would be|should be))?)[\s,:]+)+(?=\S)",
    re.IGNORECASE,
)
_CONNECTOR = re.compile(r"\s*(?:,|;|/|&|\||\+|,?\s*\b(?:and|or)\b)\s*", re.IGNORECASE)
_CHOOSING = re.compile(
    r"(?:\b(?:is|are|be|choose|chose|pick|select|with|say|so|thus|therefore|hence|answer|option|choice|letter|i\.e\.|\w+ly)"
    r"|'s|[:=⇒])[\s,:]*[(\[]?$",
    re.IGNORECASE,
)
"""What stands right before a label that ends a sentence; ``vitamin C`` and ``eliminate C`` choose nothing."""
_DENIED = re.compile(r"\b(?:not|never|cannot|wrong|incorrect|false|untrue|unlikely|neither|nor|eliminated)\b|n't\b")
_REASON = re.compile(r"\b(?:because|since|as|for|given|whereas|while|than|unlike|instead of|over|not)\b", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:or|alternatively|otherwise|unless|maybe|perhaps|possibly|might|could|wait|either)\b", re.IGNORECASE
)
_REASON_OR_END = re.compile(r"[,;.:(]|\b(?:because|since|as|given)\b", re.IGNORECASE)
_OPERATOR = re.compile(r"[\^_+#=<>~!'’\\→]")
_MAX_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class Choices:
    """Labels in order, and the text of each option as a key to compare by; empty if only labels are known."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    word_counts: tuple[int, ...]

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
        return Choices(tuple(string.ascii_uppercase[:count]), ("",) * count, (0,) * count)
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
    texts, words = [key(text) for _, text in pairs], [len(text.split()) for _, text in pairs]
    return Choices(labels, tuple(texts), tuple(words))


def labels_in(choices: Choices, text: str) -> Named:
    """Which options ``text`` names. ``text`` is an answer, not a whole response."""
    if len(text) > _MAX_TEXT or hides_text(text):
        return Named(problem="nothing")
    whole = choices.by_text(text)
    if whole is not None and key(text) not in {label.casefold() for label in choices.labels}:
        return Named((whole,))
    text = " ".join(plain_latex(fold(unwrap(text))).replace("**", "").split())
    text = unwrap(_LEAD_IN.sub("", unwrap(text))).replace("’", "'")
    found, rest = _leading_labels(choices, text)
    if len(found) == 1:
        return _beside(choices, found[0], rest)
    if found:
        others = [label for label in _mentions(choices, rest) if label not in found]
        return Named((*found, *others))
    return _leading_text(choices, text) or _trailing_label(choices, text)


def _leading_labels(choices: Choices, text: str) -> tuple[tuple[str, ...], str]:
    """The labels that ``text`` begins with, joined by commas or words, and what follows them."""
    label = re.compile(
        rf"[(\[{{]?\s?(?:option\s|choice\s)?[(\[{{]?({_any_label(choices)})(?:[)\].:}}]+|(?![\w'-]))\s?", re.IGNORECASE
    )
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
        if joint and label.match(text, joint.end()):
            position = joint.end()
    run = re.fullmatch(r"[A-Z]{2,26}", text)
    if not found and run and set(text) <= set(choices.labels) and len(set(text)) == len(text):
        return tuple(text), ""  # "AC"
    return tuple(dict.fromkeys(found)), text[position:].strip(" .:-–—)*")


def _any_label(choices: Choices) -> str:
    return "|".join(re.escape(label) for label in sorted(choices.labels, key=len, reverse=True))


def _mentions(choices: Choices, text: str) -> list[str]:
    """The labels that occur in prose. ``A`` and ``I`` are words there, unless they are marked."""
    found: list[str] = []
    for match in re.finditer(rf"(?<![\w'])([(\[{{]?)({_any_label(choices)})([)\].:}}]?)(?![\w'])", text):
        word = match[2] in ("A", "I") and not match[1] and not match[3]
        if not (word and _is_word(match[2], text[match.end() :].lstrip())):
            found.append(match[2])
    return list(dict.fromkeys(found))


def _is_word(written: str, after: str) -> bool:
    """``a dog`` begins with an article and ``I think`` with a pronoun, not with an option."""
    if written not in ("I", "A") and not written.islower():
        return False
    return bool(re.match(r"[a-z]", after)) and not re.match(r"(?:and|or|because|since|as|is|was|would|seems)\b", after)


def _leading_text(choices: Choices, text: str) -> Named | None:
    """``Paris, the capital of France``: the text of an option, set off from what follows it."""
    head, mark, rest = text, "", ""
    if match := re.search(r"\s?[,;(—]|\.\s", text):
        head, mark, rest = text[: match.start()], match.group(), text[match.end() :]
    label = choices.by_text(head) if mark else None
    return None if label is None else _beside(choices, label, rest.strip(" ).:"))


def _trailing_label(choices: Choices, text: str) -> Named:
    """``Paris (C)``, ``I choose C``: one label in brackets, or one at the end of words that choose it."""
    mentions = _mentions(choices, text)
    if len(mentions) != 1:
        return Named(tuple(mentions), "" if mentions else "nothing")
    match = re.search(rf"(?:[(\[{{]({re.escape(mentions[0])})[)\]}}]|(?<=\s){re.escape(mentions[0])}$)", text)
    if match is None:
        return Named(problem="nothing")
    before = text[: match.start()]
    if alters_before(before) or (match[1] is None and not _CHOOSING.search(before)):
        return Named(problem="nothing")
    return _agreeing(choices, mentions[0], text)


def _beside(choices: Choices, label: str, rest: str) -> Named:
    """One label and what is said beside it, which must neither take it back nor name another option."""
    if _OPERATOR.match(rest):
        return Named(problem="nothing")
    named = _agreeing(choices, label, rest.strip(" ("))
    if named.problem:
        return named
    rest = _without_own_text(choices, label, rest)
    rest = re.sub(rf"\bnot (?:option |choice )?[(\[{{]?(?:{_any_label(choices)})(?![\w'])", "because", rest)
    others = [other for other in _mentions(choices, rest) if other != label]
    others += [choices.labels[i] for i in _texts_in(choices, rest) if choices.labels[i] not in (label, *others)]
    if others:
        place = re.search(rf"(?<![\w'])(?:{_any_label(choices)})(?![\w'])", rest)
        before = rest[: place.start()] if place else rest
        return named if _REASON.search(before) and not _HEDGE.search(rest) else Named((label, *others))
    clause = _REASON_OR_END.split(rest, maxsplit=1)[0]
    return Named(problem="nothing") if _DENIED.search(clause.lower()) or _HEDGE.match(rest) else named


def _without_own_text(choices: Choices, label: str, rest: str) -> str:
    """``rest`` without the option's own text at its start, which may hold any words."""
    index = choices.labels.index(label)
    own, words = choices.texts[index], rest.strip(" (").split()
    for count in range(choices.word_counts[index], choices.word_counts[index] + 2) if own else ():
        if key(" ".join(words[:count])) == own:
            return " ".join(words[count:])
    return rest


def _texts_in(choices: Choices, rest: str) -> list[int]:
    """Positions of the options whose text, of some length, is a part of ``rest``."""
    said = key(rest)
    return [index for index, text in enumerate(choices.texts) if len(text) > 3 and text in said]


def _agreeing(choices: Choices, label: str, said: str) -> Named:
    """``C. Paris``: the text beside a label must not be that of another option."""
    said = key(said)
    own = choices.texts[choices.labels.index(label)]
    if own and said.startswith(own):
        return Named((label,))
    others = [text for other, text in zip(choices.labels, choices.texts, strict=True) if other != label and text]
    contradicted = any(said == text or (len(text) > 1 and said.startswith(text)) for text in others)
    return Named((label,), "contradiction" if contradicted else "")
