"""Metrics for Prometheus: what the store counts, what this process saw, and what is left of both.

A registry of our own holds all of it, so that two services in one process do not share numbers. No
label has values without end: no commit, no run, no path, only words that the code knows.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from service.store.census import take_census

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from prometheus_client.core import Metric

    from service.core.clock import Clock
    from service.store.census import Census, Counts
    from service.store.database import Database

_log = logging.getLogger("forkwatch.metrics")

#: The store is counted at most so often, whoever asks: verdicts are a table of some hundred
#: thousand rows.
CENSUS_SECONDS: Final = 10.0
#: Seconds. Pages take milliseconds, charts and documents some tenths, a large submission seconds.
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: Anybody can send any word as a method.
_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


class ServiceMetrics:
    """The numbers of one service."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        flows: Callable[[], Counts],
        disk_free: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a registry; nothing is read yet.

        Args:
            database: What is counted.
            clock: Tells how old things are.
            flows: Returns how many flows are under way, by name and status.
            disk_free: Returns the bytes that are left for the store.
            monotonic: Tells when to count again.
        """
        self._registry = CollectorRegistry()
        self._registry.register(_Store(database, clock, monotonic=monotonic))
        self._registry.register(_Surroundings(flows, disk_free, self._poll_age))
        self._clock = clock
        #: When the watched branch was last read; None before the first time.
        self.polled_at: Callable[[], datetime | None] = lambda: None
        self._requests = Histogram(
            "forkwatch_request_seconds",
            "How long requests took, by method, template of the route and status.",
            ("method", "route", "status"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._messages = Counter(
            "forkwatch_messages",
            "What was told to a channel about alerts: told or failed.",
            ("channel", "outcome"),
            registry=self._registry,
        )

    def told(self, channel: str, *, ok: bool) -> None:
        """Count that a channel was told something, or that it could not be."""
        self._messages.labels(channel, "told" if ok else "failed").inc()

    def served(self, method: str, route: str, *, status: int, seconds: float) -> None:
        """Count a request."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).observe(seconds)

    def text(self) -> bytes:
        """Return all numbers in Prometheus' text format."""
        return generate_latest(self._registry)

    def _poll_age(self) -> float | None:
        at = self.polled_at()
        return None if at is None else max(0.0, (self._clock.now() - at).total_seconds())


def metrics_router(metrics: ServiceMetrics) -> APIRouter:
    """Return the router that Prometheus reads."""
    router = APIRouter(tags=["health"])

    @router.get(
        "/metrics",
        summary="Numbers for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    def show_metrics() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router


class _Store(Collector):
    """Counts of the store; without it, only that it does not answer."""

    def __init__(self, database: Database, clock: Clock, *, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._taken: tuple[float, Census] | None = None

    def collect(self) -> Iterator[Metric]:
        try:
            census = self._census()
        except SQLAlchemyError as error:
            _log.warning("the store cannot be counted: %s", error)
            yield _gauge("forkwatch_store_up", "Whether the store answers.", 0)
            return
        yield _gauge("forkwatch_store_up", "Whether the store answers.", 1)
        yield from _counts_of(census)
        age = census.waiting_since
        yield _gauge(
            "forkwatch_queue_age_seconds",
            "How long the oldest commit waits to be measured; 0 where none waits.",
            0.0 if age is None else max(0.0, (self._clock.now() - age).total_seconds()),
        )

    def _census(self) -> Census:
        now = self._monotonic()
        if self._taken is None or now - self._taken[0] >= CENSUS_SECONDS:
            with self._database.reading() as session:
                self._taken = (now, take_census(session))
        return self._taken[1]


class _Surroundings(Collector):
    """What is not in the store: flows, the disk, the watched branch."""

    def __init__(
        self,
        flows: Callable[[], Counts],
        disk_free: Callable[[], int],
        poll_age: Callable[[], float | None],
    ) -> None:
        self._flows = flows
        self._disk_free = disk_free
        self._poll_age = poll_age

    def collect(self) -> Iterator[Metric]:
        try:
            under_way = self._flows()
        except SQLAlchemyError as error:
            _log.warning("the flows cannot be counted: %s", error)
        else:
            yield _gauges("forkwatch_flows", "Flows under way.", ("name", "status"), under_way)
        yield _gauge("forkwatch_disk_free_bytes", "Space left for the store.", self._disk_free())
        age = self._poll_age()
        if age is not None:
            yield _gauge(
                "forkwatch_poll_age_seconds", "Since the watched branch was last read.", age
            )


def _counts_of(census: Census) -> Iterator[Metric]:
    yield _gauges("forkwatch_commits", "Commits by state.", ("state",), census.commits)
    yield _gauges("forkwatch_jobs", "Jobs of commits.", ("kind", "status"), census.jobs)
    yield _gauges(
        "forkwatch_pull_jobs", "Jobs of pull requests.", ("kind", "status"), census.pull_jobs
    )
    yield _totals("forkwatch_runs", "Runs taken in.", ("kind", "outcome"), census.runs)
    yield _totals("forkwatch_verdicts", "Verdicts.", ("stage", "decision"), census.verdicts)
    yield _gauges("forkwatch_alerts", "Alerts by state.", ("state",), census.alerts)
    yield _gauges("forkwatch_digests", "Weekly digests.", ("state",), census.digests)
    yield _gauge(
        "forkwatch_untold_orders", "Orders that issue and chat have to hear of.", census.untold
    )
    yield _gauge("forkwatch_database_bytes", "Size of the store.", census.size_bytes)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _gauges(name: str, meaning: str, labels: tuple[str, ...], counts: Counts) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for words, count in sorted(counts.items()):
        family.add_metric(words, count)
    return family


def _totals(name: str, meaning: str, labels: tuple[str, ...], counts: Counts) -> Metric:
    """Return what only ever grows, as the store does not forget it."""
    family = CounterMetricFamily(name, meaning, labels=labels)
    for words, count in sorted(counts.items()):
        family.add_metric(words, count)
    return family
