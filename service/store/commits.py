"""Queries about commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Select, func, literal, select
from sqlalchemy.orm import aliased

from service.core.errors import NotFoundError
from service.core.model import CommitOutcome, CommitRecord, CommitState, GitCommit
from service.store.tables import CommitRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

#: Rows of one page of a list.
PAGE_ROWS_MAX: Final = 500
#: How far back a baseline is looked for. A stretch that long has more runs than any detector
#: reads, and the walk stays one short query.
ANCESTORS_MAX: Final = 500
_COLUMNS: Final = tuple(getattr(CommitRow, column.key) for column in CommitRow.__table__.columns)
#: Said one by one: an index finds what is equal, and not what differs.
_UNFINISHED: Final = tuple(state for state in CommitState if state is not CommitState.FINISHED)


def register(
    session: Session, fork: str, commits: Sequence[GitCommit], *, at: datetime
) -> list[CommitRecord]:
    """Write new commits down as waiting, in the given order (oldest first); return the new ones."""
    already = known(session, fork, [commit.sha for commit in commits])
    last = session.scalar(select(func.max(CommitRow.position)).where(CommitRow.fork == fork))
    position = -1 if last is None else last
    rows = []
    for commit in commits:
        if commit.sha in already:
            continue
        position += 1
        rows.append(_new_row(fork, commit, position=position, at=at))
    session.add_all(rows)
    session.flush()
    return [_value(row) for row in rows]


def register_before(
    session: Session, fork: str, older: Sequence[GitCommit], *, at: datetime, reason: str
) -> list[CommitRecord]:
    """Write commits down that come before all known ones, as skipped; return the new ones.

    Args:
        session: To write with.
        fork: Whose.
        older: In branch order, oldest first.
        at: When.
        reason: Why they are not measured yet.
    """
    already = known(session, fork, [commit.sha for commit in older])
    new = [commit for commit in older if commit.sha not in already]
    first = session.scalar(select(func.min(CommitRow.position)).where(CommitRow.fork == fork))
    begin = (0 if first is None else first) - len(new)
    rows = []
    for place, commit in enumerate(new):
        row = _new_row(fork, commit, position=begin + place, at=at)
        row.state, row.outcome = CommitState.FINISHED, CommitOutcome.SKIPPED
        row.reason, row.finished_at = reason, at
        rows.append(row)
    session.add_all(rows)
    session.flush()
    return [_value(row) for row in rows]


def known(session: Session, fork: str, shas: Sequence[str]) -> set[str]:
    """Return those of these commits that are written down; at most some ten thousand are asked."""
    query = select(CommitRow.sha).where(CommitRow.fork == fork, CommitRow.sha.in_(shas))
    return set(session.scalars(query))


def find(session: Session, fork: str, sha: str) -> CommitRecord | None:
    """Return one commit, if it is known."""
    row = session.get(CommitRow, (fork, sha))
    return _value(row) if row else None


def sha_begins(digits: str) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that the hash of a commit begins with these lower-case digits."""
    # The range is for the index; its order is that of hexadecimal digits on every database.
    within = (CommitRow.sha >= digits, CommitRow.sha < f"{digits}g")
    return (*within, CommitRow.sha.startswith(digits, autoescape=True))


def newest(
    session: Session, fork: str, *, limit: int = 100, before: int | None = None
) -> list[CommitRecord]:
    """Return commits of a fork, newest first; `before` is the position to page on from."""
    query = select(CommitRow).where(CommitRow.fork == fork)
    if before is not None:
        query = query.where(CommitRow.position < before)
    query = query.order_by(CommitRow.position.desc()).limit(min(limit, PAGE_ROWS_MAX))
    return [_value(row) for row in session.scalars(query)]


def seen(session: Session, fork: str) -> set[str]:
    """Return the commits that were seen on the branch; those of backfills come before them."""
    query = select(CommitRow.sha).where(CommitRow.fork == fork, CommitRow.position >= 0)
    return set(session.scalars(query))


def unfinished(session: Session, fork: str) -> list[CommitRecord]:
    """Return commits that are not finished, oldest first."""
    query = select(CommitRow).where(CommitRow.fork == fork, CommitRow.state.in_(_UNFINISHED))
    # Few, and sorted here: to have them sorted, SQLite would read the whole branch in its order.
    found = sorted(session.scalars(query), key=lambda row: row.position)
    return [_value(row) for row in found]


