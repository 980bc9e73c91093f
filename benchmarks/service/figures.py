"""Figures of the table: what was measured, its aim, and whether it was met.

Seconds, milliseconds or counts come in, lines of a Markdown table go out. An aim in time is met by
the 95th percentile, an aim of none by none at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.detection.row import markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADINGS: Final = ("what", "database", "commits", "aim", "median", "p95", "n", "met")
GROWTH_HEADINGS: Final = ("what", "database", "commits", "median grows", "p95 grows")
_P95: Final = 0.95


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Values of one thing."""

    what: str
    database: str
    commits: int
    unit: str
    values: Sequence[float]
    #: At most so much; None where nothing was promised.
    aim: float | None = None

    @property
    def p95(self) -> float:
        """The value that 95 of 100 do not exceed: one that was measured."""
        return sorted(self.values)[math.ceil(_P95 * len(self.values)) - 1]

    @property
    def met(self) -> bool | None:
        """Whether the aim was met; None where there is none."""
        return None if self.aim is None else self.p95 <= self.aim

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its line."""
        said = {None: "-", True: "yes", False: "NO"}[self.met]
        aim = "-" if self.aim is None else f"<= {self._said(self.aim)}"
        return (
            self.what,
            self.database,
            f"{self.commits:,}",
            aim,
            self._said(median(self.values)),
            self._said(self.p95),
            f"{len(self.values)}",
            said,
        )

    def _said(self, value: float) -> str:
        number = f"{value:,.2f}" if self.unit == "s" else f"{value:,.0f}"
        return f"{number} {self.unit}".strip()


def table(figures: Sequence[Figure]) -> str:
    """Return all figures as a table."""
    return markdown([figure.cells for figure in figures], HEADINGS)


def growth(figures: Sequence[Figure]) -> str:
    """Return by how much each time grows from the shortest history to the longest; or nothing."""
    least = min(figure.commits for figure in figures)
    before = {(one.what, one.database): one for one in figures if one.commits == least}
    lines = [
        (
            one.what,
            one.database,
            f"{least:,} to {one.commits:,}",
            f"x {_ratio(median(one.values), median(old.values))}",
            f"x {_ratio(one.p95, old.p95)}",
        )
        for one in figures
        if one.commits > least and one.unit and (old := before.get((one.what, one.database)))
    ]
    return markdown(lines, GROWTH_HEADINGS) if lines else ""


def _ratio(after: float, before: float) -> str:
    return f"{after / before:.1f}" if before else "-"
