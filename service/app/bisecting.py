"""Bisects put together: their steps, their flow, who hears of them, and the routes to them.

The parts of the service come in, bisects go out. It is a part of the composition root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.flows.bisect_alerted import AlertedBisects
from service.flows.bisect_asks import BisectAsks
from service.flows.bisect_flow import BisectFlow
from service.flows.bisect_merges import BisectMerges
from service.flows.bisect_steps import BisectSteps
from service.flows.bisect_telling import BisectTelling
from service.web.bisect_api import bisects_router
from service.web.bisect_forms import bisect_forms_router
from service.web.bisect_pages import bisect_pages_router

if TYPE_CHECKING:
    from fastapi import APIRouter

    from service.app.parts import Common
    from service.channels.github.connect import GitHubChannel
    from service.core.bisections import AlertNews
    from service.web.credentials import Guard


@dataclass(frozen=True, kw_only=True)
class Bisecting:
    """Everything about bisects."""

    asks: BisectAsks
    #: Told of every alert that is raised.
    alerted: AlertedBisects
    #: Its queue is to be opened at the start.
    flow: BisectFlow

    def routers(self, guard: Guard) -> list[APIRouter]:
        """Return the API, and the pages, which whoever may read may read."""
        database = self.asks.database
        return [
            bisects_router(database, asks=self.asks, guard=guard),
            guard.readable(
                [
                    bisect_pages_router(database, orders=True),
                    bisect_forms_router(database, asks=self.asks, tokens=guard.tokens),
                ]
            ),
        ]


def bisecting(
    common: Common, *, queue: str, github: GitHubChannel | None, news: AlertNews | None
) -> Bisecting:
    """Return the parts; DBOS has to be there, and not launched yet.

    Args:
        common: Of the service.
        queue: In which all measuring on the host class waits.
        github: Where whoever asked in a comment is told.
        news: Where alerts are talked about.
    """
    steps = BisectSteps(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        dispatcher=common.dispatcher,
        settings=common.settings,
    )
    telling = BisectTelling(
        database=common.database,
        settings=common.settings,
        steps=common.actions,
        news=news,
        comments=github.comments if github else None,
    )
    merges = BisectMerges(database=common.database, clock=common.clock, code_host=common.code_host)
    flow = BisectFlow(steps, telling, queue=queue, merges=merges)
    asks = BisectAsks(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        settings=common.settings,
        flow=flow,
    )
    return Bisecting(asks=asks, alerted=AlertedBisects(asks), flow=flow)
