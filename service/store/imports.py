"""Queries for importing: whose fork it is, and where a branch of it ends.

What was imported and what was measured here lie in forks of their own, because a commit has one
run of its own, and the baselines of measured commits must not be made of anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import exists, select

from service.store.commits import find
from service.store.tables import CommitRow, JobRow, RunRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.core.model import CommitRecord

#: Jobs that nobody did here begin so.
JOB_PREFIX: Final = "import-"


def is_watched(session: Session, fork: str) -> bool:
    """Return whether a fork has a commit that was not imported."""
    imported = exists().where(
        JobRow.fork == CommitRow.fork,
        JobRow.sha == CommitRow.sha,
        JobRow.id.startswith(JOB_PREFIX),
    )
    query = select(CommitRow.sha).where(CommitRow.fork == fork, ~imported).limit(1)
    return session.scalar(query) is not None


def last_of_branch(session: Session, fork: str, branch: str) -> CommitRecord | None:
    """Return the newest commit with a run on a branch, if there is one."""
    query = (
        select(CommitRow.sha)
        .join(RunRow, (RunRow.fork == CommitRow.fork) & (RunRow.sha == CommitRow.sha))
        .where(CommitRow.fork == fork, RunRow.branch == branch)
        .order_by(CommitRow.position.desc())
        .limit(1)
    )
    sha = session.scalar(query)
    return find(session, fork, sha) if sha is not None else None
