"""What of old runs may go: throughput by the second, and single slices where a start says enough.

A session and run ids come in, fewer bytes and rows stay. Which runs are old and which are in use is
for the flow to say. Verdicts, alerts, events, the audit log and what bisects observed are never
touched, and of the document of a run everything but its seconds stays, byte for byte.
"""

from __future__ import annotations

import math
import re
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, func, or_, select, update

from service.core.alert_actions import OPEN_STATES
from service.core.bisections import JOB_ENDED, UNDER_WAY
from service.store.bisect_tables import BisectJobRow, BisectRow
from service.store.delivery_tables import PullJobRow
from service.store.host_tables import AaCheckRow
from service.store.packing import pack, unpack
from service.store.tables import AlertRow, RunRow, SampleRow

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    DocumentRow = type[RunRow | PullJobRow | BisectJobRow | AaCheckRow]

#: Tables that hold run documents, by name; each has `id` and `document_gzip`.
DOCUMENTS: Final[dict[str, DocumentRow]] = {
    "runs": RunRow,
    "pull_jobs": PullJobRow,
    "bisect_jobs": BisectJobRow,
    "aa_checks": AaCheckRow,
}
#: Ids in one statement; SQLite takes some thousand variables, PostgreSQL more.
CHUNK: Final = 500
#: The seconds of a slice in a canonical document. A text in it cannot look like this: its quotation
#: marks are escaped.
_SECONDS: Final = re.compile(rb'"per_second_ops_s":\[[^\]]+\]')
_NO_SECONDS: Final = b'"per_second_ops_s":[]'


def old_documents(
    session: Session,
    kind: str,
    *,
    before: datetime,
    since: datetime | None = None,
    after: str = "",
    limit: int,
) -> list[str]:
    """Return ids of rows with a document that came before a time, in their order.

    Args:
        session: To read with.
        kind: One of `DOCUMENTS`.
        before: Only documents older than this.
        since: And not older than this, where given.
        after: Id to page on from.
        limit: At most so many.
    """
    row = DOCUMENTS[kind]
    came = {
        RunRow: RunRow.stored_at,
        PullJobRow: PullJobRow.finished_at,
        BisectJobRow: BisectJobRow.finished_at,
        AaCheckRow: AaCheckRow.finished_at,
    }[row]
    query = select(row.id).where(came < before, row.document_gzip.is_not(None), row.id > after)
    if since is not None:
        query = query.where(came >= since)
    return list(session.scalars(query.order_by(row.id).limit(limit)))


def packed_document(session: Session, kind: str, row_id: str) -> bytes | None:
    """Return a stored document as it lies there, if there is one."""
    row = DOCUMENTS[kind]
    return session.scalar(select(row.document_gzip).where(row.id == row_id))


def without_seconds(packed: bytes) -> bytes | None:
    """Return a packed document without its seconds; None where it has none."""
    text, count = _SECONDS.subn(_NO_SECONDS, unpack(packed))
    return pack(text) if count else None


def replace_document(session: Session, kind: str, row_id: str, packed: bytes) -> None:
    """Put a document in the place of the stored one; the digest of what came stays."""
    row = DOCUMENTS[kind]
    session.execute(
        update(row)
        .where(row.id == row_id)
        .values(document_gzip=packed)
        .execution_options(synchronize_session=False)
    )


def bisect_documents_to_go(
    session: Session, *, before: datetime, after: str = "", limit: int
) -> dict[str, int]:
    """Return which measurements of bisects may lose their documents, in order, with their bytes.

    A bisect that is under way, or whose alert is open, keeps what it has.

    Args:
        session: To read with.
        before: Only documents older than this.
        after: Id to page on from.
        limit: At most so many.
    """
    query = (
        select(BisectJobRow.id, func.length(BisectJobRow.document_gzip))
        .join(BisectRow, BisectRow.id == BisectJobRow.bisect)
        .outerjoin(AlertRow, AlertRow.id == BisectRow.alert)
        .where(
            BisectJobRow.document_gzip.is_not(None),
            BisectJobRow.finished_at < before,
            BisectJobRow.state.in_([state.value for state in JOB_ENDED]),
            BisectJobRow.id > after,
            BisectRow.state.not_in([state.value for state in UNDER_WAY]),
            or_(AlertRow.id.is_(None), AlertRow.state.not_in(OPEN_STATES)),
        )
    )
    rows = session.execute(query.order_by(BisectJobRow.id).limit(limit))
    return {job: int(size) for job, size in rows}


def drop_bisect_documents(session: Session, job_ids: Collection[str]) -> None:
    """Let measurements of bisects lose their documents; what they observed stays."""
    session.execute(
        update(BisectJobRow)
        .where(BisectJobRow.id.in_(job_ids))
        .values(document_gzip=None)
        .execution_options(synchronize_session=False)
    )


def rows_to_go(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Return how many samples would go, by run, for those of these runs that have any to lose."""
    if not run_ids:
        return {}
    several = (
        select(SampleRow.run, (func.count() - 1).label("more"))
        .where(SampleRow.run.in_(run_ids))
        .group_by(SampleRow.run, SampleRow.series, SampleRow.side, SampleRow.start_index)
        .having(func.count() > 1)
        .subquery()
    )
    query = select(several.c.run, func.sum(several.c.more)).group_by(several.c.run)
    return {run: int(more) for run, more in session.execute(query)}


def thin_samples(session: Session, run_id: str) -> int:
    """Leave one sample for each series, side and start of a run; return how many went.

    What stays is the level of the start as the detectors take it, so that the level of the run is
    what it was.
    """
    query = (
        select(
            SampleRow.id, SampleRow.series, SampleRow.side, SampleRow.start_index, SampleRow.value
        )
        .where(SampleRow.run == run_id)
        .order_by(SampleRow.series, SampleRow.side, SampleRow.start_index, SampleRow.sequence)
    )
    kept: list[dict[str, float]] = []
    gone: list[int] = []
    for _, found in groupby(session.execute(query).all(), key=lambda row: row[1:4]):
        rows = list(found)
        if len(rows) > 1:
            kept.append({"id": rows[0].id, "value": level_of([row.value for row in rows])})
            gone += [row.id for row in rows[1:]]
    for start in range(0, len(gone), CHUNK):
        session.execute(
            delete(SampleRow)
            .where(SampleRow.id.in_(gone[start : start + CHUNK]))
            .execution_options(synchronize_session=False)
        )
    if kept:
        session.execute(update(SampleRow), kept)
    return len(gone)


def level_of(values: Sequence[float]) -> float:
    """Return what stands for the slices of a start: the mean of their logs, as a value.

    Where one of them is zero, as waits and switches may be, it is the mean.
    """
    if min(values) > 0:
        return math.exp(fmean(map(math.log, values)))
    return fmean(values)
