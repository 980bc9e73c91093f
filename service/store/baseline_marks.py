"""Queries about marks: people's words about where the baseline of a series begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from service.core.alert_records import BaselineMark, MarkKind
from service.store import verdicts
from service.store.alert_tables import BaselineMarkRow

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.orm import Session


def put(session: Session, mark: BaselineMark) -> None:
    """Set a mark; one that the commit has in that series already gives way."""
    row = session.get(BaselineMarkRow, (mark.series, mark.sha))
    if row is None:
        row = BaselineMarkRow(series=mark.series, sha=mark.sha)
        session.add(row)
    row.fork = mark.fork
    row.kind = mark.kind
    row.alert = mark.alert
    row.actor = mark.actor
    row.note = mark.note
    row.at = mark.at
    session.flush()


def find(session: Session, series_id: str, sha: str) -> BaselineMark | None:
    """Return the mark of a commit in a series, if it has one."""
    row = session.get(BaselineMarkRow, (series_id, sha))
    return _value(row) if row else None


def remove(session: Session, series_id: str, sha: str) -> None:
    """Take back the mark of a commit in a series, if it has one."""
    session.execute(
        delete(BaselineMarkRow).where(
            BaselineMarkRow.series == series_id, BaselineMarkRow.sha == sha
        )
    )


def remove_noted(session: Session, series_id: str, *, actor: str, note: str) -> None:
    """Take back the marks that somebody set in a series with this note."""
    session.execute(
        delete(BaselineMarkRow).where(
            BaselineMarkRow.series == series_id,
            BaselineMarkRow.actor == actor,
            BaselineMarkRow.note == note,
        )
    )


def remove_of_alert(session: Session, alert_id: str) -> None:
    """Take back the marks that came with an alert."""
    session.execute(delete(BaselineMarkRow).where(BaselineMarkRow.alert == alert_id))


def kinds(session: Session, series_id: str, shas: Sequence[str]) -> dict[str, MarkKind]:
    """Return what is marked in a series, by commit, for those of `shas` that have a mark."""
    query = select(BaselineMarkRow.sha, BaselineMarkRow.kind).where(
        BaselineMarkRow.series == series_id, BaselineMarkRow.sha.in_(shas)
    )
    return dict(session.execute(query).all())


def beginnings(session: Session, series_id: str, shas: Sequence[str]) -> set[str]:
    """Return those of these commits that begin a level of a series.

    They are the confirmed changes, but as people have marked them.
    """
    marks = kinds(session, series_id, shas)
    void = {sha for sha, kind in marks.items() if kind is MarkKind.VOID}
    return (verdicts.accepted_changes(session, series_id, shas).keys() | marks.keys()) - void


def beginnings_by_series(
    session: Session, fork: str, series_ids: Collection[str], shas: Collection[str]
) -> dict[str, set[str]]:
    """Return, by series of a fork, what `beginnings` returns of it; two questions for all."""
    found: dict[str, set[str]] = {one: set() for one in series_ids}
    for one in verdicts.confirmed(session, fork, series_ids, shas):
        if one.decision in verdicts.CHANGES:
            found[one.series].add(one.sha)
    # People mark few commits: all marks of a series are fewer than the commits that are asked for.
    query = select(BaselineMarkRow.series, BaselineMarkRow.sha, BaselineMarkRow.kind).where(
        BaselineMarkRow.series.in_(series_ids)
    )
    wanted = set(shas)
    for series, sha, kind in session.execute(query):
        if kind is MarkKind.VOID:
            found[series].discard(sha)
        elif sha in wanted:
            found[series].add(sha)
    return found


def _value(row: BaselineMarkRow) -> BaselineMark:
    return BaselineMark(
        series=row.series,
        fork=row.fork,
        sha=row.sha,
        kind=row.kind,
        alert=row.alert,
        actor=row.actor,
        note=row.note,
        at=row.at,
    )
