"""Importing what was measured elsewhere: slices by commit come in, stored runs go out, or nothing.

An imported run is a run document like any other, so that series, pages, comparisons and digests
work on it. It is marked by its host class and its job, lies in a fork of its own, and is not
judged: nobody can measure it again. Importing the same numbers again changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.document import (
    SLICES_MAX,
    STARTS_MAX,
    Commit,
    Host,
    Outcome,
    Placement,
    RunDocument,
    Side,
    Start,
)
from service.core.errors import ServiceError
from service.core.model import (
    CommitOutcome,
    EventKind,
    GitCommit,
    Job,
    JobKind,
    JobState,
)
from service.store import commits, events, forks, imports, jobs, runs, samples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.slice import Slice

#: Commits of one import: it is one transaction, in which a running service has to wait for its own
#: writes, and a thousand take some seconds.
COMMITS_MAX: Final = 1_000
#: Host classes of imports begin so, whatever they are called.
HOST_CLASS_PREFIX: Final = "imported-"
SUITE: Final = "imported"
#: Stands where the version of the tool that measured is kept; it is not known.
TOOL: Final = "import 1"
#: As the plan has it for names of forks and builds.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BRANCH: Final = re.compile(r"[A-Za-z0-9_./+-]{1,200}")
_HASH: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_LABEL_LENGTH_MAX: Final = 200


class ImportRefusedError(ServiceError):
    """This cannot be imported; nothing was."""

    status = 409


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where imported runs go, and what they are said to be."""

    fork: str
    branch: str
    host_class: str
    build: str = "imported"
    config: str = "default"
    #: File or folder they come from, for people.
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """What was measured of one commit somewhere else."""

    #: The commit's hash, or any other name for it, such as a version.
    label: str
    at: datetime
    #: Client threads.
    threads: int = 1
    #: Slices by server start.
    starts: tuple[tuple[Slice, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What came of an import."""

    #: Names of the commits that were added, oldest first.
    added: tuple[str, ...]
    #: How many were there already, with the same numbers.
    known: int


def import_runs(
    session: Session, found: Sequence[ImportedRun], to: Destination, *, at: datetime
) -> Imported:
    """Store runs that were measured elsewhere, oldest first.

    Raises:
        ImportRefusedError: A name or number is out of bounds, the fork is watched, a commit is
            there with other numbers, or older than what was imported before.
    """
    _check(found, to)
    if forks.find(session, to.fork) is None:
        forks.ensure(session, to.fork, branch=to.branch, at=at)
    elif imports.is_watched(session, to.fork):
        raise ImportRefusedError(
            f"the fork {to.fork!r} is watched and its commits have measurements of their own: "
            f"import into a fork of another name, such as {to.fork}-imported"
        )
    documents = [_document(run, to) for run in sorted(found, key=lambda run: run.at)]
    new = [document for document in documents if _is_new(session, document)]
    _append(session, new, to, at=at)
    return Imported(
        added=tuple(document.candidate.commit.subject for document in new),
        known=len(documents) - len(new),
    )


def _check(found: Sequence[ImportedRun], to: Destination) -> None:
    """Refuse what the store could not hold, by its name."""
    for name, what in ((to.fork, "fork"), (to.build, "build"), (to.config, "config")):
        if not _NAME.fullmatch(name):
            raise ImportRefusedError(
                f"{name!r} is no name of a {what}: letters, digits, dots, dashes and underscores, "
                "64 at most"
            )
    if not _BRANCH.fullmatch(to.branch):
        raise ImportRefusedError(f"{to.branch!r} is no name of a branch")
    own = to.host_class.removeprefix(HOST_CLASS_PREFIX)
    if not to.host_class.startswith(HOST_CLASS_PREFIX) or not _NAME.fullmatch(own):
        raise ImportRefusedError(
            f"{to.host_class!r} is no host class of an import, such as {HOST_CLASS_PREFIX}csv"
        )
    if not found:
        raise ImportRefusedError("there is nothing to import")
    if len(found) > COMMITS_MAX:
        raise ImportRefusedError(
            f"{len(found)} commits; at most {COMMITS_MAX} are imported at once. Cut the history "
            "into stretches and import the oldest first"
        )
    seen: set[str] = set()
    for run in found:
        _check_run(run)
        sha = _sha_of(run.label)
        if sha in seen:
            raise ImportRefusedError(f"the commit {run.label!r} comes twice")
        seen.add(sha)


def _check_run(run: ImportedRun) -> None:
    label = run.label
    if not label.strip() or len(label) > _LABEL_LENGTH_MAX or not label.isprintable():
        raise ImportRefusedError(f"{label[:_LABEL_LENGTH_MAX]!r} is no name of a commit")
    if len(run.starts) > STARTS_MAX:
        raise ImportRefusedError(
            f"{label!r} has {len(run.starts)} starts; at most {STARTS_MAX} are kept of a commit"
        )
    if any(len(slices) > SLICES_MAX for slices in run.starts):
        raise ImportRefusedError(f"{label!r} has a start of more than {SLICES_MAX} numbers")


def _document(run: ImportedRun, to: Destination) -> RunDocument:
    sha = _sha_of(run.label)
    job = _job_id(sha, run, to)
    return RunDocument(
        id=f"run-{job}",
        job=job,
        fork=to.fork,
        branch=to.branch,
        suite=SUITE,
        config=to.config,
        variant=to.build,
        tool_version=TOOL,
        created_at=run.at,
        # No machine of ours was busy with it.
        finished_at=run.at,
        seed=0,
        threads=run.threads,
        outcome=Outcome.MEASURED,
        host=Host(
            name=to.host_class,
            host_class=to.host_class,
            cpu_model="not known",
            logical_cpus=1,
            memory_bytes=0,
            kernel="not known",
            os="not known",
            virtualised=False,
        ),
        placement=Placement(mode=SUITE),
        candidate=Side(
            # Its tree is not known; one of its own keeps it from being taken for another's.
            commit=Commit(sha=sha, tree=sha, subject=run.label, committed_at=run.at)
        ),
        starts=tuple(
            Start(
                index=index,
                started_at=run.at,
                seconds=sum(piece.seconds for piece in slices),
                measured_seconds=sum(piece.seconds for piece in slices),
                slices=slices,
            )
            for index, slices in enumerate(run.starts)
        ),
        warnings=(f"imported from {to.source}: measured elsewhere, by other means",),
    )


def _is_new(session: Session, document: RunDocument) -> bool:
    """Return whether a run has still to be stored.

    Raises:
        ImportRefusedError: Its commit has another run.
    """
    commit = document.candidate.commit
    for job in jobs.of_commit(session, document.fork, commit.sha):
        if job.id != document.job:
            raise ImportRefusedError(
                f"the commit {commit.subject!r} of the fork {document.fork!r} has been imported "
                "with other numbers: give all its workloads at once, or another --fork"
            )
        return False
    return True


def _append(
    session: Session, documents: Sequence[RunDocument], to: Destination, *, at: datetime
) -> None:
    """Store new runs behind what the branch has.

    Raises:
        ImportRefusedError: One is older than that.
    """
    if not documents:
        return
    last = imports.last_of_branch(session, to.fork, to.branch)
    oldest = documents[0].candidate.commit
    if last is not None and oldest.committed_at < last.committed_at:
        raise ImportRefusedError(
            f"the commit {oldest.subject!r} ({oldest.committed_at:%Y-%m-%d}) is older than "
            f"{last.subject!r} ({last.committed_at:%Y-%m-%d}), which has been imported: history "
            "is imported oldest first, or under another --fork"
        )
    parent = last.sha if last else None
    history = []
    for document in documents:
        commit = document.candidate.commit
        history.append(
            GitCommit(
                sha=commit.sha,
                tree=commit.tree,
                parent=parent,
                author=commit.author,
                subject=commit.subject,
                committed_at=commit.committed_at,
            )
        )
        parent = commit.sha
    commits.register(session, to.fork, history, at=at)
    for document in documents:
        _store(session, document, source=to.source, at=at)


def _store(session: Session, document: RunDocument, *, source: str, at: datetime) -> None:
    """Write one run down with its samples; its commit is finished and was never judged.

    What is kept of hosts is left out: no machine of ours is behind it.
    """
    sha = document.candidate.commit.sha
    job = Job(
        id=document.job,
        fork=document.fork,
        sha=sha,
        kind=JobKind.SINGLE,
        state=JobState.STORED,
        host_class=document.host.host_class,
        run=document.id,
        baseline_sha=None,
        order="{}",
        attempts=0,
        created_at=at,
        finished_at=at,
    )
    jobs.create_once(session, job)
    runs.store_once(session, document, job, at=at)
    samples.append(session, document)
    said = f"imported from {source}; measured elsewhere and not judged"
    events.append_once(
        session, document.fork, sha, EventKind.STORED, said, at=at, about=document.id
    )
    commits.finish(session, document.fork, sha, outcome=CommitOutcome.BASELINE, reason=said, at=at)


def _sha_of(label: str) -> str:
    """Return the hash that a commit is stored by: its own, or one made of its name."""
    if _HASH.fullmatch(label):
        return label
    return hashlib.sha256(f"forkwatch import\x1f{label}".encode()).hexdigest()


def _job_id(sha: str, run: ImportedRun, to: Destination) -> str:
    """Return the name of a job that stands for these numbers and no others.

    Times are no part of it: those of a folder's files change when it is copied.
    """
    digest = hashlib.sha256()
    for word in (to.fork, to.branch, to.host_class, to.build, to.config, str(run.threads)):
        digest.update(f"{word}\x1f".encode())
    for index, slices in enumerate(run.starts):
        for piece in slices:
            text = piece.model_dump_json(exclude={"started_at"})
            digest.update(f"{index}\x1f{text}\x1e".encode())
    return f"{imports.JOB_PREFIX}{sha[:12]}-{digest.hexdigest()[:12]}"
