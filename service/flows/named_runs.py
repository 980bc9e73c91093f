"""Named runs: what a person wrote comes in, stored runs and which of their sides go out.

A name is the id of a run; or the first digits of a commit's hash, or an imported commit's name,
which stand for the newest usable run of that commit. Two commits that were measured as a pair stand
for the sides of that pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.numbers import short
from results.document import Outcome
from results.slice import SideName
from service.core.errors import NotFoundError, ServiceError
from service.core.model import CommitRecord, JobKind, StoredRun
from service.store import commits, runs
from service.store.comparisons import commits_called

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: As long as any name in the store.
NAME_LENGTH_MAX: Final = 200


class ComparisonError(ServiceError):
    """These cannot be compared."""

    status = 422


@dataclass(frozen=True, kw_only=True)
class NamedSide:
    """One version that is compared: a stored run, and which of its sides is meant."""

    run: StoredRun
    side: SideName
    #: None where that commit is not stored.
    commit: CommitRecord | None

    @property
    def sha(self) -> str:
        """The commit that was measured."""
        if self.side is SideName.CANDIDATE:
            return self.run.sha
        assert self.run.baseline_sha is not None, "a run with a baseline side is a pair"
        return self.run.baseline_sha

    @property
    def title(self) -> str:
        """How a legend calls it; not escaped."""
        subject = self.commit.subject if self.commit else ""
        return f"{short(self.sha)} {subject}".strip()


def two_sides(
    session: Session, *, baseline: str, candidate: str, fork: str | None = None
) -> tuple[NamedSide, NamedSide]:
    """Return what two names mean.

    The id of a paired run, given twice, means its two sides.

    Raises:
        NotFoundError: Nothing is called so, or a commit has no usable run.
        ComparisonError: A name can mean several commits, or both mean the same.
    """
    old = _meaning(session, baseline, fork=fork)
    new = _meaning(session, candidate, fork=fork)
    if isinstance(old, StoredRun) and isinstance(new, StoredRun) and old.id == new.id:
        return _both_sides(session, old)
    if isinstance(old, CommitRecord) and isinstance(new, CommitRecord):
        if (old.fork, old.sha) == (new.fork, new.sha):
            raise ComparisonError(
                f"both names mean the commit {short(old.sha)}; to compare two runs of it, name "
                "the runs"
            )
        pair = _pair(session, old, new)
        if pair is not None:
            return pair
    return _side(session, old), _side(session, new)


def side_called(session: Session, name: str, *, fork: str | None = None) -> NamedSide:
    """Return what one name means.

    Raises:
        NotFoundError, ComparisonError: As of `two_sides`.
    """
    return _side(session, _meaning(session, name, fork=fork))


def _meaning(session: Session, name: str, *, fork: str | None) -> StoredRun | CommitRecord:
    text = name.strip()
    where = f" in fork {fork!r}" if fork else ""
    # PostgreSQL has no text with a zero byte, and so nothing of that name.
    if not text or len(text) > NAME_LENGTH_MAX or "\0" in text or "\0" in (fork or ""):
        raise NotFoundError("a name is the id of a run, or the first digits of a commit's hash")
    run = runs.find(session, text)
    if run is not None:
        return run
    called = commits_called(session, text, fork=fork or None)
    if not called:
        raise NotFoundError(
            f"no run and no commit{where} is called {text!r}: give the id of a run, or at least "
            "four digits of a commit that was measured"
        )
    if len(called) > 1:
        some = ", ".join(f"{short(sha)} of {of}" for of, sha in called)
        raise ComparisonError(
            f"{text!r} can mean {some}: give more digits, the fork, or the id of a run"
        )
    commit = commits.find(session, *called[0])
    assert commit is not None, "the query has just found it"
    return commit


def _side(session: Session, meant: StoredRun | CommitRecord) -> NamedSide:
    if isinstance(meant, StoredRun):
        commit = commits.find(session, meant.fork, meant.sha)
        return NamedSide(run=meant, side=SideName.CANDIDATE, commit=commit)
    found = runs.of_commit(session, meant.fork, meant.sha)
    usable = [run for run in found if run.outcome is Outcome.MEASURED]
    if not usable:
        outcomes = ", ".join(dict.fromkeys(run.outcome.value for run in found)) or "none is stored"
        raise NotFoundError(
            f"commit {short(meant.sha)} of fork {meant.fork!r} has no usable run ({outcomes})"
        )
    # A pair measures fewer workloads, in turns of a quarter second.
    own = [run for run in usable if run.kind is JobKind.SINGLE]
    return NamedSide(run=(own or usable)[-1], side=SideName.CANDIDATE, commit=meant)


def _both_sides(session: Session, run: StoredRun) -> tuple[NamedSide, NamedSide]:
    if run.baseline_sha is None:
        raise ComparisonError(
            f"both names mean run {run.id!r}, which measured one commit alone; name another run "
            "or commit to compare it with"
        )
    baseline = commits.find(session, run.fork, run.baseline_sha)
    return (
        NamedSide(run=run, side=SideName.BASELINE, commit=baseline),
        _side(session, run),
    )


def _pair(
    session: Session, old: CommitRecord, new: CommitRecord
) -> tuple[NamedSide, NamedSide] | None:
    """Return the sides of the newest measured pair of two commits, whichever was its candidate."""
    if old.fork != new.fork:
        return None
    for first, second in ((old, new), (new, old)):
        pairs = [
            run
            for run in runs.of_commit(session, second.fork, second.sha)
            if run.baseline_sha == first.sha and run.outcome is Outcome.MEASURED
        ]
        if pairs:
            sides = {first.sha: SideName.BASELINE, second.sha: SideName.CANDIDATE}
            return (
                NamedSide(run=pairs[-1], side=sides[old.sha], commit=old),
                NamedSide(run=pairs[-1], side=sides[new.sha], commit=new),
            )
    return None
