"""Queries about bisects: what is asked, what it is searched in, and what is known by now."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from bisects.commits import RangeCommit
from bisects.document import BisectDocument, BisectQuestion, Observation
from service.core.bisections import UNDER_WAY, Bisect, BisectState, Material, digest_of
from service.core.errors import NotFoundError
from service.store.bisect_tables import BisectRow
from service.store.packing import pack, unpack
from service.store.tables import CommitRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

#: Rows of one page of a list.
PAGE_ROWS_MAX: Final = 200


def create_once(session: Session, bisect: Bisect, material: Material) -> tuple[Bisect, bool]:
    """Write a bisect down, or return the one that is there under its id; and whether it is new."""
    row = session.get(BisectRow, bisect.id)
    if row is not None:
        return _value(row), False
    last = session.scalar(select(func.max(BisectRow.sequence)))
    row = _new_row(bisect, material, sequence=(last or 0) + 1)
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        # Somebody asked the same beside us.
        return _value(session.get_one(BisectRow, bisect.id)), False
    return _value(row), True


def find(session: Session, bisect_id: str) -> Bisect | None:
    """Return a bisect, if there is one of that id."""
    row = session.get(BisectRow, bisect_id)
    return _value(row) if row else None


def locked(session: Session, bisect_id: str) -> Bisect:
    """Return a bisect that nobody else can change before this transaction ends.

    Raises:
        NotFoundError: There is none of that id.
    """
    return _value(_row(session, bisect_id))


def newest(
    session: Session,
    fork: str | None = None,
    *,
    alert: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[Bisect]:
    """Return bisects, newest first.

    Args:
        session: To read with.
        fork: Of this fork alone, where given.
        alert: In the range of this alert alone, where given.
        before: Id of the bisect to page on from, the last one of the page before.
        limit: At most so many.
    """
    query = select(BisectRow).order_by(BisectRow.sequence.desc(), BisectRow.id)
    if fork is not None:
        query = query.where(BisectRow.fork == fork)
    if alert is not None:
        query = query.where(BisectRow.alert == alert)
    if before is not None:
        last = select(BisectRow.sequence).where(BisectRow.id == before).scalar_subquery()
        query = query.where(BisectRow.sequence < last)
    return [_value(row) for row in session.scalars(query.limit(min(limit, PAGE_ROWS_MAX)))]


def unfinished(session: Session) -> list[Bisect]:
    """Return the bisects that somebody may still wait for, oldest first."""
    states = [state.value for state in UNDER_WAY]
    query = select(BisectRow).where(BisectRow.state.in_(states)).order_by(BisectRow.sequence)
    return [_value(row) for row in session.scalars(query)]


def material(session: Session, bisect_id: str) -> Material:
    """Return what a bisect is searched in.

    Raises:
        NotFoundError: There is none of that id.
    """
    query = select(BisectRow.material_gzip).where(BisectRow.id == bisect_id)
    packed = session.scalar(query)
    if packed is None:
        raise NotFoundError(f"there is no bisect {bisect_id!r}")
    return _material(json.loads(unpack(packed)))


def document(session: Session, bisect_id: str) -> BisectDocument | None:
    """Return what a bisect knows, if it knows anything yet."""
    query = select(BisectRow.document_gzip).where(BisectRow.id == bisect_id)
    packed = session.scalar(query)
    return BisectDocument.model_validate_json(unpack(packed)) if packed else None


def on_branch(session: Session, fork: str, shas: Sequence[str]) -> set[str]:
    """Return which of these commits are of the watched branch, and so have a page."""
    query = select(CommitRow.sha).where(CommitRow.fork == fork, CommitRow.sha.in_(shas))
    return set(session.scalars(query))


def begin(session: Session, bisect_id: str, *, at: datetime) -> bool:
    """Note that a bisect's turn has come; return whether anything is left to do about it."""
    row = _row(session, bisect_id)
    if BisectState(row.state) not in UNDER_WAY:
        return False
    row.state, row.started_at = BisectState.MEASURING.value, row.started_at or at
    session.flush()
    return True


