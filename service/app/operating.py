"""Operating put together: metrics, health, limits and retention around the parts of a service.

It is a part of the composition root. Settings and the store come in first; what is only known
later, such as who follows the branch, is handed over when it is there.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol

from service.app.readiness import service_parts
from service.flows.retention import RetentionFlow, RetentionSteps
from service.store.flow_tables import FlowTables
from service.web.health import health_router
from service.web.metrics import ServiceMetrics, metrics_router
from service.web.rate_limits import RateLimits
from service.web.request_times import RequestTimes

if TYPE_CHECKING:
    from datetime import datetime

    from fastapi import APIRouter, FastAPI

    from service.core.clock import Clock
    from service.core.settings import Settings
    from service.store.database import Database
    from service.web.credentials import Guard


class Follower(Protocol):
    """Follows the branch."""

    @property
    def alive(self) -> bool:
        """Whether it does."""
        ...

    @property
    def looked_at(self) -> datetime | None:
        """When it last read the branch; None before the first time."""
        ...


class Operating:
    """Everything around a service that operators look at or set."""

    def __init__(self, settings: Settings, *, database: Database, clock: Clock) -> None:
        """Make the parts; DBOS has to be there, and not launched yet.

        Args:
            settings: Of the service.
            database: Its data.
            clock: Tells the time.
        """
        self._settings = settings
        self._database = database
        self._clock = clock
        self._flows = FlowTables(settings.flows_url)
        self.metrics = ServiceMetrics(
            database,
            clock,
            flows=self._flows.under_way,
            disk_free=lambda: shutil.disk_usage(settings.home_folder).free,
        )
        self.retention = RetentionFlow(
            RetentionSteps(
                database=database,
                clock=clock,
                keep_seconds_days=settings.keep_seconds_days,
                keep_samples_days=settings.keep_samples_days,
            )
        )

    def told(self, channel: str, *, ok: bool) -> None:
        """Hear that a channel was told something, or could not be."""
        self.metrics.told(channel, ok=ok)

    def routers(self, watcher: Follower, *, guard: Guard) -> list[APIRouter]:
        """Return health, which anybody may ask for, and metrics, which readers may."""
        self.metrics.polled_at = lambda: watcher.looked_at
        parts = service_parts(
            self._settings,
            database=self._database,
            clock=self._clock,
            flows=self._flows,
            following=lambda: watcher.alive,
        )
        return [health_router(parts), guard.readable([metrics_router(self.metrics)])]

    def around(self, app: FastAPI) -> FastAPI:
        """Put limits around an application, and the measuring of times around both; return it."""
        if self._settings.requests_per_minute:
            app.add_middleware(RateLimits, per_minute=self._settings.requests_per_minute)
        app.add_middleware(RequestTimes, served=self.metrics.served)
        return app

    def start(self) -> None:
        """Begin the nightly pruning; DBOS has to be launched."""
        self.retention.open_schedule()
