"""The doors of the service put together: pages, API, and where others bring news.

The parts that routes need come in, routers go out. What everybody reads is behind one guard; who
brings a run or gives an order says who they are at each door of its own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from service.channels.oidc import connect
from service.core.aa_checks import AaSchedule
from service.core.oidc_settings import load_oidc_settings
from service.flows.ci_orders import CiOrders
from service.web import api, host_api
from service.web.alert_pages import AlertDesk
from service.web.buildkite_hooks import buildkite_router
from service.web.compare_api import compare_router
from service.web.compare_pages import compare_pages_router
from service.web.digest_pages import digests_router
from service.web.export_api import exports_router
from service.web.oidc_credentials import oidc_router
from service.web.pages import pages_router
from service.web.slack_interactions import slack_router
from service.web.webhooks import webhooks_router

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import APIRouter
    from pydantic import SecretStr

    from service.app.alerting import Alerting
    from service.app.listening import Listening
    from service.app.parts import Common
    from service.app.telling import OpenSlack
    from service.core.buildkite import BuildEnded
    from service.core.clock import Clock
    from service.core.model import Job
    from service.core.settings import Settings
    from service.store.database import Database


def doors(common: Common, *, alerting: Alerting, stored: Callable[[Job], None]) -> list[APIRouter]:
    """Return what people and tools use: what is read, what is brought, what is done on alerts.

    Args:
        common: Of the service.
        alerting: Knows readers and orders.
        stored: Told when a job's run is in the store.

    Raises:
        SettingsError: The settings about a CI do not go together.
    """
    oidc = load_oidc_settings()
    identities = connect(oidc, clock=common.clock)
    orders = CiOrders(
        database=common.database,
        clock=common.clock,
        job_time=timedelta(minutes=common.settings.job_timeout_minutes),
    )
    brought = api.submissions_router(
        common.database,
        clock=common.clock,
        stored=stored,
        tokens=alerting.tokens,
        identities=identities,
    )
    return [
        alerting.guard.readable(_read(common, alerting)),
        brought,
        oidc_router(orders, identities=identities),
        *alerting.routers,
    ]


def _read(common: Common, alerting: Alerting) -> list[APIRouter]:
    settings, database = common.settings, common.database
    desk = AlertDesk(actions=common.actions, tokens=alerting.tokens)
    schedule = AaSchedule(host_class=settings.host_class, days=settings.aa_check_days)
    return [
        api.commits_router(database),
        api.samples_router(database),
        host_api.hosts_router(database),
        compare_router(database),
        exports_router(database),
        pages_router(
            database,
            clock=common.clock,
            desk=desk,
            against=settings.digest_against,
            schedule=schedule,
        ),
        compare_pages_router(database),
        digests_router(database),
    ]


def hooks(
    settings: Settings,
    database: Database,
    clock: Clock,
    *,
    listening: Listening | None,
    slack: OpenSlack | None,
    build_ended: Callable[[BuildEnded], bool],
) -> list[APIRouter]:
    """Return where others bring news; each sender signs what it says."""
    return [
        webhooks_router(
            database,
            clock=clock,
            secret=_revealed(settings.github_webhook_secret),
            repository=settings.github_repository,
            desk=listening.desk if listening else None,
        ),
        slack_router(
            database,
            clock=clock,
            secret=_revealed(settings.slack_signing_secret),
            begin=slack.flow.begin if slack else None,
        ),
        buildkite_router(
            database,
            clock=clock,
            secret=_revealed(settings.buildkite_webhook_secret),
            ended=build_ended,
        ),
    ]


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
