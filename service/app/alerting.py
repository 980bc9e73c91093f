"""Alerts put together: their steps, their flow, the orders about them, and who may give those.

A database and the sink that tells of alerts come in, the parts that a service needs go out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.core.ports import AlertTracker
from service.flows.alert_flow import AlertFlow
from service.flows.alert_life import AlertLife
from service.flows.baseline_orders import StoredBaselines
from service.flows.tokens import Tokens
from service.web.alert_api import alerts_router, baselines_router
from service.web.credentials import Guard

if TYPE_CHECKING:
    from fastapi import APIRouter

    from service.core.clock import Clock
    from service.core.ports import AlertSink
    from service.core.settings import Settings
    from service.flows.alert_actions import StoredAlertActions
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class Alerting:
    """Everything about alerts after they were told."""

    life: AlertLife
    #: Tells issue and chat what people did; to be resumed at the start.
    flow: AlertFlow
    tokens: Tokens
    guard: Guard
    routers: tuple[APIRouter, ...]


def alerting(
    settings: Settings,
    *,
    database: Database,
    clock: Clock,
    actions: StoredAlertActions,
    sink: AlertSink,
) -> Alerting:
    """Return the parts; DBOS has to be there, and not launched yet.

    Args:
        settings: Of the service.
        database: Where alerts and tokens are.
        clock: Tells the time.
        actions: Orders about alerts; from now on, what they settle is told.
        sink: Tells of alerts; where it keeps something open about each, that is closed too.
    """
    tracker = sink if isinstance(sink, AlertTracker) else None
    life = AlertLife(database=database, clock=clock, tracker=tracker, base_url=settings.pages_url)
    flow = AlertFlow(life)
    actions.settle_through(flow.begin)
    tokens = Tokens(database=database, clock=clock)
    guard = Guard(tokens=tokens, public_read=settings.public_read)
    baselines = StoredBaselines(database=database, clock=clock)
    return Alerting(
        life=life,
        flow=flow,
        tokens=tokens,
        guard=guard,
        routers=(
            alerts_router(database, actions=actions, guard=guard),
            baselines_router(baselines, guard=guard),
        ),
    )
