r"""Cleaning of short texts, so that two ways of writing one answer become one text.

Nothing here judges. :func:`fold` turns look-alike characters into ASCII without losing what they say (``10²`` is not
``102``); :func:`unwrap` takes off what stands around an answer (``$..$``, ``**..**``, ``\text{..}``, a final full
stop); :func:`key` is a text to compare by. All of it is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["fold", "key", "plain_latex", "unwrap"]

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-", strict=True))
_SUPERSCRIPT_RUN = re.compile("[" + "".join(_SUPERSCRIPTS) + "]+")
_SUBSCRIPT_RUN = re.compile("[" + "".join(_SUBSCRIPTS) + "]+")
_VULGAR = re.compile("[¼-¾⅐-⅞↉]")
_ROOT = re.compile(r"√\s?(?:\(([^()]*)\)|(\d+|[A-Za-z]))")
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202c\u2060-\u2064\ufeff]")
_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2044\u2215\u00f7", "/"),
        **dict.fromkeys("\u2018\u2019\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d", '"'),
        "\u066b": ".",
        "\u066c": ",",
    }
)
_WRAPPERS = (
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("$$", "$$"),
    ("$", "$"),
    ("**", "**"),
    ("__", "__"),
    ("*", "*"),
    ("`", "`"),
    ('"', '"'),
    ("'", "'"),
)
_FONTS = (
    r"text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathit|mathsf|mathtt|mbox|operatorname|emph|bm|boldsymbol"
)
_FONT = re.compile(rf"\\(?:{_FONTS})\s*\{{([^{{}}]*)\}}")
_SIZE = re.compile(r"\\(?:displaystyle|textstyle|left|right|bigl|bigr|Bigl|Bigr|big|Big|limits)(?![A-Za-z])")
_COLOUR = re.compile(
    r"\\(?:color|textcolor)\s*\{(?!\s*(?:white|transparent|none|background|#?f{3}))[^{}]*\}", re.IGNORECASE
)
_THIN_SPACE = re.compile(r"\\[,!;:>]|~")
_SPACE_TO_DROP = re.compile(r"(?<!\d) | (?!\d)")


def fold(text: str) -> str:
    """Look-alikes to ASCII: digits of every script, minus signs, superscripts to ``^{..}``, ``½`` to `` 1/2``."""
    if text.isascii():
        return text
    text = _VULGAR.sub(lambda match: " " + unicodedata.normalize("NFKC", match.group()), text)
    text = _ROOT.sub(lambda match: "\\sqrt{" + (match[1] or match[2]) + "}", text)
    text = _SUPERSCRIPT_RUN.sub(lambda match: "^{" + "".join(_SUPERSCRIPTS[c] for c in match.group()) + "}", text)
    text = _SUBSCRIPT_RUN.sub(lambda match: "_{" + "".join(_SUBSCRIPTS[c] for c in match.group()) + "}", text)
    text = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKES)).translate(_LOOK_ALIKES)
    return _NON_ASCII.sub(_ascii_digit, _INVISIBLE.sub("", text))


def _ascii_digit(match: re.Match[str]) -> str:
    digit = unicodedata.digit(match.group(), None)
    return match.group() if digit is None else str(digit)


def unwrap(text: str) -> str:
    """Take off what stands around an answer, up to eight layers of it, and a full stop at its end."""
    for _ in range(8):
        before = text
        text = _without_stop(text.strip())
        for opening, closing in _WRAPPERS:
            inner = text[len(opening) : len(text) - len(closing)]
            if len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
                if opening not in inner and closing not in inner:
                    text = inner
                break
        text = _one_sided(text)
        if text == before:
            return text
    return text


def _without_stop(text: str) -> str:
    """Drop punctuation and white space at the end; the comma of a thin space (``\\,``) goes with its backslash."""
    stripped = text.rstrip(".。,;! \n\t" if text.endswith("\\!") else ".。,; \n\t")
    if len(stripped) < len(text) and stripped.endswith("\\") and not stripped.endswith("\\\\"):
        stripped = stripped[:-1].rstrip()
    return stripped


def _one_sided(text: str) -> str:
    """Take off half a wrapper, left behind where a sentence was cut."""
    for mark in ("**", "$"):
        if text.count(mark) == 1 and not text.endswith("\\$"):
            if text.endswith(mark):
                return text[: -len(mark)]
            if mark == "**" and text.startswith(mark):
                return text[len(mark) :]
    return text


def plain_latex(text: str) -> str:
    r"""Without the LaTeX that changes only the looks: fonts (``\text{..}``), colours, sizes, thin spaces."""
    text = _SIZE.sub("", _COLOUR.sub("", text))
    for _ in range(3):  # \textbf{\text{..}}
        replaced = _FONT.sub(r" \1 ", text)
        if replaced == text:
            break
        text = replaced
    return _THIN_SPACE.sub("", text).replace("\\ ", " ").replace("\\quad", " ")


def key(text: str, *, keep_case: bool = False) -> str:
    """A text to compare short answers by: folded, unwrapped, without fonts and spaces, and without case.

    A space between two digits stays, since ``1 2`` is not ``12``.
    """
    text = _SPACE_TO_DROP.sub("", " ".join(unwrap(plain_latex(fold(unwrap(text)))).split()))
    return text if keep_case else text.casefold()
