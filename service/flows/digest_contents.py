"""What a digest says: the store's facts about one week of a fork become a `Digest`.

A session, a fork and a week come in; `digest_trends` and `digest_noise` judge what takes
statistics, and `reports` words it all. It writes nothing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision
from reports.digest import (
    AlertItem,
    Digest,
    MachineTime,
    MovedCommit,
    Precision,
    Reference,
    Standing,
)
from reports.sentence import sentence
from results.document import Outcome
from results.metric import THROUGHPUT
from service.core.alert_actions import CLOSED_STATES
from service.core.digests import Window
from service.core.errors import NotFoundError
from service.core.model import AlertState, CommitOutcome, JobKind
from service.flows.bridge_texts import lines_between
from service.flows.digest_blame import blamed
from service.flows.digest_noise import host_health, noisy_workloads
from service.flows.digest_trends import (
    drifted_in,
    measured_since,
    settings_of,
    standing_against,
)
from service.flows.digest_work import ended_bisects, with_other_work
from service.flows.levels import CHANGES
from service.flows.suite import SUITE, read_finding
from service.store import alerts, digest_alerts, digest_facts, digest_work, runs, verdicts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from service.core.digests import FinishedCommit, FinishedRun, SeriesHistory
    from service.core.model import Alert, Fork, VerdictRecord
    from service.core.weeks import Week

#: Commits of one direction whose verdicts are read; a week with more has another problem.
MOVED_MAX: Final = 50
#: Hosts that worked for the fork so recently are expected to work for it now.
HOST_MEMORY: Final = timedelta(weeks=4)
#: A job takes hours; a duration beyond this is a clock that was set.
RUN_DURATION_MAX: Final = timedelta(days=7)
#: Runs that cost time and brought nothing to judge. A commit that does not build is news.
WASTED: Final = (Outcome.FAILED, Outcome.UNSTABLE)


def digest_of(
    session: Session,
    fork: Fork,
    week: Week,
    *,
    zone: ZoneInfo,
    now: datetime,
    against: str | None = None,
) -> Digest:
    """Return the digest of a fork's week, as far as it has come.

    Args:
        session: An open transaction.
        fork: The fork.
        week: A week that has begun.
        zone: Whose week it is.
        now: The time; what is later belongs to no digest yet.
        against: First digits of the commit that the branch is compared with; the first measured
            one where absent.

    Raises:
        NotFoundError: There is no measured commit that begins so.
    """
    window = Window(fork=fork.name, begins=week.begins(zone), until=min(week.ends(zone), now))
    finished = digest_facts.finished_commits(session, window)
    finished_runs = digest_facts.finished_runs(session, window)
    pulls = digest_work.finished_pull_jobs(session, window)
    bisects = digest_work.bisect_work(session, window)
    histories = measured_since(digest_facts.histories(session, window), window.begins)
    settings = settings_of([history.series for history in histories])
    closed = [
        _alert_item(session, alert, window) for alert in digest_alerts.closed(session, window)
    ]
    return Digest(
        fork=fork.name,
        branch=fork.branch,
        week=week.name,
        first_day=week.first_day,
        last_day=week.last_day,
        zone=zone.key,
        so_far=now < week.ends(zone),
        commits_seen=digest_facts.commits_seen(session, window),
        slower=_moved(session, window, finished, CommitOutcome.REGRESSION),
        faster=_moved(session, window, finished, CommitOutcome.IMPROVEMENT),
        reference=_reference(session, window, histories, against=against, settings=settings),
        drifted=drifted_in(histories, begins=window.begins, settings=settings),
        open_alerts=tuple(
            _open_item(session, alert, window, zone=zone)
            for alert in digest_alerts.still_open(session, window)
        ),
        began_anew=tuple(lines_between(session, fork.name, window.begins, window.until)),
        bisects=ended_bisects(bisects),
        fixed=_in_state(closed, AlertState.FIXED),
        accepted=_in_state(closed, AlertState.ACCEPTED),
        false_alarms=_in_state(closed, AlertState.FALSE),
        precision=_precision(session, window),
        noisy=noisy_workloads(
            digest_facts.sensitivities(session, window),
            histories,
            disturbances=digest_facts.disturbances(session, window),
            settings=settings,
        ),
        machine_time=with_other_work(machine_time(finished, finished_runs), pulls, bisects),
        hosts=host_health(
            digest_facts.hosts(session, window, since=window.begins - HOST_MEMORY),
            finished_runs,
            window=window,
            zone=zone,
        ),
    )


def machine_time(
    finished: Sequence[FinishedCommit], finished_runs: Iterable[FinishedRun]
) -> MachineTime:
    """Return what machines did in a week, and what came of it."""
    seconds: dict[JobKind, float] = defaultdict(float)
    wasted, confirmed = 0.0, set[str]()
    for run in finished_runs:
        spent = min(max(run.duration, timedelta()), RUN_DURATION_MAX).total_seconds()
        seconds[run.kind] += spent
        wasted += spent if run.outcome in WASTED else 0.0
        if run.kind is JobKind.CONFIRM:
            confirmed.add(run.sha)
    answered = [commit for commit in finished if commit.sha in confirmed]
    return MachineTime(
        single_seconds=seconds[JobKind.SINGLE],
        confirm_seconds=seconds[JobKind.CONFIRM],
        wasted_seconds=wasted,
        outcomes=dict(Counter(commit.outcome.value for commit in finished)),
        confirms=len(answered),
        cleared=sum(commit.outcome is CommitOutcome.NO_CHANGE for commit in answered),
    )


def _moved(
    session: Session,
    window: Window,
    finished: Sequence[FinishedCommit],
    outcome: CommitOutcome,
) -> tuple[MovedCommit, ...]:
    """Return the commits of that outcome, the one that moved a workload most first."""
    found = []
    for commit in [commit for commit in finished if commit.outcome is outcome][:MOVED_MAX]:
        judged = _moved_verdicts(_confirm_verdicts(session, window.fork, commit.sha), CHANGES)
        largest = max((abs(verdict.change.effect) for verdict in judged.values()), default=0.0)
        alert = alerts.of_commit(session, window.fork, commit.sha)
        subject, author = blamed(session, alert) if alert else (commit.subject, commit.author)
        moved = MovedCommit(
            sha=commit.sha,
            subject=subject,
            author=author,
            sentence=sentence(judged, at=commit.sha) if judged else commit.reason,
            moves=_moves(judged),
        )
        found.append((largest, moved))
    return tuple(moved for _, moved in sorted(found, key=lambda item: -item[0]))


def _moves(judged: Mapping[str, Verdict]) -> tuple[Standing, ...]:
    """Return the numbers of a commit's workloads, for a chart; one without an interval has none."""
    found = [
        Standing(workload=workload, effect=verdict.change.effect, interval=verdict.change.interval)
        for workload, verdict in judged.items()
        if math.isfinite(verdict.change.interval.high - verdict.change.interval.low)
    ]
    return tuple(sorted(found, key=lambda one: -abs(one.effect)))


