"""Queries about what machines did in a week besides commits: pull requests and bisects.

A window of time comes in, values of `core.digests` go out. What belongs to the week is decided by
when it ended, by the service's own clock.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from bisects.document import BisectEnd
from service.core.digests import BisectWork, FinishedPullJob
from service.core.pull_requests import PullJobKind, PullJobState
from service.store import bisects
from service.store.bisect_tables import BisectJobRow, BisectRow
from service.store.delivery_tables import PullJobRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.bisections import Bisect
    from service.core.digests import Window

#: Rows of one week: a pair takes minutes, so this is more than one machine can do.
WEEK_ROWS_MAX: Final = 5_000
#: Bisects of one week whose answers are read.
BISECTS_MAX: Final = 100
#: A pair takes an hour or two; a longer span is a runner that was away, or a clock that was set.
JOB_DURATION_MAX: Final = timedelta(days=1)


def finished_pull_jobs(session: Session, window: Window) -> list[FinishedPullJob]:
    """Return the pairs of pull requests that were over in the window, oldest first."""
    query = (
        select(
            PullJobRow.pull,
            PullJobRow.kind,
            PullJobRow.state,
            PullJobRow.verdicts,
            PullJobRow.started_at,
            PullJobRow.finished_at,
        )
        .where(
            PullJobRow.fork == window.fork,
            PullJobRow.finished_at >= window.begins,
            PullJobRow.finished_at < window.until,
        )
        .order_by(PullJobRow.finished_at, PullJobRow.sequence)
        .limit(WEEK_ROWS_MAX)
    )
    return [
        FinishedPullJob(
            pull=pull,
            judged=(kind, state) == (PullJobKind.RUN.value, PullJobState.JUDGED.value),
            verdicts=verdicts,
            duration=_between(started, finished),
        )
        for pull, kind, state, verdicts, started, finished in session.execute(query)
    ]


def bisect_work(session: Session, window: Window) -> BisectWork:
    """Return what bisects did in the window."""
    ended = _ended(session, window)
    found = (bisects.document(session, bisect.id) for bisect in ended)
    return BisectWork(
        ended=tuple(ended),
        culprits=sum(one is not None and one.end is BisectEnd.CULPRIT for one in found),
        duration=_measured(session, window),
    )


def _ended(session: Session, window: Window) -> list[Bisect]:
    query = (
        select(BisectRow.id)
        .where(
            BisectRow.fork == window.fork,
            BisectRow.finished_at >= window.begins,
            BisectRow.finished_at < window.until,
        )
        .order_by(BisectRow.finished_at, BisectRow.sequence)
        .limit(BISECTS_MAX)
    )
    found = (bisects.find(session, one) for one in session.scalars(query).all())
    return [bisect for bisect in found if bisect is not None]


def _measured(session: Session, window: Window) -> timedelta:
    query = (
        select(BisectJobRow.started_at, BisectJobRow.finished_at)
        .join(BisectRow, BisectRow.id == BisectJobRow.bisect)
        .where(
            BisectRow.fork == window.fork,
            BisectJobRow.finished_at >= window.begins,
            BisectJobRow.finished_at < window.until,
        )
        .order_by(BisectJobRow.finished_at)
        .limit(WEEK_ROWS_MAX)
    )
    spans = (_between(started, finished) for started, finished in session.execute(query))
    return sum(spans, timedelta())


def _between(started: datetime | None, finished: datetime | None) -> timedelta:
    if started is None or finished is None:
        return timedelta()
    return min(max(finished - started, timedelta()), JOB_DURATION_MAX)
