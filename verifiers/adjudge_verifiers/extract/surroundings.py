"""Does what stands beside a number make it something else?

``less than 18``, ``not 18``, ``the square of 18``, ``18 squared``, ``18 or more``, ``f(18)`` and ``step 18`` hold the
same digits as 18 and state something else, and an answer that only holds the right digits is wrong. So the text on
both sides of a number has to be harmless: words that name or count things, a currency, a verb, marks of emphasis, the
end of the sentence. Signs of arithmetic, functions, comparisons, denials, suppositions and alternatives are not.

Words act on a number through the small words that tie them to it (``half of the 18``); a verb or a colon cuts the tie
(``half of them is 18``). This is a reading of words, not of grammar: in doubt the number counts as altered. The texts
are single sentences and short answers, folded and without fonts.
"""

from __future__ import annotations

import re

from ..answers.units import unit_of

__all__ = ["alters_after", "alters_before", "is_counted"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\\[A-Za-z]+|\S")
_WORD = re.compile(r"[^\W\d_]+")
_GLUED = re.compile(r"[\w)\]}][(\[{|]+$|[)\]}]$")
_END_OF_CLAUSE = re.compile(
    r"[,;:.?!()\[\]—]|\b(?:because|since|as|which|who|where|when|so|given|while|if|after|before|although|but)\b"
)
_START_OF_CLAUSE = re.compile(r"[.;:!?]|\b(?:so|but|therefore|thus|hence|because|since|leaving)\b")
_DENIED = re.compile(
    r"\b(?:not|never|cannot|neither|nor|wrong|incorrect|false|untrue)\b|n't\b|\b(?:no longer|is too)\b"
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|suppose|supposing|assume|assuming|let|imagine|either|or)\b|\\l?or\b|\\vee"
)
_OFFERED = re.compile(r"\b(?:or|either|alternatively)\b|\\l?or\b|\\vee")
_TAKEN_BACK = re.compile(
    r"\b(?:wait|oops|scratch that|correction|kidding)\b|\bno,"
    r"|\b(?:that|this|it|which)(?: is|'s| was) (?:wrong|incorrect|false|not (?:right|correct|true|the)\b)"
)
_AND_MORE = re.compile(
    r"\band (?:an?|one|two|three|four|five|six|seven|eight|nine|ten|up|above|over|more|below|under|beyond|counting|some"
    r"|change|half|quarter|higher|lower|less)\b|\bat (?:the )?(?:least|most|minimum|maximum|best|worst)\b"
)
_CONTINUED = re.compile(
    r"[,.:]\d|\.\.|…|/(?![a-z]{2}|[hsm]\b)|[,;.]?\s?\(?(?:or|either|alternatively)\b|-(?![a-z]{3})|\(\s?[-\w]\s?\)"
)
_DEGREES = re.compile(r"\^?\{?(?:\\circ|\\degree|°)\}?[ $]*")

_VERBS = _words(
    r"""is are was were be been being equals = : ≈ → ⇒ \approx \implies \rightarrow \Rightarrow \to \therefore \sim
    \simeq gets has have had makes gives costs earns pays needs takes leaves"""
)
_TIES = _words("a an the of to by from for about exactly only just roughly approximately around equal")
_BEFORE = _words(
    """than least most above below under over beyond almost nearly barely minus negative plus times multiplied divided
    root sqrt cube square squared log ln lg exp sin cos tan arcsin arccos arctan sec csc cot abs half third quarter
    twice thrice double triple quadruple reciprocal inverse opposite factorial power modulo mod base multiple multiples
    factor factors divisor divisors divisible digit digits exceeds exceed exceeding reaches without except excluding
    unlike instead between among until til within against or and nor not never cannot but versus vs up out percent
    fraction function max min floor ceil gcd lcm choose raised greater less fewer more bigger smaller higher lower
    larger near close see step question problem equation eq page line part case figure fig table section chapter example
    lemma theorem exercise version attempt try note rule method approach paragraph formula hundred thousand million
    billion trillion pi"""
)
_AFTER = _words(
    """squared cubed factorial hundred hundreds thousand thousands million millions billion billions trillion
    trillions tenth tenths hundredth hundredths thousandth thousandths halves thirds fourths fifths sixths sevenths
    eighths ninths twelfths plus minus mod modulo choose below beneath negative multiplied divided raised sqrt root log
    ln lg sin cos tan pi infinity minimum maximum max tops upwards onwards onward upward reciprocal inverse not never
    cannot wrong incorrect false untrue"""
)
_RIGHT_AFTER = _AFTER | _words("over under above half third higher lower i e x")
_ENDS_HARMLESS = frozenset(":=≈~,;.—→⇒)\"'`”_")
_STARTS_HARMLESS = frozenset(".,;:)\"'`_—(”}¢€£¥′″/-")
_OPERATORS = frozenset("\\^=+*<>|!&@#≤≥≠±√π")
_SHORT_WORDS = _words(
    """of in to by on at as is it we he am pm th st nd rd an so pt qt ha mb gb tb kb db ev cc pc hr if kwh kmh kph mph
    bpm rpm ppm pts hrs yrs hp rs"""
)


