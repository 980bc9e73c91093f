"""The heat map of the first page: what is sure is red, what is not is said to be unsure."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI

from results.metric import THROUGHPUT
from service.core.alert_records import BaselineMark, MarkKind
from service.core.model import Alert, AlertState, CommitOutcome
from service.store import baseline_marks, commits, series
from service.store.overview import ConfirmedChange, MeasuredRun
from service.web.alert_lines import alert_line, who_is_needed
from service.web.heat_views import heat_cell
from service.web.pages import pages_router
from tests.fakes.run_documents import AT, sha
from tests.fakes.stored_fork import a_fork, a_stored_run, git_commit, measured
from tests.fakes.stored_weeks import FASTER, HOUR, MONDAY, SAME, SLOWER, Weeks, sha_of
from tests.fakes.visitor import Visitor, parsed

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.store.database import Database

CALM = {"scan": SAME, "point-query": SAME}
LOST = {"scan": SLOWER, "point-query": SAME}


def cells(database: Database) -> list[tuple[str, bool]]:
    """Return the tone of each cell of scan, newest first, and whether it is sure."""
    tags = parsed(Visitor(database).open("/").text).tags
    found = [
        (fields["class"] or "").split()
        for tag, fields in tags
        if tag == "td" and "cell" in (fields.get("class") or "").split()
    ]
    # Rows are by workload, and point-query never moves here.
    of_scan = found[len(found) // 2 :]
    return [
        ("slower" if "slower" in one else "faster" if "faster" in one else "", "unsure" not in one)
        for one in of_scan
    ]


def test_a_suspicion_is_paler_than_a_loss_and_says_so(database: Database) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        weeks.confirmed(MONDAY + HOUR, LOST)
    assert cells(database) == [("slower", True), ("", True)]
    assert "scan ▼ 0.910 ▼ 0.910 1.000" in Visitor(database).read("/")

    with database.writing() as session:
        weeks = Weeks(session, count=2)
        weeks.commit(MONDAY + 2 * HOUR, found=LOST, scan=1.5)
    # Half of it is known, and the other half is this commit's own word.
    assert cells(database) == [("slower", False), ("slower", True), ("", True)]
    text = Visitor(database).read("/")
    assert "scan ▽ 0.750 not confirmed ▽ 0.750 not confirmed ▼ 0.910 1.000" in text


def test_an_old_loss_does_not_make_a_new_suspicion_sure(database: Database) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        weeks.confirmed(MONDAY + HOUR, LOST)
        gained = {"scan": FASTER, "point-query": SAME}
        improvement = CommitOutcome.IMPROVEMENT
        weeks.confirmed(MONDAY + 2 * HOUR, gained, outcome=improvement, scan=2.0)
        weeks.commit(MONDAY + 3 * HOUR, found=LOST, scan=1.8)

    assert cells(database) == [("slower", False), ("", True), ("slower", True), ("", True)]


def test_a_false_alarm_confirms_nothing(database: Database) -> None:
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        weeks.confirmed(MONDAY + HOUR, LOST)
        (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
        mark = BaselineMark(
            series=key.id,
            fork="demo",
            sha=sha_of(2),
            kind=MarkKind.VOID,
            alert=None,
            actor="github:ada",
            note="",
            at=AT,
        )
        baseline_marks.put(session, mark)

    assert cells(database) == [("slower", False), ("", True)]


def marked(session: Session, commit: str, kind: MarkKind) -> None:
    """Have somebody say something about the baseline of scan at a commit."""
    (key,) = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
    mark = BaselineMark(
        series=key.id,
        fork="demo",
        sha=commit,
        kind=kind,
        alert=None,
        actor="github:ada",
        note="",
        at=AT,
    )
    baseline_marks.put(session, mark)


def an_accepted_loss(session: Session) -> None:
    """Store a loss that somebody accepted, and two commits after it, the last one slower again."""
    weeks = Weeks(session)
    weeks.commit(MONDAY, found=CALM)
    weeks.confirmed(MONDAY + HOUR, LOST)
    weeks.commit(MONDAY + 2 * HOUR, found=CALM, scan=1.83)
    weeks.confirmed(MONDAY + 3 * HOUR, LOST, scan=1.65)
    marked(session, sha_of(2), MarkKind.ACCEPTED)


def test_what_was_accepted_is_what_later_commits_stand_against(database: Database) -> None:
    with database.writing() as session:
        an_accepted_loss(session)

    # What was faster before is faster than what was accepted, and sure to be.
    assert cells(database) == [("slower", True), ("", True), ("", True), ("faster", True)]
    text = Visitor(database).read("/")
    assert f"Throughput over that of {sha_of(1)[:8]} the first measured commit" in text
    assert f"scan over {sha_of(2)[:8]} ▼ 0.907 ▼ 0.907 1.005 1.000 ▲ 1.099" in text
    assert "point-query 1.000" in text


def test_whoever_chooses_a_commit_sees_all_against_it(database: Database) -> None:
    with database.writing() as session:
        an_accepted_loss(session)
    chosen = Visitor(database)
    chosen.app = FastAPI()
    chosen.app.include_router(pages_router(database, against=sha_of(1)))

    text = chosen.read("/")

    assert f"Throughput over that of {sha_of(1)[:8]} the chosen commit" in text
    assert "scan ▼ 0.825 ▼ 0.825 ▼ 0.915 ▼ 0.910 1.000" in text


def test_a_reset_begins_too_and_the_newest_word_counts(database: Database) -> None:
    with database.writing() as session:
        an_accepted_loss(session)
        marked(session, sha_of(4), MarkKind.RESET)

    assert f"scan over {sha_of(4)[:8]} 1.000 1.000 ▲ 1.109" in Visitor(database).read("/")


def test_a_backfill_moves_neither_the_reference_nor_a_row(database: Database) -> None:
    """Marks of the service lie at commits of the past, where a backfill showed another level."""
    with database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        weeks.commit(MONDAY + HOUR, found=CALM)
        past = sha("e")
        commits.register_before(
            session, "demo", [git_commit(past)], at=AT, reason="not measured yet"
        )
        a_stored_run(session, measured("run-e", past, scan=1.0, point=6e4))
        marked(session, past, MarkKind.RESET)

    text = Visitor(database).read("/")
    assert f"Throughput over that of {sha_of(1)[:8]} the first measured commit" in text
    assert "scan 1.000 1.000 1.000 ▽ 0.500 not confirmed" in text


def test_branches_stand_beside_each_other_against_one_commit(database: Database) -> None:
    first, other, newer = (sha(digit) for digit in "abc")
    with database.writing() as session:
        a_fork(session, *(git_commit(commit) for commit in (first, other, newer)))
        a_stored_run(session, measured("run-a", first, scan=2.0, point=6e4))
        on_branch = measured("run-b", other, scan=1.8, point=6e4).of("demo", branch="11.4")
        a_stored_run(session, on_branch)
        a_stored_run(session, measured("run-c", newer, scan=2.02, point=6e4))

    text = Visitor(database).read("/")

    begin = "Branches Throughput over that of aaaaaaaa the first measured commit, A change"
    heading = "workload 11.4 bbbbbbbb main cccccccc"
    rows = "point-query 1.000 1.000 scan ▽ 0.900 not confirmed 1.010"
    assert f"{begin} {heading} {rows}" in text
    # The other table is about the watched branch alone.
    assert "workload now lately cccccccc aaaaaaaa point-query" in text


def test_one_branch_has_no_table_of_branches(database: Database) -> None:
    with database.writing() as session:
        Weeks(session).commit(MONDAY, found=CALM)

    assert "Branches" not in Visitor(database).read("/")


def run_at(position: int) -> MeasuredRun:
    return MeasuredRun(id=f"run-{position}", sha=sha("a"), subject="", position=position)


def change(position: int, percent: float) -> ConfirmedChange:
    return ConfirmedChange(position=position, effect=math.log1p(percent / 100))


@pytest.mark.parametrize(
    ("ratio", "changes", "sure"),
    [
        (0.99, [], True),
        (0.90, [], False),
        (0.90, [change(5, -10)], True),
        # Before the reference, after the commit, the other way.
        (0.90, [change(1, -10)], False),
        (0.90, [change(9, -10)], False),
        (0.90, [change(5, 10)], False),
        (0.80, [change(5, -10)], False),
        (0.89, [change(5, -20), change(6, 12)], True),
        (1.10, [change(5, 10)], True),
    ],
)
def test_what_was_confirmed_between_explains_a_colour(
    ratio: float, changes: list[ConfirmedChange], *, sure: bool
) -> None:
    cell = heat_cell(2 * ratio, 2.0, run=run_at(8), reference=run_at(2), changes=changes)

    assert cell is not None
    assert cell.sure is sure
    assert cell.sign in {"", *("▼▲" if sure else "▽△")}


def test_a_reference_that_is_newer_is_read_backwards() -> None:
    cell = heat_cell(2.2, 2.0, run=run_at(2), reference=run_at(8), changes=[change(5, -10)])

    assert cell is not None
    assert cell.sure
    assert cell.sign == "▲"


def test_what_was_not_measured_has_no_cell() -> None:
    for level, base in ((None, 2.0), (2.0, None), (0.0, 2.0), (2.0, 0.0)):
        assert heat_cell(level, base, run=run_at(2), reference=run_at(1), changes=[]) is None


NOW = AT + timedelta(days=9)


def needed(*changed: dict[str, object]) -> str:
    alert = Alert(
        id="alert-1",
        fork="demo",
        sha=sha("5"),
        subject="",
        author="Ada",
        baseline_sha=sha("4"),
        state=AlertState.CONFIRMED,
        workloads=(),
        run="run-5c",
        opened_at=AT,
    )
    return who_is_needed([alert_line(replace(alert, **one), "", now=NOW) for one in changed])


def test_one_sentence_says_who_is_needed() -> None:
    ada, late = {"owner": "Ada"}, {"owner": "Grace", "due_on": date(2026, 11, 1)}

    assert needed() == "Nothing. No alert is open."
    assert needed({}) == "1 alert is open: 1 taken by nobody yet."
    assert needed(ada) == "1 alert is open: 1 with Ada."
    assert needed({}, ada, ada, late, {"muted_until": NOW + timedelta(days=1)}) == (
        "5 alerts are open: 1 overdue with Grace, 1 taken by nobody yet, 2 with Ada, "
        "1 quiet for now."
    )
    many = [{"owner": name} for name in "abcde"]
    assert needed(*many) == "5 alerts are open: 5 with a and b and c and 2 more."
