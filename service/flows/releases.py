"""Trends across releases: stored versions come in, a matrix relative to the first goes out.

Each version is one stored run. A workload is compared where host class, dataset and placement are
those of the base; where they are not, there is a gap, and a note that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from reports.matrix import Cell, Matrix
from reports.rows import Level, Row
from service.core.errors import NotFoundError
from service.flows.named_runs import ComparisonError, side_called
from service.flows.run_changes import baseline_of, change_from, named, noise_before
from service.store import forks
from service.store.comparisons import throughputs
from workloads.catalog import find_workload
from workloads.errors import UnknownWorkloadError
from workloads.plan import Gates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session

    from detectors.predictive import Baseline
    from results.series import SeriesKey
    from service.flows.named_runs import NamedSide

    Starts = tuple[tuple[float, ...], ...]
    Measured = Mapping[SeriesKey, Starts]

#: Versions of one table: the field's widest have fourteen, and twenty fit a wide screen.
VERSIONS_MAX: Final = 20
VERSIONS_MIN: Final = 2


@dataclass(frozen=True, kw_only=True)
class Version:
    """One stored version, by the name that was asked for."""

    ref: str
    side: NamedSide


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Relative throughput by version, the base first."""

    fork: str
    versions: tuple[Version, ...]
    #: Of the versions after the base, in their order.
    matrix: Matrix
    notes: tuple[str, ...]


def releases(session: Session, *, fork: str, refs: Sequence[str]) -> Releases:
    """Return how versions of a fork compare with the first of them.

    Raises:
        NotFoundError: There is no such fork or version, or a version was not measured.
        ComparisonError: Too few or too many versions, or a name can mean several commits.
    """
    asked = list(dict.fromkeys(ref.strip() for ref in refs if ref.strip()))
    if "\0" in fork or forks.find(session, fork) is None:
        raise NotFoundError(f"there is no fork {fork!r}")
    if not VERSIONS_MIN <= len(asked) <= VERSIONS_MAX:
        raise ComparisonError(
            f"name {VERSIONS_MIN} to {VERSIONS_MAX} versions, the base first; these are "
            f"{len(asked)}"
        )
    versions = tuple(Version(ref=ref, side=side_called(session, ref, fork=fork)) for ref in asked)
    runs = [version.side.run.id for version in versions]
    twice = {run for run in runs if runs.count(run) > 1}
    if twice:
        same = ", ".join(version.ref for version in versions if version.side.run.id in twice)
        raise ComparisonError(f"these names mean the same run: {same}")
    measured = throughputs(session, runs)
    base = versions[0]
    before = measured.get(runs[0], {})
    priors = noise_before(session, base.side, list(before), without=set(runs))
    baselines = {key: baseline_of(starts, priors[key]) for key, starts in before.items()}
    cells, notes = [], []
    for version in versions[1:]:
        cell, missing = _cell(version, measured, base=base, baselines=baselines)
        cells.append(cell)
        if missing:
            notes.append(
                f"{version.ref}: {missing} workloads were measured under other conditions than "
                "the base's, or not at all, and are left out."
            )
    return Releases(
        fork=fork,
        versions=versions,
        matrix=Matrix(base=base.side.title, cells=tuple(cells), base_levels=_levels(before)),
        notes=tuple(notes),
    )


def _cell(
    version: Version,
    measured: Mapping[str, Measured],
    *,
    base: Version,
    baselines: Mapping[SeriesKey, Baseline],
) -> tuple[Cell, int]:
    """Return the column of a version, and how many of the base's workloads it lacks."""
    before = measured.get(base.side.run.id, {})
    after = measured.get(version.side.run.id, {})
    alike = {_conditions(key): starts for key, starts in after.items()}
    rows, changes = [], {}
    for key, starts in before.items():
        found = alike.get(_conditions(key))
        if found is None:
            continue
        changes[key.workload] = change_from(baselines[key], found)
        rows.append(
            Row(
                workload=key.workload,
                group=_group(key.workload),
                baseline=_level(starts),
                candidate=_level(found),
                verdict=None,
            )
        )
    verdicts = named(changes, Gates())
    cell = Cell(
        name=version.side.title,
        rows=tuple(rows),
        significant=frozenset(name for name, one in verdicts.items() if one.significant),
        gap="" if rows else "nothing was measured under the conditions of the base",
    )
    return cell, len(before) - len(rows)


def _conditions(key: SeriesKey) -> tuple[str, str, str, str]:
    """Return what has to be the same; builds, configs and branches are what is compared."""
    return key.workload, key.host_class, key.dataset, key.placement


def _levels(measured: Measured) -> dict[str, Level]:
    return {key.workload: _level(starts) for key, starts in measured.items()}


def _level(starts: Starts) -> Level:
    middles = [median(slices) for slices in starts]
    return Level(
        throughput_ops_s=median(middles),
        lowest_ops_s=min(middles),
        highest_ops_s=max(middles),
        starts=len(middles),
        efficiency=None,
    )


def _group(workload: str) -> str:
    """Return the group of the field's tables; `other` for what is not in the catalog."""
    try:
        return find_workload(workload).group.value
    except UnknownWorkloadError:
        return "other"
