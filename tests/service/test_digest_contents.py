"""Digests of stored weeks, on both databases."""

from __future__ import annotations

import math
import random
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.digest_sections import headline, sections
from reports.digest_text import digest_lines, digest_markdown
from reports.numbers import short
from service.core.errors import NotFoundError
from service.core.model import AlertState, CommitOutcome
from service.core.weeks import week_of, zone_of
from service.flows.digest_contents import digest_of
from service.store import forks
from tests.fakes.stored_weeks import (
    DAY,
    FASTER,
    HOUR,
    MONDAY,
    SAME,
    SLOWER,
    WEEK,
    Weeks,
    a_telling_week,
    sha_of,
    with_baseline,
)
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from datetime import datetime

    from reports.digest import Digest
    from service.store.database import Database

UTC_ZONE = zone_of("UTC")
CALM = {"scan": SAME, "point-query": SAME}


def digest(
    database: Database, at: datetime, *, fork: str = "demo", against: str | None = None
) -> Digest:
    """Return the digest of the week that a moment lies in, made long after it."""
    with database.reading() as session:
        found = forks.find(session, fork)
        assert found is not None
        return digest_of(
            session,
            found,
            week_of(at, UTC_ZONE),
            zone=UTC_ZONE,
            now=MONDAY + 52 * WEEK,
            against=against,
        )


def texts(found: Digest, title: str) -> list[str]:
    """Return the items of the section whose title begins so."""
    return [
        f"{item.text}: {item.detail}" if item.detail else item.text
        for section in sections(found)
        if section.title.startswith(title)
        for item in section.items
    ]


def test_a_quiet_week_is_one_line(database: Database) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        for day in range(4):
            weeks.commit(MONDAY + day * DAY, found=CALM)

    found = digest(database, MONDAY)
    # Each run took four minutes.
    assert digest_markdown(found) == (
        "demo, week 2026-W45: nothing to say; 4 commits followed in 16 machine minutes.\n"
    )


@pytest.fixture
def two_weeks(database: Database) -> Database:
    """A week with a regression, and one in which it is repaired."""
    with database.writing() as session:
        weeks = Weeks(session)
        for hour in range(6):
            weeks.commit(MONDAY + hour * HOUR, found=CALM)
        found = {"scan": SLOWER, "point-query": SAME}
        slow = weeks.confirmed(MONDAY + DAY, found, subject="Check every record", author="Grace")
        alert = weeks.alert(slow, {"scan": SLOWER}, MONDAY + DAY)
        weeks.commit(MONDAY + 2 * DAY, scan=1.82, found=CALM)
        weeks.confirmed(
            MONDAY + WEEK + DAY,
            {"scan": FASTER, "point-query": SAME},
            outcome=CommitOutcome.IMPROVEMENT,
            subject="Check records once",
            scan=2.0,
        )
        weeks.closed(alert, AlertState.FIXED, MONDAY + WEEK + DAY, true=True)
    return database


def test_a_week_with_a_regression(two_weeks: Database) -> None:
    found = digest(two_weeks, MONDAY)

    assert headline(found) == "demo, week 2026-W45: 1 commit slower, 1 alert open"
    said = f"scan is 9.1 % slower (95 %: 8.2 to 10.0) at {short(sha_of(7))}"
    assert texts(found, "Slower") == [f"{said}: Check every record, by Grace"]
    # It is open at the end of its week, whatever became of it afterwards.
    assert texts(found, "Open alerts") == [f"6 days, nobody's, since then fixed: {said}"]
    assert texts(found, "Machine time") == [
        "36 minutes: 32 minutes on single commits, 4 minutes on pairs",
        (
            "It bought: 8 commits followed, 1 regression, 7 shown unchanged, "
            "1 suspicion measured again, none of them cleared"
        ),
    ]


