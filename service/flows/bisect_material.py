"""What a search is made from, gathered once; and the search itself, made again from it.

A question and the commits of its range come in, what the store knows of them goes out: artifacts
that are there, what a build takes, the noise, observations from before. Given the same material
and observations, `search_of` always makes a search that goes on in the same way.
"""

from __future__ import annotations

from importlib.metadata import version
from statistics import median, stdev
from typing import TYPE_CHECKING, Any, Final

from bisects.document import CommitState
from bisects.observing import log_ratios, observation_of
from bisects.search import STARTS_EACH, Search
from results.document import Outcome
from service.core.bisections import Material, digest_of
from service.store import bisect_jobs, commits, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy.orm import Session

    from bisects.commits import RangeCommit
    from bisects.document import BisectQuestion, Observation
    from results.document import RunDocument
    from service.core.model import Alert, StoredRun
    from workloads.plan import Plan

#: Runs whose documents are read for what a build takes; each costs some milliseconds.
BUILDS_READ_MAX: Final = 8
#: What may be taken over from another search. That a build failed there may have had its reasons.
_TAKEN_OVER: Final = (CommitState.MEASURED, CommitState.SAME)


def gather(
    session: Session,
    question: BisectQuestion,
    range_: Sequence[RangeCommit],
    *,
    plan: Plan,
    plan_text: str,
    alert: Alert | None,
) -> Material:
    """Return what is known before the first measurement.

    Args:
        session: To read with.
        question: What is asked.
        range_: Its commits, oldest first, both ends counted.
        plan: The plan of the default branch.
        plan_text: The same as it is written.
        alert: The alert whose range it is, if it is one's.
    """
    hashes = [commit.sha for commit in range_]
    built = [
        run
        for run in runs.of_commits(session, question.fork, hashes)
        if run.content_hash is not None and run.variant == question.variant
    ]
    confirming = runs.document(session, alert.run) if alert else None
    own = _confirmed(confirming, question, commit=len(range_) - 1)
    before = bisect_jobs.measured_before(session, question, digest_of(plan_text))
    known = (*own, *_placed(before, hashes))
    dataset = plan.datasets[plan.suite(question.suite).dataset]
    return Material(
        commits=tuple(range_),
        engine=plan.fork.engine,
        storage_engine=dataset.storage_engine or "",
        tool_version=version("forkwatch"),
        plan_text=plan_text,
        # Only commits of the watched branch are written down there.
        trusted=commits.find(session, question.fork, question.bad) is not None,
        built=tuple(dict.fromkeys(run.sha for run in built)),
        build_seconds=_build_seconds(session, built),
        known=known,
        outside=_told_before(session, confirming if own else None, known, range_),
        # Starts that count as measurements show their noise themselves.
        **({} if own else _noise(confirming, question.workload)),
    )


def search_of(
    question: BisectQuestion,
    material: Material,
    observations: Iterable[Observation],
    *,
    built: Iterable[str] = (),
) -> Search:
    """Return the search as it stands after these observations.

    Args:
        question: What is asked.
        material: What it is searched in.
        observations: In the order in which they were asked for.
        built: Hashes of further commits that were built meanwhile. What is measured next may
            depend on them, and what is known of the range does not.
    """
    guess: dict[str, Any] = {}
    if material.build_seconds is not None:
        guess["build_seconds"] = material.build_seconds
    search = Search(
        question,
        material.commits,
        engine=material.engine,
        storage_engine=material.storage_engine,
        outside=material.outside,
        tool_version=material.tool_version,
        built=(*material.built, *built),
        noise_sd=material.noise_sd,
        noise_df=material.noise_df,
        known=material.known,
        **guess,
    )
    for observation in observations:
        search.take(observation)
    return search


def outside_of(document: RunDocument, range_: Sequence[RangeCommit]) -> tuple[str, ...]:
    """Return what a document tells of sources outside its servers, as far as a range touches it."""
    if document.outside is None:
        return ()
    touched = {path for commit in range_ for path in commit.files}
    return tuple(sorted(touched.intersection(document.outside.names)))


def wall_seconds(document: RunDocument) -> float:
    """Return how long a job took, by the runner's clock."""
    return max(0.0, (document.finished_at - document.created_at).total_seconds())


def _confirmed(
    document: RunDocument | None, question: BisectQuestion, *, commit: int
) -> tuple[Observation, ...]:
    """Return the alert's confirming pair as an observation of the bad end, if it is one."""
    if document is None or document.outcome is not Outcome.MEASURED or document.baseline is None:
        return ()
    ends = (document.baseline.commit.sha, document.candidate.commit.sha)
    setup = (document.variant, document.config, document.host.host_class)
    if ends != (question.good, question.bad):
        return ()
    asked = (question.variant, question.config, question.host_class)
    if setup != asked or not log_ratios(document, question.workload):
        return ()
    seconds = _share_of(document)
    return (observation_of(document, commit=commit, workload=question.workload, seconds=seconds),)


def _told_before(
    session: Session,
    confirming: RunDocument | None,
    known: Sequence[Observation],
    range_: Sequence[RangeCommit],
) -> tuple[str, ...]:
    """Return which sources are outside both ends' servers, if a pair of both was measured before.

    Args:
        session: To read with.
        confirming: The alert's pair of both ends, if it is one.
        known: Observations from before.
        range_: The commits, oldest first, both ends counted.
    """
    if confirming is not None and confirming.outside is not None:
        return outside_of(confirming, range_)
    for observation in known:
        if observation.commit == len(range_) - 1:
            document = bisect_jobs.document(session, observation.job)
            if document is not None and document.outside is not None:
                return outside_of(document, range_)
    return ()


def _share_of(document: RunDocument) -> float:
    """Return what a job would have taken that measures one workload as often as a search does."""
    build = document.stage_seconds.get("build", 0.0)
    rest = max(0.0, wall_seconds(document) - build)
    starts, workloads = len(document.starts), len(document.workloads())
    return build + rest * STARTS_EACH / max(1, starts * workloads)


def _noise(document: RunDocument | None, workload: str) -> dict[str, Any]:
    """Return the noise of one start's log ratio, as the alert's confirming pair shows it."""
    ratios = log_ratios(document, workload) if document is not None else ()
    if len(ratios) < 2:  # noqa: PLR2004  one value has no spread
        return {}
    return {"noise_sd": stdev(ratios), "noise_df": float(len(ratios) - 1)}


def _build_seconds(session: Session, built: Sequence[StoredRun]) -> float | None:
    """Return what a build takes, by the newest runs of the range."""
    newest = (runs.document(session, run.id) for run in built[-BUILDS_READ_MAX:])
    took = [
        document.candidate.artifact.build_seconds
        for document in newest
        if document.candidate.artifact and document.candidate.artifact.build_seconds > 0
    ]
    return median(took) if took else None


def _placed(
    before: Iterable[tuple[str, Observation]], hashes: Sequence[str]
) -> Iterator[Observation]:
    """Give what was measured before of commits of this range, by their place in it."""
    places = {sha: place for place, sha in enumerate(hashes)}
    for sha, observation in before:
        if sha in places and observation.state in _TAKEN_OVER:
            yield observation.model_copy(update={"commit": places[sha]})
