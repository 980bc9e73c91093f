"""The page of a workload: ranges, thinning, change points, alerts, hosts, on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from results.metric import THROUGHPUT
from service.core.alert_records import BaselineMark, MarkKind
from service.store import baseline_marks, series
from service.store.database import Database
from service.store.migrate import upgrade
from service.store.tables import RunRow
from service.web.stretches import HOST_CHANGES_MAX, host_changes, stretches
from tests.fakes.run_documents import AT
from tests.fakes.stored_fork import SHAS, a_week
from tests.fakes.stored_history import a_history, sha_at
from tests.fakes.stored_weeks import HOUR, MONDAY, SAME, SLOWER, Weeks, sha_of
from tests.fakes.visitor import Visitor, charts_of, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCAN = "/forks/demo/workloads/scan"


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


def drawn(html: str) -> list[dict[str, Any]]:
    (spec,) = charts_of(html)
    return list(spec["datasets"]["points"])


def test_a_confirmed_change_begins_a_level_and_has_its_alert(database: Database) -> None:
    with database.writing() as session:
        a_week(session)

    html = Visitor(database).open(SCAN).text

    points = drawn(html)
    assert [point.get("begins", False) for point in points] == [False, False, False, True, False]
    assert [point["stretch"] for point in points] == [0, 0, 0, 1, 1]
    assert [point.get("baseline", False) for point in points] == [False, False, False, True, True]
    assert points[0]["level"] == pytest.approx(2.002, abs=0.01)
    assert points[3]["alert"] == "confirmed"
    assert points[3]["alert_link"] == "/alerts/alert-1"
    text = visible(html)
    assert "The next commit is compared with the stretch since 55555555: 2 commits" in text


def test_what_people_say_about_a_baseline_moves_it(week: Visitor) -> None:
    with week.database.writing() as session:
        (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        for sha, kind in ((SHAS[4], MarkKind.VOID), (SHAS[1], MarkKind.RESET)):
            mark = BaselineMark(
                series=key.id,
                fork="demo",
                sha=sha,
                kind=kind,
                alert=None,
                actor="a",
                note="",
                at=AT,
            )
            baseline_marks.put(session, mark)

    points = drawn(week.open(SCAN).text)

    assert [point["stretch"] for point in points] == [0, 1, 1, 1, 1]


def test_a_host_that_became_another_is_marked(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        weeks = Weeks(session)
        for number in range(3):
            weeks.commit(MONDAY + number * HOUR, found={"scan": SAME})
        session.execute(update(RunRow).where(RunRow.id == "demo-3").values(host_name="bench-2"))

    html = visitor.open(SCAN).text

    changed = "bench-1 before, bench-2 from here on"
    assert [point.get("host") for point in drawn(html)] == [None, None, changed]
    assert f"host: {changed}" in visible(html)


def test_all_of_a_few_hundred_commits_are_drawn_and_the_newest_listed(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_history(session, commits=300)

    html = visitor.open(SCAN).text

    points = drawn(html)
    assert [point["place"] for point in points] == list(range(300))
    text = visible(html)
    assert "are drawn" not in text
    assert "The newest 100 of 300 commits; the 100 before ." in text
    assert html.count('<tr>\n<th scope="row">') == 100


def test_of_many_commits_those_that_stand_out_are_drawn_and_it_is_said(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_history(session, commits=1_300, levels={500: 1.5, 900: 2.6})

    usual = drawn(visitor.open(SCAN).text)
    html = visitor.open(f"{SCAN}?last=50000").text

    assert [point["place"] for point in usual] == list(range(1_000))
    points = drawn(html)
    assert {0, 500, 900, 1_299} <= {point["place"] for point in points}
    assert len(points) <= 1_004
    assert f"{len(points):,} of 1,300 commits are drawn" in visible(html)


def test_a_range_is_between_two_commits_with_both(database: Database) -> None:
    visitor = Visitor(database)
    with database.writing() as session:
        a_history(session, commits=60)

    inner = drawn(visitor.open(f"{SCAN}?from={sha_at(10)}&to={sha_at(19)}").text)
    last = drawn(visitor.open(f"{SCAN}?last=10&to={sha_at(19)}").text)
    open_end = drawn(visitor.open(f"{SCAN}?from={sha_at(50)}").text)

    assert [point["link"].split("/")[-1] for point in inner] == [
        sha_at(place) for place in range(10, 20)
    ]
    assert last == inner
    assert len(open_end) == 10


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("from=nobody", 404),
        ("to=" + "f" * 40, 404),
        ("last=9", 422),
        ("last=50001", 422),
        ("last=all", 422),
        ("from=a%00b", 422),
        ("from=" + "f" * 65, 422),
    ],
)
def test_a_range_that_is_none_is_refused(week: Visitor, asked: str, status: int) -> None:
    assert week.open(f"{SCAN}?{asked}").status_code == status


def test_a_range_without_a_commit_of_the_series_is_said_to_be_empty(week: Visitor) -> None:
    # The third commit only touched documentation and was not measured.
    text = week.read(f"{SCAN}?from={SHAS[2]}&to={SHAS[2]}")

    assert "No commit of this series has usable samples" in text


def test_two_commits_can_be_chosen_to_compare_without_a_mouse(week: Visitor) -> None:
    html = week.open(SCAN).text

    assert '<form class="inline" action="/compare" method="get">' in html
    assert '<input type="hidden" name="fork" value="demo">' in html
    assert f'<option value="{SHAS[4]}" selected>' in html
    assert 'data-compare="/compare?fork=demo"' in html


def test_the_newest_pair_speaks_for_its_commit(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found={"scan": SAME})
        weeks.confirmed(MONDAY + HOUR, {"scan": SLOWER})

    points = drawn(visitor.open(SCAN).text)

    assert points[-1]["commit"] == sha_of(2)[:8]
    assert (points[-1]["decision"], points[-1]["ratio"]) == ("regression", "0.909")


def test_stretches_begin_at_the_range_and_at_each_change() -> None:
    found = stretches(["a", "b", "c", "d"], [1.0, 3.0, 8.0, 9.0], {"c", "elsewhere"})

    assert [(one.begin, one.end, one.level) for one in found] == [(0, 2, 2.0), (2, 4, 8.5)]
    assert [(one.begins, one.newest) for one in found] == [(False, False), (True, True)]
    assert stretches([], [], {"a"}) == []


def test_hosts_change_by_name_and_by_what_makes_them_comparable() -> None:
    seen = [("a", ""), ("a", "1"), ("a", "1"), ("a", "2"), ("b", "2"), ("b", "")]

    assert host_changes(seen) == {
        3: "a became another machine (fingerprint)",
        4: "a before, b from here on",
    }
    assert host_changes([]) == {}
    turns = [("a" if place % 2 else "b", "") for place in range(HOST_CHANGES_MAX + 2)]
    assert host_changes(turns) == {}
