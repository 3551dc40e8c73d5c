"""From the answer to the program's text before its tests.

An answer that declares the prompt's function is a whole one: of the prompt it still gets imports and the like, and the
class that the tests close unless it has a class of its own; its ``main`` is given another name. Any other answer is a
completion: it goes behind the prompt, and ends where the prompt's function does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .dialects import Dialect
from .lexing import closing, innermost_end, mask, open_braces, unopened

__all__ = ["Placed", "function_of", "place"]

_MAX_OCCURRENCES = 200
_MAX_PARAMETERS = 5_000
_CALL = re.compile(r"(?<!\w)([A-Za-z_]\w{0,200})[ \t]*\(")
_TYPE = re.compile(r"[\w:<>,&*\[\]?.@ \t~]*")
_STATEMENT = re.compile(
    r"[ \t]*(?:return|else|throw|case|new|delete|goto|await|co_return|if|while|for|switch|catch|do|yield)\b"
)
_BODY = re.compile(
    r"\s*(?:(?:throws|where)\b[^{;]{0,300}|(?:(?:const|noexcept|override|pure|nothrow|@\w{1,20})\s*){0,6})"
    r"(?:->[^{;]{0,200})?(?:\{|=>|\Z)"
)
_MAIN_NAME = "adjudge_unused_main"


@dataclass(frozen=True, slots=True)
class Placed:
    """A program around its tests."""

    before: str
    tests: str
    after: str = ""
    whole: bool = False
    """The answer was a whole function or program."""


def function_of(prompt: str, dialect: Dialect) -> str | None:
    """The function that the prompt declares last."""
    masked = mask(prompt, dialect.language)
    found = None
    if dialect.named:
        for match in re.finditer(dialect.named, masked, re.MULTILINE):
            found = next(name for name in match.groups() if name)
        return found
    for match in _CALL.finditer(masked):
        if _is_declaration(masked, match):
            found = match[1]
    return found


def _is_declaration(masked: str, match: re.Match[str]) -> bool:
    """Is this name with its parenthesis a function's head, as in C: behind a type, before a body?"""
    nearest = max(match.start() - 500, 0)
    start = max(nearest, *(masked.rfind(end, nearest, match.start()) + 1 for end in "\n{};"))
    before = masked[start : match.start()]
    if not _TYPE.fullmatch(before) or _STATEMENT.match(before) or before.rstrip().endswith("."):
        return False
    end = closing(masked, match.end() - 1, _MAX_PARAMETERS)
    return end is not None and _BODY.match(masked, end + 1, end + 800) is not None


def _declaration(masked: str, name: str, dialect: Dialect) -> int | None:
    """Where ``name`` is declared, if it is."""
    if dialect.declares:
        match = re.search(dialect.declares.replace("{name}", re.escape(name)), masked, re.MULTILINE)
        return match.start() if match else None
    occurrences = re.finditer(rf"(?<!\w){re.escape(name)}[ \t]*\(", masked)
    declared = (
        each.start() for each in itertools.islice(occurrences, _MAX_OCCURRENCES) if _is_declaration(masked, each)
    )
    return next(declared, None)


def place(answer: str, prompt: str, tests: str, dialect: Dialect, name: str | None, stops: Sequence[str]) -> Placed:
    """See the module. ``name`` is the prompt's function."""
    answer = answer.replace("\r\n", "\n")
    masked = mask(answer, dialect.language)
    declared = _declaration(masked, name, dialect) if name else None
    if declared is None and prompt.strip():
        body = _completion(answer, prompt, tests, dialect, stops)
        return Placed(prompt + ("" if prompt.endswith("\n") else "\n") + body, tests)
    answer = _tidied(_without_main(answer, masked, dialect), dialect)
    kept = _kept(prompt, answer, dialect)
    closes = tests.lstrip().startswith("}")
    if closes:
        tests = tests.lstrip()[1:]
    if dialect.in_class:
        masked = mask(answer, dialect.language)
        declared = _declaration(masked, name, dialect) if name else None
        return _in_class(answer, masked, declared or 0, kept, prompt, tests, dialect, closes=closes)
    return Placed(f"{kept}{answer}\n", tests, whole=True)


# ---------------------------------------------------------------------------------------------------------------------
# Completions.


def _completion(answer: str, prompt: str, tests: str, dialect: Dialect, stops: Sequence[str]) -> str:
    if dialect.braced:
        masked, depth = mask(answer, dialect.language), len(open_braces(mask(prompt, dialect.language)))
        if tests.lstrip().startswith("}"):
            end = unopened(masked, 1)
            if end is not None:
                return answer[:end].rstrip(" \t")
        elif depth and (end := unopened(masked, depth)) is not None:
            return answer[: end + 1]
    return _cut(answer, stops or dialect.stops)


_LINE_START = re.compile(r"\n(?=\S)")


def _cut(text: str, stops: Sequence[str]) -> str:
    """Up to the first stop token. A blank line is one only if the text goes on at the left margin behind it."""
    ends = [len(text)]
    for stop in stops:
        ends.append(text.find(stop) if stop.strip() else _blank_line(text))
    return text[: min(end for end in ends if end >= 0)]


def _blank_line(text: str) -> int:
    """Where the first blank line begins that is followed by a line without indentation, or -1."""
    for match in _LINE_START.finditer(text):
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if not before.strip() and text[: match.start()].strip():
            return len(text[: match.start()].rstrip())
    return -1


# ---------------------------------------------------------------------------------------------------------------------
# Whole answers.


