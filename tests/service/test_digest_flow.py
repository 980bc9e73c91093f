"""Digests are written once, in order, made up for after a pause, and sent once."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS, DBOSConfig

from service.channels.file_digests import FileDigests
from service.core.errors import TransientError
from service.core.weeks import parse_week, zone_of
from service.flows.digest import CATCH_UP_WEEKS_MAX, SCHEDULE_NAME, DigestFlow, DigestSteps
from service.store import digests
from service.store.database import Database
from tests.fakes.memory_fork import StillClock
from tests.fakes.stored_weeks import DAY, HOUR, MONDAY, SAME, SLOWER, WEEK, Weeks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.digests import StoredDigest

CALM = {"scan": SAME, "point-query": SAME}
BASE = "http://127.0.0.1:8642"


class MemoryDigests:
    """A sink that keeps what it was sent, by fork and week, and fails when told to."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, str], str] = {}
        self.calls: list[tuple[str, str]] = []
        self.failures = 0

    def send_digest(self, digest: StoredDigest) -> str:
        if self.failures:
            self.failures -= 1
            raise TransientError("nobody listens")
        key = (digest.fork, digest.week.name)
        self.calls.append(key)
        self.sent[key] = digest.text
        return f"memory:{digest.week.name}"


@pytest.fixture
def sink() -> MemoryDigests:
    return MemoryDigests()


@pytest.fixture
def clock() -> StillClock:
    return StillClock(MONDAY + 2 * DAY)


@pytest.fixture
def steps(database: Database, sink: MemoryDigests, clock: StillClock) -> DigestSteps:
    """The steps on a fork that was first seen on the Monday of week 45."""
    with database.writing() as session:
        Weeks(session).commit(MONDAY + HOUR, found=CALM)
    return DigestSteps(
        database=database, clock=clock, sink=sink, zone=zone_of("UTC"), base_url=BASE
    )


def stored(database: Database) -> list[StoredDigest]:
    with database.reading() as session:
        return digests.newest(session)


def write_due(steps: DigestSteps) -> None:
    """Do what the flow does, without it."""
    for fork, week in steps.due():
        steps.write(fork, week)
        steps.send(fork, week)


def test_a_week_is_due_when_it_is_over(steps: DigestSteps, clock: StillClock) -> None:
    assert steps.due() == []

    clock.advance(5 * DAY - timedelta(seconds=1))
    assert steps.due() == []

    clock.advance(timedelta(seconds=1))
    assert steps.due() == [("demo", "2026-W45")]


def test_a_week_ends_where_its_people_are(database: Database, sink: MemoryDigests) -> None:
    with database.writing() as session:
        Weeks(session).commit(MONDAY + HOUR, found=CALM)
    in_helsinki = DigestSteps(
        database=database,
        clock=StillClock(MONDAY + WEEK - HOUR),
        sink=sink,
        zone=zone_of("Europe/Helsinki"),
        base_url=BASE,
    )

    assert in_helsinki.due() == [("demo", "2026-W45")]


def test_three_missed_weeks_make_three_digests_in_order(
    steps: DigestSteps, clock: StillClock, sink: MemoryDigests
) -> None:
    clock.advance(3 * WEEK)

    write_due(steps)

    weeks = ["2026-W45", "2026-W46", "2026-W47"]
    assert sink.calls == [("demo", week) for week in weeks]
    assert [digest.week.name for digest in stored(steps.database)] == weeks[::-1]
    assert steps.due() == []
    assert sink.sent["demo", "2026-W45"].startswith("demo, week 2026-W45: nothing to say; 1 commit")
    assert sink.sent["demo", "2026-W46"].endswith("no commit came.\n")


def test_what_is_long_past_is_not_made_up_for(steps: DigestSteps, clock: StillClock) -> None:
    clock.advance(52 * WEEK)

    due = steps.due()
    assert len(due) == CATCH_UP_WEEKS_MAX
    assert due[-1] == ("demo", "2027-W43")


def test_every_fork_has_its_own_oldest_week_first(steps: DigestSteps, clock: StillClock) -> None:
    with steps.database.writing() as session:
        Weeks(session, fork="another").commit(MONDAY + WEEK, found=CALM)
    clock.advance(2 * WEEK)

    assert steps.due() == [
        ("demo", "2026-W45"),
        ("another", "2026-W46"),
        ("demo", "2026-W46"),
    ]


def test_a_digest_is_written_once_and_stays(steps: DigestSteps, clock: StillClock) -> None:
    clock.advance(WEEK)
    first = steps.write("demo", "2026-W45")
    with steps.database.writing() as session:
        weeks = Weeks(session, count=1)
        weeks.confirmed(MONDAY + DAY, {"scan": SLOWER})

    assert steps.write("demo", "2026-W45") == first
    (digest,) = stored(steps.database)
    assert digest.headline == first
    assert digest.document["quiet"] is True
    assert digest.created_at == clock.now()
    assert digest.zone == "UTC"


def test_a_loud_week_names_its_page(steps: DigestSteps, clock: StillClock) -> None:
    with steps.database.writing() as session:
        weeks = Weeks(session, count=1)
        weeks.confirmed(MONDAY + DAY, {"scan": SLOWER})
    clock.advance(WEEK)
    steps.write("demo", "2026-W45")

    (digest,) = stored(steps.database)
    assert digest.headline == "demo, week 2026-W45: 1 commit slower"
    assert digest.text.endswith(f"Page of this week: <{BASE}/digests/2026-W45>\n")
    assert digest.document["sections"][0]["title"] == "Slower"


