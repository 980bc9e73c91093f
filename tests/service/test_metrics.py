"""Metrics: right numbers, words that the code knows as labels, and answers when things are away."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import APIRouter
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from service.core.model import CommitState
from service.core.tokens import Scope
from service.flows.tokens import Tokens
from service.store import commits
from service.store.census import take_census
from service.store.database import Database
from service.web import api
from service.web.application import web_application
from service.web.credentials import Guard
from service.web.metrics import CENSUS_SECONDS, ServiceMetrics, metrics_router
from service.web.pages import missing_page, pages_router
from service.web.request_times import NO_ROUTE, RequestTimes
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.stored_fork import SHAS, a_week

if TYPE_CHECKING:
    from pathlib import Path

FREE = 123_456_789


class Flows:
    """Flows that are counted, or away."""

    def __init__(self) -> None:
        self.away = False

    def under_way(self) -> dict[tuple[str, ...], int]:
        if self.away:
            raise OperationalError("SELECT", {}, ConnectionError("away"))
        return {("watch_commit", "enqueued"): 2, ("watch_commit", "pending"): 1}


@dataclass
class Scraped:
    """A service over a database, as Prometheus sees it."""

    database: Database
    clock: StillClock = field(default_factory=StillClock)
    flows: Flows = field(default_factory=Flows)
    seconds: float = 0.0
    public: bool = True

    def __post_init__(self) -> None:
        self.metrics = ServiceMetrics(
            self.database,
            self.clock,
            flows=self.flows.under_way,
            disk_free=lambda: FREE,
            monotonic=lambda: self.seconds,
        )
        self.tokens = Tokens(database=self.database, clock=self.clock)
        guard = Guard(tokens=self.tokens, public_read=self.public)
        broken = APIRouter()

        @broken.get("/broken")
        def fail() -> None:
            raise ZeroDivisionError

        self.app = web_application(
            [
                api.commits_router(self.database),
                pages_router(self.database),
                guard.readable([metrics_router(self.metrics)]),
                broken,
            ],
            missing_page=missing_page,
        )
        self.app.add_middleware(RequestTimes, served=self.metrics.served)

    def call(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(send())

    def scrape(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Return the values by sample name and values of labels, read by Prometheus' own parser."""
        text = self.call("/metrics").text
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = tuple(sample.labels[name] for name in sorted(sample.labels))
                found.setdefault(sample.name, {})[labels] = sample.value
        return found


@pytest.fixture
def service(database: Database) -> Scraped:
    with database.writing() as session:
        a_week(session)
    return Scraped(database)


def test_what_is_stored_is_counted(service: Scraped) -> None:
    found = service.scrape()

    assert found["forkwatch_store_up"] == {(): 1}
    assert found["forkwatch_commits"] == {("finished",): 7, ("measuring",): 1}
    assert found["forkwatch_jobs"] == {("single", "stored"): 6, ("confirm", "stored"): 1}
    # The labels in the order of their names: kind, outcome.
    assert found["forkwatch_runs_total"] == {
        ("single", "measured"): 5,
        ("single", "build-failed"): 1,
        ("confirm", "measured"): 1,
    }
    assert sum(found["forkwatch_verdicts_total"].values()) == 10
    assert found["forkwatch_verdicts_total"]["regression", "confirm"] == 1
    assert found["forkwatch_alerts"] == {("confirmed",): 1}
    assert found["forkwatch_digests"] == {("sent",): 0, ("waiting",): 0}
    assert found["forkwatch_untold_orders"] == {(): 0}
    assert found["forkwatch_flows"] == {
        ("watch_commit", "enqueued"): 2,
        ("watch_commit", "pending"): 1,
    }
    assert found["forkwatch_disk_free_bytes"] == {(): FREE}


def test_the_size_is_that_of_the_database(service: Scraped) -> None:
    [size] = service.scrape()["forkwatch_database_bytes"].values()

    assert 100_000 < size < 1_000_000_000


def test_the_queue_is_as_old_as_what_waits_longest_in_it(service: Scraped) -> None:
    assert service.scrape()["forkwatch_queue_age_seconds"] == {(): 0}
    with service.database.writing() as session:
        commits.mark(session, "demo", SHAS[7], CommitState.WAITING)
    service.clock.advance(timedelta(minutes=5))
    service.seconds += CENSUS_SECONDS

    assert service.scrape()["forkwatch_queue_age_seconds"] == {(): 300}


