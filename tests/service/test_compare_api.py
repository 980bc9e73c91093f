"""The API that compares, over HTTP: what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from results.slice import SideName
from service.web.application import web_application
from service.web.compare_api import compare_router
from service.web.pages import missing_page
from tests.fakes.given_documents import on_host, stored, with_slices
from tests.fakes.run_documents import a_run, sha
from tests.fakes.stored_fork import SAME, SLOWER, a_fork, a_pair, a_stored_run, git_commit, measured

if TYPE_CHECKING:
    from results.slice import Counters
    from service.store.database import Database

A, B, C = (sha(digit) for digit in "abc")
EVIL = "</p><script>x()</script>"


@pytest.fixture
def known(database: Database) -> Database:
    """Two commits alone and as a pair, and a third on another machine."""
    with database.writing() as session:
        a_fork(
            session,
            git_commit(A, subject="8.0.28"),
            git_commit(B, parent=A, subject=EVIL),
            git_commit(C, parent=B),
        )
        stored(session, measured("run-a", A, scan=2.0, point=6e4).build())
        stored(session, measured("run-b", B, scan=1.82, point=6e4).build())
        a_stored_run(session, a_pair("run-bc", B, A), {"scan": SLOWER, "point-query": SAME})
        stored(session, on_host(measured("run-c", C, scan=9.0, point=6e4).build(), "large"))
    return database


def ask(database: Database, path: str) -> httpx.Response:
    app = web_application([compare_router(database)], missing_page=missing_page)

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(get())


def read(database: Database, path: str) -> Any:
    answer = ask(database, path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_two_runs_have_levels_latency_and_counters(known: Database) -> None:
    found = read(known, "/api/v1/compare?baseline=run-a&candidate=run-b")

    assert found["paired"] is False
    assert (found["baseline"]["commit"], found["candidate"]["commit"]) == (A, B)
    scan = next(one for one in found["workloads"] if one["workload"] == "scan")
    assert scan["ratio"] == pytest.approx(0.91, abs=0.001)
    assert scan["baseline"]["latency_ms_p95"] == 2
    assert scan["candidate"]["starts"] == 3
    assert scan["verdict"]["ratio_low"] < scan["ratio"] < scan["verdict"]["ratio_high"]
    assert scan["verdict"]["gate"] == 0.05
    counters = {one["name"]: one for one in scan["counters"]}
    assert counters["server CPU, us"]["candidate"] == pytest.approx(12.0)
    assert {one["group"] for one in found["groups"]} == {"point-1", "range-1"}


def test_counters_that_grew_come_first(known: Database) -> None:
    document = measured("run-x", C, scan=2.0, point=6e4).build()
    counted = document.starts[0].slices[0].counters
    assert counted is not None

    def grown(reads: float) -> Counters:
        engine = {"Handler_read_rnd_next": reads, "Handler_commit": 20.0}
        return counted.model_copy(update={"engine": engine})

    with known.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A), name="other")
        for run, commit, reads in (("run-y", A, 40.0), ("run-z", B, 90.0)):
            other = measured(run, commit, scan=2.0, point=6e4, fork="other").build()
            stored(session, with_slices(other, counters=grown(reads)))
    found = read(known, "/api/v1/compare?baseline=run-y&candidate=run-z")

    first = found["workloads"][0]["counters"][0]
    assert (first["name"], first["candidate"] / first["baseline"]) == (
        "Handler_read_rnd_next",
        pytest.approx(2.25),
    )


def test_commits_that_were_a_pair_are_compared_as_one(known: Database) -> None:
    found = read(known, f"/api/v1/compare?baseline={A}&candidate={B[:6]}&fork=demo")

    assert found["paired"] is True
    assert found["candidate"]["subject"] == EVIL
    decisions = {one["workload"]: one["verdict"]["decision"] for one in found["workloads"]}
    assert decisions == {"scan": "regression", "point-query": "no-change"}
    assert found["differences"] == []


def test_another_host_class_has_numbers_without_a_verdict(known: Database) -> None:
    found = read(known, "/api/v1/compare?baseline=run-a&candidate=run-c")

    assert {one["verdict"] for one in found["workloads"]} == {None}
    assert found["differences"] == [
        {"what": "host class", "baseline": "small", "candidate": "large", "hinders": True}
    ]
    assert "host class (small and large)" in found["sentence"]


def test_what_is_not_finite_is_null(database: Database) -> None:
    """One pair of starts has no interval."""
    story = a_run().called("run-1").on(B).against(A).with_samples("scan", [[1.8]])
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
        a_stored_run(session, story.with_samples("scan", [[2.0]], side=SideName.BASELINE))
    (scan,) = read(database, "/api/v1/compare?baseline=run-1&candidate=run-1")["workloads"]

    assert scan["ratio"] == pytest.approx(0.9)
    verdict = scan["verdict"]
    assert verdict["decision"] == "inconclusive"
    assert (verdict["ratio_low"], verdict["ratio_high"]) == (None, None)


def test_releases_are_relative_to_the_first(known: Database) -> None:
    found = read(known, "/api/v1/releases?fork=demo&refs=8.0.28,bbbb,run-c")

    assert [one["ref"] for one in found["versions"]] == ["8.0.28", "bbbb", "run-c"]
    assert [bool(one["gap"]) for one in found["versions"]] == [False, False, True]
    scan = next(one for one in found["workloads"] if one["workload"] == "scan")
    assert [one["ratio"] for one in scan["versions"]] == [pytest.approx(0.91, abs=0.001), None]
    assert scan["base_ops_s"] == pytest.approx(2.002, abs=0.001)
    groups = found["versions"][1]["groups"]
    assert {one["group"]: one["workloads"] for one in groups} == {"point-1": 1, "range-1": 1}


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/v1/compare", 422, "baseline"),
        ("/api/v1/compare?baseline=run-a", 422, "candidate"),
        ("/api/v1/compare?baseline=run-a&candidate=run-a", 422, "measured one commit alone"),
        ("/api/v1/compare?baseline=run-a&candidate=nothing", 404, "nothing"),
        (f"/api/v1/compare?baseline=run-a&candidate={'x' * 201}", 422, "candidate"),
        ("/api/v1/compare?baseline=run-a&candidate=a%00b", 422, "candidate"),
        (f"/api/v1/compare?baseline=run-a&candidate={quote(EVIL)}x", 404, "no run and no commit"),
        ("/api/v1/releases?fork=demo&refs=aaaa", 422, "2 to 20"),
        ("/api/v1/releases?fork=nobody&refs=aaaa,bbbb", 404, "no fork"),
        ("/api/v1/releases?refs=aaaa,bbbb", 422, "fork"),
    ],
)
def test_what_cannot_be_is_a_problem_in_words(
    known: Database, path: str, status: int, said: str
) -> None:
    answer = ask(known, path)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]
