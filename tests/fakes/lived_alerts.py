"""The life of alerts as tests walk it: raise, order, settle, and look at what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.core.alert_actions import AlertOrder
from service.flows.alert_actions import StoredAlertActions
from service.flows.alert_grouping import raise_once
from service.flows.alert_life import AlertLife
from service.store import alerts
from tests.fakes.alert_story import ALERT, a_longer_week
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from service.core.alert_actions import AlertAction
    from service.core.alert_records import AlertPart
    from service.core.model import Alert
    from service.store.database import Database
    from tests.fakes.memory_fork import StillClock
    from tests.fakes.memory_tracker import MemoryTracker

#: Makes up for the loss of the week.
FASTER = a_verdict(10.0, low=9.0, high=11.0)
#: Does not.
PARTLY = a_verdict(5.0, low=4.0, high=6.0, gate=0.04)


def a_life(database: Database, clock: StillClock, tracker: MemoryTracker) -> AlertLife:
    """Return the steps over a store that holds the longer week."""
    with database.writing() as session:
        a_longer_week(session)
    return AlertLife(database=database, clock=clock, tracker=tracker, base_url="http://fw")


def an_order(action: AlertAction, **chosen: Any) -> AlertOrder:
    usual = {"alert": ALERT, "actor": "github:ada", "via": "github", "note": "because"}
    return AlertOrder(action=action, **(usual | chosen))


def stored(database: Database, alert_id: str = ALERT) -> Alert:
    with database.reading() as session:
        alert = alerts.find(session, alert_id)
    assert alert is not None
    return alert


def found(life: AlertLife, alert_id: str = ALERT) -> Alert:
    return stored(life.database, alert_id)


def raised(life: AlertLife, alert: Alert) -> Alert:
    with life.database.writing() as session:
        return raise_once(session, alert, at=life.clock.now())


def settled(life: AlertLife, commit: str) -> list[int]:
    """Do the end of a commit's flow, twice, as after a crash."""
    first = life.settle("demo", commit)
    assert life.settle("demo", commit) == first
    for entry in (*first, *first):
        life.tell(entry)
    assert life.settle("demo", commit) == []
    return first


def parts(life: AlertLife, alert_id: str = ALERT) -> list[tuple[AlertPart, str]]:
    with life.database.reading() as session:
        return [(one.part, one.sha) for one in alerts.commits_of(session, alert_id)]


def order(life: AlertLife, action: AlertAction, note: str = "", alert: str = ALERT) -> Alert:
    return StoredAlertActions(life.database, life.clock).act(
        AlertOrder(alert=alert, action=action, actor="github:ada", via="github", note=note)
    )