def test_the_age_of_the_last_look_is_told_once_there_was_one(service: Scraped) -> None:
    assert "forkwatch_poll_age_seconds" not in service.scrape()
    service.metrics.polled_at = lambda: AT
    service.clock.advance(timedelta(seconds=90))

    assert service.scrape()["forkwatch_poll_age_seconds"] == {(): 90}


def test_the_store_is_counted_once_in_a_while(service: Scraped) -> None:
    service.scrape()
    with service.database.writing() as session:
        commits.mark(session, "demo", SHAS[7], CommitState.CONFIRMING)

    service.seconds = CENSUS_SECONDS - 0.1
    assert ("measuring",) in service.scrape()["forkwatch_commits"]
    service.seconds = CENSUS_SECONDS
    assert ("confirming",) in service.scrape()["forkwatch_commits"]


def test_an_empty_store_is_counted_too(database: Database) -> None:
    with database.reading() as session:
        census = take_census(session)

    assert census.commits == census.runs == census.alerts == {}
    assert census.waiting_since is None


def test_requests_are_measured_by_route_method_and_status(service: Scraped) -> None:
    for path in ("/api/v1/commits?fork=demo", "/api/v1/commits?fork=other", "/api/v1/commits"):
        service.call(path)
    service.call(f"/api/v1/commits/demo/{SHAS[0]}")
    service.call(f"/api/v1/commits/demo/{SHAS[1]}")
    service.call("/nothing/here")
    service.call("/broken")
    service.call("/api/v1/forks", "BREW")

    counts = service.scrape()["forkwatch_request_seconds_count"]
    assert counts["GET", "/api/v1/commits", "200"] == 2
    assert counts["GET", "/api/v1/commits", "422"] == 1
    assert counts["GET", "/api/v1/commits/{fork}/{sha}", "200"] == 2
    assert counts["GET", NO_ROUTE, "404"] == 1
    assert counts["GET", "/broken", "500"] == 1
    assert {method for method, _, _ in counts} == {"GET", "other"}


def test_no_label_holds_what_anybody_can_make_up(service: Scraped) -> None:
    for number in range(20):
        service.call(f"/api/v1/commits/fork-{number}/{SHAS[0]}")
        service.call(f"/made/up/{number}")

    text = service.call("/metrics").text
    labels = re.findall(r'="([^"]*)"', text)
    assert [label for label in labels if re.search(r"[0-9a-f]{12}", label)] == []
    assert "fork-1" not in text
    assert "/made/up" not in text


def test_messages_are_counted_by_channel_and_outcome(service: Scraped) -> None:
    for ok in (True, True, False):
        service.metrics.told("github", ok=ok)

    assert service.scrape()["forkwatch_messages_total"] == {
        ("github", "told"): 2,
        ("github", "failed"): 1,
    }


def test_the_answer_says_what_it_is(service: Scraped) -> None:
    answer = service.call("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")


def test_where_reading_needs_a_token_so_do_metrics(database: Database) -> None:
    service = Scraped(database, public=False)
    _, reader = service.tokens.create("prometheus", [Scope.READ])
    _, submitter = service.tokens.create("runner", [Scope.SUBMIT])

    def ask(text: str | None) -> int:
        headers = {"Authorization": f"Bearer {text}"} if text else {}
        return service.call("/metrics", **headers).status_code

    assert (ask(None), ask(submitter), ask(reader)) == (401, 403, 200)


def test_what_is_away_is_left_out_and_the_rest_is_told(tmp_path: Path) -> None:
    # A database without tables fails as one that is away does.
    database = Database(f"sqlite:///{tmp_path / 'empty.sqlite'}")
    service = Scraped(database)
    service.flows.away = True
    found: dict[str, Any] = service.scrape()
    database.close()

    assert found["forkwatch_store_up"] == {(): 0}
    assert "forkwatch_commits" not in found
    assert "forkwatch_flows" not in found
    assert found["forkwatch_disk_free_bytes"] == {(): FREE}


def test_two_services_in_one_process_share_no_numbers(service: Scraped) -> None:
    other = Scraped(service.database)
    service.metrics.told("slack", ok=True)

    assert "forkwatch_messages_total" not in other.scrape()
