"""What a reader does not see: comments, and LaTeX that typesets text without showing it.

An answer that stands only in a comment was not handed in, and ``1\\color{white}2`` shows 1 where its letters say 12:
neither is what the response says. Comments are removed before an answer is looked for; a formula that hides a part of
itself is equal to nothing.
"""

from __future__ import annotations

import re

__all__ = ["hides_text", "visible", "without_comments"]

_NO_WIDTH = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
_LATEX_COMMENT = re.compile(r"^[ \t]{0,64}%(?![\d ]*\d)[^\n]*", re.MULTILINE)
_HIDING = re.compile(
    r"\\(?:[hv]?phantom|smash|(?:math)?[rlc]lap|transparent|opacity|hspace|hskip|kern|cancel|xcancel|bcancel|sout|st)"
    r"(?![A-Za-z])"
    r"|\\(?:text|page)?color\s{0,4}(?:\[|\{\s{0,4}(?:white|transparent|none|background|#?f{3}|1\s?,))"
    r"|[\u202d\u202e]",
    re.IGNORECASE,
)


def visible(text: str) -> str:
    """``text`` without white space at its ends and characters of no width anywhere: what padding leaves."""
    return (text if text.isascii() else _NO_WIDTH.sub("", text)).strip()


def without_comments(text: str) -> str:
    """``text`` without ``<!-- .. -->`` and without lines that are LaTeX comments."""
    if "%" in text:
        text = _LATEX_COMMENT.sub("", text)
    kept: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[position:start])
        position = end + 3
    kept.append(text[position:])
    return "".join(kept)


def hides_text(text: str) -> bool:
    """Does a formula hold text that is not shown, is shown over other text, or is struck out?"""
    return _HIDING.search(text) is not None
