"""Queries about bridges and the relations between series that they showed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from results.document import RunDocument
from service.core.bridges import OPEN, Bridge, BridgeState, Joint, Relation
from service.core.errors import NotFoundError
from service.core.model import JobKind
from service.store import samples
from service.store.history_tables import BridgeRow, SeriesRelationRow
from service.store.packing import pack, unpack
from service.store.tables import RunRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.series import SeriesKey

#: Rows of one list: a series begins anew some times a year.
ROWS_MAX: Final = 200


def add_once(session: Session, bridge: Bridge) -> Bridge:
    """Write a bridge down, or return the one that is there under its id."""
    row = session.get(BridgeRow, bridge.id)
    if row is None:
        row = BridgeRow(
            id=bridge.id,
            fork=bridge.fork,
            sha=bridge.sha,
            old_sha=bridge.old_sha,
            state=bridge.state.value,
            why=bridge.why,
            joints=[asdict(joint) for joint in bridge.joints],
            paired=bridge.paired,
            order=bridge.order,
            run=bridge.run,
            attempts=bridge.attempts,
            said=bridge.said,
            created_at=bridge.created_at,
            started_at=bridge.started_at,
            finished_at=bridge.finished_at,
            document_gzip=None,
        )
        session.add(row)
        session.flush()
    return _value(row)


def find(session: Session, bridge_id: str) -> Bridge | None:
    """Return a bridge, if there is one of that id."""
    row = session.get(BridgeRow, bridge_id)
    return _value(row) if row else None


def unfinished(session: Session, fork: str | None = None) -> list[Bridge]:
    """Return the bridges from which something is still to come, oldest first."""
    query = select(BridgeRow).where(BridgeRow.state.in_([state.value for state in OPEN]))
    if fork is not None:
        query = query.where(BridgeRow.fork == fork)
    query = query.order_by(BridgeRow.created_at, BridgeRow.id)
    return [_value(row) for row in session.scalars(query)]


def newest(session: Session, fork: str) -> list[Bridge]:
    """Return the bridges of a fork, newest first."""
    query = (
        select(BridgeRow)
        .where(BridgeRow.fork == fork)
        .order_by(BridgeRow.created_at.desc(), BridgeRow.id)
        .limit(ROWS_MAX)
    )
    return [_value(row) for row in session.scalars(query)]


def began_between(session: Session, fork: str, since: datetime, until: datetime) -> list[Bridge]:
    """Return the bridges of series that began anew in this time, oldest first."""
    query = (
        select(BridgeRow)
        .where(BridgeRow.fork == fork, BridgeRow.created_at >= since, BridgeRow.created_at < until)
        .order_by(BridgeRow.created_at, BridgeRow.id)
        .limit(ROWS_MAX)
    )
    return [_value(row) for row in session.scalars(query)]


def measured_of(session: Session, key: SeriesKey, shas: Sequence[str]) -> set[str]:
    """Return those of these commits whose own run has samples of a series."""
    query = select(RunRow.sha).where(
        RunRow.fork == key.fork,
        RunRow.sha.in_(shas),
        RunRow.kind == JobKind.SINGLE,
        samples.has_samples(key.id),
    )
    return set(session.scalars(query))


def begin_attempt(session: Session, bridge_id: str, attempt: int, *, at: datetime) -> bool:
    """Note that a runner is about to start; return whether it still should."""
    row = _row(session, bridge_id)
    if BridgeState(row.state) not in OPEN:
        return False
    row.state, row.attempts = BridgeState.MEASURING.value, attempt
    row.started_at = row.started_at or at
    session.flush()
    return True


def store_document(session: Session, bridge_id: str, brought: RunDocument) -> None:
    """Keep a bridge's run document."""
    row = _row(session, bridge_id)
    row.document_gzip = pack(brought.model_dump_json().encode())
    session.flush()


def document(session: Session, bridge_id: str) -> RunDocument | None:
    """Return the run document of a bridge, if it brought one."""
    packed = session.scalar(select(BridgeRow.document_gzip).where(BridgeRow.id == bridge_id))
    return RunDocument.model_validate_json(unpack(packed)) if packed else None


def finish(
    session: Session, bridge_id: str, state: BridgeState, *, said: str, at: datetime
) -> None:
    """End a bridge with what came of it; the first end counts."""
    row = _row(session, bridge_id)
    if BridgeState(row.state) in OPEN:
        row.state, row.said, row.finished_at = state.value, said, at
    session.flush()


def relate_once(session: Session, relations: Iterable[Relation]) -> None:
    """Write down how series relate; what a bridge has said already stays."""
    for relation in relations:
        if session.get(SeriesRelationRow, (relation.bridge, relation.after)) is None:
            session.add(
                SeriesRelationRow(
                    bridge=relation.bridge,
                    new_series=relation.after,
                    old_series=relation.before,
                    workload=relation.workload,
                    effect=relation.effect,
                    low=relation.low,
                    high=relation.high,
                    confidence=relation.confidence,
                    method=relation.method,
                    at=relation.at,
                )
            )
    session.flush()


def relations_of(session: Session, bridge_id: str) -> list[Relation]:
    """Return what a bridge showed, by workload."""
    query = (
        select(SeriesRelationRow, BridgeRow)
        .join(BridgeRow, BridgeRow.id == SeriesRelationRow.bridge)
        .where(SeriesRelationRow.bridge == bridge_id)
        .order_by(SeriesRelationRow.workload, SeriesRelationRow.new_series)
    )
    return [_relation(row, bridge) for row, bridge in session.execute(query)]


def _relation(row: SeriesRelationRow, bridge: BridgeRow) -> Relation:
    return Relation(
        bridge=row.bridge,
        workload=row.workload,
        before=row.old_series,
        after=row.new_series,
        sha=bridge.sha,
        old_sha=bridge.old_sha,
        effect=row.effect,
        low=row.low,
        high=row.high,
        confidence=row.confidence,
        paired=bridge.paired,
        method=row.method,
        at=row.at,
    )


def _row(session: Session, bridge_id: str) -> BridgeRow:
    row = session.get(BridgeRow, bridge_id, with_for_update=True)
    if row is None:
        raise NotFoundError(f"there is no bridge {bridge_id!r}")
    return row


def _value(row: BridgeRow) -> Bridge:
    return Bridge(
        id=row.id,
        fork=row.fork,
        sha=row.sha,
        old_sha=row.old_sha,
        state=BridgeState(row.state),
        why=row.why,
        joints=tuple(Joint(**joint) for joint in row.joints),
        paired=row.paired,
        order=row.order,
        run=row.run,
        attempts=row.attempts,
        said=row.said,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
