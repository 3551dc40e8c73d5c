"""What came out of a run of ``adjudge verify``: counts by verifier and category, and what is not as expected."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from adjudge.types import Verdict

from .console import console, print_json, table
from .expect import Mismatch, mismatches
from .lines import Item

__all__ = ["Summary"]

_SHOWN = 40


@dataclass(slots=True)
class _Group:
    count: int = 0
    cached: int = 0
    rewards: float = 0.0


@dataclass(slots=True)
class Summary:
    """Filled line by line with :meth:`add`."""

    seconds: float = 0.0
    lines: int = 0
    expecting: int = 0
    groups: dict[tuple[str, str, str], _Group] = field(default_factory=dict)
    malformed: list[tuple[str, str]] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    unmet: int = 0
    """Lines that did not get what they expect, or, without an expectation, no ``ok`` verdict."""

    @property
    def fine(self) -> bool:
        return self.lines > 0 and not self.malformed and not self.unmet

    def add(self, item: Item, verdict: Verdict | None) -> None:
        """Count one line. No verdict: the line could not be read."""
        self.lines += 1
        if verdict is None:
            self.malformed.append((item.where, item.problem))
            return
        group = self.groups.setdefault((verdict.verifier or "-", verdict.status, verdict.category or ""), _Group())
        group.count += 1
        group.cached += verdict.cached
        group.rewards += verdict.reward or 0.0
        self.expecting += bool(item.expect)
        found = list(mismatches(item.where, item.expect, verdict))
        self.unmet += bool(found)
        self.mismatches += found[: max(0, 10_000 - len(self.mismatches))]

    def show(self, *, as_json: bool, stderr: bool) -> None:
        """Print everything, as tables or as one JSON object."""
        if as_json:
            print_json(self.as_dict(), stderr=stderr)
            return
        screen = console(stderr=stderr)
        if self.groups:
            self._show_groups(screen)
        if self.mismatches:
            self._show_mismatches(screen)
        for where, problem in self.malformed[:_SHOWN]:
            screen.print(_plain(f"{where}: {problem}"))
        if len(self.malformed) > _SHOWN:
            screen.print(f"... and {len(self.malformed) - _SHOWN} more lines that cannot be read")
        screen.print(self._closing_line(), markup=False)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "lines": self.lines,
            "fine": self.fine,
            "seconds": round(self.seconds, 3),
            "expecting": self.expecting,
            "unmet": self.unmet,
            "verdicts": [
                {
                    "verifier": verifier,
                    "status": status,
                    "category": category or None,
                    "count": group.count,
                    "cached": group.cached,
                    "mean_reward": group.rewards / group.count if status == "ok" else None,
                }
                for (verifier, status, category), group in sorted(self.groups.items())
            ],
            "mismatches": [
                {"where": m.where, "key": m.key, "expected": m.expected, "got": m.got, "reason": m.reason}
                for m in self.mismatches
            ],
            "malformed": [{"where": where, "problem": problem} for where, problem in self.malformed],
        }

    def _show_groups(self, screen: Console) -> None:
        made = table(
            "", "verifier", "status", "category", "count", "mean reward", "cached",
            right=("count", "mean reward", "cached"),
        )  # fmt: skip
        for (verifier, status, category), group in sorted(self.groups.items()):
            mean = f"{group.rewards / group.count:.3f}" if status == "ok" else "-"
            style = None if status == "ok" else "yellow"
            made.add_row(_plain(verifier), status, category, str(group.count), mean, str(group.cached), style=style)
        screen.print(made)

    def _show_mismatches(self, screen: Console) -> None:
        made = table("Not as expected", "line", "key", "expected", "got", "reason")
        for m in self.mismatches[:_SHOWN]:
            made.add_row(_plain(m.where), m.key, _cell(m.expected), _cell(m.got), _plain(m.reason))
        screen.print(made)
        if len(self.mismatches) > _SHOWN:
            screen.print(f"... and {len(self.mismatches) - _SHOWN} more")

    def _closing_line(self) -> str:
        judged = sum(group.count for group in self.groups.values())
        ok = [(key, group) for key, group in self.groups.items() if key[1] == "ok"]
        count = sum(group.count for _, group in ok)
        parts = [f"{judged} judged in {self.seconds:.1f} s ({judged / max(self.seconds, 1e-6):,.0f}/s)"]
        if count:
            parts.append(f"mean reward {sum(group.rewards for _, group in ok) / count:.3f} over {count} ok")
        if judged > count:
            parts.append(f"{judged - count} not ok")
        if self.expecting:
            parts.append(f"{self.expecting} with an expectation")
        if self.unmet:
            parts.append(f"{self.unmet} NOT as expected")
        if self.malformed:
            parts.append(f"{len(self.malformed)} lines that cannot be read")
        if not self.lines:
            parts = ["there is no line to judge"]
        return "; ".join(parts)


def _cell(value: Any) -> Text:
    return _plain(json.dumps(value, default=str))


def _plain(text: str) -> Text:
    """Text of a stranger as a table shows it: no markup, no control characters, not too long."""
    return Text("".join(character if character.isprintable() else " " for character in text[:300]))
