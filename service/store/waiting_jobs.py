"""Queries about jobs that wait for a run, by what a CI knows of them: commit and host class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from service.core.model import JobState
from service.store import jobs
from service.store.tables import JobRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.core.model import Job


def oldest(session: Session, *, sha: str, host_class: str) -> Job | None:
    """Return the oldest job of a commit on a host class that has no run yet, if there is one.

    It is held until the transaction ends, so that nobody finishes it meanwhile.
    """
    query = (
        select(JobRow.id)
        .where(
            JobRow.sha == sha,
            JobRow.host_class == host_class,
            JobRow.state.in_((JobState.CREATED, JobState.DISPATCHED)),
        )
        .order_by(JobRow.created_at, JobRow.id)
        .limit(1)
        .with_for_update()
    )
    found = session.scalar(query)
    return None if found is None else jobs.find(session, found)
