"""A table of releases as the API tells it: a matrix comes in, plain values go out.

A ratio that is not there, or not finite, is null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.matrix import summaries
from service.web.compare_views import GroupView, SideView, finite, group_view, side_view

if TYPE_CHECKING:
    from reports.rows import Row
    from service.flows.releases import Releases


@dataclass(frozen=True, kw_only=True)
class VersionView:
    """One version of a table of releases."""

    ref: str
    side: SideView
    #: Why it has no numbers; empty where it has, and for the base.
    gap: str
    #: Over the base; the base itself has none.
    groups: list[GroupView]


@dataclass(frozen=True, kw_only=True)
class RatioView:
    """Relative throughput of a version; null where it has none."""

    ref: str
    ratio: float | None
    significant: bool


@dataclass(frozen=True, kw_only=True)
class ReleaseLine:
    """One workload over all versions after the base."""

    workload: str
    group: str
    base_ops_s: float
    versions: list[RatioView]


@dataclass(frozen=True, kw_only=True)
class ReleasesView:
    """Relative throughput by version, the base first."""

    fork: str
    versions: list[VersionView]
    workloads: list[ReleaseLine]
    notes: list[str]


def releases_view(found: Releases) -> ReleasesView:
    """Return a table of releases."""
    base, *others = found.versions
    cells = dict(zip((version.ref for version in others), found.matrix.cells, strict=True))
    ratios = {
        (ref, row.workload): (row, row.workload in cell.significant)
        for ref, cell in cells.items()
        for row in cell.rows
    }
    groups = {row.workload: row.group for row, _ in ratios.values()}
    by_column: dict[str, list[GroupView]] = {}
    for one in summaries(found.matrix):
        by_column.setdefault(one.column, []).append(group_view(one))
    return ReleasesView(
        fork=found.fork,
        versions=[
            VersionView(ref=base.ref, side=side_view(base.side), gap="", groups=[]),
            *(
                VersionView(
                    ref=version.ref,
                    side=side_view(version.side),
                    gap=cells[version.ref].gap,
                    groups=by_column.get(f"col-{number}", []),
                )
                for number, version in enumerate(others, start=1)
            ),
        ],
        workloads=[
            ReleaseLine(
                workload=workload,
                group=group,
                base_ops_s=found.matrix.base_levels[workload].throughput_ops_s,
                versions=[_ratio_view(ref, ratios.get((ref, workload))) for ref in cells],
            )
            for workload, group in groups.items()
        ],
        notes=list(found.notes),
    )


def _ratio_view(ref: str, found: tuple[Row, bool] | None) -> RatioView:
    if found is None:
        return RatioView(ref=ref, ratio=None, significant=False)
    row, significant = found
    return RatioView(ref=ref, ratio=finite(row.ratio), significant=significant)
