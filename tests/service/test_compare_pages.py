"""The pages that compare: forms, tables, charts, and hostile words that stay words."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from service.store.database import Database
from service.store.migrate import upgrade
from service.web.compare_pages import compare_pages_router
from tests.fakes.given_documents import on_host, stored, with_slices
from tests.fakes.run_documents import a_run, sha
from tests.fakes.stored_fork import SAME, SLOWER, a_fork, a_pair, a_stored_run, git_commit, measured
from tests.fakes.visitor import Visitor, charts_of, parsed, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

A, B, C = (sha(digit) for digit in "abc")
EVIL = "</p><script>x()</script><a href='http://evil'>here</a>"


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    visitor = Visitor(database)
    visitor.app.include_router(compare_pages_router(database))
    yield visitor
    database.close()


@pytest.fixture
def known(visitor: Visitor) -> Visitor:
    with visitor.database.writing() as session:
        a_fork(
            session,
            git_commit(A, subject="8.0.28"),
            git_commit(B, parent=A, subject=EVIL, author=EVIL),
            git_commit(C, parent=B),
        )
        stored(session, measured("run-a", A, scan=2.0, point=6e4).build())
        stored(session, measured("run-b", B, scan=1.82, point=6e4).build())
        a_stored_run(session, a_pair("run-bc", B, A), {"scan": SLOWER, "point-query": SAME})
        stored(session, on_host(measured("run-c", C, scan=9.0, point=6e4).build(), "large"))
    return visitor


@pytest.mark.parametrize("path", ["/compare", "/releases"])
def test_an_empty_store_has_an_empty_form(visitor: Visitor, path: str) -> None:
    response = visitor.open(path)

    assert response.status_code == 200
    tags = parsed(response.text).tags
    (form,) = [attributes for tag, attributes in tags if tag == "form"]
    assert form["action"] == path
    labels = {attributes["for"] for tag, attributes in tags if tag == "label"}
    fields = {attributes["id"] for tag, attributes in tags if tag in {"input", "select"}}
    assert labels == fields
    # The form may be sent, and to this service alone.
    assert "form-action 'self'" in response.headers["content-security-policy"]


def test_a_pair_is_told_as_it_was(known: Visitor) -> None:
    text = known.read(f"/compare?fork=demo&baseline={A}&candidate={B}")

    assert "Measured as a pair" in text
    assert "scan is 9.1 % slower (95 %: 8.2 to 10.0)" in text
    assert "What differs besides the commits" not in text
    for table in (
        "Relative throughput by group",
        "Cost per operation, relative",
        "Cost per operation, absolute",
        "Latency, ms",
    ):
        assert table in text


def test_runs_measured_apart_say_what_would_tell_more(known: Visitor) -> None:
    text = known.read("/compare?baseline=run-a&candidate=run-b")

    assert "Measured apart" in text
    assert f"forkwatch compare {A[:12]} {B[:12]}" in text


def test_another_host_class_is_named_beside_the_numbers(known: Visitor) -> None:
    text = known.read("/compare?baseline=run-a&candidate=run-c")

    assert "No verdict: they were measured under other conditions" in text
    assert "host class small large none, because of this" in text
    assert "not judged" in text


def test_seconds_are_drawn_for_the_workload_that_moved_most(visitor: Visitor) -> None:
    with visitor.database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
        for run, commit, scan in (("run-a", A, 2.0), ("run-b", B, 1.6)):
            document = measured(run, commit, scan=scan, point=6e4).build()
            stored(session, with_slices(document, per_second_ops_s=(1.0, 2.0, 3.0)))
    response = visitor.open("/compare?baseline=run-a&candidate=run-b")
    chosen = visitor.open("/compare?baseline=run-a&candidate=run-b&workload=point-query")

    (chart,) = charts_of(response.text)
    assert chart["description"] == "Throughput of scan by second, baseline and candidate."
    # Two slices of three seconds on each side, however many starts there are.
    (points,) = chart["datasets"].values()
    assert len(points) == 12
    assert "of point-query by second" in charts_of(chosen.text)[0]["description"]
    assert "workload=point-query" in response.text
    assert "Seconds" in visible(response.text)


def test_releases_have_a_table_with_the_base_first(known: Visitor) -> None:
    text = known.read("/releases?fork=demo&refs=8.0.28,bbbb,run-c")

    assert "Relative to: aaaaaaaa 8.0.28" in text
    assert text.index("col-1 : bbbbbbbb") < text.index("col-2 : cccccccc A change (no numbers")
    assert "scan ▼ 0.91 \N{EN DASH} range-1" in text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/compare?baseline=run-a", 422, "Name both a baseline and a candidate."),
        ("/compare?baseline=run-a&candidate=ffff", 404, "no run and no commit is called 'ffff'"),
        ("/compare?baseline=run-a&candidate=run-a", 422, "measured one commit alone"),
        (f"/compare?baseline={'x' * 9000}&candidate=run-a", 404, "a name is the id of a run"),
        ("/compare?baseline=%00&candidate=run-a&fork=%00", 404, "a name is the id of a run"),
        ("/releases?fork=demo&refs=aaaa", 422, "name 2 to 20 versions"),
        ("/releases?refs=aaaa,bbbb", 404, "there is no fork ''"),
    ],
)
def test_what_cannot_be_compared_is_said_beside_the_form(
    known: Visitor, path: str, status: int, said: str
) -> None:
    response = known.open(path)

    assert response.status_code == status
    assert said in visible(response.text)
    assert any(tag == "form" for tag, _ in parsed(response.text).tags)


@pytest.mark.parametrize(
    "path",
    [
        f"/compare?fork=demo&baseline={A}&candidate={B}",
        "/compare?baseline=run-a&candidate=run-b",
        "/compare?baseline=run-e&candidate=run-f",
        f"/compare?baseline={quote(EVIL)}&candidate={quote(EVIL)}&fork={quote(EVIL)}",
        f"/compare?baseline=run-e&candidate=run-f&workload={quote(EVIL)}",
        f"/releases?fork=demo&refs=aaaa,{quote(EVIL)}",
        f"/releases?fork={quote(EVIL)}&refs=8888,9999",
    ],
)
def test_hostile_words_stay_words(known: Visitor, path: str) -> None:
    with known.database.writing() as session:
        a_fork(
            session,
            git_commit("8" * 40, subject=EVIL),
            git_commit("9" * 40, subject=EVIL),
            name=EVIL,
        )
        for run, commit in (("run-e", "8" * 40), ("run-f", "9" * 40)):
            story = a_run().of(EVIL, branch=EVIL).called(run).on(commit, subject=EVIL)
            document = story.with_samples(EVIL, [[2.0], [2.01]]).build()
            engine = document.starts[0].slices[0].counters
            assert engine is not None
            counted = engine.model_copy(update={"engine": {EVIL: 900.0 + len(run)}})
            changed = with_slices(document, per_second_ops_s=(1.0, 2.0), counters=counted)
            stored(session, changed.model_copy(update={"config": f"{EVIL} {run}"}))
    response = known.open(path)

    scripts = [attributes for tag, attributes in parsed(response.text).tags if tag == "script"]
    for attributes in scripts:
        # Our own files, and data that is no program.
        assert (attributes.get("src") or "").startswith("/static/") or (
            attributes.get("type") == "application/json"
        )
    assert "<script>x()" not in response.text
    for _, attributes in parsed(response.text).tags:
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "/").startswith(("/", "#"))
