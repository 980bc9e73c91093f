"""A fork in a real store, told as a story: commits, runs, verdicts and an alert."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from reports.sentence import outcome_sentence, sentence
from results.document import Outcome, RunDocument
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.model import (
    Alert,
    AlertState,
    AlertWorkload,
    CommitOutcome,
    CommitState,
    EventKind,
    GitCommit,
    Job,
    JobKind,
    JobState,
    VerdictRecord,
)
from service.store import alerts, commits, events, forks, jobs, runs, samples, verdicts
from tests.fakes.run_documents import AT, TREE, a_run, sha
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from tests.fakes.run_documents import RunStory


def git_commit(
    commit: str, *, parent: str | None = None, subject: str = "A change", author: str = "Ada"
) -> GitCommit:
    """Return a commit as git tells it."""
    return GitCommit(
        sha=commit, tree=TREE, parent=parent, author=author, subject=subject, committed_at=AT
    )


def a_fork(
    session: Session, *commits_of_branch: GitCommit, name: str = "demo", branch: str = "main"
) -> None:
    """Store a fork with these commits, oldest first."""
    forks.ensure(session, name, branch=branch, at=AT)
    commits.register(session, name, commits_of_branch, at=AT)
    for commit in commits_of_branch:
        events.append_once(session, name, commit.sha, EventKind.SEEN, "Seen on main.", at=AT)


def a_stored_run(
    session: Session,
    story: RunStory,
    verdicts_by_workload: Mapping[str, Verdict] | None = None,
    *,
    compared_with: tuple[tuple[str, str], ...] = (),
) -> RunDocument:
    """Store a run with its samples and, where given, its verdicts."""
    document = story.build()
    kind = JobKind.CONFIRM if document.paired else JobKind.SINGLE
    job = Job(
        id=document.job,
        fork=document.fork,
        sha=document.candidate.commit.sha,
        kind=kind,
        state=JobState.STORED,
        host_class=document.host.host_class,
        run=document.id,
        baseline_sha=document.baseline.commit.sha if document.baseline else None,
        order="{}",
        attempts=1,
        created_at=AT,
        finished_at=AT,
    )
    jobs.create_once(session, job)
    runs.store_once(session, document, job, at=AT)
    samples.append(session, document)
    verdicts.store_once(
        session,
        [
            _record(document, workload, verdict, kind, compared_with)
            for workload, verdict in (verdicts_by_workload or {}).items()
        ],
    )
    return document


def finished(
    session: Session, commit: str, outcome: CommitOutcome, reason: str, *, fork: str = "demo"
) -> None:
    """Finish a commit."""
    commits.finish(session, fork, commit, outcome=outcome, reason=reason, at=AT)
    events.append_once(session, fork, commit, EventKind.FINISHED, reason, at=AT)


def an_open_alert(
    session: Session,
    document: RunDocument,
    found: Mapping[str, Verdict],
    *,
    alert_id: str = "alert-1",
) -> None:
    """Open an alert about a confirm run's candidate."""
    assert document.baseline is not None
    alerts.open_once(
        session,
        Alert(
            id=alert_id,
            fork=document.fork,
            sha=document.candidate.commit.sha,
            subject="",
            author="",
            baseline_sha=document.baseline.commit.sha,
            state=AlertState.CONFIRMED,
            workloads=tuple(
                AlertWorkload(
                    workload=workload,
                    effect=verdict.change.effect,
                    low=verdict.change.interval.low,
                    high=verdict.change.interval.high,
                    p_value=verdict.change.p_value,
                    gate=verdict.gate,
                )
                for workload, verdict in found.items()
            ),
            run=document.id,
            opened_at=AT + timedelta(minutes=9),
        ),
    )


def _record(
    document: RunDocument,
    workload: str,
    verdict: Verdict,
    kind: JobKind,
    compared_with: tuple[tuple[str, str], ...],
) -> VerdictRecord:
    change = verdict.change
    return VerdictRecord(
        run=document.id,
        series=document.series(workload, THROUGHPUT.name),
        stage=kind,
        sha=document.candidate.commit.sha,
        decision=verdict.decision,
        effect=change.effect,
        low=change.interval.low,
        high=change.interval.high,
        confidence=change.interval.confidence,
        p_value=change.p_value,
        detectable_effect=change.detectable_effect,
        n_baseline=change.n_baseline,
        n_candidate=change.n_candidate,
        method=change.method,
        warnings=change.warnings,
        direction=verdict.direction,
        gate=verdict.gate,
        alpha=verdict.alpha,
        significant=verdict.significant,
        relevant=verdict.relevant,
        suspicious=False,
        reason=verdict.reason,
        baseline_inputs=compared_with,
        created_at=AT,
    )


