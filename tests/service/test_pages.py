from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from service.core.alert_actions import AlertAction, AlertOrder
from service.flows.alert_actions import StoredAlertActions
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.memory_fork import StillClock
from tests.fakes.run_documents import a_run, sha
from tests.fakes.stored_fork import a_fork, a_stored_run, a_week, git_commit
from tests.fakes.verdicts import a_verdict
from tests.fakes.visitor import Visitor, charts_of, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOW = "5" * 40
BROKEN = "7" * 40


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    yield Visitor(database)
    database.close()


@pytest.fixture
def week(visitor: Visitor) -> Visitor:
    with visitor.database.writing() as session:
        a_week(session)
    return visitor


def test_the_overview_begins_with_what_needs_a_person(week: Visitor) -> None:
    text = week.read("/")

    said = "scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555; point-query unchanged"
    assert text.index("Needs a person") < text.index(said) < text.index("demo main")
    assert "Check the record format in row_search_mvcc" in text
    assert 'href="/alerts/alert-1"' in week.open("/").text


def test_the_overview_lists_commits_newest_first_with_state_and_sentence(week: Visitor) -> None:
    text = week.read("/")

    listed = re.findall(r"\b([1-7a])\1{7}\b", text[text.index("Newest commits") :])
    firsts = list(dict.fromkeys(listed))
    assert firsts == list("a7654321")
    assert "measuring Add a status variable for purge lag Is being built and measured." in text
    assert "build-failed Fix the build on arm64 77777777 does not build" in text


def test_an_empty_service_says_what_to_do_next(visitor: Visitor) -> None:
    text = visitor.read("/")

    assert "Nothing. No alert is open." in text
    assert "forkwatch init" in text
    assert "forkwatch serve" in text


