"""The first page: who is needed, where every workload stands, what is measured now."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from sqlalchemy import update

from service.core.model import Alert, AlertState, CommitState, Job, JobKind, JobState
from service.store import jobs
from service.store.database import Database
from service.store.migrate import upgrade
from service.store.tables import AlertRow, CommitRow
from service.web.alert_lines import age, alert_line, most_urgent_first, next_step
from service.web.pages import pages_router
from service.web.sparklines import HEIGHT, WIDTH, sparkline
from tests.fakes.memory_fork import StillClock
from tests.fakes.run_documents import AT
from tests.fakes.stored_fork import SHAS, a_week
from tests.fakes.visitor import Visitor, parsed, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOW = SHAS[4]
NOW = AT + timedelta(days=9)


class Later(Visitor):
    """Somebody who comes nine days later."""

    def __init__(self, database: Database, *, against: str | None = None) -> None:
        super().__init__(database)
        self.app = FastAPI()
        self.app.include_router(pages_router(database, clock=StillClock(NOW), against=against))


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    with database.writing() as session:
        a_week(session)
    yield database
    database.close()


def an_alert(**changed: object) -> Alert:
    alert = Alert(
        id="alert-1",
        fork="demo",
        sha=SLOW,
        subject="Check the record format",
        author="Ada",
        baseline_sha=SHAS[3],
        state=AlertState.CONFIRMED,
        workloads=(),
        run="run-5c",
        opened_at=AT,
    )
    return replace(alert, **changed)


def test_what_since_when_by_how_much_and_who_stand_together(database: Database) -> None:
    with database.writing() as session:
        a_week(session)

    text = Later(database).read("/")

    for part in (
        "scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555",
        "since 55555555 demo · Check the record format in row_search_mvcc Ada",
        "open since 2026-11-03 06:39 UTC, 8 days",
        "who nobody yet; the commit is by Ada",
        "next confirmed Nobody looks after it: acknowledge it, or assign it to somebody.",
    ):
        assert part in text


def test_an_overdue_alert_says_so(stored: Database) -> None:
    with stored.writing() as session:
        late = {"owner": "Grace", "due_on": date(2026, 11, 10), "state": AlertState.ACKNOWLEDGED}
        session.execute(update(AlertRow).values(**late))

    text = Later(stored).read("/")

    assert "who Grace overdue, was due 2026-11-10" in text
    assert "next acknowledged Overdue: Grace looks after it" in text


def test_the_heat_map_stands_against_the_first_measured_commit(database: Database) -> None:
    with database.writing() as session:
        a_week(session)

    text = Later(database).read("/")

    assert "Throughput over that of 11111111 the first measured commit, Import 10.11.19" in text
    columns = "workload now lately 66666666 55555555 44444444 22222222 11111111"
    assert columns in text
    assert "scan ▼ 0.900 ▼ 0.900 ▼ 0.910 0.998 1.005 1.000" in text
    assert "point-query 0.998 0.998 1.000 1.000 1.001 1.000" in text


def test_somebody_may_choose_what_it_stands_against(stored: Database) -> None:
    text = Later(stored, against="2222").read("/")
    unknown = Later(stored, against="feed").read("/")

    assert "Throughput over that of 22222222 the chosen commit" in text
    assert "scan ▼ 0.896" in text
    assert "Throughput over that of 11111111 the first measured commit" in unknown


def test_a_cell_says_without_colour_what_it_says_with_it(stored: Database) -> None:
    html = Later(stored).open("/").text

    cells = [
        (fields["class"] or "").split()
        for tag, fields in parsed(html).tags
        if tag == "td" and "cell" in (fields.get("class") or "")
    ]
    assert sum("slower" in classes for classes in cells) == 2
    # Beside the two cells: where scan stands now, and the legend.
    assert visible(html).count("▼") == 4


def test_every_workload_has_a_line_with_words(stored: Database) -> None:
    html = Later(stored).open("/").text

    lines = [fields for tag, fields in parsed(html).tags if tag == "svg"]
    assert [line["aria-label"] for line in lines] == [
        "5 commits, from 63,000 to 62,900 o/s",
        "5 commits, from 2.00 to 1.80 o/s",
    ]
    assert {line["role"] for line in lines} == {"img"}


def test_what_is_measured_now_and_what_waits(stored: Database) -> None:
    job = Job(
        id="job-a",
        fork="demo",
        sha=SHAS[7],
        kind=JobKind.CONFIRM,
        state=JobState.DISPATCHED,
        host_class="small",
        run="run-a",
        baseline_sha=SLOW,
        order="{}",
        attempts=1,
        created_at=NOW - timedelta(minutes=7),
        finished_at=None,
    )
    with stored.writing() as session:
        jobs.create_once(session, job)
        session.execute(
            update(CommitRow)
            .where(CommitRow.sha == SHAS[6])
            .values(state=CommitState.WAITING, outcome=None)
        )

    text = Later(stored).read("/")

    said = "aaaaaaaa is measured again beside its baseline: Add a status variable for purge lag"
    assert f"Measured now {said} host class small, asked for 7 minutes ago" in text
    assert "1 commit waits for its turn." in text


def test_nothing_is_said_to_be_measured_where_nothing_is(stored: Database) -> None:
    assert "Measured now" not in Later(stored).read("/")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (7_199, "119 minutes"),
        (7_200, "2 hours"),
        (172_800, "2 days"),
        (13 * 86_400, "13 days"),
        (14 * 86_400, "2 weeks"),
    ],
)
def test_an_age_is_told_in_units_of_which_there_are_two(seconds: int, said: str) -> None:
    assert age(timedelta(seconds=seconds)) == said


def test_the_most_urgent_alerts_come_first() -> None:
    lines = [
        alert_line(an_alert(id=name, **changed), "", now=NOW)
        for name, changed in {
            "quiet": {"muted_until": NOW + timedelta(days=1)},
            "owned": {"owner": "Ada"},
            "nobody's": {},
            "late": {"owner": "Ada", "due_on": date(2026, 11, 1)},
            "due": {"owner": "Ada", "due_on": NOW.date()},
        }.items()
    ]

    ordered = [line.alert.id for line in most_urgent_first(lines)]

    assert ordered == ["late", "nobody's", "owned", "due", "quiet"]


@pytest.mark.parametrize("state", list(AlertState))
def test_every_state_has_a_next_step(state: AlertState) -> None:
    for owner in (None, "Ada"):
        assert next_step(an_alert(state=state, owner=owner), now=NOW).endswith(".")


def test_a_line_stays_in_its_box_and_does_not_blow_noise_up() -> None:
    calm = sparkline([100.0, 100.1, 99.9], label="calm")
    step = sparkline([2.0, 2.0, 1.0], label="step")

    assert calm is not None
    assert step is not None
    for line in (calm, step):
        places = [tuple(map(float, pair.split(","))) for pair in line.points.split()]
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
        assert places[-1] == (line.last_x, line.last_y)
    heights = [float(pair.split(",")[1]) for pair in calm.points.split()]
    assert max(heights) - min(heights) < 1
    assert step.last_y > HEIGHT / 2


def test_a_point_is_no_line_and_equal_numbers_are() -> None:
    assert sparkline([1.0], label="one") is None
    assert sparkline([], label="none") is None
    flat = sparkline([0.0, 0.0], label="flat")
    assert flat is not None
    assert "nan" not in flat.points
