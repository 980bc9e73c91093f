"""Orders about alerts: the table of the life cycle, and what each order leaves in the store."""

from __future__ import annotations

import itertools
import random
import re
import threading
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from results.metric import THROUGHPUT
from service.core.alert_actions import (
    CLOSED_STATES,
    OPEN_STATES,
    TRANSITIONS,
    AlertAction,
    AlertStep,
    allowed_actions,
    next_state,
)
from service.core.alert_records import AuditSubject, MarkKind
from service.core.errors import ActionError, UnknownAlertError
from service.core.model import AlertState, EventKind
from service.flows.alert_actions import StoredAlertActions
from service.store import audit, baseline_marks, events, series
from tests.fakes.alert_story import (
    ALERT,
    SLOW,
    a_longer_week,
)
from tests.fakes.lived_alerts import an_order, stored
from tests.fakes.memory_fork import AT, StillClock

if TYPE_CHECKING:
    from service.store.database import Database

DOCS = Path(__file__).parents[2] / "docs" / "alerts.md"


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def told() -> list[int]:
    return []


@pytest.fixture
def actions(database: Database, clock: StillClock, told: list[int]) -> StoredAlertActions:
    with database.writing() as session:
        a_longer_week(session)
    return StoredAlertActions(database, clock, settled=told.append)


def test_the_table_of_the_documentation_is_the_table_of_the_code() -> None:
    rows = re.findall(r"(?m)^\| `([a-z-]+)` \| ([^|]*) \| ([^|]*) \|", DOCS.read_text())
    told = {
        (AlertState(state), what): AlertState(after if after != "stays" else state)
        for what, states, after in (
            (what, re.findall(r"`([a-z-]+)`", states), after.strip().strip("`"))
            for what, states, after in rows
            if what in {*AlertAction, *AlertStep}
        )
        for state in states
    }

    assert told == {(state, what.value): after for (state, what), after in TRANSITIONS.items()}


def test_every_state_but_the_first_can_be_reached_and_every_open_one_left() -> None:
    assert {*TRANSITIONS.values()} == set(AlertState) - {AlertState.SUSPECTED}
    assert {*OPEN_STATES, *CLOSED_STATES, AlertState.SUSPECTED} == set(AlertState)
    for state in OPEN_STATES:
        assert {AlertAction.ACCEPT, AlertAction.FIXED} <= set(allowed_actions(state))
    assert allowed_actions(AlertState.SUSPECTED) == ()


def test_what_is_not_possible_says_what_is() -> None:
    with pytest.raises(ActionError, match=r"is false cannot take 'accept'.*now: note, reopen"):
        next_state(AlertState.FALSE, AlertAction.ACCEPT)


def test_acknowledging_takes_the_alert_and_is_written_down(
    database: Database, actions: StoredAlertActions, told: list[int]
) -> None:
    alert = actions.act(an_order(AlertAction.ACKNOWLEDGE, key="comment-1"))

    assert (alert.state, alert.owner) == (AlertState.ACKNOWLEDGED, "github:ada")
    assert alert == stored(database)
    with database.reading() as session:
        [entry] = audit.history(session, AuditSubject.ALERT, ALERT)
        said = events.of_commit(session, "demo", SLOW)[-1]
    assert (entry.what, entry.actor, entry.via, entry.note, entry.key) == (
        "acknowledge",
        "github:ada",
        "github",
        "because",
        "comment-1",
    )
    assert (entry.at, entry.before, entry.after) == (AT, "confirmed", "acknowledged")
    assert (said.kind, said.message) == (
        EventKind.ALERT_CHANGED,
        f"alert {ALERT}: acknowledge by github:ada: because",
    )
    # Nothing was closed, so an issue has nothing to hear.
    assert told == []
    second = actions.act(an_order(AlertAction.ACKNOWLEDGE, actor="slack:U1", via="slack"))
    assert second.owner == "github:ada"


def test_the_same_key_is_done_once_and_another_action_may_not_use_it(
    database: Database, actions: StoredAlertActions, told: list[int]
) -> None:
    first = actions.act(an_order(AlertAction.ACCEPT, key="k"))
    again = actions.act(an_order(AlertAction.ACCEPT, key="k", note="said otherwise"))

    assert first == again
    # It is offered for telling again, because the first call may have died before it was.
    assert len(told) == 2
    assert len(set(told)) == 1
    with pytest.raises(ActionError, match="was used for 'accept' before"):
        actions.act(an_order(AlertAction.REOPEN, key="k"))
    with database.reading() as session:
        assert len(audit.history(session, AuditSubject.ALERT, ALERT)) == 1


