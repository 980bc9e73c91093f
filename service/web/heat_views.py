"""The heat map of the first page: where every workload of a fork stands, by commit and by branch.

A session comes in, frozen values go out. Nothing is judged here: ratios are of medians, and what a
paired job has confirmed was confirmed before. A colour without that is said to be unsure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reports.numbers import mark, rate, tone
from results.metric import THROUGHPUT
from service.flows.digest_trends import settings_of
from service.store import overview, series
from service.web.addresses import workload_path
from service.web.sparklines import sparkline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session

    from results.series import SeriesKey
    from service.core.model import Fork
    from service.store.overview import ConfirmedChange, MeasuredRun
    from service.web.sparklines import Sparkline

    Levels = Mapping[str, Mapping[str, float]]

#: Columns of the heat map: what a desktop shows without scrolling.
HEAT_COLUMNS: Final = 8
#: Rows of it: the microbenchmarks of two configurations. The rest is counted.
HEAT_ROWS_MAX: Final = 100
#: A colour is sure where confirmed changes explain so much of its log ratio: less would call a
#: new suspicion sure because of an old loss, more would doubt a loss because of noise beside it.
SURE_SHARE: Final = 2 / 3
#: The signs of a colour that nothing has confirmed: as those of `reports.numbers`, but hollow.
_HOLLOW: Final = {"▼": "▽", "▲": "△"}
_NONE: Final[tuple[ConfirmedChange, ...]] = ()


@dataclass(frozen=True, kw_only=True)
class HeatCell:
    """Throughput over that of the reference."""

    ratio: float
    #: Confirmed changes explain it, or there is nothing to explain.
    sure: bool

    @property
    def sign(self) -> str:
        """What says without colour what is said with it."""
        found = mark(self.ratio)
        return found if self.sure else _HOLLOW.get(found, found)


@dataclass(frozen=True, kw_only=True)
class HeatRow:
    """One series: where it stood at the newest commits, over the reference."""

    workload: str
    #: What tells it from other series of the workload; empty where it is alone.
    setting: str
    link: str
    #: The commit that it stands against where somebody had its baseline begin later; else None.
    begins: MeasuredRun | None
    #: At the newest commit that measured it; None where the reference did not.
    now: HeatCell | None
    #: One for each column; None where that commit has no samples of it, or the reference has none.
    cells: tuple[HeatCell | None, ...]
    line: Sparkline | None


@dataclass(frozen=True, kw_only=True)
class BranchRow:
    """One workload under one set of conditions, at the newest commit of each branch."""

    workload: str
    setting: str
    link: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, kw_only=True)
class BranchMap:
    """Branches x workloads of a fork that has more than one branch."""

    #: Each branch with its newest measured commit, by name.
    columns: tuple[tuple[str, MeasuredRun], ...]
    rows: tuple[BranchRow, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Newest commits x series of a fork, as throughput over that of one commit."""

    #: What rows stand against that have no beginning of their own.
    reference: MeasuredRun
    #: Whether somebody chose it; else it is the first measured one that the service saw come.
    chosen: bool
    #: Newest first.
    columns: tuple[MeasuredRun, ...]
    rows: tuple[HeatRow, ...]
    #: Series that did not fit.
    more: int
    #: None where the fork has one branch only.
    branches: BranchMap | None


def heat_map(session: Session, fork: Fork, *, against: str | None) -> HeatMap | None:
    """Return how every series of a fork stands, None where none was measured lately."""
    keys = series.of_fork(session, fork.name, metric=THROUGHPUT.name)
    branches = {key.branch for key in keys}
    # Commits of two branches in one row of columns would be gaps, each in the other's rows.
    own = fork.branch if len(branches) > 1 and fork.branch in branches else None
    newest = overview.newest_runs(session, fork.name, branch=own)
    chosen = overview.reference_run(session, fork.name, chosen=against) if against else None
    reference = chosen or overview.reference_run(session, fork.name)
    if reference is None:
        return None
    # Whoever chose a commit wants to see everything against it.
    begins = {} if chosen else overview.beginnings(session, fork.name, after=reference.position)
    against_runs = {reference.id, *(run.id for run in begins.values())}
    levels = overview.levels(
        session, [key.id for key in keys], [*against_runs, *(run.id for run in newest)]
    )
    # What the newest runs no longer measure is history, and has its own pages.
    alive = [key for key in keys if any(run.id in levels.get(key.id, {}) for run in newest)]
    if not alive:
        return None
    settings, changes = settings_of(alive), overview.confirmed_changes(session, fork.name)
    return HeatMap(
        reference=reference,
        chosen=chosen is not None,
        columns=tuple(newest[:HEAT_COLUMNS]),
        rows=tuple(
            _row(
                key,
                levels[key.id],
                newest,
                reference,
                begins=begins.get(key.id),
                changes=changes.get(key.id, _NONE),
                setting=settings[key.id],
            )
            for key in alive[:HEAT_ROWS_MAX]
        ),
        more=max(0, len(alive) - HEAT_ROWS_MAX),
        branches=_branch_map(session, keys, reference, changes) if len(branches) > 1 else None,
    )


