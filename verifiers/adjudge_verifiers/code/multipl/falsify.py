"""A twin of the tests in which one assertion is false.

Whoever passes both has not been tested: the answer returns what equals everything, or has replaced the assertion. The
expected value of one assertion is changed in its last literal, in the first digit of a number, at the start of a text,
or from true to false, so that no honest answer that is right can be right again.

That is only sound where the changed literal is surely a part of an expected value. So only plain equality is touched,
``f(x) == literal`` or ``equal(f(x), literal)``, without messages, tolerances, other operators or calls but those that
make lists and the like; if there is no such assertion, there is no twin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .dialects import Dialect
from .lexing import arguments, mask

__all__ = ["falsified"]

_MAKER_WORDS = """
    Array ArrayList Arrays Boolean Dict Dictionary Double Float HashMap HashSet Integer List Long Map Object Option
    Optional Pair Seq Set Some String Triplet Tuple Vector array asList bool bytes c char dict double float from int
    into list long make_pair make_tuple map new object of ofNullable optional pair string to_string to_vec tuple vec
    vector with
"""
_MAKERS = frozenset(_MAKER_WORDS.split())
_CALLED = re.compile(r"([A-Za-z_]\w*)!?[ \t]*\(")
_LITERAL = re.compile(r"(?<![\w.])(?:(?P<word>true|false|TRUE|FALSE|True|False)\b|(?P<digit>\d)|(?P<quote>[\"']))")
_OTHER_OPERATOR = re.compile(r"&&|\|\||[<>]=|(?<=\s)[<>](?=\s)|\?|[+*/%]|\band\b|\bor\b|\bnot\b")
_COMPARISON = re.compile(r"===?|!==?")
_METHOD = re.compile(r"\.(?:equals|SequenceEqual|Equals)(?=\()")
_GO = re.compile(r"\bexpected:[ \t]*(?P<expected>[^\n]+?)[ \t]*\},?[ \t]*$", re.MULTILINE)
_BASH = re.compile(r'^[ \t]*\[\[ \$\([^\n]*\) = (?P<expected>"[^"\n]*") \]\][ \t]*$', re.MULTILINE)
_FLIPPED = {"true": "false", "false": "true", "TRUE": "FALSE", "FALSE": "TRUE", "True": "False", "False": "True"}


def falsified(tests: str, dialect: Dialect) -> str | None:
    """The twin, or ``None`` if there is no assertion of which it can be made. The last one that can be is changed."""
    masked = mask(tests, dialect.language)
    for start, end in reversed(list(_expected(tests, masked, dialect))):
        changed = _changed(tests[start:end])
        if changed is not None:
            return tests[:start] + changed + tests[end:]
    return None


def _expected(tests: str, masked: str, dialect: Dialect) -> Iterator[tuple[int, int]]:
    """Spans of expected values."""
    pattern = {"go": _GO, "bash": _BASH}.get(dialect.language)
    if pattern is not None:
        for match in pattern.finditer(tests):
            yield match.span("expected")
        return
    for name, index in dialect.asserts:
        for match in re.finditer(rf"{name}[ \t]*(?=\()", masked):
            found = arguments(masked, match.end())
            if found is None:
                continue
            spans, end = found
            if index < 0:
                span = _compared(masked, match.end() + 1, end, negative=dialect.language == "php")
                if span:
                    yield span
            elif len(spans) == 2:
                yield spans[index]


def _compared(masked: str, start: int, end: int, *, negative: bool) -> tuple[int, int] | None:
    """The right side of the only comparison between ``start`` and ``end``."""
    flat = _flat(masked[start:end])
    if flat.lstrip().startswith("!"):
        return None
    signs = list(_COMPARISON.finditer(flat))
    if len(signs) == 1 and signs[0][0].startswith("!") == negative and not _OTHER_OPERATOR.search(flat):
        return start + signs[0].end(), end
    methods = list(_METHOD.finditer(flat))
    if not signs and len(methods) == 1 and not negative:
        found = arguments(masked, start + methods[0].end())
        if found and len(found[0]) == 1 and not flat[found[1] + 1 - start :].strip():
            return found[0][0]
    return None


def _flat(text: str) -> str:
    """``text`` with everything in brackets blanked."""
    depth, kept = 0, []
    for char in text:
        if char in ")]}":
            depth -= 1
        kept.append(char if depth == 0 else " ")
        if char in "([{":
            depth += 1
    return "".join(kept)


def _changed(expected: str) -> str | None:
    """``expected`` with its last literal changed; ``None`` if it has none, or is more than literals."""
    if any(name not in _MAKERS for name in _CALLED.findall(expected)) or len(expected) > 10_000:
        return None
    literals = list(_literals(expected))
    if not literals:
        return None
    match = literals[-1]
    if match["word"]:
        return expected[: match.start()] + _FLIPPED[match["word"]] + expected[match.end() :]
    if match["digit"]:
        digit = "1" if match["digit"] == "9" else str(int(match["digit"]) + 1)
        return expected[: match.start()] + digit + expected[match.end() :]
    return f"{expected[: match.end()]}Not{expected[match.end() :]}"


def _literals(text: str) -> Iterator[re.Match[str]]:
    """Literals outside and at the start of strings, but none within them."""
    position = 0
    while match := _LITERAL.search(text, position):
        yield match
        position = match.end()
        if match["quote"]:
            closing = re.compile(rf"(?:[^{match['quote']}\\]|\\.)*{match['quote']}").match(text, position)
            position = closing.end() if closing else len(text)