def test_the_same_key_from_many_at_once_is_done_once(
    database: Database, actions: StoredAlertActions
) -> None:
    together = threading.Barrier(4)
    came: list[AlertState] = []

    def press() -> None:
        together.wait()
        came.append(actions.act(an_order(AlertAction.ACCEPT, key="button")).state)

    threads = [threading.Thread(target=press) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert came == [AlertState.ACCEPTED] * 4
    with database.reading() as session:
        assert len(audit.history(session, AuditSubject.ALERT, ALERT)) == 1


def test_two_different_orders_at_once_are_one_after_the_other(
    database: Database, actions: StoredAlertActions
) -> None:
    together = threading.Barrier(2)
    came: list[str] = []

    def order(action: AlertAction) -> None:
        together.wait()
        try:
            actions.act(an_order(action))
            came.append("done")
        except ActionError:
            came.append("too late")

    orders = (AlertAction.ACCEPT, AlertAction.FALSE_ALARM)
    threads = [threading.Thread(target=order, args=(action,)) for action in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(came) == ["done", "too late"]
    with database.reading() as session:
        assert len(audit.history(session, AuditSubject.ALERT, ALERT)) == 1


def test_an_order_that_cannot_be_carried_out_changes_nothing(
    database: Database, actions: StoredAlertActions, told: list[int]
) -> None:
    before = stored(database)
    bad = [
        an_order(AlertAction.REOPEN),
        an_order(AlertAction.NOTE, note="  "),
        an_order(AlertAction.NOTE, note="x" * 2_001),
        an_order(AlertAction.NOTE, key="x" * 201),
        an_order(AlertAction.NOTE, actor="zero\0byte"),
        an_order(AlertAction.NOTE, actor=""),
        an_order(AlertAction.NOTE, via="pigeon"),
        an_order(AlertAction.MUTE, until=AT),
        an_order(AlertAction.MUTE, until=AT + timedelta(days=91)),
    ]
    for order in bad:
        with pytest.raises(ActionError):
            actions.act(order)
    with pytest.raises(UnknownAlertError, match="no alert 'alert-9'"):
        actions.act(an_order(AlertAction.NOTE, alert="alert-9"))

    assert stored(database) == before
    assert told == []
    with database.reading() as session:
        assert audit.history(session, AuditSubject.ALERT, ALERT) == []


def test_owner_day_silence_and_words_are_kept(
    database: Database, actions: StoredAlertActions
) -> None:
    due = date(2026, 11, 20)
    actions.act(an_order(AlertAction.ASSIGN, owner="Grace", due_on=due))
    actions.act(an_order(AlertAction.MUTE))
    alert = actions.act(an_order(AlertAction.NOTE, note="seen in\0 the log"))

    assert (alert.state, alert.owner, alert.due_on) == (AlertState.CONFIRMED, "Grace", due)
    assert alert.muted(AT + timedelta(days=6))
    assert not alert.muted(AT + timedelta(days=7))
    with database.reading() as session:
        log = audit.history(session, AuditSubject.ALERT, ALERT)
    assert [entry.details for entry in log] == [
        {"owner": "Grace", "due_on": "2026-11-20"},
        {"until": "2026-11-10T06:30:00+00:00"},
        {},
    ]
    assert log[-1].note == "seen in the log"
    assert actions.act(an_order(AlertAction.ASSIGN)).owner == "github:ada"


def test_the_service_advances_an_alert_as_its_bisect_does(
    database: Database, actions: StoredAlertActions
) -> None:
    for _ in range(2):
        begun = actions.advance(ALERT, AlertStep.BISECT, actor="forkwatch", key="bisect-1")
    assert begun.state is AlertState.BISECTING
    done = actions.advance(ALERT, AlertStep.NAME_CULPRIT, actor="forkwatch", note="5555555")

    assert done.state is stored(database).state is AlertState.CULPRIT_FOUND
    with database.reading() as session:
        log = audit.history(session, AuditSubject.ALERT, ALERT)
    assert [entry.what for entry in log] == ["bisect", "name-culprit"]
    with pytest.raises(ActionError, match="cannot take 'bisect'"):
        actions.advance(ALERT, AlertStep.BISECT, actor="forkwatch")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_people_order_the_alert_its_log_and_its_marks_agree(
    database: Database, actions: StoredAlertActions, told: list[int], seed: int
) -> None:
    rng = random.Random(seed)
    states = [AlertState.CONFIRMED]
    for _ in range(40):
        action = rng.choice(list(AlertAction))
        possible = (states[-1], action) in TRANSITIONS
        try:
            alert = actions.act(an_order(action))
        except ActionError:
            assert not possible
            continue
        assert possible
        states.append(alert.state)
        assert (alert.closed_at is None) == (alert.state in OPEN_STATES)
        if alert.state in {AlertState.ACCEPTED, AlertState.FALSE}:
            assert alert.true_alarm is (alert.state is AlertState.ACCEPTED)

    with database.reading() as session:
        log = audit.history(session, AuditSubject.ALERT, ALERT)
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        mark = baseline_marks.find(session, key.id, SLOW)
        untold = [entry.id for entry in audit.untold(session)]
    assert len(states) > 5
    assert [(entry.before, entry.after) for entry in log] == list(itertools.pairwise(states))
    assert untold == told
    expected = {AlertState.ACCEPTED: MarkKind.ACCEPTED, AlertState.FALSE: MarkKind.VOID}
    assert (mark.kind if mark else None) == expected.get(states[-1])