def _without_main(answer: str, masked: str, dialect: Dialect) -> str:
    """The answer with its ``main`` under another name: the tests bring their own."""
    if not dialect.main:
        return answer
    pieces, last = [], 0
    for match in re.finditer(dialect.main, masked, re.MULTILINE):
        pieces += [answer[last : match.start(1)], _MAIN_NAME]
        last = match.end(1)
    return "".join([*pieces, answer[last:]])


_EXPORT = re.compile(
    r"^export[ \t]+(?:default[ \t]+)?(?=(?:async|function|const|let|var|class|type|interface|enum)\b)", re.M
)
_EXPORT_LIST = re.compile(
    r"^export[ \t]*\{[^}\n]{0,1000}\};?[ \t]*$|^export[ \t]+default[ \t]+\w+;?[ \t]*$", re.MULTILINE
)
_HEADS = {
    "java": re.compile(r"^[ \t]*package[ \t]+[\w.]+[ \t]*;", re.MULTILINE),
    "kotlin": re.compile(r"^[ \t]*package[ \t]+[\w.]+[ \t]*;?", re.MULTILINE),
    "scala": re.compile(r"^package[ \t]+[\w.]+[ \t]*$|[ \t]extends[ \t]+App\b", re.MULTILINE),
    "d": re.compile(r"^[ \t]*module[ \t]+[\w.]+[ \t]*;", re.MULTILINE),
    "ruby": re.compile(r"^require[ \t]*\(?[ \t]*['\"](?:test/unit|minitest/autorun)['\"]\)?", re.MULTILINE),
}


def _tidied(answer: str, dialect: Dialect) -> str:
    """Without what cannot stand there when something follows."""
    if dialect.language == "lua":
        head, _, last = answer.rstrip().rpartition("\n")
        return head if re.match(r"return\b", last) else answer
    if dialect.language in ("javascript", "typescript"):
        return _EXPORT_LIST.sub("", _EXPORT.sub("", answer))
    if dialect.language == "php":
        body = answer.strip()
        body = body[5:] if body[:5].lower() == "<?php" else body
        return body[:-2] if body.endswith("?>") else body
    pattern = _HEADS.get(dialect.language)
    return pattern.sub("", answer) if pattern else answer


_TYPES = re.compile(r"\b(?:struct|union|class|enum)[ \t]+(\w+)")
_WORD = re.compile(r"\w+")


def _kept(prompt: str, answer: str, dialect: Dialect) -> str:
    """What a whole answer still needs of the prompt."""
    if dialect.language == "php":
        return "<?php\n"
    if dialect.language == "go" or not prompt:
        return ""
    if dialect.language in ("c", "cpp") and (front := _types_before(prompt, answer, dialect)):
        return front
    lines = [line for line in prompt.split("\n") if dialect.keeps and re.match(dialect.keeps, line)]
    if dialect.language == "rust":
        used = {name for line in answer.split("\n") if re.match(dialect.keeps, line) for name in _WORD.findall(line)}
        lines = [line for line in lines if _WORD.findall(line)[-1] not in used]
    return "".join(f"{line}\n" for line in lines)


def _types_before(prompt: str, answer: str, dialect: Dialect) -> str:
    """All that comes before the prompt's function, if there are types in it that the answer does not bring."""
    masked = mask(prompt, dialect.language)
    start = max((each.start() for each in _CALL.finditer(masked) if _is_declaration(masked, each)), default=0)
    front = masked[: masked.rfind("\n", 0, start) + 1]
    named = set(_TYPES.findall(front))
    if named and not named & set(_TYPES.findall(mask(answer, dialect.language))):
        return prompt[: len(front)]
    return ""


def _in_class(
    answer: str, masked: str, declared: int, kept: str, prompt: str, tests: str, dialect: Dialect, *, closes: bool
) -> Placed:
    """Tests that end the prompt's class go to the end of the class that holds the function."""
    host_end = innermost_end(masked, declared)
    if not closes:
        if host_end is None and "class" in _class_head(prompt, dialect):
            answer = f"{_class_head(prompt, dialect)}\n{answer}\n}}"
        return Placed(f"{kept}{_PUBLIC.sub('', answer)}\n", tests, whole=True)
    if host_end is not None:
        closed = tests.rstrip()
        tests = closed[:-1] if closed.endswith("}") else closed
        return Placed(f"{kept}{answer[:host_end].rstrip()}\n", f"{tests}\n", answer[host_end:], whole=True)
    imports: list[str] = []
    body: list[str] = []
    for line in answer.split("\n"):
        (imports if _is_import(line) else body).append(line)
    head = "\n".join([*imports, _class_head(prompt, dialect)])
    return Placed(f"{kept}{head}\n{chr(10).join(body)}\n", tests, whole=True)


_PUBLIC = re.compile(r"^public[ \t]+(?=(?:(?:final|abstract)[ \t]+)?class\b)", re.MULTILINE)
_IMPORT = re.compile(r"[ \t]*(?:import[ \t]|using[ \t]+(?!var\b)[\w.= ]+;[ \t]*$)")


def _is_import(line: str) -> bool:
    """``using X;`` is one in C#, ``using (x)`` and ``using var x`` are not."""
    return _IMPORT.match(line) is not None


def _class_head(prompt: str, dialect: Dialect) -> str:
    """The line that opens the prompt's class."""
    opened = open_braces(mask(prompt, dialect.language))
    if not opened:
        return "class Problem {" if dialect.language != "scala" else "object Problem {"
    return prompt[prompt.rfind("\n", 0, opened[0]) + 1 : opened[0] + 1]
