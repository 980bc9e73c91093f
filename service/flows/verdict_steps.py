"""Judging a stored run inside one transaction: gather, decide, apply.

`baseline` gathers and `judge` decides; this module writes what they found down: verdicts, events,
the confirm job, the alert.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from detectors.verdict import Decision
from reports.alert import alert_markdown
from reports.rows import rows_of_pair
from reports.sentence import outcome_sentence, sentence
from results.document import Outcome
from results.job import JobOrder
from service.core.errors import NotFoundError
from service.core.model import (
    Alert,
    AlertState,
    AlertWorkload,
    CommitState,
    EventKind,
    JobKind,
    JobState,
)
from service.flows.alert_grouping import raise_once
from service.flows.baseline import gather_pair, gather_single
from service.flows.bridge import begin_anew
from service.flows.judge import Conclusion, conclude, judge_pair, judge_single
from service.flows.levels import confirm_alpha
from service.flows.orders import confirm_order, job_of
from service.flows.suite import SUITE, read_finding
from service.store import alerts, commits, events, jobs, runs, verdicts
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from service.core.model import Job, VerdictRecord
    from service.flows.baseline import SingleInputs
    from workloads.plan import Notify


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """What came of a paired job."""

    conclusion: Conclusion
    #: The alert to tell people about, if there is one.
    alert: str | None


def judge_own_run(
    session: Session, job: Job, document: RunDocument, *, at: datetime
) -> tuple[str | None, Conclusion | None]:
    """Judge a measured single run; return the confirm job it needs, or else its conclusion."""
    order = JobOrder.model_validate_json(job.order)
    plan = parse_plan(order.plan)
    gathered = gather_single(session, document, fork=job.fork, sha=job.sha)
    inputs = begin_anew(session, job, document, gathered, at=at)
    found = judge_single(inputs, plan.gates, run=job.run, sha=job.sha, at=at)
    verdicts.store_once(session, found)
    _say_single(session, job, inputs, found, at=at)
    suspicious = [record for record in found if record.suspicious]
    suite = read_finding(found)
    if not suspicious and suite is not None and suite.suspicious:
        # A shift of the whole suite is in all of its workloads.
        suspicious = found
    if not suspicious:
        return None, _conclude_single(document, inputs, found, job)
    starts = plan.suite(order.suite).confirm_starts
    confirm = confirm_order(
        order,
        fork=job.fork,
        baseline=_confirm_baseline(session, job, inputs, suspicious),
        alphas={r.series.workload: confirm_alpha(r, plan.gates) for r in found},
        starts=starts,
    )
    jobs.create_once(session, job_of(confirm, fork=job.fork, kind=JobKind.CONFIRM, at=at))
    commits.mark(session, job.fork, job.sha, CommitState.CONFIRMING)
    return confirm.job, None


def judge_paired_run(session: Session, job: Job, *, at: datetime) -> Confirmed:
    """Judge a confirm job, whatever became of it; a regression opens an alert."""
    own = _own_job(session, job)
    own_document = runs.document(session, own.run)
    inputs = gather_single(session, own_document, fork=job.fork, sha=job.sha)
    singles = verdicts.of_run(session, own.run)
    found, trouble = _judge_pair(session, job, singles, inputs, at=at)
    final = conclude(
        singles,
        found,
        seeded=_seeded(inputs),
        unusable=_unusable(own_document, inputs),
        sha=job.sha,
        trouble=trouble,
    )
    events.append_once(
        session,
        job.fork,
        job.sha,
        EventKind.CONFIRM_JUDGED,
        trouble or sentence({v.series.workload: v.verdict for v in found}, at=job.sha),
        at=at,
        about=job.id,
    )
    slower = [record for record in found if record.decision is Decision.REGRESSION]
    if not slower:
        return Confirmed(conclusion=final, alert=None)
    alert = raise_once(session, _alert(job, slower, at=at), at=at)
    return Confirmed(conclusion=final, alert=alert.id)


def read_alert(session: Session, alert_id: str, *, page: str) -> tuple[Alert, str, Notify]:
    """Return an alert with its text, and where the fork wants to be told.

    Raises:
        NotFoundError: There is no such alert.
    """
    alert = alerts.find(session, alert_id)
    if alert is None:
        raise NotFoundError(f"there is no alert {alert_id}")
    document = runs.document(session, alert.run)
    found = {v.series.workload: v.verdict for v in verdicts.of_run(session, alert.run)}
    text = alert_markdown(
        rows_of_pair(document, found), document=document, good=alert.baseline_sha, page=page
    )
    job = jobs.find(session, document.job)
    assert job is not None, "a stored run has its job"
    return alert, text, parse_plan(JobOrder.model_validate_json(job.order).plan).notify


def _judge_pair(
    session: Session,
    job: Job,
    singles: Sequence[VerdictRecord],
    own: Sequence[SingleInputs],
    *,
    at: datetime,
) -> tuple[list[VerdictRecord], str]:
    """Return the verdicts of a paired run, and what kept it from having all of them."""
    if job.state is not JobState.STORED:
        return [], f"not confirmed: the paired job brought no run after {job.attempts} attempts"
    document = runs.document(session, job.run)
    if document.outcome is not Outcome.MEASURED:
        said = outcome_sentence(document.outcome, at=job.sha, failure=document.failure)
        return [], f"not confirmed: the paired job was not measured: {said}"
    by_workload = {v.series.workload: v for v in singles}
    order = JobOrder.model_validate_json(job.order)
    assert order.starts is not None, "a paired job is ordered with the most starts"
    found = judge_pair(
        gather_pair(session, document),
        by_workload,
        parse_plan(order.plan).gates,
        starts_max=order.starts,
        run=job.run,
        sha=job.sha,
        at=at,
        own=own,
    )
    verdicts.store_once(session, found)
    suspicions = {v.series.workload for v in singles if v.suspicious}
    missing = sorted(suspicions - {record.series.workload for record in found})
    lacking = f"the paired run has no usable pair of {', '.join(missing)}" if missing else ""
    return found, lacking


def _say_single(
    session: Session,
    job: Job,
    inputs: Sequence[SingleInputs],
    found: Sequence[VerdictRecord],
    *,
    at: datetime,
) -> None:
    """Log what the single run showed."""

    def say(kind: EventKind, message: str) -> None:
        events.append_once(session, job.fork, job.sha, kind, message, at=at, about=job.run)

    seeded = _seeded(inputs)
    if seeded:
        say(EventKind.BASELINE, f"first run of {', '.join(seeded)}: seeds the baseline, no verdict")
    calm = {v.series.workload: v.verdict for v in found if not v.suspicious}
    if calm:
        say(EventKind.JUDGED, sentence(calm, at=job.sha))
    looks = {v.series.workload: v for v in found if v.suspicious}
    if looks:
        changes = ", ".join(f"{name} {v.verdict.change.ratio:.3f}" for name, v in looks.items())
        say(
            EventKind.SUSPICIOUS,
            f"suspicious, relative throughput {changes}: a paired job has to confirm it",
        )
    suite = read_finding(found)
    if suite is not None and suite.suspicious and not looks:
        shift = sentence({SUITE: suite.verdict}, at=job.sha, confirmed=False)
        say(EventKind.SUSPICIOUS, f"suspicious, {shift}: a paired job has to confirm it")


def _conclude_single(
    document: RunDocument,
    inputs: Sequence[SingleInputs],
    found: Sequence[VerdictRecord],
    job: Job,
) -> Conclusion:
    return conclude(
        found, [], seeded=_seeded(inputs), unusable=_unusable(document, inputs), sha=job.sha
    )


def _seeded(inputs: Sequence[SingleInputs]) -> list[str]:
    return [item.series.workload for item in inputs if not item.baseline]


def _unusable(document: RunDocument, inputs: Sequence[SingleInputs]) -> list[str]:
    judged = {item.series.workload for item in inputs}
    return [workload for workload in document.workloads() if workload not in judged]


def _confirm_baseline(
    session: Session,
    job: Job,
    inputs: Sequence[SingleInputs],
    suspicious: Sequence[VerdictRecord],
) -> str:
    """Return the commit to pair with: the oldest of the suspicious workloads' newest baselines.

    A nearer commit that was not judged on one of them could hide a change of its own. Where the
    history shows a change before this commit, its baseline is the commit before that.
    """
    before = {r.series.workload: r.parameters.get("change_before") for r in suspicious}
    newest = {
        before[item.series.workload] or item.baseline[-1].sha
        for item in inputs
        if item.series.workload in before
    }
    nearest_first = [c.sha for c in commits.first_parents(session, job.fork, job.sha)]
    return max(newest, key=nearest_first.index)


def _own_job(session: Session, job: Job) -> Job:
    """Return the single job whose suspicion a confirm job answers."""
    for other in jobs.of_commit(session, job.fork, job.sha):
        if other.kind is JobKind.SINGLE:
            return other
    raise NotFoundError(f"{job.id} has no single job before it")


def _alert(job: Job, slower: Sequence[VerdictRecord], *, at: datetime) -> Alert:
    assert job.baseline_sha is not None, "a confirm job has a baseline"
    about = hashlib.sha256(f"{job.fork}\x1f{job.sha}".encode()).hexdigest()[:8]
    return Alert(
        id=f"alert-{job.sha[:12]}-{about}",
        fork=job.fork,
        sha=job.sha,
        # Filled from the commit when it is read back.
        subject="",
        author="",
        baseline_sha=job.baseline_sha,
        state=AlertState.CONFIRMED,
        workloads=tuple(
            AlertWorkload(
                workload=record.series.workload,
                effect=record.effect,
                low=record.low,
                high=record.high,
                p_value=record.p_value,
                gate=record.gate,
            )
            for record in slower
        ),
        run=job.run,
        opened_at=at,
    )