def test_two_replicas_write_one_digest(
    steps: DigestSteps, clock: StillClock, sink: MemoryDigests
) -> None:
    clock.advance(WEEK)
    url = steps.database.engine.url.render_as_string(hide_password=False)
    other = Database(url)
    twin = DigestSteps(
        database=other, clock=clock, sink=sink, zone=zone_of("UTC"), base_url="http://other"
    )
    together, said = threading.Barrier(2), []

    def work(own: DigestSteps) -> None:
        together.wait()
        said.append(own.write("demo", "2026-W45"))

    threads = [threading.Thread(target=work, args=(own,)) for own in (steps, twin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()

    assert len(said) == 2
    assert len(set(said)) == 1
    assert len(stored(steps.database)) == 1


def test_what_could_not_be_sent_is_due_until_it_is(
    steps: DigestSteps, clock: StillClock, sink: MemoryDigests
) -> None:
    clock.advance(WEEK)
    sink.failures = 1
    steps.write("demo", "2026-W45")
    with pytest.raises(TransientError):
        steps.send("demo", "2026-W45")
    assert steps.due() == [("demo", "2026-W45")]

    assert steps.send("demo", "2026-W45") == "memory:2026-W45"
    assert steps.send("demo", "2026-W45") == "memory:2026-W45"
    assert sink.calls == [("demo", "2026-W45")]
    assert steps.due() == []
    (digest,) = stored(steps.database)
    assert (digest.sent_at, digest.sent_to) == (clock.now(), "memory:2026-W45")


def test_a_chosen_commit_of_nobody_is_replaced_by_the_first(
    database: Database, clock: StillClock, sink: MemoryDigests
) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        weeks.confirmed(MONDAY + DAY, {"scan": SLOWER})
    steps = DigestSteps(
        database=database,
        clock=clock,
        sink=sink,
        zone=zone_of("UTC"),
        base_url=BASE,
        against="ffff",
    )
    clock.advance(WEEK)
    steps.write("demo", "2026-W45")

    assert "the first commit measured" in stored(database)[0].text


@contextmanager
def launched(steps: DigestSteps, home: Path) -> Iterator[DigestFlow]:
    """Run the flow on DBOS, whose own tables lie in the home."""
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=f"sqlite:///{home / 'flows.sqlite'}",
            executor_id="service",
            application_version="1",
            console_log_level="WARNING",
        )
    )
    try:
        flow = DigestFlow(steps, step_pause_seconds=0.01)
        DBOS.launch()
        yield flow
    finally:
        DBOS.destroy(destroy_registry=True)


def test_the_flow_makes_up_for_a_pause_and_says_nothing_twice(
    steps: DigestSteps, clock: StillClock, sink: MemoryDigests, tmp_path: Path
) -> None:
    clock.advance(3 * WEEK)
    sink.failures = 2
    with launched(steps, tmp_path) as flow:
        flow.open_schedule()
        flow.catch_up().get_result()
        DBOS.trigger_schedule(SCHEDULE_NAME).get_result()
        clock.advance(WEEK)
        DBOS.trigger_schedule(SCHEDULE_NAME).get_result()

    weeks = ["2026-W45", "2026-W46", "2026-W47", "2026-W48"]
    assert sink.calls == [("demo", week) for week in weeks]
    assert [digest.week.name for digest in stored(steps.database)] == weeks[::-1]
    assert all(digest.sent_at for digest in stored(steps.database))


def test_a_restarted_service_goes_on_where_it_was(
    steps: DigestSteps, clock: StillClock, sink: MemoryDigests, tmp_path: Path
) -> None:
    clock.advance(WEEK)
    with launched(steps, tmp_path) as flow:
        flow.catch_up().get_result()
    clock.advance(WEEK)
    with launched(steps, tmp_path) as flow:
        flow.catch_up().get_result()
        flow.catch_up().get_result()

    assert sink.calls == [("demo", "2026-W45"), ("demo", "2026-W46")]


def test_files_keep_one_text_for_each_week(
    steps: DigestSteps, clock: StillClock, tmp_path: Path
) -> None:
    clock.advance(WEEK)
    steps.write("demo", "2026-W45")
    with steps.database.reading() as session:
        digest = digests.find(session, "demo", parse_week("2026-W45"))
    assert digest is not None

    files = FileDigests(tmp_path)
    assert files.send_digest(digest) == files.send_digest(digest)
    written = [path for path in (tmp_path / "digests").rglob("*") if path.is_file()]
    assert [path.name for path in written] == ["2026-W45.md"]
    assert written[0].read_text() == digest.text


def test_no_fork_writes_outside_the_home(
    database: Database, sink: MemoryDigests, tmp_path: Path
) -> None:
    name = "../../../outside"
    with database.writing() as session:
        Weeks(session, fork=name).commit(MONDAY, found=CALM)
    clock = StillClock(MONDAY + WEEK)
    home = tmp_path / "home"
    steps = DigestSteps(
        database=database, clock=clock, sink=FileDigests(home), zone=zone_of("UTC"), base_url=BASE
    )
    write_due(steps)

    (path,) = tmp_path.rglob("*.md")
    assert path.is_relative_to(home / "digests")