def _confirm_verdicts(session: Session, fork: str, sha: str) -> list[VerdictRecord]:
    """Return what the paired run of a commit was judged, if it had one."""
    return [
        record
        for run in runs.of_commit(session, fork, sha)
        if run.kind is JobKind.CONFIRM
        for record in verdicts.of_run(session, run.id)
    ]


def _moved_verdicts(
    records: Sequence[VerdictRecord], decisions: Collection[Decision]
) -> Mapping[str, Verdict]:
    """Return the verdicts on throughput that say so, that on the suite as a whole among them."""
    found = {
        record.series.workload: record.verdict
        for record in records
        if record.series.metric == THROUGHPUT.name and record.decision in decisions
    }
    suite = read_finding(records)
    if suite is not None and suite.verdict.decision in decisions:
        found[SUITE] = suite.verdict
    return found


def _reference(
    session: Session,
    window: Window,
    histories: Sequence[SeriesHistory],
    *,
    against: str | None,
    settings: Mapping[str, str],
) -> Reference | None:
    """Return where the branch stands; None where nothing was measured in this week."""
    if not histories:
        return None
    ids = [history.series.id for history in histories]
    found = digest_facts.reference(session, window, ids, chosen=against)
    if found is None:
        if against is not None:
            raise NotFoundError(f"fork {window.fork} has no measured commit {against}")
        return None
    return standing_against(found, histories, chosen=against is not None, settings=settings)


def _alert_item(session: Session, alert: Alert, window: Window) -> AlertItem:
    """Return an alert with its regressions in one sentence, and its age."""
    slower = _moved_verdicts(verdicts.of_run(session, alert.run), (Decision.REGRESSION,))
    ended = min(alert.closed_at or window.until, window.until)
    subject, author = blamed(session, alert)
    return AlertItem(
        id=alert.id,
        sha=alert.sha,
        subject=subject,
        author=author,
        sentence=sentence(slower, at=alert.sha),
        state=alert.state.value,
        owner=alert.owner or "",
        days=max(0, (ended - alert.opened_at).days),
    )


def _open_item(session: Session, alert: Alert, window: Window, *, zone: ZoneInfo) -> AlertItem:
    """Return an alert that was open when the week ended, and how it went on if that is known."""
    ended = window.until.astimezone(zone).date()
    item = replace(
        _alert_item(session, alert, window),
        due=alert.due_on.isoformat() if alert.due_on else "",
        overdue=alert.due_on is not None and alert.due_on < ended,
    )
    if alert.state in CLOSED_STATES:
        return replace(item, state=f"since then {alert.state.value}")
    return item


def _in_state(items: Iterable[AlertItem], state: AlertState) -> tuple[AlertItem, ...]:
    return tuple(item for item in items if item.state == state.value)


def _precision(session: Session, window: Window) -> Precision | None:
    true, false = digest_alerts.judged(session, window)
    return Precision(true=true, false=false) if true + false else None