def test_the_week_of_its_repair(two_weeks: Database) -> None:
    found = digest(two_weeks, MONDAY + WEEK)

    assert headline(found) == "demo, week 2026-W46: 1 commit faster, 1 fixed"
    assert texts(found, "Faster") == [
        (
            f"scan is 9.8 % faster (95 %: 8.9 to 10.7) at {short(sha_of(9))}: "
            "Check records once, by Ada"
        )
    ]
    assert texts(found, "Fixed") == [
        (
            f"scan is 9.1 % slower (95 %: 8.2 to 10.0) at {short(sha_of(7))}, after 7 days: "
            "Check every record, by Grace"
        )
    ]
    assert texts(found, "Precision") == ["Of 1 alert that people judged so far, 1 was real"]


def test_the_week_after_hears_nothing_of_it(two_weeks: Database) -> None:
    assert headline(digest(two_weeks, MONDAY + 2 * WEEK)).endswith(
        "nothing to say; no commit came."
    )


def test_workloads_stand_against_the_first_measured_commit(two_weeks: Database) -> None:
    found = digest(two_weeks, MONDAY)

    reference = found.reference
    assert reference is not None
    assert (reference.sha, reference.chosen) == (sha_of(1), False)
    (scan,) = reference.standings
    assert scan.workload == "scan"
    assert 1 - math.exp(scan.effect) == pytest.approx(0.09, abs=0.005)
    assert scan.interval.low < scan.effect < scan.interval.high < 0
    assert reference.same == 1


def test_workloads_stand_against_a_chosen_commit(two_weeks: Database) -> None:
    found = digest(two_weeks, MONDAY + WEEK, against=sha_of(7)[:40])

    assert found.reference is not None
    assert found.reference.chosen
    assert found.reference.sha == sha_of(7)
    (scan,) = found.reference.standings
    assert math.exp(scan.effect) - 1 == pytest.approx(0.099, abs=0.005)


def test_a_commit_nobody_measured_cannot_be_compared_with(two_weeks: Database) -> None:
    with pytest.raises(NotFoundError, match="no measured commit ffff"):
        digest(two_weeks, MONDAY, against="ffff")


def test_a_wildcard_is_no_commit(two_weeks: Database) -> None:
    with pytest.raises(NotFoundError, match="no measured commit %"):
        digest(two_weeks, MONDAY, against="%")


def test_a_slow_drift_that_no_gate_saw(database: Database) -> None:
    noise = random.Random(45)
    with database.writing() as session:
        weeks = Weeks(session)
        for number in range(40):
            weeks.commit(
                MONDAY + number * HOUR,
                # 0.4 % a commit, and runs that scatter by 0.5 %.
                scan=2.0 * math.exp(-0.004 * number + noise.gauss(0, 0.005)),
                point=63_000.0 * math.exp(noise.gauss(0, 0.005)),
                found=CALM,
            )

    found = digest(database, MONDAY)
    assert headline(found) == "demo, week 2026-W45: 1 drift that no gate saw"
    (drift,) = found.drifted
    assert (drift.workload, drift.commits, drift.step_at) == ("scan", 40, None)
    assert drift.interval.low < -0.16 < drift.interval.high
    assert drift.since == sha_of(1)
    assert drift.effect / 40 == pytest.approx(-0.004, rel=0.1)
    assert "% a commit" in texts(found, "Drift")[0]


def test_a_gate_that_losses_slip_through_comes_with_advice(database: Database) -> None:
    unsure = with_baseline(a_verdict(-1.0, low=-7.0, high=5.0, p_value=0.5, detectable=8.0), 6)
    young = with_baseline(unsure, 2)
    with database.writing() as session:
        weeks = Weeks(session)
        for hour in range(6):
            weeks.commit(
                MONDAY + hour * HOUR,
                found={"scan": unsure, "point-query": young},
                outcome=CommitOutcome.INCONCLUSIVE,
            )

    (noisy,) = digest(database, MONDAY).noisy
    assert noisy.workload == "scan"
    assert noisy.detectable_effect == pytest.approx(-math.log(0.92))
    assert noisy.advice


