"""Queries about runs: the documents runners send, kept whole."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from results.document import RunDocument
from service.core.errors import ConflictError, NotFoundError
from service.core.model import StoredRun
from service.store.names import one_of
from service.store.packing import pack, unpack
from service.store.tables import RunRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.model import Job

#: All but the document. Hundreds of runs are read at once, as plain rows: nobody wants them as
#: objects of a session.
_COLUMNS: Final = tuple(
    getattr(RunRow, column.key)
    for column in RunRow.__table__.columns
    if column.key != RunRow.document_gzip.key
)


def store_once(
    session: Session, document: RunDocument, job: Job, *, at: datetime
) -> tuple[StoredRun, bool]:
    """Store a document; return its run, and whether it is new.

    Raises:
        ConflictError: A different document is stored under this id.
    """
    text = canonical(document)
    digest = hashlib.sha256(text).hexdigest()
    row = session.get(RunRow, document.id)
    if row is None:
        row = _new_row(document, job, text=text, digest=digest, at=at)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:
            # The same run came in beside us, over HTTP and from the job's folder.
            row = session.get_one(RunRow, document.id)
        else:
            return _value(row), True
    if row.digest != digest:
        raise ConflictError(f"run {document.id} is stored already, with other content")
    return _value(row), False


def canonical(document: RunDocument) -> bytes:
    """Return the bytes that a document's digest is taken over, whatever its sender's layout."""
    return document.model_dump_json().encode()


def find(session: Session, run_id: str) -> StoredRun | None:
    """Return a run's columns, if it is stored."""
    row = session.get(RunRow, run_id)
    return _value(row) if row else None


def document(session: Session, run_id: str) -> RunDocument:
    """Return the whole document of a run.

    Raises:
        NotFoundError: No such run.
    """
    packed = session.scalar(select(RunRow.document_gzip).where(RunRow.id == run_id))
    if packed is None:
        raise NotFoundError(f"there is no run {run_id}")
    return RunDocument.model_validate_json(unpack(packed))


def of_commit(session: Session, fork: str, sha: str) -> list[StoredRun]:
    """Return the runs whose candidate is this commit, oldest first."""
    return of_commits(session, fork, [sha])


def of_commits(session: Session, fork: str, shas: Sequence[str]) -> list[StoredRun]:
    """Return the runs whose candidate is one of these commits, oldest first."""
    query = (
        select(*_COLUMNS)
        .where(RunRow.fork == fork, one_of(RunRow.sha, shas))
        .order_by(RunRow.created_at, RunRow.id)
    )
    return [_value(row) for row in session.execute(query)]


def _new_row(document: RunDocument, job: Job, *, text: bytes, digest: str, at: datetime) -> RunRow:
    artifact = document.candidate.artifact
    return RunRow(
        id=document.id,
        job=job.id,
        fork=job.fork,
        sha=job.sha,
        kind=job.kind,
        branch=document.branch,
        suite=document.suite,
        config=document.config,
        variant=document.variant,
        host_class=document.host.host_class,
        host_name=document.host.name,
        outcome=document.outcome,
        baseline_sha=document.baseline.commit.sha if document.baseline else None,
        content_hash=artifact.content_hash if artifact else None,
        starts=len(document.starts),
        created_at=document.created_at,
        finished_at=document.finished_at,
        stored_at=at,
        digest=digest,
        document_gzip=pack(text),
    )


def _value(row: Any) -> StoredRun:
    return StoredRun(
        id=row.id,
        job=row.job,
        fork=row.fork,
        sha=row.sha,
        kind=row.kind,
        branch=row.branch,
        suite=row.suite,
        config=row.config,
        variant=row.variant,
        host_class=row.host_class,
        host_name=row.host_name,
        outcome=row.outcome,
        baseline_sha=row.baseline_sha,
        content_hash=row.content_hash,
        starts=row.starts,
        created_at=row.created_at,
        finished_at=row.finished_at,
        stored_at=row.stored_at,
        digest=row.digest,
    )
