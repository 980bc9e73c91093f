"""Queries about pull requests: the newest news of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.core.pull_requests import PullRequest
from service.store.delivery_tables import PullRequestRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def find(session: Session, fork: str, number: int) -> PullRequest | None:
    """Return a pull request, if there was news of it."""
    row = session.get(PullRequestRow, (fork, number))
    return _value(row) if row else None


def put(session: Session, pull: PullRequest) -> None:
    """Write a pull request down as it is now."""
    row = session.get(PullRequestRow, (pull.fork, pull.number))
    if row is None:
        row = PullRequestRow(fork=pull.fork, number=pull.number)
        session.add(row)
    row.head_sha, row.head_at = pull.head_sha, pull.head_at
    row.base = pull.base
    row.outside, row.draft, row.open = pull.outside, pull.draft, pull.open
    row.changed_at = pull.changed_at
    session.flush()


def _value(row: PullRequestRow) -> PullRequest:
    return PullRequest(
        fork=row.fork,
        number=row.number,
        head_sha=row.head_sha,
        head_at=row.head_at,
        base=row.base,
        outside=row.outside,
        draft=row.draft,
        open=row.open,
        changed_at=row.changed_at,
    )