def tell_outside(session: Session, bisect_id: str, outside: Sequence[str]) -> None:
    """Have a bisect know which sources its ends' servers are not made of."""
    row = _row(session, bisect_id)
    known = _material(json.loads(unpack(row.material_gzip)))
    row.material_gzip = _packed(_material_json(replace(known, outside=tuple(outside))))
    session.flush()


def keep(session: Session, bisect_id: str, found: BisectDocument, *, said: str) -> None:
    """Keep what a bisect knows by now; one that is over keeps what it has said."""
    row = _row(session, bisect_id)
    if BisectState(row.state) in UNDER_WAY:
        row.said, row.document_gzip = said, _packed(found.model_dump_json())
    session.flush()


def finish(
    session: Session,
    bisect_id: str,
    state: BisectState,
    *,
    said: str,
    at: datetime,
    found: BisectDocument | None = None,
) -> bool:
    """Finish a bisect; return whether it was not over yet. One that is over stays as it is."""
    row = _row(session, bisect_id)
    if BisectState(row.state) not in UNDER_WAY:
        return False
    row.state, row.said, row.finished_at = state.value, said, at
    if found is not None:
        row.document_gzip = _packed(found.model_dump_json())
    session.flush()
    return True


def _new_row(bisect: Bisect, material: Material, *, sequence: int) -> BisectRow:
    return BisectRow(
        id=bisect.id,
        fork=bisect.question.fork,
        good_sha=bisect.question.good,
        question=bisect.question.model_dump_json(),
        plan_digest=digest_of(material.plan_text),
        state=bisect.state.value,
        commits=bisect.commits,
        alert=bisect.alert,
        asked_by=bisect.asked_by,
        via=bisect.via,
        number=bisect.number,
        said=bisect.said,
        sequence=sequence,
        created_at=bisect.created_at,
        started_at=bisect.started_at,
        finished_at=bisect.finished_at,
        material_gzip=_packed(_material_json(material)),
        document_gzip=None,
    )


def _packed(text: str) -> bytes:
    return pack(text.encode())


def _material_json(value: Material) -> str:
    told: dict[str, Any] = {one.name: getattr(value, one.name) for one in fields(value)}
    told["known"] = [one.model_dump(mode="json") for one in value.known]
    told["commits"] = [
        asdict(one) | {"committed_at": one.committed_at.isoformat()} for one in value.commits
    ]
    return json.dumps(told)


def _material(told: dict[str, Any]) -> Material:
    known = tuple(Observation.model_validate(one) for one in told["known"])
    commits = tuple(_range_commit(one) for one in told["commits"])
    lists = {"built": tuple(told["built"]), "outside": tuple(told.get("outside", ()))}
    return Material(**(told | lists | {"commits": commits, "known": known}))


def _range_commit(told: dict[str, Any]) -> RangeCommit:
    at = datetime.fromisoformat(told["committed_at"])
    return RangeCommit(**(told | {"committed_at": at, "files": tuple(told["files"])}))


def _row(session: Session, bisect_id: str) -> BisectRow:
    """Return the row, which nobody else can change before this transaction ends."""
    # SQLite has one writer at a time and knows no such lock; PostgreSQL waits for the row here.
    row = session.get(BisectRow, bisect_id, with_for_update=True)
    if row is None:
        raise NotFoundError(f"there is no bisect {bisect_id!r}")
    return row


def _value(row: BisectRow) -> Bisect:
    return Bisect(
        id=row.id,
        question=BisectQuestion.model_validate_json(row.question),
        state=BisectState(row.state),
        commits=row.commits,
        alert=row.alert,
        asked_by=row.asked_by,
        via=row.via,
        number=row.number,
        said=row.said,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
