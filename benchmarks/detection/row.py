"""Rows of the one table: an aim, our figure, the peers' figures from the same run, the trials.

Shares are printed with their exact binomial interval, so that nobody takes 0 of 100 for never.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scipy.stats import binomtest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Peers with a column of their own; others share the last.
COLUMNS: Final = ("Otava", "PELT", "Perfherder")
HEADINGS: Final = ("what", "aim", "forkwatch", *COLUMNS, "others", "trials", "seconds")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table; every cell is the text that is printed."""

    what: str
    aim: str
    ours: str
    #: Figures of the peers from the same run, by name.
    peers: Mapping[str, str] = field(default_factory=dict)
    trials: str = ""
    #: What the peers of a group take together is shared evenly by its rows.
    seconds: float = 0.0

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells in the order of the headings."""
        own = (self.peers.get(name, "-") for name in COLUMNS)
        others = [f"{name}: {told}" for name, told in self.peers.items() if name not in COLUMNS]
        rest = ("; ".join(others) or "-", self.trials, f"{self.seconds:.0f}")
        return (self.what, self.aim, self.ours, *own, *rest)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a row group may know of the command: how much to try, and where the data lie."""

    #: Multiplies the number of trials of every row; 1 takes about ten minutes on one core.
    scale: float = 1.0
    seed: int = 20260901
    #: The folder of real series, None where none was given.
    data: Path | None = None
    #: Where charts go, None for none.
    charts: Path | None = None

    def trials(self, usual: int, *, at_least: int = 4) -> int:
        """Return how many trials to make where `usual` is the number at full length."""
        return max(at_least, round(usual * self.scale))


def share(hits: int, trials: int) -> str:
    """Return a share in percent with its exact 95 % interval (Clopper and Pearson 1934)."""
    if trials == 0:
        return "no trials"
    interval = binomtest(hits, trials).proportion_ci(confidence_level=0.95, method="exact")
    return f"{100 * hits / trials:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def markdown(rows: Sequence[Sequence[str]], headings: Sequence[str] = HEADINGS) -> str:
    """Return a table that reads well in a terminal and is Markdown."""
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]

    def one(line: Sequence[str]) -> str:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        return f"| {' | '.join(cells)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([one(lines[0]), rule, *(one(line) for line in lines[1:])])
