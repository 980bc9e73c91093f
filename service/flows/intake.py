"""Intake: a run document becomes a stored run, once, whichever way it came.

The API and the flow that looks into a job's folder both use this. A document is taken for the job
it was minted for and no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from results.document import Outcome, RunDocument
from service.core.errors import BadDocumentError, CredentialRefusedError
from service.core.model import EventKind, JobState
from service.flows import host_noise
from service.store import events, jobs, runs, samples

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.model import Job, StoredRun

#: Faults of a document that are told; the first few say what is wrong with all.
FAULTS_MAX = 5


def parse_document(text: bytes, *, built: bool = False) -> RunDocument:
    """Return the document in `text`.

    Args:
        text: As a runner brought it.
        built: Whether the job was only to build.

    Raises:
        BadDocumentError: It is not a run document of a version that this service understands, or
            it has only built what was to be measured.
    """
    try:
        document = RunDocument.model_validate_json(text)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        lines = [
            f"{'.'.join(str(step) for step in fault['loc']) or 'document'}: {fault['msg']}"
            for fault in faults[:FAULTS_MAX]
        ]
        if len(faults) > FAULTS_MAX:
            lines.append(f"and {len(faults) - FAULTS_MAX} more")
        raise BadDocumentError("; ".join(lines)) from error
    if document.outcome is Outcome.BUILT and not built:
        raise BadDocumentError("outcome: this job was to measure, and not only to build")
    return document


def refuse_others(pairs: Iterable[tuple[str, object, object]]) -> None:
    """Refuse a document of another job than the one it is brought for.

    Args:
        pairs: Names of what has to agree, what the document says, and what the job says.

    Raises:
        CredentialRefusedError: They do not agree.
    """
    for name, found, expected in pairs:
        if found != expected:
            raise CredentialRefusedError(f"{name} is {found!r}; this job's is {expected!r}")


def take_run(
    session: Session, document: RunDocument, job: Job, *, at: datetime
) -> tuple[StoredRun, bool]:
    """Store a job's document; return its run, and whether it is new.

    Raises:
        CredentialRefusedError: The document is of another job.
        ConflictError: Another document of this job is stored.
    """
    _check_is_of(document, job)
    run, created = runs.store_once(session, document, job, at=at)
    if created:
        samples.append(session, document)
        host_noise.record(session, document, at=at)
        jobs.finish(session, job.id, JobState.STORED, at=at)
        events.append_once(
            session,
            job.fork,
            job.sha,
            EventKind.STORED,
            f"run {run.id} stored: {run.outcome.value}, {run.starts} starts",
            at=at,
            about=run.id,
        )
    return run, created


def _check_is_of(document: RunDocument, job: Job) -> None:
    baseline = document.baseline.commit.sha if document.baseline else None
    pairs = (
        ("id", document.id, job.run),
        ("job", document.job, job.id),
        ("fork", document.fork, job.fork),
        ("host.host_class", document.host.host_class, job.host_class),
        ("candidate.commit.sha", document.candidate.commit.sha, job.sha),
    )
    refuse_others(pairs)
    # A pair that failed early has no baseline side; one with another baseline is another job's.
    if baseline is not None and baseline != job.baseline_sha:
        raise CredentialRefusedError(f"the baseline is {baseline}, not that of this job")
