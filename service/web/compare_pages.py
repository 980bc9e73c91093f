"""The pages that compare: two stored versions, and the releases of a fork.

A database comes in, a router goes out. Both pages begin with a form, so that an address can be
typed as well as followed; what cannot be compared is said beside it. Templates escape everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter

from reports.comparison import counters_table, group_table, latency_table
from reports.comparison_chart import seconds_chart, seconds_of
from reports.matrix import LEGEND, legend_lines, summary_table, throughput_table
from reports.seconds import seconds_table
from reports.tables import absolute_table, relative_table
from reports.tables import throughput_table as verdict_table
from service.core.errors import NotFoundError
from service.flows.comparisons import compare
from service.flows.named_runs import ComparisonError
from service.flows.releases import releases
from service.store import forks
from service.web.pages import PageRoute, render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi.responses import HTMLResponse
    from sqlalchemy.orm import Session

    from reports.rows import Row
    from reports.tables import Table
    from service.flows.comparisons import Comparison
    from service.store.database import Database

#: What a form may bring; longer words are none that could be found.
_ASKED_LENGTH_MAX: Final = 4_000
_FINE: Final = 200


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What stands in the fields of a form."""

    fork: str
    baseline: str = ""
    candidate: str = ""
    refs: str = ""
    workload: str = ""


@dataclass(frozen=True, kw_only=True)
class SecondsPart:
    """The seconds of one workload on both sides."""

    workload: str
    spec: dict[str, Any]
    table: Table


@dataclass(frozen=True, kw_only=True)
class ComparisonPart:
    """Everything about two versions."""

    found: Comparison
    #: Verdicts and group summaries; then costs, latency and counters where anybody told them.
    tables: tuple[Table, ...]
    details: tuple[Table, ...]
    #: None where no workload has seconds on both sides.
    seconds: SecondsPart | None
    #: Workloads whose seconds can be shown.
    with_seconds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ReleasesPart:
    """Everything about the releases of a fork."""

    legend: tuple[str, ...]
    signs: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]


def compare_pages_router(database: Database) -> APIRouter:
    """Return the router of the pages that compare."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/compare")
    def compare_two(
        fork: str = "", baseline: str = "", candidate: str = "", workload: str = ""
    ) -> HTMLResponse:
        asked = Asked(
            fork=_plain(fork),
            baseline=_plain(baseline),
            candidate=_plain(candidate),
            workload=workload,
        )
        with database.reading() as session:
            part, problem, status = _compared(session, asked)
            known = [one.name for one in forks.everything(session)]
        return render_page(
            "compare.html",
            status=status,
            here="/compare",
            asked=asked,
            forks=known,
            part=part,
            problem=problem,
        )

    @router.get("/releases")
    def compare_releases(fork: str = "", refs: str = "") -> HTMLResponse:
        asked = Asked(fork=_plain(fork), refs=_plain(refs))
        with database.reading() as session:
            part, problem, status = _listed(session, asked)
            known = [one.name for one in forks.everything(session)]
        return render_page(
            "releases.html",
            status=status,
            here="/releases",
            asked=asked,
            forks=known,
            part=part,
            problem=problem,
        )

    return router


def _compared(session: Session, asked: Asked) -> tuple[ComparisonPart | None, str, int]:
    """Return what was found, or else what is wrong with the question and its status."""
    if not (asked.baseline or asked.candidate):
        return None, "", _FINE
    if not (asked.baseline and asked.candidate):
        return None, "Name both a baseline and a candidate.", ComparisonError.status
    try:
        return _comparison_part(session, asked), "", _FINE
    except (NotFoundError, ComparisonError) as error:
        return None, str(error), error.status


def _listed(session: Session, asked: Asked) -> tuple[ReleasesPart | None, str, int]:
    """Return the same of releases."""
    if not asked.refs:
        return None, "", _FINE
    try:
        return _releases_part(session, asked), "", _FINE
    except (NotFoundError, ComparisonError) as error:
        return None, str(error), error.status


def _plain(text: str) -> str:
    """Return what somebody wrote into a field, short enough to be shown there again."""
    return text.strip()[:_ASKED_LENGTH_MAX]


def _comparison_part(session: Session, asked: Asked) -> ComparisonPart:
    found = compare(
        session, baseline=asked.baseline, candidate=asked.candidate, fork=asked.fork or None
    )
    workloads = [row.workload for row in found.rows]
    tables = (verdict_table(found.rows), group_table(found.rows))
    details = (
        relative_table(found.rows),
        absolute_table(found.rows),
        latency_table(*found.sides, workloads),
        counters_table(*found.sides, workloads),
    )
    with_seconds = tuple(
        row.workload
        for row in _loudest_first(found.rows)
        if all(seconds_of(side, row.workload) for side in found.sides)
    )
    chosen = asked.workload if asked.workload in with_seconds else next(iter(with_seconds), "")
    return ComparisonPart(
        found=found,
        tables=tuple(table for table in tables if table.lines),
        details=tuple(table for table in details if table.lines),
        seconds=_seconds_part(found, chosen) if chosen else None,
        with_seconds=with_seconds,
    )


def _seconds_part(found: Comparison, workload: str) -> SecondsPart:
    baseline, candidate = (seconds_of(side, workload) for side in found.sides)
    table = seconds_table(
        (
            (name, [value for seconds in starts for value in seconds])
            for name, starts in (("baseline", baseline), ("candidate", candidate))
        ),
        of="side",
    )
    return SecondsPart(
        workload=workload,
        spec=seconds_chart(baseline, candidate, workload=workload),
        table=table,
    )


def _loudest_first(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the largest change first, whatever was decided about it."""

    def distance(row: Row) -> float:
        return abs(row.ratio - 1) if row.ratio is not None else -1.0

    return sorted(rows, key=lambda row: -distance(row))


def _releases_part(session: Session, asked: Asked) -> ReleasesPart:
    found = releases(session, fork=asked.fork, refs=asked.refs.split(","))
    tables = (throughput_table(found.matrix), summary_table(found.matrix))
    return ReleasesPart(
        legend=tuple(legend_lines(found.matrix)),
        signs=LEGEND,
        tables=tuple(table for table in tables if table.lines),
        notes=found.notes,
    )