def test_alerts_come_with_their_owner_and_false_alarms_with_the_precision(
    database: Database,
) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        pairs = [
            weeks.confirmed(MONDAY + day * DAY, {"scan": SLOWER, "point-query": SAME})
            for day in range(1, 4)
        ]
        first, second, third = [
            weeks.alert(pair, {"scan": SLOWER}, MONDAY + day * DAY)
            for day, pair in enumerate(pairs, start=1)
        ]
        weeks.owned(first, "github:ada")
        weeks.closed(second, AlertState.FALSE, MONDAY + 4 * DAY, true=False)
        weeks.closed(third, AlertState.ACCEPTED, MONDAY + 4 * DAY, true=True)

    found = digest(database, MONDAY)
    assert [alert.id for alert in found.open_alerts] == [first]
    assert texts(found, "Open alerts")[0].startswith("6 days, github:ada, acknowledged: scan is")
    assert [alert.id for alert in found.accepted] == [third]
    alarm, precision = texts(found, "False alarms")
    assert alarm.startswith("scan is 9.1 % slower")
    assert precision == "Of 2 alerts that people judged so far, 1 was real"


def test_hostile_names_stay_words(database: Database) -> None:
    evil = "</p><script>x()</script> @all [a](http://evil)\n# Owned"
    with database.writing() as session:
        weeks = Weeks(session, fork="fork/<b>|x")
        weeks.commit(MONDAY, found=CALM)
        weeks.confirmed(MONDAY + DAY, {"scan": SLOWER}, subject=evil, author=evil)

    text = digest_markdown(digest(database, MONDAY, fork="fork/<b>|x"))
    assert "<script" not in text
    assert "@all" not in text
    assert re.search(r"(?<!\\)\]\(", text) is None
    assert [line for line in text.splitlines() if line.startswith("# ")] == text.splitlines()[:1]


def test_a_week_has_what_came_between_its_mondays(database: Database) -> None:
    moment = timedelta(microseconds=1)
    with database.writing() as session:
        weeks = Weeks(session)
        for at in (MONDAY, MONDAY + WEEK - moment, MONDAY + WEEK):
            weeks.commit(at, found=CALM)

    first, second = digest(database, MONDAY), digest(database, MONDAY + WEEK)
    assert (first.commits_seen, second.commits_seen) == (2, 1)
    assert first.machine_time.outcomes == {"no-change": 2}
    assert second.machine_time.outcomes == {"no-change": 1}


def test_a_running_week_stops_at_the_present(database: Database) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        for day in range(4):
            weeks.commit(MONDAY + day * DAY, found=CALM)
    with database.reading() as session:
        (fork,) = forks.everything(session)
        found = digest_of(
            session,
            fork,
            week_of(MONDAY, UTC_ZONE),
            zone=UTC_ZONE,
            now=MONDAY + 2 * DAY,
        )

    assert found.so_far
    assert found.commits_seen == 2


def test_forks_do_not_mix(database: Database) -> None:
    with database.writing() as session:
        Weeks(session).commit(MONDAY, found=CALM)
        other = Weeks(session, fork="other")
        other.commit(MONDAY, found=CALM)
        other.confirmed(MONDAY + DAY, {"scan": SLOWER})

    assert digest(database, MONDAY).quiet
    assert headline(digest(database, MONDAY, fork="other")).startswith(
        "other, week 2026-W45: 1 commit"
    )


def test_the_documentation_shows_what_the_code_makes(database: Database) -> None:
    with database.writing() as session:
        a_telling_week(session)
    page = (Path(__file__).parents[2] / "docs" / "digest.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"(?ms)^```text\n(.*?)^```$", page)

    assert "\n".join([*digest_lines(digest(database, MONDAY)), ""]) == shown