def heat_cell(
    level: float | None,
    base: float | None,
    *,
    run: MeasuredRun,
    reference: MeasuredRun,
    changes: Sequence[ConfirmedChange],
) -> HeatCell | None:
    """Return a cell, None where one of the two commits has not measured the series.

    Args:
        level: Of the series at the commit.
        base: Of the series at the reference.
        run: That of the commit.
        reference: That of the reference.
        changes: What paired jobs have confirmed in the series, wherever.
    """
    if not level or not base:
        return None
    ratio = level / base
    if not tone(ratio):
        return HeatCell(ratio=ratio, sure=True)
    explained = _between(changes, run, reference) / math.log(ratio)
    return HeatCell(ratio=ratio, sure=explained >= SURE_SHARE)


def _between(changes: Sequence[ConfirmedChange], run: MeasuredRun, reference: MeasuredRun) -> float:
    """Return the log ratio from reference to run that was confirmed step by step."""
    sign = 1 if run.position >= reference.position else -1
    low, high = sorted((run.position, reference.position))
    return sign * sum(one.effect for one in changes if low < one.position <= high)


def _row(
    key: SeriesKey,
    levels: Mapping[str, float],
    newest: Sequence[MeasuredRun],
    reference: MeasuredRun,
    *,
    begins: MeasuredRun | None,
    changes: Sequence[ConfirmedChange],
    setting: str,
) -> HeatRow:
    base = begins or reference
    cells = [
        heat_cell(levels.get(run.id), levels.get(base.id), run=run, reference=base, changes=changes)
        for run in newest
    ]
    seen = [levels[run.id] for run in reversed(newest) if run.id in levels]
    return HeatRow(
        workload=key.workload,
        setting=setting,
        link=workload_path(key.fork, key.workload),
        begins=begins,
        now=next((cell for cell in cells if cell is not None), None),
        cells=tuple(cells[:HEAT_COLUMNS]),
        line=sparkline(
            seen, label=f"{len(seen)} commits, from {rate(seen[0])} to {rate(seen[-1])} o/s"
        ),
    )


def _branch_map(
    session: Session,
    keys: Sequence[SeriesKey],
    reference: MeasuredRun,
    changes: Mapping[str, Sequence[ConfirmedChange]],
) -> BranchMap | None:
    """Return where each branch stands, None where fewer than two were measured."""
    heads = overview.branch_heads(session, keys[0].fork, {key.branch for key in keys})
    if len(heads) < 2:  # noqa: PLR2004  one branch is what the other table is about
        return None
    levels = overview.levels(
        session, [key.id for key in keys], [reference.id, *(run.id for run in heads.values())]
    )
    alike: dict[SeriesKey, dict[str, SeriesKey]] = defaultdict(dict)
    for key in keys:
        alike[replace(key, branch="")][key.branch] = key
    settings = settings_of(list(alike))
    rows = [
        BranchRow(
            workload=condition.workload,
            setting=settings[condition.id],
            link=workload_path(condition.fork, condition.workload),
            cells=_branch_cells(by_branch, heads, reference, levels=levels, changes=changes),
        )
        for condition, by_branch in alike.items()
    ]
    told = [row for row in rows if any(row.cells)]
    return BranchMap(
        columns=tuple(heads.items()),
        rows=tuple(told[:HEAT_ROWS_MAX]),
        more=max(0, len(told) - HEAT_ROWS_MAX),
    )


def _branch_cells(
    by_branch: Mapping[str, SeriesKey],
    heads: Mapping[str, MeasuredRun],
    reference: MeasuredRun,
    *,
    levels: Levels,
    changes: Mapping[str, Sequence[ConfirmedChange]],
) -> tuple[HeatCell | None, ...]:
    """Return a cell for each branch; the reference was measured on one of them."""
    bases = (levels.get(key.id, {}).get(reference.id) for key in by_branch.values())
    base = next((level for level in bases if level), None)
    cells = []
    for branch, run in heads.items():
        key = by_branch.get(branch)
        cells.append(
            heat_cell(
                levels.get(key.id, {}).get(run.id),
                base,
                run=run,
                reference=reference,
                changes=changes.get(key.id, _NONE),
            )
            if key
            else None
        )
    return tuple(cells)
