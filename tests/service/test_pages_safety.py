from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from results.document import Outcome
from service.core.model import CommitOutcome
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.run_documents import a_run, sha
from tests.fakes.stored_fork import a_fork, a_stored_run, a_week, finished, git_commit
from tests.fakes.verdicts import a_verdict
from tests.fakes.visitor import Visitor, charts_of, parsed, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLOW = "5" * 40


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


@pytest.mark.parametrize(
    "path",
    [
        "/alerts/nothing",
        "/forks/demo/commits/" + "f" * 40,
        "/forks/nobody/commits/" + SLOW,
        "/forks/demo/workloads/insert",
        "/static/pages.py",
        "/static/..%2Fpages.py",
        "/nowhere",
        "/alerts/" + quote("<script>alert(1)</script>", safe=""),
    ],
)
def test_what_is_not_there_is_a_page_that_leads_back(week: Visitor, path: str) -> None:
    response = week.open(path)

    assert response.status_code == 404
    assert response.headers["content-type"].startswith("text/html")
    assert 'href="/"' in response.text
    assert "<script>alert" not in response.text
    assert "script-src 'self'" in response.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["/", f"/forks/demo/commits/{SLOW}", "/forks/demo/workloads/scan", "/alerts/alert-1"],
)
def test_pages_allow_our_own_files_and_nothing_else(week: Visitor, path: str) -> None:
    response = week.open(path)

    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    for tag, attributes in parsed(response.text).tags:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "script":
            assert attributes.get("type") == "application/json" or "src" in attributes
        for name in ("src", "href"):
            assert (attributes.get(name) or "/").startswith(("/", "#"))


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7*7 }} \u202e\x1b[31m"


def test_text_from_a_commit_is_shown_and_never_obeyed(visitor: Visitor) -> None:
    fork, workload, branch = "<b>demo</b>/\"'", "scan</script><b>", "main<i>"
    same = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
    with visitor.database.writing() as session:
        a_fork(session, git_commit(sha("1"), subject=EVIL, author=EVIL), name=fork, branch=branch)
        story = a_run().of(fork, branch=branch).on(sha("1"), subject=EVIL)
        a_stored_run(session, story.with_samples(workload, [[2.0], [2.1]]), {workload: same})
        finished(session, sha("1"), CommitOutcome.NO_CHANGE, EVIL, fork=fork)

    html = visitor.open("/").text

    reader = parsed(html)
    assert {tag for tag, _ in reader.tags}.isdisjoint({"b", "i", "img", "script"})
    assert "<script>alert(1)</script>" in visible(html)
    assert "{{ 7*7 }}" in visible(html)
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_names_with_markup_reach_their_own_pages(visitor: Visitor) -> None:
    fork, workload = "<b>demo<|b>", "scan<!--<script>(10)"
    same = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
    with visitor.database.writing() as session:
        a_fork(session, git_commit(sha("1"), subject=EVIL), name=fork)
        story = a_run().of(fork).on(sha("1"), subject=EVIL).with_samples(workload, [[2.0], [2.1]])
        a_stored_run(session, story, {workload: same})

    overview = visitor.open("/").text
    links = [
        attributes["href"]
        for tag, attributes in parsed(overview).tags
        if tag == "a" and (attributes["href"] or "").startswith("/forks/")
    ]
    assert len(set(links)) == 2
    for link in dict.fromkeys(links):
        html = visitor.open(link or "").text
        reader = parsed(html)
        assert {tag for tag, _ in reader.tags}.isdisjoint({"b", "img"})
        assert all(
            attributes.get("type") == "application/json" or "src" in attributes
            for tag, attributes in reader.tags
            if tag == "script"
        )
        # What stands between the script tags is JSON to the end: nothing closed it early.
        assert len(charts_of(html)) == 1


def test_the_log_of_a_hostile_build_is_text(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_fork(session, git_commit(sha("1")))
        story = a_run().on(sha("1"))
        a_stored_run(
            session,
            story.that(Outcome.BUILD_FAILED, stage="build", message=EVIL, log=f"</pre>{EVIL}"),
        )

    html = visitor.open("/forks/demo/commits/" + sha("1")).text

    assert "<img" not in html
    assert "</pre></script><script>alert(1)" in visible(html)
    assert "\x1b" not in html