def measured(run: str, commit: str, *, scan: float, point: float, fork: str = "demo") -> RunStory:
    """Return a single run with three starts of two slices around these throughputs."""
    wobble = (1.0, 1.004, 0.997)
    return (
        a_run()
        .of(fork)
        .called(run)
        .on(commit)
        .with_samples("scan", [[scan * factor, scan * factor * 1.002] for factor in wobble])
        .with_samples("point-query", [[point * factor] for factor in wobble])
    )


def a_pair(run: str, commit: str, baseline: str, *, fork: str = "demo") -> RunStory:
    """Return a paired run in which scan lost 9 % and point-query nothing."""
    return (
        measured(run, commit, scan=1.82, point=62900.0, fork=fork)
        .against(baseline)
        .with_samples("scan", [[2.0, 2.004], [2.01, 2.0], [1.995, 2.002]], side=SideName.BASELINE)
        .with_samples("point-query", [[63000.0], [63100.0], [62950.0]], side=SideName.BASELINE)
    )


SHAS = [sha(digit) for digit in "1234567a"]
SUBJECTS = [
    "Import 10.11.19",
    "Raise the default of innodb_log_file_size",
    "Document the backup locks",
    "Tidy the parser's error messages",
    "Check the record format in row_search_mvcc",
    "Refactor the handler interface",
    "Fix the build on arm64",
    "Add a status variable for purge lag",
]
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
UNSURE = a_verdict(-3.0, low=-8.0, high=2.0, p_value=0.2, detectable=6.0)
CALM = {"scan": SAME, "point-query": SAME}


def a_week(session: Session) -> None:
    """Store the story the pages are read for: eight commits, the fifth of them slower."""
    branch = [
        git_commit(commit, parent=SHAS[index - 1] if index else None, subject=SUBJECTS[index])
        for index, commit in enumerate(SHAS)
    ]
    a_fork(session, *branch)
    _calm_beginning(session)
    _slow_commit(session)
    _unsure_and_broken(session)
    commits.mark(session, "demo", SHAS[7], CommitState.MEASURING)


def _calm_beginning(session: Session) -> None:
    """Store the first commit, two without a change, and one that only touches documentation."""
    a_stored_run(session, measured("run-1", SHAS[0], scan=2.0, point=63000.0))
    first = "first run of scan, point-query: later commits are compared with it"
    finished(session, SHAS[0], CommitOutcome.BASELINE, first)
    compared: tuple[tuple[str, str], ...] = (("run-1", "candidate"),)
    for index, run, scan, point in ((1, "run-2", 2.01, 63050.0), (3, "run-4", 1.995, 62990.0)):
        story = measured(run, SHAS[index], scan=scan, point=point)
        a_stored_run(session, story, CALM, compared_with=compared)
        finished(session, SHAS[index], CommitOutcome.NO_CHANGE, sentence(CALM, at=SHAS[index]))
        compared = (*compared, (run, "candidate"))
    same_files = outcome_sentence(Outcome.UNCHANGED, at=SHAS[2])
    finished(session, SHAS[2], CommitOutcome.UNCHANGED, same_files)


def _slow_commit(session: Session) -> None:
    """Store the commit that lost 9 % on scan: its own run, the paired one, the alert."""
    judged = {"scan": SLOWER, "point-query": SAME}
    past = tuple((run, "candidate") for run in ("run-1", "run-2", "run-4"))
    single = measured("run-5", SHAS[4], scan=1.82, point=62980.0)
    a_stored_run(session, single, judged, compared_with=past)
    pair = a_stored_run(session, a_pair("run-5c", SHAS[4], SHAS[3]), judged)
    an_open_alert(session, pair, {"scan": SLOWER})
    finished(session, SHAS[4], CommitOutcome.REGRESSION, sentence(judged, at=SHAS[4]))


def _unsure_and_broken(session: Session) -> None:
    """Store a commit that nothing can be said about, and one that does not build."""
    judged = {"scan": UNSURE, "point-query": SAME}
    story = measured("run-6", SHAS[5], scan=1.80, point=62900.0)
    a_stored_run(session, story, judged, compared_with=(("run-5c", "candidate"),))
    finished(session, SHAS[5], CommitOutcome.INCONCLUSIVE, sentence(judged, at=SHAS[5]))
    broken = (
        a_run()
        .called("run-7")
        .on(SHAS[6])
        .that(
            Outcome.BUILD_FAILED,
            stage="build",
            message="ninja: build stopped: subcommand failed.",
            log="[211/854] Building CXX object sql/CMakeFiles/sql.dir/handler.cc.o\n"
            "sql/handler.cc:411:3: error: 'prefetch' was not declared in this scope\n"
            "  411 |   prefetch(rec);\nninja: build stopped: subcommand failed.",
        )
    )
    document = a_stored_run(session, broken)
    said = outcome_sentence(document.outcome, at=SHAS[6], failure=document.failure)
    finished(session, SHAS[6], CommitOutcome.BUILD_FAILED, said)
