"""Alerts that close by themselves when the loss is gone, and open again when it is back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from service.core.alert_actions import AlertAction
from service.core.alert_records import AlertPart, AuditSubject
from service.core.model import AlertState
from service.store import alerts, audit, events
from tests.fakes.alert_story import ALERT, SLOW, B, C, D, E, a_paired_run, an_alert_about
from tests.fakes.lived_alerts import (
    FASTER,
    PARTLY,
    a_life,
    found,
    order,
    parts,
    raised,
    settled,
)
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.memory_tracker import MemoryTracker
from tests.fakes.stored_fork import SHAS, SLOWER, a_stored_run, measured

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


def test_a_later_commit_that_makes_up_for_the_loss_closes_the_alert_once(
    life: AlertLife, tracker: MemoryTracker
) -> None:
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=FASTER)

    assert len(settled(life, B)) == 1

    alert = found(life)
    assert (alert.state, alert.closed_at) == (AlertState.FIXED, AT)
    assert parts(life) == [(AlertPart.OPENED, SLOW), (AlertPart.FIXED, B)]
    issue = tracker.issues[ALERT]
    assert (issue.open, issue.intended, tracker.calls) == (False, False, 1)
    [text] = issue.said.values()
    assert list(issue.said) == [f"closed:{B}"]
    assert text.startswith(f"As fast as before again since `{B[:8]}`")
    assert "scan 10.0 %" in text
    assert "http://fw/alerts/alert-1" in text
    with life.database.reading() as session:
        [entry] = audit.history(session, AuditSubject.ALERT, ALERT)
        said = [event.message for event in events.of_commit(session, "demo", SLOW)]
    assert (entry.actor, entry.via, entry.key) == ("forkwatch", "flow", f"fixed:{B}")
    assert entry.note.startswith("scan is 10.0 % faster")
    assert said[-1] == f"alert {ALERT} is fixed, told: memory:{ALERT}"


def test_a_part_of_the_loss_is_not_enough_and_two_parts_are(life: AlertLife) -> None:
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=PARTLY)
    assert settled(life, B) == []
    assert found(life).state is AlertState.CONFIRMED

    with life.database.writing() as session:
        a_paired_run(session, "run-cc", C, B, scan=PARTLY)
    assert len(settled(life, C)) == 1
    assert found(life).state is AlertState.FIXED


def test_every_workload_has_to_be_back(life: AlertLife) -> None:
    lost = {"scan": SLOWER, "point_query": SLOWER}
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], **lost)
    both = raised(life, an_alert_about(B, SHAS[5], "run-bc", scan=9.1, point_query=9.1))
    with life.database.writing() as session:
        a_paired_run(session, "run-cc", C, B, scan=FASTER)
    settled(life, C)
    assert found(life, both.id).state is AlertState.CONFIRMED

    with life.database.writing() as session:
        a_paired_run(session, "run-dc", D, C, point_query=FASTER)
    settled(life, D)
    assert found(life, both.id).state is AlertState.FIXED


def test_two_own_runs_at_the_level_from_before_close_the_alert_too(life: AlertLife) -> None:
    """Nothing was confirmed: the loss went away in steps that no paired job was asked about."""
    with life.database.writing() as session:
        a_stored_run(session, measured("run-b", B, scan=2.0, point=63000.0))
    assert settled(life, B) == []

    with life.database.writing() as session:
        a_stored_run(session, measured("run-c", C, scan=2.004, point=63000.0))
    [entry_id] = settled(life, C)

    assert found(life).state is AlertState.FIXED
    with life.database.reading() as session:
        entry = audit.find(session, entry_id)
    assert entry is not None
    assert entry.note.startswith("compared with before the loss, scan unchanged within")
    assert entry.details["gains"]["scan"] == pytest.approx(0.095, abs=0.01)


def test_own_runs_at_the_slow_level_leave_it_open(life: AlertLife) -> None:
    with life.database.writing() as session:
        for run, commit in (("run-b", B), ("run-c", C)):
            a_stored_run(session, measured(run, commit, scan=1.82, point=63000.0))

    assert settled(life, B) == settled(life, C) == []
    assert found(life).state is AlertState.CONFIRMED


def test_a_commit_that_does_not_descend_from_the_slow_one_settles_nothing(
    life: AlertLife,
) -> None:
    assert settled(life, SHAS[3]) == settled(life, SLOW) == []
    assert found(life).state is AlertState.CONFIRMED


def test_a_settled_alert_is_left_alone(life: AlertLife, tracker: MemoryTracker) -> None:
    accepted = order(life, AlertAction.ACCEPT, "worth it")
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=FASTER)
        assert life.tracker is tracker

    [entry] = life.untold()
    life.tell(entry)
    assert settled(life, B) == []
    assert found(life) == accepted
    [text] = tracker.issues[ALERT].said.values()
    assert text.startswith("Accepted as intended by ada: worth it.")
    assert tracker.issues[ALERT].intended


def test_the_same_loss_that_comes_back_opens_its_alert_again(
    life: AlertLife, clock: StillClock, tracker: MemoryTracker
) -> None:
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=FASTER)
    settled(life, B)
    clock.advance(timedelta(days=10))
    with life.database.writing() as session:
        a_paired_run(session, "run-dc", D, C, scan=SLOWER)

    again = raised(life, an_alert_about(D, C, "run-dc", scan=9.4))

    assert (again.id, again.state, again.closed_at) == (ALERT, AlertState.CONFIRMED, None)
    assert (again.sha, again.baseline_sha, again.run) == (D, C, "run-dc")
    assert raised(life, an_alert_about(D, C, "run-dc", scan=9.4)) == again
    assert len(settled(life, D)) == 1
    issue = tracker.issues[ALERT]
    assert issue.open
    assert issue.said[f"reopened:{D}"].startswith(f"Slower again since `{D[:8]}`")
    with life.database.reading() as session:
        for commit in (SLOW, D):
            assert alerts.of_commit(session, "demo", commit) == again
        assert alerts.of_commit(session, "demo", B) is None

    # And what it takes now is to make up for the loss of this time.
    with life.database.writing() as session:
        a_paired_run(session, "run-ec", E, D, scan=FASTER)
    settled(life, E)
    assert found(life).state is AlertState.FIXED
    assert [part for part, _ in parts(life)] == ["opened", "fixed", "reopened", "fixed"]


def test_a_false_alarm_between_does_not_count_as_a_gain(life: AlertLife) -> None:
    """Its loss was none, so it neither hides a fix nor makes one."""
    with life.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=SLOWER)
    second = raised(life, an_alert_about(B, SHAS[5], "run-bc", scan=9.1))
    order(life, AlertAction.FALSE_ALARM, alert=second.id)
    with life.database.writing() as session:
        a_paired_run(session, "run-cc", C, B, scan=FASTER)

    settled(life, C)
    assert found(life).state is AlertState.FIXED
