"""Issue and chat hear once of what closed an alert or opened it again, whatever crashes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS, DBOSConfig

from service.core.alert_actions import AlertAction, AlertOrder
from service.core.alert_records import AuditSubject
from service.core.errors import CodeHostError
from service.flows.alert_actions import StoredAlertActions
from service.flows.alert_flow import AlertFlow
from service.store import audit
from tests.fakes.alert_story import ALERT, B, C
from tests.fakes.lived_alerts import (
    a_life,
    order,
    settled,
)
from tests.fakes.memory_fork import StillClock
from tests.fakes.memory_tracker import MemoryTracker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.alert_records import AuditEntry
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


def test_people_close_and_open_the_issue_too_and_the_last_word_counts(
    life: AlertLife, tracker: MemoryTracker
) -> None:
    order(life, AlertAction.FALSE_ALARM, "`rm -rf` @everyone")
    order(life, AlertAction.REOPEN)
    order(life, AlertAction.FIXED, "by hand")
    first, second, third = life.untold()

    for entry in (third, first, second):
        life.tell(entry)

    issue = tracker.issues[ALERT]
    assert not issue.open
    [text] = issue.said.values()
    assert text.startswith("Fixed, says ada: by hand. This alert is closed.")
    assert life.untold() == []
    order(life, AlertAction.REOPEN)
    order(life, AlertAction.NOTE, "nothing to tell an issue")
    [entry] = life.untold()
    life.tell(entry)
    assert issue.open
    assert issue.said[f"reopened:order-{entry}"].startswith("Opened again by ada.")
    order(life, AlertAction.FALSE_ALARM, "`rm -rf` @everyone")
    [entry] = life.untold()
    life.tell(entry)
    said = issue.said[f"closed:order-{entry}"]
    assert said.startswith(
        "Called a false alarm by ada: \\`rm -rf\\` @\N{ZERO WIDTH SPACE}everyone"
    )
    assert issue.intended


def test_what_could_not_be_told_is_told_with_a_later_commit(
    life: AlertLife, clock: StillClock, tracker: MemoryTracker
) -> None:
    order(life, AlertAction.FIXED)
    [entry] = life.untold()
    tracker.broken = True
    with pytest.raises(CodeHostError):
        life.tell(entry)
    assert life.settle("demo", B) == []

    clock.advance(timedelta(hours=2))
    tracker.broken = False
    assert settled(life, C) == [entry]
    assert not tracker.issues[ALERT].open


def test_without_a_tracker_nothing_is_said_and_nothing_is_left(
    life: AlertLife, tracker: MemoryTracker
) -> None:
    silent = replace(life, tracker=None)
    order(life, AlertAction.FIXED)
    for entry in silent.untold():
        silent.tell(entry)

    assert silent.untold() == []
    assert tracker.calls == 0


@pytest.fixture
def flow(life: AlertLife, tmp_path: Path) -> Iterator[AlertFlow]:
    """The flow on a real DBOS."""
    url = f"sqlite:///{tmp_path / 'flows.sqlite'}"
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=url,
            executor_id="test",
            application_version="1",
            console_log_level="WARNING",
        )
    )
    made = AlertFlow(life, step_pause_seconds=0.01)
    DBOS.launch()
    yield made
    DBOS.destroy(destroy_registry=True)


def wait_for(entry: int) -> None:
    DBOS.retrieve_workflow(f"alert-entry:{entry}").get_result()


def test_the_flow_tells_an_order_once_and_goes_on_after_a_crash(
    life: AlertLife, flow: AlertFlow, tracker: MemoryTracker
) -> None:
    actions = StoredAlertActions(life.database, life.clock, settled=flow.begin)
    accept = AlertOrder(
        alert=ALERT, action=AlertAction.ACCEPT, actor="slack:U1", via="slack", key="button-1"
    )
    actions.act(accept)
    actions.act(accept)
    [entry] = [one for one in _entries(life) if one.what == "accept"]
    wait_for(entry.id)
    assert tracker.calls == 1
    assert list(tracker.issues[ALERT].said) == [f"closed:order-{entry.id}"]

    # Written down by a service that was killed before it began to tell.
    order(life, AlertAction.REOPEN)
    [lost] = life.untold()
    flow.resume()
    wait_for(lost)
    assert tracker.issues[ALERT].open
    assert life.untold() == []


def test_an_order_that_another_flow_gives_in_a_step_is_told_beside_it(
    life: AlertLife, flow: AlertFlow, tracker: MemoryTracker
) -> None:
    actions = StoredAlertActions(life.database, life.clock, settled=flow.begin)
    command = AlertOrder(
        alert=ALERT, action=AlertAction.ACCEPT, actor="github:ada", via="github", key="comment-1"
    )

    @DBOS.workflow(name="answer_comment")
    def answer_comment() -> str:
        state = DBOS.run_step({"name": "carry_out"}, lambda: actions.act(command).state.value)
        return DBOS.run_step({"name": "answer"}, lambda: f"it is {state}")

    assert answer_comment() == "it is accepted"
    [entry] = _entries(life)
    wait_for(entry.id)
    assert not tracker.issues[ALERT].open
    status = DBOS.retrieve_workflow(f"alert-entry:{entry.id}").get_status()
    assert (status.name, status.parent_workflow_id) == ("tell_alert", None)


def _entries(life: AlertLife) -> list[AuditEntry]:
    with life.database.reading() as session:
        return audit.history(session, AuditSubject.ALERT, ALERT)
