"""The pages about hosts and about precision, from stored runs and from what people said."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from reports.numbers import NOT_KNOWN
from results.document import CanaryReading
from service.core.aa_checks import AaSchedule
from service.core.alert_actions import AlertAction, AlertOrder
from service.flows import host_noise
from service.flows.alert_actions import StoredAlertActions
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.memory_fork import StillClock
from tests.fakes.run_documents import AT, sha
from tests.fakes.stored_fork import SHAS, a_fork, a_pair, a_stored_run, a_week, git_commit, measured
from tests.fakes.visitor import Visitor, parsed, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from results.document import RunDocument

EVIL = "<img src=x onerror=x()>"
NOW = AT + timedelta(days=3)
SCHEDULE = AaSchedule(host_class="small", days=7)


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    yield Visitor(database, clock=StillClock(NOW), schedule=SCHEDULE)
    database.close()


def on_host(document: RunDocument, **changed: object) -> RunDocument:
    return document.model_copy(update={"host": document.host.model_copy(update=changed)})


def canary(*, suspicious: bool) -> tuple[CanaryReading, ...]:
    return (
        CanaryReading(moment="before", name="cpu", unit="Mops/s", value=151.0),
        CanaryReading(
            moment="after",
            name="memory",
            unit="GB/s",
            value=9.1,
            change_percent=-12.0,
            history=30,
            suspicious=suspicious,
        ),
    )


def seen_runs(visitor: Visitor, **changed: object) -> None:
    """Have two runs of a host recorded, the newer of which has these facts of the host."""
    with visitor.database.writing() as session:
        a_fork(session, git_commit(sha("1")), git_commit(sha("2"), parent=sha("1")))
        first = a_stored_run(session, measured("run-1", sha("1"), scan=2.0, point=63000.0))
        host_noise.record(session, first, at=AT)
        second = a_stored_run(session, a_pair("run-2", sha("2"), sha("1")))
        host_noise.record(session, on_host(second, **changed), at=AT)


def test_hosts_are_listed_with_their_canary_and_their_runs(visitor: Visitor) -> None:
    seen_runs(visitor, canary=canary(suspicious=True))

    text = visitor.read("/hosts")

    seen = f"confirm: measured, 3 days ago not as usual, 3 days ago none {NOT_KNOWN}"
    assert f"bench-1 small {sha('2')[:8]} {seen} 2 measured {AT:%Y}" in text
    assert 'href="/hosts/bench-1"' in visitor.open("/hosts").text


def test_a_host_has_its_noise_and_the_readings_of_its_newest_run(visitor: Visitor) -> None:
    seen_runs(visitor, canary=canary(suspicious=False))

    html = visitor.open("/hosts/bench-1").text
    text = visible(html)

    assert "Class small" in text
    assert f"cpu before 151 Mops/s {NOT_KNOWN} too young to tell" in text
    assert "memory after 9.10 GB/s -12.0 % as usual" in text
    assert "workload between starts run by run between slices between pairs" in text
    (line, _) = [fields["aria-label"] for tag, fields in parsed(html).tags if tag == "svg"]
    assert line == "2 runs, from 0.3 to 0.4 %, newest 0.3 %"


def test_a_host_with_a_new_fingerprint_has_no_usual_noise_of_the_old_one(visitor: Visitor) -> None:
    seen_runs(visitor)
    with visitor.database.writing() as session:
        a_fork(session, git_commit(sha("3"), parent=sha("2")))
        story = measured("run-3", sha("3"), scan=2.0, point=63000.0)
        other = a_stored_run(session, story)
        host_noise.record(session, on_host(other, fingerprint="f" * 16), at=AT)

    html = visitor.open("/hosts/bench-1").text

    # One run is no line.
    assert "svg" not in {tag for tag, _ in parsed(html).tags}
    assert "between pairs" in visible(html)


def test_no_host_yet_says_when_there_will_be_one(visitor: Visitor) -> None:
    assert "The first job that ends" in visitor.read("/hosts")


@pytest.mark.parametrize("name", ["nobody", EVIL])
def test_an_unknown_host_is_a_page_that_leads_back(visitor: Visitor, name: str) -> None:
    answer = visitor.open(f"/hosts/{quote(name, safe='')}")

    assert answer.status_code == 404
    assert 'href="/"' in answer.text
    assert "<img" not in answer.text


def test_what_a_host_says_of_itself_stays_words(visitor: Visitor) -> None:
    seen_runs(visitor, name=EVIL, cpu_model=EVIL, kernel=EVIL, canary=canary(suspicious=True))

    for path in ("/hosts", f"/hosts/{quote(EVIL, safe='')}"):
        answer = visitor.open(path)
        assert answer.status_code == 200
        assert "<img" not in answer.text
        assert EVIL in visible(answer.text)
        assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_precision_counts_what_people_said(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_week(session)
    before = visitor.read("/precision")

    StoredAlertActions(visitor.database, StillClock()).act(
        AlertOrder(
            alert="alert-1", action=AlertAction.FALSE_ALARM, actor="github:ada", via="github"
        )
    )

    assert "Nobody has called an alarm true or false yet. 1 waits for somebody's word." in before
    assert "scan demo 0 0 1 not judged small test 1" in before
    after = visitor.read("/precision")
    assert "0 of 1 alarms that people judged were true: 0 % (95 %: 0 to 79). 0 were not" in after
    assert "scan demo 0 1 0 0 % (95 %: 0 to 79) small test 1" in after


def test_precision_without_an_alarm_is_a_sentence(visitor: Visitor) -> None:
    assert "Nobody has called an alarm true or false yet." in visitor.read("/precision")


def test_a_commit_leads_to_its_host_and_its_comparisons(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_week(session)

    html = visitor.open(f"/forks/demo/commits/{SHAS[4]}").text

    assert 'href="/hosts/bench-1"' in html
    pair = f"/compare?fork=demo&amp;baseline={SHAS[3]}&amp;candidate={SHAS[4]}"
    assert html.count(f'href="{pair}"') == 2