def test_a_fork_without_commits_says_what_to_check(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_fork(session)

    assert "No commit was seen yet." in visitor.read("/")


def test_a_commit_shows_the_paired_run_before_the_single_one(week: Visitor) -> None:
    text = week.read(f"/forks/demo/commits/{SLOW}")

    assert text.index("Paired with 44444444") < text.index("Measured alone")
    assert "scan ▼ 0.909 0.900 to 0.918 regression 2.0 % 2.00 1.82 range-1" in text
    assert "point-query 0.999 0.988 to 1.009 no-change 2.0 % 63,000 62,900 point-1" in text
    assert "scan looks 9.1 % slower" in text
    assert "Alert alert-1 is open about this commit." in text


def test_a_commit_shows_costs_absolute_and_relative_and_the_host(week: Visitor) -> None:
    text = week.read(f"/forks/demo/commits/{SLOW}")

    for part in (
        "workload cpu/o cs/o r/o rKB/o wKB/o o/s server us/o scan 1.11 1.00 1 1 inf 0.91 1.00",
        "scan baseline 25.",
        "bench-1 class small",
        "shared-core: server on CPU 1, client on CPU 1",
        "thp madvise",
    ):
        assert part in text


def test_a_single_run_is_compared_with_the_median_of_its_own_baseline(week: Visitor) -> None:
    text = week.read("/forks/demo/commits/" + "4" * 40)

    # The starts of run-1 stand around 2.002, those of run-2 around 2.012; the median is between.
    assert "scan 0.999 0.988 to 1.009 no-change 2.0 % 2.01 2.00 range-1" in text


def test_a_commit_has_a_chart_for_each_workload_and_its_events(week: Visitor) -> None:
    html = week.open(f"/forks/demo/commits/{SLOW}").text

    specs = charts_of(html)
    # Two workloads, in the paired and in the single run.
    assert len(specs) == 4
    assert all(
        spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/") for spec in specs
    )
    assert "What happened" in html
    assert "Seen on main." in visible(html)


def test_a_broken_build_shows_the_end_of_its_log(week: Visitor) -> None:
    text = week.read(f"/forks/demo/commits/{BROKEN}")

    assert "Stopped at build : ninja: build stopped" in text
    assert "error: 'prefetch' was not declared in this scope" in text


def test_a_commit_that_waits_says_so(week: Visitor) -> None:
    assert "No run is stored for this commit yet." in week.read("/forks/demo/commits/" + "a" * 40)


def test_the_trend_has_every_measured_commit_in_order_and_marks_the_regression(
    week: Visitor,
) -> None:
    html = week.open("/forks/demo/workloads/scan").text

    (spec,) = charts_of(html)
    (points,) = spec["datasets"].values()
    assert [point["commit"][0] for point in points] == list("12456")
    assert [point["decision"] for point in points] == [
        "not judged",
        "no-change",
        "no-change",
        "regression",
        "inconclusive",
    ]
    assert points[3]["link"] == f"/forks/demo/commits/{SLOW}"
    listed = visible(html)
    assert "55555555 1.82 ▼ 0.909 regression 1.82 1.83 Check the record format" in listed
    assert listed.index("66666666") < listed.index("55555555") < listed.index("44444444")
    # The first commit has nothing to be compared with, so it has no band.
    assert points[0]["band_low"] is None
    # A run at 2.016 and 0.1 % below its baseline, which would have shown 2 %.
    assert points[1]["band_low"] == pytest.approx(points[1]["ops_s"] / 0.999 * 0.98)


def test_a_suspicion_is_not_marked_before_a_paired_job_has_spoken(visitor: Visitor) -> None:
    slower = a_verdict(-9.1, low=-10.0, high=-8.2)
    with visitor.database.writing() as session:
        a_fork(session, git_commit(sha("1")))
        story = a_run().on(sha("1")).with_samples("scan", [[2.0], [2.0]])
        a_stored_run(session, story, {"scan": slower})

    (spec,) = charts_of(visitor.open("/forks/demo/workloads/scan").text)

    (points,) = spec["datasets"].values()
    assert points[0]["decision"] == "not judged"


def test_an_alert_says_what_where_and_how_to_reproduce(week: Visitor) -> None:
    text = week.read("/alerts/alert-1")

    for part in (
        "demo/main: scan 9.1 % slower at 55555555",
        "(44444444, 55555555] without the first and with the last commit",
        "forkwatch compare 444444444444 555555555555",
        "open since 2026-11-03 06:39 UTC",
        "scan ▼ 0.909 0.900 to 0.918 regression",
    ):
        assert part in text


def test_a_settled_alert_needs_nobody_and_says_how_it_was_settled(week: Visitor) -> None:
    actions = StoredAlertActions(week.database, StillClock())
    for action in (AlertAction.ACKNOWLEDGE, AlertAction.MUTE):
        actions.act(AlertOrder(alert="alert-1", action=action, actor="github:<ada>", via="github"))
    open_ = week.read("/alerts/alert-1")
    assert "owner github:<ada>" in open_
    assert "quiet until 2026-11-10 06:30 UTC" in open_
    assert "&lt;ada&gt;" in week.open("/alerts/alert-1").text
    assert "scan is 9.1 % slower" in week.read("/")

    actions.act(
        AlertOrder(
            alert="alert-1", action=AlertAction.ACCEPT, actor="github:ada", via="github", note="ok"
        )
    )
    closed = week.read("/alerts/alert-1")
    assert "closed 2026-11-03 06:30 UTC accepted" in closed
    assert "alert alert-1: accept by github:ada: ok" in closed
    assert "quiet until" not in closed
    assert "Nothing. No alert is open." in week.read("/")
    assert "Alert alert-1 about this commit is accepted." in week.read(
        f"/forks/demo/commits/{SLOW}"
    )


def test_files_are_cached_by_version_and_packed_on_request(visitor: Visitor) -> None:
    plain = visitor.open("/static/style.css?v=1", **{"Accept-Encoding": "identity"})
    packed = visitor.open("/static/style.css")

    assert plain.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in plain.headers["cache-control"]
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["cache-control"] == "no-cache"
    assert packed.content == plain.content
    again = visitor.open("/static/style.css", **{"If-None-Match": plain.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_vegas_javascript_comes_from_here(visitor: Visitor) -> None:
    response = visitor.open("/static/vega.js")

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/javascript")
    assert b"vegaEmbed" in response.content
    assert len(gzip.compress(response.content)) < 400_000


def test_the_overview_asks_as_many_questions_however_many_commits(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_fork(session, git_commit(f"{1:040x}"))
    few = questions(visitor, "/")
    with visitor.database.writing() as session:
        a_fork(session, *(git_commit(f"{number:040x}") for number in range(1, 60)))

    assert questions(visitor, "/") == few


def questions(visitor: Visitor, path: str) -> int:
    """Return how many statements a page sends to the database."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        sent.append(statement)

    event.listen(visitor.database.engine, "before_cursor_execute", note)
    try:
        assert visitor.open(path).status_code == 200
    finally:
        event.remove(visitor.database.engine, "before_cursor_execute", note)
    return len(sent)
