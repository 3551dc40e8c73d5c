"""SQL as text: where the answer's query stands, and whether a query fixes the order of its rows."""

from __future__ import annotations

import re

from ..base import Extraction
from ..extract.code import Pick, blocks, find_program
from ..extract.tags import find_tags
from ..extract.thinking import strip_thinking

__all__ = ["find_query", "is_ordered"]

_START = re.compile(r"^[ \t]*(?:SQL[ \t]*:[ \t]*)?((?:select|with|values)\b.*)", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r";[ \t]*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z)"""
    r"""|[()]|\w+""",
    re.DOTALL,
)


def find_query(response: str, pick: Pick, *, bare: bool, allow_unclosed: bool) -> Extraction:
    """The last ```` ```sql ```` block; without any fence, the last paragraph that begins a query. Linear."""
    text, open_thinking = strip_thinking(response)
    if open_thinking:
        return Extraction("truncated", method="thinking")
    if blocks(text):
        found = find_program(text, language="sql", pick=pick, bare=False, allow_unclosed=allow_unclosed)
        return Extraction(found.outcome, found.text.strip(), found.method)
    if not bare:
        return Extraction("none")
    tagged = find_tags(text, ("answer", "sql"))
    if tagged and not tagged[-1].closed:
        return Extraction("truncated", method="answer_tag")
    query = _bare(tagged[-1].content if tagged else text)
    method = "answer_tag" if tagged else "whole"
    return Extraction("answered", query, method) if query else Extraction("none", method=method)


def _bare(text: str) -> str:
    for paragraph in reversed(_PARAGRAPH.split(text)):
        start = _START.search(paragraph)
        if start is not None:
            query = paragraph[start.start(1) :]
            end = _END.search(query)
            return (query[: end.start()] if end and not query[end.end() :].strip().startswith("--") else query).strip()
    return ""


def is_ordered(query: str) -> bool:
    """Has the query an ORDER BY of its own, outside all parentheses?"""
    depth, before = 0, ""
    for match in _TOKEN.finditer(query):
        token = match.group()
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif token[0] not in "'\"`[-/":
            word = token.lower()
            if depth == 0 and before == "order" and word == "by":
                return True
            before = word if depth == 0 else before
            continue
        if token[0] not in "-/":
            before = ""
    return False
