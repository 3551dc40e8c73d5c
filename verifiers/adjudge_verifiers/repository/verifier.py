"""Verifier ``repository``: apply the answer's patch to a repository and run the repository's tests.

The patch is applied here, to plain data, by :mod:`.apply`; tests and configuration are put back (:mod:`.guard`); what
is left goes into a fresh box without network and without history, where the tests run beside the answer's code. Because
of that "beside", the verdict's trust is ``in_process``, and trip-wires (:mod:`.tripwire`) show whether the runner could
still tell failing from passing.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Literal

from pydantic import Field

from adjudge.types import Verdict

from ..base import Call, Context, Example, Extraction, Options, Verifier
from ..errors import InvalidReference
from ..registry import register
from ..sandboxed import sandbox_failures
from . import diffs, edits, tree, tripwire
from .apply import EscapingPatch, apply_patch
from .diffs import BadPatch
from .examples import EXAMPLES
from .extraction import Format, find_patch
from .guard import Guarded, guard, test_files_of
from .reference import RepositoryReference
from .running import run_tests
from .scoring import Scoring, Standing, refused, score, stand, unfinished
from .tree import Tree

__all__ = ["Repository", "RepositoryOptions"]

_NO_PATCH = {
    "none": ("no_answer", "The response holds no patch."),
    "truncated": ("truncated", "The patch is cut off."),
}


class RepositoryOptions(Options):
    """How the patch is found, and how the run is scored."""

    format: Format = Field(default="auto", description="Which form of patch to look for.")
    scoring: Scoring = Field(default="resolved", description="All listed tests or nothing, or the share that pass.")
    memory_mib: int = Field(default=2048, ge=64, le=65_536, description="Beside what the repository itself takes.")
    tripwire: Literal["off", "file", "each"] = Field(
        default="each",
        description="Tests that must fail: one more in each file; if all passed, each listed test in a second run.",
    )


@register
class Repository(Verifier[RepositoryReference, RepositoryOptions]):
    """Does the patch in the response make the repository's tests pass?

    A patch is a unified diff, search-and-replace blocks, or whole files in named blocks. It is resolved when every test
    of FAIL_TO_PASS and of PASS_TO_PASS is reported as passed; one that is skipped, expected to fail or missing is not.
    Changes to tests and to what configures the runner are undone and flagged. A patch that does not fit is
    ``wrong_format``; a runner that passes what must fail was ``tampered`` with.

    Needs a container engine. Python repositories are run by pytest or unittest; others by their own command, if it
    writes a JUnit XML report, and without trip-wires.
    """

    name = "repository"
    version = "1"
    lane = "sandbox"
    Reference = RepositoryReference
    Options = RepositoryOptions
    source: ClassVar[str] = "SWE-bench, https://arxiv.org/abs/2310.06770"
    examples: ClassVar[tuple[Example, ...]] = EXAMPLES
    timeout_s: ClassVar[float] = 3600.0

    def extract(self, response: str, options: RepositoryOptions) -> Extraction:
        return find_patch(response, options.format)

    def gold(self, reference: RepositoryReference, options: RepositoryOptions) -> str | None:
        if not reference.patch:
            return None
        fence = "~~~~" if "```" in reference.patch else "```"
        return f"{fence}diff\n{reference.patch.rstrip()}\n{fence}\n"

    async def verify(self, call: Call[RepositoryReference, RepositoryOptions], ctx: Context) -> Verdict:
        options, reference = call.options, call.reference
        extraction = call.extraction or self.extract(call.response, options)
        if extraction.outcome != "answered":
            return refused(*_NO_PATCH.get(extraction.outcome, _NO_PATCH["none"]))  # type: ignore[arg-type]
        if call.timeout_s is not None:
            reference = reference.model_copy(update={"timeout_s": min(reference.timeout_s, call.timeout_s / 2.5)})
        base = await _base_tree(reference, ctx)
        tested = await asyncio.to_thread(_with_test_patch, base, reference)
        listed_files = test_files_of(tested, reference.listed)
        test_files = {*listed_files, *reference.test_files, *_touched(reference.test_patch)}
        try:
            guarded = await asyncio.to_thread(_guarded, base, tested, extraction, test_files)
        except EscapingPatch as error:
            reason = f"The patch reaches outside the repository: {error}."
            return refused("wrong_format", reason, extracted=extraction.text, flags=["path_escape"])
        except BadPatch as error:
            return refused("wrong_format", f"The patch does not apply: {error}.", extracted=extraction.text)
        present = [name for name in listed_files if name in guarded.tree]
        return await _Judging(ctx, reference, options, guarded, present, extraction.text).verdict()


class _Judging:
    """One answer whose patch has been applied."""

    def __init__(
        self,
        ctx: Context,
        reference: RepositoryReference,
        options: RepositoryOptions,
        guarded: Guarded,
        test_files: list[str],
        extracted: str,
    ) -> None:
        self._boxes = ctx.boxes
        self._reference = reference
        self._options = options
        self._guarded = guarded
        self._files = test_files
        self._extracted = extracted
        self._unittest = reference.test_runner == "unittest"
        self._wires = options.tripwire if reference.test_runner != "command" else "off"

    async def verdict(self) -> Verdict:
        flags = list(self._guarded.flags)
        wired = tripwire.Wired(self._guarded.tree, ())
        if self._wires != "off":
            wired = tripwire.plant(wired.tree, self._files, unittest=self._unittest)
        standing = await self._run(wired)
        if standing.run.cases is None:
            return self._without_report(standing, flags)
        if not standing.tripped and self._wires == "each" and self._all_passed(standing):
            sprung = tripwire.spring(self._guarded.tree, self._reference.listed, self._files, unittest=self._unittest)
            if sprung.must_fail:
                second = await self._run(sprung, strict=True)
                if second.tripped or second.run.cases is None:
                    return self._tampered(second, flags)
        if standing.tripped:
            return self._tampered(standing, flags)
        return score(
            standing,
            self._reference,
            self._options.scoring,
            flags=sorted(flags),
            extracted=self._extracted,
            isolation=self._boxes.name,
            evidence={"undone": list(self._guarded.undone[:20])} if self._guarded.undone else {},
        )

    async def _run(self, wired: tripwire.Wired, *, strict: bool = False) -> Standing:
        reference = self._reference
        run = await run_tests(
            self._boxes, reference.image, reference, wired.tree, self._files, self._options.memory_mib
        )
        return stand(run, reference.listed, wired.must_fail, strict=strict)

    def _all_passed(self, standing: Standing) -> bool:
        return all(standing.passed(name) for name in self._reference.listed)

    def _without_report(self, standing: Standing, flags: list[str]) -> Verdict:
        category, reason = unfinished(standing.run)
        if category == "runtime_error" and standing.run.result.exit_status == 0:
            flags.append("early_exit")
        return self._refused(category, reason, standing, flags)

    def _tampered(self, standing: Standing, flags: list[str]) -> Verdict:
        reason = "A test that must fail did not: the answer's code has changed how tests are run or reported."
        return self._refused("tampered", reason, standing, [*flags, "tripwire_passed"])

    def _refused(self, category: str, reason: str, standing: Standing, flags: list[str]) -> Verdict:
        return refused(
            category,  # type: ignore[arg-type]
            reason,
            extracted=self._extracted,
            flags=flags,
            isolation=self._boxes.name,
            trust="in_process",
            output=standing.run.output,
            wall_s=round(standing.run.result.wall_s, 3),
        )


async def _base_tree(reference: RepositoryReference, ctx: Context) -> Tree:
    """The repository as the model saw it, without its history."""
    if reference.files:
        return {tree.checked_name(name): tree.text_file(text) for name, text in reference.files.items()}
    if reference.archive:
        return await asyncio.to_thread(tree.from_archive, reference.archive)
    with sandbox_failures():
        archive = await ctx.boxes.folder_of(reference.image, reference.folder)
    return await asyncio.to_thread(tree.from_tar, archive, below=reference.folder.rpartition("/")[2])


def _with_test_patch(base: Tree, reference: RepositoryReference) -> Tree:
    """The data set's own changes. Raises :class:`InvalidReference`."""
    try:
        result = apply_patch(base, diffs.parse(reference.test_patch)) if reference.test_patch.strip() else dict(base)
    except BadPatch as error:
        raise InvalidReference(f"The test patch does not apply: {error}.") from error
    if isinstance(reference.test_files, dict):
        result.update({tree.checked_name(name): tree.text_file(text) for name, text in reference.test_files.items()})
    return result


def _touched(test_patch: str) -> set[str]:
    if not test_patch.strip():
        return set()
    return {name for patch in diffs.parse(test_patch) for name in (patch.old, patch.new) if name}


def _guarded(base: Tree, tested: Tree, extraction: Extraction, test_files: set[str]) -> Guarded:
    """Raises :class:`BadPatch`."""
    if extraction.method in ("diff_fence", "raw_diff"):
        answer = apply_patch(base, diffs.parse(extraction.text))
    else:
        answer = edits.apply_edits(base, edits.load(extraction.text))
    return guard(base, tested, answer, test_files)
