"""What was found in a file of series, in words and tables: the last step of `forkwatch detect`.

Findings come in, sentences that a person can repeat and tables of text go out. It judges nothing
and prints nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.markup import one_line
from reports.numbers import NOT_KNOWN, ratio, ratio_interval
from reports.tables import Column, Line, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detectors.change import Change
    from detectors.history import History
    from forkwatch.csv_series import Series


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One change with where it is in the file and the levels on either side of it."""

    change: Change
    line: int
    #: The row's label, empty where the file has none.
    label: str
    #: Medians of the stretches before and after, in natural units.
    old_level: float
    new_level: float
    #: Whether the new level is worse; None where nobody said what is better.
    worse: bool | None
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Examined:
    """One series and everything found in it."""

    series: Series
    history: History
    findings: tuple[Finding, ...]


def change_sentence(finding: Finding, *, name: str, label_name: str) -> str:
    """Return one change as a sentence that a person can repeat."""
    change = finding.change
    sign = math.copysign(1.0, change.effect)
    low, high = sorted(
        sign * math.expm1(end) for end in (change.interval.low, change.interval.high)
    )
    called = "" if label_name.startswith("column ") else f"{one_line(label_name)} "
    where = f"{called}{finding.label} (line {finding.line})" if finding.label else ""
    judged = {True: ", which is worse", False: ", which is better", None: ""}[finding.worse]
    return (
        f"{one_line(name)} {'fell' if change.effect < 0 else 'rose'} by "
        f"{_percent(abs(math.expm1(change.effect)))} "
        f"({100 * change.interval.confidence:g} % interval {100 * low:.1f} to {_percent(high)}) "
        f"at {where or f'line {finding.line}'}, from about {level(finding.old_level)} to "
        f"{level(finding.new_level)}{judged}."
    )


def level(value: float) -> str:
    """Return a level in natural units with four digits, whole with thousands from 1,000 on."""
    rounded = float(f"{value:.4g}")
    return f"{value:,.0f}" if 1000 <= rounded < 1e15 else f"{value:.4g}"  # noqa: PLR2004  digits


def changes_table(examined: Sequence[Examined], *, label_name: str) -> Table:
    """Return all changes of all series as one table."""
    interval = next(one.findings[0] for one in examined if one.findings).change.interval
    columns = [
        Column(heading="series", meaning="Column of the file", numeric=False),
        Column(heading="line", meaning="Line of the file where the new level begins"),
        Column(heading="ratio", meaning="New level over old level"),
        Column(
            heading=f"{100 * interval.confidence:g} % interval", meaning="Interval of the ratio"
        ),
        Column(heading="p", meaning="p-value of no difference"),
        Column(heading="from", meaning="Median before"),
        Column(heading="to", meaning="Median after"),
    ]
    if label_name:
        columns.insert(2, Column(heading=one_line(label_name), meaning="Label", numeric=False))
    lines = []
    for one in examined:
        for finding in one.findings:
            change = finding.change
            cells = [
                one.series.name,
                f"{finding.line}",
                ratio(change.ratio),
                ratio_interval(change.interval),
                f"{change.p_value:.2g}" if change.p_value else "< 1e-300",
                level(finding.old_level),
                level(finding.new_level),
            ]
            if label_name:
                cells.insert(2, finding.label)
            tone = {True: "slower", False: "faster", None: ""}[finding.worse]
            lines.append(Line(cells=tuple(cells), tone=tone))
    return Table(title="Changes", columns=tuple(columns), lines=tuple(lines))


def sentences(one: Examined) -> list[str]:
    """Return what there is to say about one series: its changes, else that there is none; drift."""
    name, drift = one_line(one.series.name), one.history.drift
    told = [finding.sentence for finding in one.findings]
    if not told:
        told = [f"{name}: no change in {one.history.n_points:,} points."]
    if drift is not None:
        low, high = (100 * math.expm1(end) for end in (drift.interval.low, drift.interval.high))
        told.append(
            f"{name} drifts by {100 * math.expm1(drift.slope):+.3f} % from commit to commit "
            f"({100 * drift.interval.confidence:g} % interval {low:+.3f} to {high:+.3f} %), "
            f"{100 * math.expm1(drift.total):+.1f} % in all."
        )
    return told


def series_table(examined: Sequence[Examined]) -> Table:
    """Return what every series is like, whether or not it changed."""
    lines = []
    for one in examined:
        history = one.history
        noise = history.noise
        cells = (
            one.series.name,
            f"{history.n_points:,}",
            f"{history.n_missing:,}",
            f"{len(one.findings)}",
            _percent(noise.sd) if noise else NOT_KNOWN,
            f"{noise.rho:.2f}" if noise else NOT_KNOWN,
            f"{len(history.spikes):,}",
        )
        lines.append(Line(cells=cells))
    columns = (
        Column(heading="series", meaning="Column of the file", numeric=False),
        Column(heading="points", meaning="Measured commits"),
        Column(heading="missing", meaning="Commits without a value"),
        Column(heading="changes", meaning="Changes found"),
        Column(heading="noise", meaning="Standard deviation about the levels"),
        Column(heading="lag-1", meaning="Autocorrelation from commit to commit"),
        Column(heading="spikes", meaning="Single points set aside"),
    )
    return Table(title="Series", columns=columns, lines=tuple(lines))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
