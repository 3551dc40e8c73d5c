"""Which number a sentence states, if it states one.

``She has 18 eggs left`` states 18. ``less than 18``, ``not 18``, ``the square of 18``, ``18 squared``, ``18 or more``,
``f(18)`` and ``step 18`` hold the same digits and state something else, and an answer that holds the right digits is
no right answer. So what stands around a number must be known to be harmless: words that name or count things, a
currency, a verb, marks of emphasis, the end of the sentence. Signs of arithmetic, functions, comparisons, denials,
alternatives and fractions of a word beside the number make it part of something else.

The words next to a number are looked at through the small words that tie them to it (``half of the 18``), and a verb
or a colon cuts the tie (``half of them is 18``). It is a reading of words, not of grammar; when in doubt, the
sentence states nothing. All of it is for single sentences and short answers: a long text would take quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..answers.units import unit_of
from .text import fold, plain_latex

__all__ = ["NUMBER", "Stated", "alters_after", "alters_before", "first_stated", "last_stated", "one_line"]

NUMBER = re.compile(
    r"(?<![\w.])(?:[-+](?!\d*[-+]))?[$€£¥]?(?:(?<=[$€£¥])-)?"
    r"(?:\\[dtc]?frac\{-?\d+\}\{-?\d+\}"
    r"|(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?: \d{3})+(?![\d,.]\d)|"
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:e[-+]?\d+| ?(?:\\times|\\cdot|[×*x]) ?10 ?\^ ?\{?[-+]?\d+\}?)?(?: \d+/\d+|/\d+)?|\.\d+)"
    r"(?:\s?%|\s?(?:thousand|million|billion|trillion|percent)\b)?",
    re.IGNORECASE,
)
"""A number in prose, for short texts (a long one would take quadratic time)."""

_LISTED = re.compile(
    r"[\s$]*(?:[a-z$]{1,12}\s?)?[\s$]*(?:[,;|/]|(?:,\s?)?(?:\bor\b|\band\b(?!\s+not\b)|\bto\b|\\lor|\\vee|\bvs\b))[\s$(]*",
    re.IGNORECASE,
)
"""What stands between two numbers of a list."""
_TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\\[A-Za-z]+|\S")
_CLAUSE = re.compile(
    r"[,;:.?!()\[\]—]|\b(?:because|since|as|which|who|where|when|so|given|while|if|after|before|although|but)\b"
)
_NEW_CLAUSE = re.compile(r"[.;:!?]|\b(?:so|but|therefore|thus|hence|because|since|leaving)\b")
_DENIED = re.compile(r"\b(?:not|never|cannot|neither|nor|wrong|incorrect|false|untrue)\b|n't\b|\bno longer\b")
_SUPPOSED = re.compile(r"\b(?:if|unless|whether|suppose|supposing|assume|assuming|let|imagine|either|or|lor)\b|\\lor")
_OFFERED = re.compile(r"\b(?:or|either|alternatively|maybe|perhaps|possibly|otherwise)\b|\\lor|\\vee")
_TAKEN_BACK = re.compile(
    r"\b(?:wait|oops|scratch that|correction|kidding|no,|no wait)|\b(?:that|this|it|which)(?: is|'s| was) "
    r"(?:wrong|incorrect|false|not (?:right|correct|true|the))"
)
_TAKEN_APART = re.compile(r"\bfrom\b|\bby\b|\bwith\b|\bsaid\b")

_VERBS = frozenset(
    """is are was were be been being equals = : ： ≈ → ⇒ \\approx \\implies \\rightarrow \\to \\therefore \\sim \\simeq
    \\longrightarrow gets has have had makes gives costs earns pays needs takes leaves left""".split()  # noqa: SIM905
)
_TIES = frozenset("a an the of to by from for about exactly only just roughly approximately around equal".split())
_BEFORE = frozenset(
    """than least most above below under over beyond almost nearly barely minus negative plus times multiplied divided
    root sqrt cube square squared log ln lg exp sin cos tan arcsin arccos arctan sec csc cot abs half third quarter
    twice thrice double triple quadruple reciprocal inverse opposite factorial power modulo mod base multiple multiples
    factor factors divisor divisors divisible digit digits exceeds exceed exceeding reaches without except excluding
    unlike instead between among besides until til within against or and nor not never cannot but versus vs up out
    percent fraction function max min floor ceil gcd lcm choose raised greater less fewer more bigger smaller higher
    lower larger near close step question problem equation eq page line part case figure fig table section chapter
    example lemma theorem exercise version attempt try note item rule method approach paragraph formula
    hundred thousand million billion trillion pi e i""".split()  # noqa: SIM905
)
_AFTER = frozenset(
    """squared cubed factorial hundred hundreds thousand thousands million millions billion billions trillion
    trillions tenth tenths hundredth hundredths thousandth thousandths half halves third thirds fourths fifths sixths
    sevenths eighths ninths twelfths plus minus mod modulo choose over below under beneath negative multiplied divided
    raised sqrt root log ln lg sin cos tan pi infinity minimum maximum max tops upwards onwards onward upward higher
    lower reciprocal inverse or not never cannot wrong incorrect false untrue""".split()  # noqa: SIM905
)
_AND_MORE = re.compile(
    r"\band (?:a |an |one |two |three |four |five |six |seven |eight |nine |ten |up|above|over|more|below|under|beyond"
    r"|counting|then|some|change|half|quarter|higher|lower|less)|\bat (?:the )?(?:least|most|minimum|maximum|best|worst)"
)
_GLUED = re.compile(r"[\w)\]}][(\[{|]+$")
_INERT_END = frozenset(":：=≈~,;.—→⇒)\"'*`“”’_")
_INERT_START = frozenset(".,;:)\"'*`_—([”’}]…")
_EXPLAINS = re.compile(
    r"\b(?:because|since|as|from|given|when|where|which|with|not|rather|instead|for|of|in|on|at|per|each|that|if|after)\b"
)
_DIRECT = re.compile(r"\s*(?:of|in|on|per|by|to|than|at|for|out)\b|\s*[(\[]?\s*$")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Stated:
    """The number that was stated, with its unit; or what stands in the way."""

    text: str = ""
    problem: Literal["", "nothing", "altered", "several", "listed"] = ""
    numbers: tuple[str, ...] = ()
    """What stood to choose from, if there were several."""


def one_line(text: str) -> str:
    """``text`` as the readers here want it: ASCII look-alikes, no fonts, single spaces."""
    return " ".join(plain_latex(fold(text)).replace("\\%", "%").replace("\\$", "$").split())


def first_stated(prose: str) -> Stated:
    """The number that a marked answer states: its only one, or the first if the rest explains it.

    ``12 and not 13`` and ``18 dollars because 9*2=18`` state their first number, ``12 13`` states neither.
    """
    numbers = list(NUMBER.finditer(prose))
    if not numbers:
        return Stated(problem="nothing")
    first = numbers[0]
    if len(numbers) == 1:
        return _stated(prose, first, 0, len(prose))
    shown = tuple(number.group().strip() for number in numbers[:_SHOWN])
    between = prose[first.end() : numbers[1].start()]
    if _LISTED.fullmatch(between):
        return Stated(problem="listed", numbers=shown)
    explained = _EXPLAINS.search(between) and not (_DIRECT.match(between) or _OFFERED.search(prose, first.end()))
    if prose[: first.start()].strip(" $*_(") or not explained:
        return Stated(problem="several", numbers=shown)
    return _stated(prose, first, 0, numbers[1].start(), _without_denial(between))


def last_stated(sentence: str) -> Stated:
    """The last number of a sentence, if it is stated there; numbers before it may lead to it."""
    numbers = list(NUMBER.finditer(sentence))
    if not numbers:
        return Stated(problem="nothing")
    listed = [numbers[-1]]
    for earlier in reversed(numbers[:-1]):
        if not _LISTED.fullmatch(sentence, earlier.end(), listed[-1].start()):
            break
        listed.append(earlier)
    texts = tuple(match.group().strip() for match in reversed(listed))
    if len(set(texts)) > 1:
        return Stated(problem="listed", numbers=texts[-_SHOWN:])
    start = numbers[-2].end() if len(numbers) > 1 else 0
    if "?" in sentence[numbers[-1].end() :]:
        return Stated(problem="altered")
    return _stated(sentence, numbers[-1], start, len(sentence))


def alters_before(text: str, *, follows_number: bool = False) -> bool:
    """Does what stands before a number make it something else? ``text`` ends where the number starts."""
    if _GLUED.search(text):
        return True
    text = text.rstrip(" $€£¥*_`\"'([{")
    if not text:
        return follows_number
    lowered = text.replace("’", "'").lower()
    clause = lowered[max((match.end() for match in _NEW_CLAUSE.finditer(lowered, 0, len(lowered) - 1)), default=0) :]
    if _DENIED.search(clause) or _SUPPOSED.search(clause):
        return True
    tokens = _TOKEN.findall(lowered)
    last = tokens[-1]
    if not last[-1].isalpha() and last not in _VERBS:
        return last not in _INERT_END
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token in _VERBS or not (token[0].isalpha() or token[0] == "\\"):
            return False
        if token in _TIES:
            continue
        if token == "up" and index and tokens[index - 1].startswith(("add", "sum", "com", "tot", "mak", "end", "work")):
            return False
        return token[0] == "\\" or token in _BEFORE or len(token) == 1
    return follows_number


def alters_after(text: str) -> bool:
    """Does what stands after a number make it something else? ``text`` starts where the number ends."""
    lowered = text.replace("’", "'").lower()
    if lowered[:1].isalnum() and not _is_noun(lowered, glued=True):
        return True
    rest = lowered.lstrip(" $*_`\"')}]")
    if rest.startswith(("^\\circ", "^{\\circ}", "°")):
        rest = rest.lstrip("^{}\\°").removeprefix("circ").lstrip(" }")
    if not rest:
        return False
    if rest[0] == "-":
        return re.match(r"-[a-z]{3}", rest) is None
    if rest.startswith("..") and "." not in text[:1]:
        return True
    if not (rest[0].isalpha() or rest[0] in _INERT_START or rest[0] in "¢€£¥°′″/"):
        return True
    if re.match(r",\d|\.\d|:\d|\.\.\.|…|/(?![a-z]{2}|[hsm]\b)", rest) or _TAKEN_BACK.search(rest):
        return True
    if re.match(r"[,;.]?\s?\(?(?:or|either|alternatively)\b", rest):
        return True
    clause = _CLAUSE.split(rest, maxsplit=1)[0]
    words = re.findall(r"[^\W\d_]+|\S", clause)
    if _OFFERED.search(clause) or _DENIED.search(clause) or _AND_MORE.search(clause):
        return True
    if set(words[:3]) & _AFTER or any(mark in clause for mark in "\\^=+*<>|!&@#≤≥≠±√π"):
        return True
    return bool(words) and (not _is_noun(clause) or any(len(word) == 1 and word not in "ai" and word.isascii() and word.isalpha() for word in words[1:]))


def _stated(prose: str, number: re.Match[str], start: int, end: int, after: str | None = None) -> Stated:
    tail = prose[number.end() : end] if after is None else after
    if alters_before(prose[start : number.start()], follows_number=start > 0) or alters_after(tail):
        return Stated(problem="altered")
    return Stated(number.group().strip() + _unit_at(prose, number.end()))


def _unit_at(sentence: str, position: int) -> str:
    """The word after a number if it is a unit: "20 cents" must not become 20 dollars."""
    word = _NEXT_WORD.match(sentence, position)
    return f" {word[1]}" if word and (len(word[1]) > 1 or word[1] in "°¢€") and unit_of(word[1]) else ""


_NEXT_WORD = re.compile(r"\s?([A-Za-z°¢€]+)")
_SHORT_WORDS = frozenset(
    """of in to by on at as is it we he am pm th st nd rd an so pt qt ha mb gb tb kb db ev cc pc mm cm km kg mg ml ft
    lb oz yd mi hr hz kw kj""".split()  # noqa: SIM905
)


def _is_noun(text: str, *, glued: bool = False) -> bool:
    """Does ``text`` begin with a word that can stand after a number? ``xy`` and, glued to it, ``xyz`` are factors."""
    match = re.match(r"[^\W\d_]+", text)
    if match is None:
        return not glued
    word = match.group()
    if not word.isascii() or unit_of(word) or word in _SHORT_WORDS:
        return True
    if word == "a" and not glued:
        return True
    return len(word) > (3 if glued else 2) and bool(re.search("[aeiouy]", word))


def _without_denial(between: str) -> str:
    """``12 and not 13``: what denies the number that follows says nothing about the one before."""
    return re.sub(r"(?:,?\s*and)?\s*\bnot\s*$", "", between)


def numbers_of(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(texts[-_SHOWN:])
