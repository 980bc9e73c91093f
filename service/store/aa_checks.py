"""Queries about A/A checks: what was asked of which host class, and what came of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from detectors.verdict import Decision
from results.document import RunDocument
from service.core.aa_checks import OPEN, AaCheck, AaResult, AaState
from service.core.errors import NotFoundError
from service.store.host_tables import AaCheckRow
from service.store.hosts import plain
from service.store.packing import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from results.document import Host

#: Rows of one list: a year of one check a week is 52.
ROWS_MAX: Final = 200


def add_once(session: Session, check: AaCheck, *, order: str, gates: str) -> AaCheck:
    """Write a check down, or return the one that is there under its id.

    Args:
        session: An open transaction.
        check: What is asked.
        order: Its job order in JSON.
        gates: Those of the fork's own plan in JSON; the order has others.
    """
    row = session.get(AaCheckRow, check.id)
    if row is not None:
        return _value(row)
    row = AaCheckRow(
        id=check.id,
        fork=check.fork,
        sha=check.sha,
        host_class=check.host_class,
        state=check.state.value,
        asked_by=check.asked_by,
        via=check.via,
        order=order,
        gates=gates,
        run=check.run,
        attempts=check.attempts,
        said=check.said,
        host_name=check.host_name,
        fingerprint=check.fingerprint,
        results=[],
        created_at=check.created_at,
        started_at=check.started_at,
        finished_at=check.finished_at,
        document_gzip=None,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        # Another replica of this service found it due as well.
        return _value(session.get_one(AaCheckRow, check.id))
    return _value(row)


def find(session: Session, check_id: str) -> AaCheck | None:
    """Return a check, if there is one of that id."""
    row = session.get(AaCheckRow, check_id)
    return _value(row) if row else None


def by_run(session: Session, run: str) -> AaCheck | None:
    """Return the check that a run document is of, if it is of one."""
    row = session.scalar(select(AaCheckRow).where(AaCheckRow.run == run))
    return _value(row) if row else None


def order_of(session: Session, check_id: str) -> str:
    """Return what a runner is asked, as a job order in JSON without a credential."""
    return _row(session, check_id).order


def gates_of(session: Session, check_id: str) -> str:
    """Return the gates that a check is judged by, in JSON."""
    return _row(session, check_id).gates


def count(session: Session) -> int:
    """Return how many checks there are, and were."""
    return session.scalar(select(func.count()).select_from(AaCheckRow)) or 0


def unfinished(session: Session) -> list[AaCheck]:
    """Return the checks from which something is still to come, oldest first."""
    query = (
        select(AaCheckRow)
        .where(AaCheckRow.state.in_([state.value for state in OPEN]))
        .order_by(AaCheckRow.created_at, AaCheckRow.id)
    )
    return [_value(row) for row in session.scalars(query)]


def newest(session: Session, host_class: str, *, limit: int = ROWS_MAX) -> list[AaCheck]:
    """Return the checks of a host class, newest first."""
    query = _newest_first(limit).where(AaCheckRow.host_class == host_class)
    return [_value(row) for row in session.scalars(query)]


def measured_on(
    session: Session, host_class: str, host_name: str, *, limit: int = ROWS_MAX
) -> list[AaCheck]:
    """Return the checks that one machine measured, newest first."""
    query = _newest_first(limit).where(
        AaCheckRow.host_class == host_class, AaCheckRow.host_name == host_name
    )
    return [_value(row) for row in session.scalars(query)]


def begin_attempt(session: Session, check_id: str, attempt: int, *, at: datetime) -> bool:
    """Note that a runner is about to start; return whether it still should."""
    row = _row(session, check_id)
    if AaState(row.state) not in OPEN:
        return False
    row.state, row.attempts = AaState.MEASURING.value, attempt
    row.started_at = row.started_at or at
    session.flush()
    return True


def store_document(session: Session, check_id: str, brought: RunDocument) -> None:
    """Keep a check's run document."""
    row = _row(session, check_id)
    row.document_gzip = pack(brought.model_dump_json().encode())
    session.flush()


def document(session: Session, check_id: str) -> RunDocument | None:
    """Return the run document of a check, if it brought one."""
    packed = session.scalar(select(AaCheckRow.document_gzip).where(AaCheckRow.id == check_id))
    return RunDocument.model_validate_json(unpack(packed)) if packed else None


def finish(
    session: Session,
    check_id: str,
    state: AaState,
    *,
    said: str,
    at: datetime,
    results: Sequence[AaResult] = (),
    host: Host | None = None,
) -> None:
    """End a check with what came of it; the first end counts.

    Args:
        session: An open transaction.
        check_id: Which.
        state: How it ended.
        said: In one sentence.
        at: When.
        results: By workload.
        host: The machine that measured it, where one did.
    """
    row = _row(session, check_id)
    if AaState(row.state) in OPEN:
        row.state, row.said, row.finished_at = state.value, said, at
        if host is not None:
            row.host_name, row.fingerprint = host.name, plain(host.fingerprint)
        row.results = [asdict(one) | {"decision": one.decision.value} for one in results]
    session.flush()


def _newest_first(limit: int) -> Select[AaCheckRow]:
    ordered = select(AaCheckRow).order_by(AaCheckRow.created_at.desc(), AaCheckRow.id.desc())
    return ordered.limit(min(limit, ROWS_MAX))


def _row(session: Session, check_id: str) -> AaCheckRow:
    row = session.get(AaCheckRow, check_id, with_for_update=True)
    if row is None:
        raise NotFoundError(f"there is no A/A check {check_id!r}")
    return row


def _value(row: AaCheckRow) -> AaCheck:
    return AaCheck(
        id=row.id,
        fork=row.fork,
        sha=row.sha,
        host_class=row.host_class,
        state=AaState(row.state),
        asked_by=row.asked_by,
        via=row.via,
        run=row.run,
        attempts=row.attempts,
        said=row.said,
        host_name=row.host_name,
        fingerprint=row.fingerprint,
        results=tuple(
            AaResult(**one | {"decision": Decision(one["decision"])}) for one in row.results
        ),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
