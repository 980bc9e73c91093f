"""What orders do to baselines, and what people's words say about the alarms."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from results.metric import THROUGHPUT
from service.core.alert_actions import (
    AlertAction,
)
from service.core.alert_records import AuditSubject, MarkKind
from service.core.errors import NotFoundError
from service.core.model import AlertState
from service.core.precision import share_interval
from service.flows.alert_actions import StoredAlertActions
from service.flows.baseline import gather_single
from service.flows.baseline_orders import BaselineOrder, StoredBaselines
from service.store import alerts, audit, baseline_marks, precision, runs, series, verdicts
from tests.fakes.alert_story import (
    ALERT,
    LATER,
    SLOW,
    B,
    a_longer_week,
    a_paired_run,
    an_alert_about,
)
from tests.fakes.lived_alerts import an_order, stored
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.stored_fork import SHAS, SLOWER, a_stored_run, measured

if TYPE_CHECKING:
    from service.store.database import Database


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


def baseline_of_next(database: Database) -> list[str]:
    """Return the runs that the scan of a commit after the week is compared with."""
    story = measured("run-b", B, scan=1.82, point=63000.0)
    with database.reading() as session:
        stored = runs.find(session, "run-b") is not None
    if not stored:
        with database.writing() as session:
            a_stored_run(session, story)
    with database.reading() as session:
        inputs = gather_single(session, story.build(), fork="demo", sha=B)
    [scan] = [item for item in inputs if item.series.workload == "scan"]
    return [past.run for past in scan.history]


def test_an_accept_marks_the_new_level_and_reopening_takes_it_back(
    database: Database, actions: StoredAlertActions, told: list[int]
) -> None:
    alert = actions.act(an_order(AlertAction.ACCEPT))

    assert (alert.state, alert.closed_at, alert.true_alarm) == (AlertState.ACCEPTED, AT, True)
    assert len(told) == 1
    with database.reading() as session:
        keys = {
            key.workload: key for key in series.of_fork(session, "demo", metric=THROUGHPUT.name)
        }
        scan = baseline_marks.find(session, keys["scan"].id, SLOW)
        assert baseline_marks.find(session, keys["point-query"].id, SLOW) is None
    assert scan is not None
    assert (scan.kind, scan.actor, scan.alert) == (MarkKind.ACCEPTED, "github:ada", ALERT)

    again = actions.act(an_order(AlertAction.REOPEN))
    assert (again.state, again.closed_at, again.true_alarm) == (AlertState.CONFIRMED, None, True)
    assert len(told) == 2
    with database.reading() as session:
        assert baseline_marks.find(session, keys["scan"].id, SLOW) is None


def test_after_a_false_alarm_the_baseline_goes_on_across_it(
    database: Database, actions: StoredAlertActions
) -> None:
    assert baseline_of_next(database) == ["run-5c", "run-6"]
    with database.reading() as session:
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        judged = verdicts.of_series(session, key.id)

    alert = actions.act(an_order(AlertAction.FALSE_ALARM))
    assert (alert.state, alert.true_alarm) == (AlertState.FALSE, False)
    assert baseline_of_next(database) == ["run-1", "run-2", "run-4", "run-5c", "run-6"]

    actions.act(an_order(AlertAction.REOPEN))
    assert baseline_of_next(database) == ["run-5c", "run-6"]
    assert stored(database).true_alarm is None
    with database.reading() as session:
        # What was judged before keeps the samples that it was judged by.
        assert verdicts.of_series(session, key.id) == judged


def test_a_baseline_begins_anew_where_somebody_wants_it_to(
    database: Database, actions: StoredAlertActions, clock: StillClock
) -> None:
    baselines = StoredBaselines(database=database, clock=clock)
    with database.reading() as session:
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
    order = BaselineOrder(
        series=key.id, sha=SHAS[5], actor="token:ada", via="api", note="new memory"
    )

    first = baselines.reset(order)
    clock.advance(timedelta(hours=1))
    assert baselines.reset(order) == first
    assert (first.kind, first.note, first.at) == (MarkKind.RESET, "new memory", AT)
    assert baseline_of_next(database) == ["run-6"]

    baselines.take_back(order)
    baselines.take_back(order)
    assert baseline_of_next(database) == ["run-5c", "run-6"]
    with database.reading() as session:
        log = audit.history(session, AuditSubject.SERIES, key.id)
    assert [entry.what for entry in log] == ["reset", "take-back"]
    for series_id, commit in (("none", SHAS[5]), (key.id, "f" * 40)):
        with pytest.raises(NotFoundError):
            baselines.reset(
                BaselineOrder(series=series_id, sha=commit, actor="token:ada", via="api")
            )


def test_precision_counts_the_last_word_on_each_alert(
    database: Database, actions: StoredAlertActions
) -> None:
    with database.writing() as session:
        for commit in LATER:
            run = f"run-{commit[:2]}"
            a_paired_run(session, run, commit, SHAS[5], scan=SLOWER)
            alerts.open_once(session, an_alert_about(commit, SHAS[5], run, scan=9.1))
    words = {
        ALERT: (AlertAction.FALSE_ALARM, AlertAction.REOPEN, AlertAction.TRUE_ALARM),
        "alert-bbbb": (AlertAction.ACCEPT,),
        "alert-cccc": (AlertAction.TRUE_ALARM, AlertAction.FALSE_ALARM),
        "alert-dddd": (AlertAction.FIXED,),
    }
    for alert, said in words.items():
        for action in said:
            actions.act(an_order(action, alert=alert))

    with database.reading() as session:
        [figure] = precision.figures(session, "demo")
        assert precision.figures(session, "other") == []
    assert (figure.workload, figure.host_class, figure.method) == ("scan", "small", "test 1")
    assert (figure.true_alarms, figure.false_alarms, figure.not_judged) == (2, 1, 2)
    assert figure.precision == pytest.approx(2 / 3)
    assert (figure.low, figure.high) == share_interval(2, 3)


def test_the_interval_of_a_share_is_wilsons() -> None:
    # Wilson (1927), by hand: (k + z^2/2 -+ z sqrt(k (n - k)/n + z^2/4)) / (n + z^2), z = 1.95996.
    assert share_interval(9, 10) == pytest.approx((0.59585, 0.98212), abs=1e-5)
    assert share_interval(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert share_interval(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)
    assert share_interval(0, 0) == (0.0, 1.0)