def alters_before(text: str, *, follows_number: bool = False) -> bool:
    """Is the number that comes right after ``text`` denied, compared, or inside something?

    ``follows_number`` says that ``text`` starts behind another number, so that only ties between them tie them both.
    """
    if _GLUED.search(text):
        return True
    text = text.rstrip(" $€£¥*_`\"'([{").lower()
    if not text:
        return follows_number
    starts = [match.end() for match in _START_OF_CLAUSE.finditer(text, 0, len(text) - 1)]
    clause = text[starts[-1] if starts else 0 :]
    if _DENIED.search(clause) or _SUPPOSED.search(clause):
        return True
    tokens = _TOKEN.findall(text)
    if not tokens[-1][-1].isalpha() and tokens[-1] not in _VERBS:
        return tokens[-1] not in _ENDS_HARMLESS
    return _tied(tokens, follows_number)


def _tied(tokens: list[str], follows_number: bool) -> bool:
    """Do the words at the end of ``tokens`` act on what follows them?"""
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token in _TIES:
            continue
        if token in _VERBS or not (token[0].isalpha() or token[0] == "\\"):
            return False
        if token == "up" and index and tokens[index - 1].startswith(("add", "sum", "com", "tot", "end")):
            return False  # "adds up to 5"
        return token[0] == "\\" or token in _BEFORE or len(token) == 1
    return follows_number


def alters_after(text: str, *, formula: bool = False) -> bool:
    """Is the number that comes right before ``text`` continued, multiplied, bounded or taken back by it?

    What comes before may be a whole ``formula``, about whose variables more may be said.
    """
    text = text.lower()
    if text[:1].isalnum() and not is_counted(text, glued=True):
        return True
    rest = text.lstrip(" $*_`\"')}]")
    degrees = _DEGREES.match(rest)
    rest = rest[degrees.end() :] if degrees else rest
    if not rest:
        return False
    if not (rest[0].isalpha() or rest[0] in _STARTS_HARMLESS) or _CONTINUED.match(rest) or _TAKEN_BACK.search(rest):
        return True
    clause = _END_OF_CLAUSE.split(rest, maxsplit=1)[0].strip("-— ")
    if _OFFERED.search(clause) or _DENIED.search(clause) or _AND_MORE.search(clause):
        return True
    words = _WORD.findall(clause)
    variables = [word for word in words[1:] if len(word) == 1 and word.isascii() and word not in "ai"]
    if set(words[:3]) & _AFTER or (not formula and (variables or _OPERATORS & set(clause))):
        return True
    return not formula and clause[:1].isalpha() and not is_counted(clause)


def is_counted(text: str, *, glued: bool = False) -> bool:
    """Does ``text`` begin with a word that may follow a number? ``xy`` and, glued to it, ``xyz`` are factors."""
    match = _WORD.match(text)
    if match is None:
        return False
    word = match.group()
    if word in _RIGHT_AFTER or re.match(r"\d(?<![23])|\d\d", text[match.end() :]):
        return False
    if not word.isascii() or unit_of(word) or word in _SHORT_WORDS:
        return True
    if word == "a":
        return not glued and re.match(r"a \w\w", text) is not None
    return len(word) > (3 if glued else 2) and not set("aeiouy").isdisjoint(word)
