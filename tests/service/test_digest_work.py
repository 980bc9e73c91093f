"""What pull requests and bisects add to a week's digest, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import update

from reports.digest_sections import headline, sections
from service.core.bisections import BisectState
from service.core.pull_requests import PullJob, PullJobKind, PullJobState
from service.core.weeks import week_of, zone_of
from service.flows.digest_contents import digest_of
from service.flows.pull_judge import keep_verdicts
from service.store import bisects, forks, pull_jobs
from service.store.bisect_tables import BisectJobRow, BisectRow
from service.store.tables import AlertRow
from tests.fakes.memory_fork import AT
from tests.fakes.stored_bisects import BisectCaller
from tests.fakes.stored_fork import git_commit
from tests.fakes.stored_weeks import HOUR, SAME, SLOWER, WEEK, Weeks, sha_of

if TYPE_CHECKING:
    from datetime import datetime

    from detectors.verdict import Verdict
    from reports.digest import Digest
    from service.core.bisections import Bisect
    from service.store.database import Database

UTC_ZONE = zone_of("UTC")
SLOW = [-0.1 + 0.001 * (place % 5 - 2) for place in range(6)]
QUIET = [0.001 * (place % 5 - 2) for place in range(6)]


def digest(database: Database, at: datetime = AT) -> Digest:
    with database.reading() as session:
        fork = forks.find(session, "demo")
        assert fork is not None
        week = week_of(at, UTC_ZONE)
        return digest_of(session, fork, week, zone=UTC_ZONE, now=AT + 52 * WEEK)


def texts(found: Digest, title: str) -> list[str]:
    return [
        f"{item.text}: {item.detail}" if item.detail else item.text
        for section in sections(found)
        if section.title == title
        for item in section.items
    ]


def a_pull_job(
    database: Database,
    pull: int,
    verdict: Verdict | None,
    *,
    kind: PullJobKind = PullJobKind.RUN,
    minutes: float = 60,
    at: datetime = AT + HOUR,
) -> None:
    """Store a job that ended at this time; without a verdict it was superseded."""
    name = f"pull-{pull}-{kind.value}-{at.isoformat()}"
    job = PullJob(
        id=name,
        fork="demo",
        pull=pull,
        kind=kind,
        state=PullJobState.JUDGED if verdict else PullJobState.SUPERSEDED,
        suite="commit",
        candidate_sha="5" * 40,
        baseline_sha="4" * 40,
        run=f"run-of-{name}",
        asked_by="",
        trusted=True,
        order="{}",
        attempts=1,
        said="",
        verdicts=keep_verdicts({"scan": verdict}) if verdict else "",
        accepted_by="",
        accepted_reason="",
        created_at=AT,
        started_at=at - timedelta(minutes=minutes),
        finished_at=at,
    )
    with database.writing() as session:
        forks.ensure(session, "demo", branch="main", at=AT)
        pull_jobs.create_once(session, job)


def a_bisect(database: Database) -> Bisect:
    """Store a search that found its commit, and ended."""
    caller = BisectCaller(database)
    for subject in ("Import", "Quiet", "Quiet too", "Slower", "After it"):
        caller.fork.push(subject)
    bisect = caller.ask()
    for commit, ratios in ((4, SLOW), (2, QUIET), (3, SLOW)):
        caller.observe(bisect, commit, ratios)
    with database.writing() as session:
        session.execute(update(BisectJobRow).values(started_at=AT - timedelta(minutes=20)))
        said = 'scan is 9.5 % slower since 00000004 "Slower" by Ada (98 %).'
        bisects.finish(session, bisect.id, BisectState.OVER, said=said, at=AT + HOUR)
    return bisect


def test_hours_of_pull_requests_are_counted_with_what_they_bought(database: Database) -> None:
    a_pull_job(database, 7, SLOWER)
    a_pull_job(database, 7, SAME, at=AT + 2 * HOUR)
    a_pull_job(database, 8, SAME)
    a_pull_job(database, 9, None, minutes=30)
    a_pull_job(database, 10, SLOWER, kind=PullJobKind.COMPARE, minutes=30)
    a_pull_job(database, 11, SLOWER, at=AT + WEEK)

    used = digest(database).machine_time

    # Of whatever ended in the week, also of a comparison that somebody asked for in an issue.
    assert used.pull_seconds == 4 * 3_600
    assert (used.pulls, used.pulls_slower) == (2, 1)
    assert headline(digest(database)) == (
        "demo, week 2026-W45: nothing to say; "
        "no commit followed and 2 pull requests judged in 4.0 machine hours."
    )


def test_a_clock_that_was_set_does_not_make_a_year_of_work(database: Database) -> None:
    a_pull_job(database, 7, SAME, minutes=60 * 24 * 365)
    a_pull_job(database, 8, SAME, minutes=-60)

    assert digest(database).machine_time.pull_seconds == 24 * 3_600


def test_a_bisect_is_told_in_the_week_in_which_it_ended(database: Database) -> None:
    bisect = a_bisect(database)

    found = digest(database)

    assert headline(found) == "demo, week 2026-W45: 1 bisect ended"
    assert texts(found, "Bisects") == [
        (
            'scan is 9.5 % slower since 00000004 "Slower" by Ada (98 %): '
            f"scan in ({bisect.question.good[:8]}, {bisect.question.bad[:8]}], 4 commits"
        )
    ]
    assert texts(found, "Machine time") == [
        "1.0 hours: all on bisects",
        "It bought: 1 commit named by a bisect",
    ]
    assert digest(database, AT + WEEK).quiet


def test_a_bisect_under_way_is_no_news_yet(database: Database) -> None:
    caller = BisectCaller(database)
    for subject in ("Import", "Quiet", "Slower"):
        caller.fork.push(subject)
    caller.ask()

    assert digest(database).quiet


def test_a_loss_of_a_range_is_laid_on_nobody_before_a_bisect_has_named_its_commit(
    database: Database,
) -> None:
    monday = AT - timedelta(hours=20)
    with database.writing() as session:
        weeks = Weeks(session)
        for hour in range(4):
            weeks.commit(monday + hour * HOUR, found={"scan": SAME})
        pair = weeks.confirmed(monday + 5 * HOUR, {"scan": SLOWER}, subject="Last", author="Bob")
        alert = weeks.alert(pair, {"scan": SLOWER}, monday + 5 * HOUR)
        session.execute(update(AlertRow).values(baseline_sha=sha_of(1)))
    ends = f"({sha_of(1)[:8]}, {sha_of(5)[:8]}]"
    assert texts(digest(database), "Slower")[0].endswith(f": one of {ends}")

    caller = BisectCaller(database)
    caller.fork.commits = [
        git_commit(sha_of(number), subject=f"Number {number}", author="Dan <dan@example.org>")
        for number in range(1, 6)
    ]
    bisect = caller.ask()
    for commit, ratios in ((4, SLOW), (2, QUIET), (3, SLOW)):
        caller.observe(bisect, commit, ratios)
    with database.writing() as session:
        session.execute(update(BisectRow).values(alert=alert))
        bisects.finish(session, bisect.id, BisectState.OVER, said="Found.", at=AT)

    named = f": a bisect named {sha_of(4)[:8]} Number 4, by Dan"
    assert texts(digest(database), "Slower")[0].endswith(named)