def waiting(session: Session, fork: str) -> list[CommitRecord]:
    """Return commits whose turn has not come, oldest first; none of them begins meanwhile."""
    query = (
        select(CommitRow)
        .where(CommitRow.fork == fork, CommitRow.state == CommitState.WAITING)
        .order_by(CommitRow.position)
        # SQLite has one writer at a time and knows no such lock; PostgreSQL leaves out what began.
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return [_value(row) for row in session.scalars(query)]


def begun_before(session: Session, fork: str, position: int) -> int | None:
    """Return the position of the newest commit before one that is measured, or was, if any is."""
    return session.scalar(
        select(func.max(CommitRow.position)).where(
            CommitRow.fork == fork,
            CommitRow.position < position,
            CommitRow.state != CommitState.WAITING,
            CommitRow.outcome.is_(None) | (CommitRow.outcome != CommitOutcome.SKIPPED),
        )
    )


def begin(session: Session, fork: str, sha: str) -> CommitRecord | None:
    """Note that a commit is measured now, and return it; None where it is finished or skipped."""
    row = _row(session, fork, sha, locked=True)
    if row.state is CommitState.FINISHED:
        return None
    row.state = CommitState.MEASURING
    session.flush()
    return _value(row)


def skip(session: Session, fork: str, sha: str, *, reason: str, at: datetime) -> bool:
    """Finish a commit without measuring it; return whether it still waited."""
    row = _row(session, fork, sha, locked=True)
    if row.state is not CommitState.WAITING:
        return False
    row.state, row.outcome = CommitState.FINISHED, CommitOutcome.SKIPPED
    row.reason, row.finished_at = reason, at
    session.flush()
    return True


def fill(
    session: Session, fork: str, sha: str, *, outcome: CommitOutcome, reason: str, at: datetime
) -> None:
    """Say of a skipped commit what came of it after all; any other stays as it is."""
    row = _row(session, fork, sha)
    if row.outcome is not CommitOutcome.SKIPPED:
        return
    row.outcome, row.reason, row.finished_at = outcome, reason, at
    session.flush()


def first_parents(
    session: Session, fork: str, sha: str, *, limit: int = ANCESTORS_MAX
) -> list[CommitRecord]:
    """Return the known first-parent ancestors of a commit, nearest first, without itself."""
    query = _ancestor_shas(fork, sha, limit=min(limit, ANCESTORS_MAX))
    rows = {
        row.sha: row
        for row in session.execute(
            # Hundreds, as plain rows: nobody wants them as objects of a session.
            select(*_COLUMNS).where(CommitRow.fork == fork, CommitRow.sha.in_(query))
        )
    }
    found: list[CommitRecord] = []
    start = session.get(CommitRow, (fork, sha))
    parent = start.parent if start else None
    while parent is not None and parent in rows:
        row = rows[parent]
        found.append(_value(row))
        parent = row.parent
    return found


def mark(session: Session, fork: str, sha: str, state: CommitState) -> None:
    """Set the state of a commit that is not finished; a finished one stays finished."""
    row = _row(session, fork, sha)
    if row.state is not CommitState.FINISHED:
        row.state = state
    session.flush()


def finish(
    session: Session, fork: str, sha: str, *, outcome: CommitOutcome, reason: str, at: datetime
) -> None:
    """Finish a commit with its outcome; doing it again changes nothing."""
    row = _row(session, fork, sha)
    if row.state is CommitState.FINISHED:
        return
    row.state = CommitState.FINISHED
    row.outcome = outcome
    row.reason = reason
    row.finished_at = at
    session.flush()


def _row(session: Session, fork: str, sha: str, *, locked: bool = False) -> CommitRow:
    row = session.get(CommitRow, (fork, sha), with_for_update=locked)
    if row is None:
        raise NotFoundError(f"fork {fork} has no commit {sha}")
    return row


def _ancestor_shas(fork: str, sha: str, *, limit: int) -> Select[tuple[str]]:
    """Select the shas of the first-parent chain by following parents inside the database."""
    walk = (
        select(CommitRow.parent.label("sha"), literal(1).label("depth"))
        .where(CommitRow.fork == fork, CommitRow.sha == sha)
        .cte("walk", recursive=True)
    )
    older = aliased(CommitRow)
    walk = walk.union_all(
        select(older.parent, walk.c.depth + 1).where(
            older.fork == fork, older.sha == walk.c.sha, walk.c.depth < limit
        )
    )
    return select(walk.c.sha).where(walk.c.sha.is_not(None))


def _new_row(fork: str, commit: GitCommit, *, position: int, at: datetime) -> CommitRow:
    return CommitRow(
        fork=fork,
        sha=commit.sha,
        tree=commit.tree,
        parent=commit.parent,
        author=commit.author,
        subject=commit.subject,
        committed_at=commit.committed_at,
        position=position,
        state=CommitState.WAITING,
        outcome=None,
        reason="",
        seen_at=at,
        finished_at=None,
    )


def _value(row: Any) -> CommitRecord:
    return CommitRecord(
        fork=row.fork,
        sha=row.sha,
        tree=row.tree,
        parent=row.parent,
        author=row.author,
        subject=row.subject,
        committed_at=row.committed_at,
        position=row.position,
        state=row.state,
        outcome=row.outcome,
        reason=row.reason,
        seen_at=row.seen_at,
        finished_at=row.finished_at,
    )
