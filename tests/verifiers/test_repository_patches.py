"""Reading and applying patches, and finding them in responses: pure text, against difflib and patch(1)."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge_sandbox.container.base import File
from adjudge_verifiers.repository import diffs, edits
from adjudge_verifiers.repository.apply import EscapingPatch, apply_patch
from adjudge_verifiers.repository.diffs import BadPatch
from adjudge_verifiers.repository.extraction import find_patch

BASE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
_LINES = st.lists(
    st.sampled_from(["", "a", "b", "    return x", "- x", "+ y", "@@", "\\ z", "--- q", "é"]), max_size=30
)


def patched(text: str, patch: str, name: str = "f.py") -> str:
    return apply_patch({name: File(text.encode())}, diffs.parse(patch))[name].data.decode()


def difference(old: list[str], new: list[str], context: int) -> str:
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, "a/f.py", "b/f.py", lineterm="", n=context))


@settings(deadline=None, max_examples=300)
@given(_LINES, _LINES, st.integers(0, 4))
def test_round_trip(old, new, context):
    if old == new:
        return
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    assert patched(before, difference(old, new, context)) == after


@settings(deadline=None, max_examples=60)
@given(_LINES, _LINES, st.integers(0, 3))
def test_counts_do_not_matter(old, new, context):
    """With wrong counts the same hunks are read, unless lines of the text look like headers."""
    headers = ("@@", "--- q", "- x", "+ y", "\\ z", "")
    if old == new or any(line in headers for line in (*old, *new)):
        return
    text = difference(old, new, 3)
    wrong = "\n".join("@@ -1,99 +1,98 @@" if line.startswith("@@") else line for line in text.split("\n"))
    if text.count("@@ -") == 1 and old:
        before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
        assert patched(before, wrong) == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch(1) is not installed")
@settings(deadline=None, max_examples=40)
@given(_LINES, _LINES, _LINES, st.integers(1, 3))
def test_against_patch(tmp_path_factory, old, new, above, context):
    """Moved by lines above it: where both take the patch, they agree."""
    if old == new or not old:
        return
    text, moved = difference(old, new, context), "".join(f"{line}\n" for line in [*above, *old])
    folder: Path = tmp_path_factory.mktemp("p")
    (folder / "f.py").write_text(moved)
    done = subprocess.run(
        ["patch", "--fuzz=0", "--no-backup-if-mismatch", "-s", "-p1"], input=text.encode(), cwd=folder, check=False,
        capture_output=True,
    )  # fmt: skip
    try:
        ours = patched(moved, text)
    except BadPatch:
        return
    if done.returncode == 0 and len(set(old)) == len(old) and not set(old) & set(above):
        assert (folder / "f.py").read_text() == ours


HUNK = "@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n"


@pytest.mark.parametrize(
    "patch",
    [
        f"--- a/f.py\n+++ b/f.py\n{HUNK}",
        f"diff --git a/f.py b/f.py\nindex 83db48f..bf2a1c0 100644\n--- a/f.py\n+++ b/f.py\n{HUNK}",
        f"--- f.py\t2024-01-01 00:00:00\n+++ f.py\t2024-01-02 00:00:00\n{HUNK}",
        f"Some prose before.\n\n--- a/f.py\n+++ b/f.py\n{HUNK}\nAnd behind.\n",
        "--- a/f.py\n+++ b/f.py\n@@ -99,3 +99,3 @@\n two\n-three\n+3\n four\n",
        "--- a/f.py\n+++ b/f.py\n@@ -1,9 +1,9 @@ def f():\n two\n-three\n+3\n four\n",
        "--- a/f.py\n+++ b/f.py\n@@ @@\n two\n-three\n+3\n four\n",
        "--- a/f.py\n+++ b/f.py\n@@ ... @@\n-three\n+3\n",
        f"--- a/f.py\r\n+++ b/f.py\r\n{HUNK}".replace("\n", "\r\n").replace("\r\r", "\r"),
        f'--- "a/f.py"\n+++ "b/f.py"\n{HUNK}',
        f"--- a/f.py\n+++ b/f.py\n{HUNK}-- \n2.39.5\n",
    ],
)
def test_forms_of_one_patch(patch):
    assert patched(BASE, patch) == BASE.replace("three", "3")


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("--- a/f.py\n+++ b/f.py\n@@ -2,2 +2,2 @@\n two\n-tree\n+3\n", "does not fit"),
        ("--- a/g.py\n+++ b/g.py\n" + HUNK, "no file"),
        ("--- a/f.py\n+++ b/f.py\n", "not changed|empty|is named"),
        ("--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+x\n", "there already"),
        ("--- a/f.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", "all of its lines"),
        ("diff --git a/f.py b/f.py\nGIT binary patch\nliteral 3\nKcmZ\n", "binary"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n", "symbolic"),
        ("diff --git a/l b/l\nnew file mode 160000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n", "submodule"),
        ("--- /dev/null\n+++ b/f.py/x\n@@ -0,0 +1 @@\n+x\n", "not a folder"),
        ("nothing at all", "no header"),
        ("--- a/f.py\n+++ b/f.py\n@@ @@\n-x\n+y\n@@ -1 bad\n", "not a header|does not fit"),
    ],
)
def test_what_does_not_apply(patch, why):
    with pytest.raises(BadPatch, match=why):
        patched(BASE, patch)


def test_without_numbers_the_place_must_be_unambiguous():
    with pytest.raises(BadPatch, match="does not fit"):
        patched("x\nx\n", "--- a/f.py\n+++ b/f.py\n@@ @@\n-x\n+y\n")
    assert patched("x\nx\n", "--- a/f.py\n+++ b/f.py\n@@ -2 +2 @@\n-x\n+y\n") == "x\ny\n"


def test_newlines_at_the_end():
    lost = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"
    gained = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
    assert patched("a\n", lost) == "b"
    assert patched("a", gained) == "b\n"


def test_rename_delete_make_and_modes():
    tree = {"a.py": File(b"x\n"), "b.py": File(b"y\n")}
    text = (
        "diff --git a/a.py b/c/a.py\nsimilarity index 100%\nrename from a.py\nrename to c/a.py\n"
        "diff --git a/b.py b/b.py\ndeleted file mode 100644\n--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n"
        "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
        "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n"
    )
    result = apply_patch(tree, diffs.parse(text))
    assert result == {"c/a.py": File(b"x\n"), "run": File(b"#!/bin/sh\n", True), "e": File()}
    assert set(tree) == {"a.py", "b.py"}


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", ".git/config", "x/.Git/y", "link/x", "link", "a//b", "a\x01b"]
)
def test_escapes(name):
    tree = {"link": File(link="/etc")}
    with pytest.raises(EscapingPatch):
        apply_patch(tree, diffs.parse(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"))
    with pytest.raises(EscapingPatch):
        edits.apply_edits(tree, [edits.Edit(name, None, "x")])


def test_hostile_patches_take_no_time():
    same = "x\n" * 200_000
    hunks = "".join(f"@@ -{n},2 +{n},2 @@\n x\n-y\n+z\n" for n in range(1, 2000))
    many = "".join(f"--- /dev/null\n+++ b/{n}\n@@ -0,0 +1 @@\n+x\n" for n in range(20_000))
    began = time.process_time()
    for text in (
        "--- a/f.py\n+++ b/f.py\n" + hunks,
        "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n" + "-x\n" * 100_000 + "-y\n",
        many,
        "--- a/f.py\n" * 50_000,
        "@@ -1 +1 @@\n" * 100_000,
        "diff --git " * 100_000,
        "--- a/f.py\n+++ b/f.py\n@@ -1,999999999 +1,999999999 @@\n" + " x\n" * 200_000,
    ):
        try:
            patched(same, text)
        except BadPatch:
            continue
    assert time.process_time() - began < 20


FIX = f"--- a/f.py\n+++ b/f.py\n{HUNK}"
OTHER = FIX.replace("+3", "+drei")


@pytest.mark.parametrize(
    ("response", "method", "expected"),
    [
        (f"Here:\n```diff\n{FIX}```\ndone", "diff_fence", FIX),
        (f"```patch\n{FIX}```", "diff_fence", FIX),
        (f"```\n{FIX}```", "diff_fence", FIX),
        (f"~~~~diff\n{FIX}~~~~", "diff_fence", FIX),
        (f"Draft:\n```diff\n{OTHER}```\nBetter:\n```diff\n{FIX}```", "diff_fence", FIX),
        (f"<think>```diff\n{OTHER}```</think>\n```diff\n{FIX}```", "diff_fence", FIX),
        (FIX, "raw_diff", FIX),
        (f"I changed this.\n\ndiff --git a/f.py b/f.py\n{FIX}", "raw_diff", f"diff --git a/f.py b/f.py\n{FIX}"),
        (f"<patch>\n{FIX}</patch>", "raw_diff", FIX),
        ("```diff\n--- a/r.md\n+++ b/r.md\n@@ -1,2 +1,2 @@\n ```py\n-x\n+y\n```", "diff_fence", None),
    ],
)
def test_diffs_in_responses(response, method, expected):
    found = find_patch(response)
    assert (found.outcome, found.method) == ("answered", method)
    assert expected is None or found.text == expected


def test_blocks_of_different_files_are_one_patch():
    second = FIX.replace("f.py", "g.py")
    found = find_patch(f"```diff\n{FIX}```\nand\n```diff\n{second}```")
    assert [patch.new for patch in diffs.parse(found.text)] == ["f.py", "g.py"]


def test_a_fence_inside_a_diff_is_a_line_of_it():
    found = find_patch("```diff\n--- a/r.md\n+++ b/r.md\n@@ -1,3 +1,3 @@\n ```py\n-x\n+y\n ```\n```\n")
    assert patched("```py\nx\n```\n", found.text, "r.md") == "```py\ny\n```\n"


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("I would change the sign.", "none"),
        ("", "none"),
        ("```python\nprint(1)\n```", "none"),
        (f"```diff\n{FIX}", "truncated"),
        ("<think>let me see", "truncated"),
        ("f.py\n<<<<<<< SEARCH\nx\n=======\ny", "truncated"),
        ("```python f.py\nx = 1", "truncated"),
    ],
)
def test_no_patch(response, outcome):
    assert find_patch(response).outcome == outcome


SEARCH = "<<<<<<< SEARCH\nthree\n=======\n3\n>>>>>>> REPLACE"


@pytest.mark.parametrize(
    "response",
    [
        f"f.py\n```python\n{SEARCH}\n```",
        f"```\nf.py\n{SEARCH}\n```",
        f"### f.py\n{SEARCH}",
        f"**`f.py`**\n\n```\n{SEARCH}\n```\nThat is all.",
    ],
)
def test_search_and_replace(response):
    found = find_patch(response)
    assert found.method == "search_replace"
    assert edits.apply_edits({"f.py": File(BASE.encode())}, edits.load(found.text))["f.py"].data == (
        BASE.replace("three", "3").encode()
    )


@pytest.mark.parametrize(
    ("search", "why"),
    [("tree", "not there"), ("x", "more than once"), ("", "nothing to search"), ("thre", "not there")],
)
def test_search_that_does_not_fit(search, why):
    with pytest.raises(BadPatch, match=why):
        edits.apply_edits({"f.py": File(b"three\nx\nx\n")}, [edits.Edit("f.py", search, "y")])


@pytest.mark.parametrize(
    "response",
    [
        "```python src/f.py\nx = 1\n```",
        "```python:src/f.py\nx = 1\n```",
        "```src/f.py\nx = 1\n```",
        "`src/f.py`:\n```python\nx = 1\n```",
        "### File: src/f.py\n\n```python\nx = 1\n```",
        "**src/f.py**\n```\nx = 0\n```\nno, rather\n\nsrc/f.py\n```\nx = 1\n```",
    ],
)
def test_whole_files(response):
    found = find_patch(response)
    assert found.method == "files"
    assert edits.apply_edits({}, edits.load(found.text)) == {"src/f.py": File(b"x = 1\n")}


@pytest.mark.parametrize(
    "piece", ["```", "```diff\n", "--- a\n+++ b\n", "<<<<<<< SEARCH\n", "=======\n", "<patch>", "a\n"]
)
def test_extraction_is_linear(piece):
    began = time.process_time()
    find_patch(piece * (1_000_000 // len(piece)))
    assert time.process_time() - began < 15
