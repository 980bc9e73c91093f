"""One alert for one cause: what joins an open alert, and what gets an alert of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from service.core.alert_actions import AlertAction
from service.core.alert_records import AlertPart
from service.core.model import AlertState, EventKind
from service.store import alerts, events
from tests.fakes.alert_story import ALERT, SLOW, B, C, D, E, a_paired_run, an_alert_about
from tests.fakes.lived_alerts import (
    FASTER,
    a_life,
    found,
    order,
    parts,
    raised,
    settled,
)
from tests.fakes.memory_fork import StillClock
from tests.fakes.memory_tracker import MemoryTracker
from tests.fakes.stored_fork import SHAS, SLOWER

if TYPE_CHECKING:
    from service.flows.alert_life import AlertLife
    from service.store.database import Database


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def tracker() -> MemoryTracker:
    return MemoryTracker()


@pytest.fixture
def life(database: Database, clock: StillClock, tracker: MemoryTracker) -> AlertLife:
    return a_life(database, clock, tracker)


def test_another_loss_after_the_fix_is_another_alert(life: AlertLife, clock: StillClock) -> None:
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=FASTER)
        for run, commit in (("run-cc", C), ("run-dc", D), ("run-ec", E)):
            a_paired_run(session, run, commit, B, scan=SLOWER)
    settled(life, B)

    larger = raised(life, an_alert_about(C, B, "run-cc", scan=20.0))
    elsewhere = raised(life, an_alert_about(D, C, "run-dc", point_query=9.1))
    clock.advance(timedelta(days=91))
    much_later = raised(life, an_alert_about(E, D, "run-ec", scan=9.1))

    assert {larger.id, elsewhere.id, much_later.id} == {"alert-cccc", "alert-dddd", "alert-eeee"}
    assert found(life).state is AlertState.FIXED


def test_a_commit_with_the_same_cause_joins_the_open_alert(life: AlertLife) -> None:
    """The range of the second one holds the first one's commit, and both slow the scan."""
    with life.database.writing() as session:
        a_paired_run(session, "run-6c", SHAS[5], SHAS[3], scan=SLOWER, point_query=SLOWER)

    second = an_alert_about(SHAS[5], SHAS[3], "run-6c", scan=9.0, point_query=12.0)
    joined = raised(life, second)

    assert joined.id == ALERT
    assert raised(life, second) == joined == found(life)
    assert (joined.sha, joined.baseline_sha) == (SLOW, SHAS[3])
    assert [item.workload for item in joined.workloads] == ["scan", "point-query"]
    # What was known keeps the numbers that people were told.
    assert joined.workloads[0].effect == pytest.approx(-0.0954, abs=1e-4)
    assert parts(life) == [(AlertPart.OPENED, SLOW), (AlertPart.JOINED, SHAS[5])]
    with life.database.reading() as session:
        assert len(alerts.newest(session)) == 1
        said = events.of_commit(session, "demo", SHAS[5])[-1]
    assert said.kind is EventKind.ALERT_CHANGED
    assert f"belongs to alert {ALERT}" in said.message

    # The second pair saw the loss of the scan too; it is one loss, and one gain makes up for it.
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=FASTER, point_query=FASTER)
    settled(life, B)
    assert found(life).state is AlertState.FIXED


def test_ranges_or_workloads_apart_are_two_alerts(life: AlertLife) -> None:
    with life.database.writing() as session:
        a_paired_run(session, "run-6c", SHAS[5], SHAS[4], scan=SLOWER)
        a_paired_run(session, "run-bc", B, SHAS[3], point_query=SLOWER)

    apart = raised(life, an_alert_about(SHAS[5], SHAS[4], "run-6c", scan=9.1))
    other = raised(life, an_alert_about(B, SHAS[3], "run-bc", point_query=9.1))

    assert {ALERT, apart.id, other.id} == {ALERT, "alert-6666", "alert-bbbb"}


def test_what_was_accepted_is_not_raised_again(life: AlertLife) -> None:
    order(life, AlertAction.ACCEPT)
    with life.database.writing() as session:
        a_paired_run(session, "run-6c", SHAS[5], SHAS[3], scan=SLOWER)
        a_paired_run(session, "run-bc", B, SHAS[3], scan=SLOWER, point_query=SLOWER)

    covered = raised(life, an_alert_about(SHAS[5], SHAS[3], "run-6c", scan=9.0))
    rest = raised(life, an_alert_about(B, SHAS[3], "run-bc", scan=9.0, point_query=9.0))

    assert (covered.id, covered.state) == (ALERT, AlertState.ACCEPTED)
    assert (rest.id, rest.state) == ("alert-bbbb", AlertState.CONFIRMED)
    assert [item.workload for item in rest.workloads] == ["point-query"]


def test_alerts_are_listed_by_state_and_page_by_page(life: AlertLife) -> None:
    with life.database.writing() as session:
        for commit in (B, C, D):
            a_paired_run(session, f"run-{commit[0]}c", commit, SHAS[5], scan=SLOWER)
            alerts.open_once(
                session, an_alert_about(commit, SHAS[5], f"run-{commit[0]}c", scan=9.1)
            )
    order(life, AlertAction.FIXED, alert="alert-cccc")

    with life.database.reading() as session:
        first = alerts.newest(session, "demo", limit=2)
        second = alerts.newest(session, "demo", before=first[-1].id, limit=2)
        closed = alerts.newest(session, states=(AlertState.FIXED,))
        assert alerts.newest(session, before=second[-1].id) == []
        assert alerts.newest(session, before="alert-none") == []
    assert [alert.id for alert in (*first, *second)] == [
        ALERT,
        "alert-bbbb",
        "alert-cccc",
        "alert-dddd",
    ]
    assert [alert.id for alert in closed] == ["alert-cccc"]
