"""Measuring the past put together: backfills, bridges between series, and the routes to them.

The parts of the service come in, what begins its flows goes out. It is a part of the composition
root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.flows.aside_flow import BACKFILL_PRIORITY, BRIDGES_PRIORITY, AsideFlow
from service.flows.backfill import Backfills, BackfillSteps
from service.flows.bridge_steps import BridgeSteps
from service.web.backfill_api import backfills_router

if TYPE_CHECKING:
    from fastapi import APIRouter

    from service.app.parts import Common
    from service.flows.steps import Steps
    from service.web.credentials import Guard


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Everything about measuring the past."""

    asks: Backfills
    #: In the order in which they go.
    flows: tuple[AsideFlow, ...]

    def begin_waiting(self) -> None:
        """Begin what was asked for, here or from a command line; DBOS has to be launched."""
        for flow in self.flows:
            flow.begin_waiting()

    def routers(self, guard: Guard) -> list[APIRouter]:
        """Return the API."""
        return [backfills_router(self.asks, guard=guard)]


def histories(common: Common, *, steps: Steps, queue: str) -> Histories:
    """Return the parts; DBOS has to be there, and not launched yet.

    Args:
        common: Of the service.
        steps: Those of any commit.
        queue: In which all measuring on the host class waits.
    """
    bridges = BridgeSteps(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        dispatcher=common.dispatcher,
        settings=common.settings,
    )
    return Histories(
        asks=Backfills(database=common.database, clock=common.clock, code_host=common.code_host),
        flows=(
            AsideFlow(bridges, name="bridge", queue=queue, priority=BRIDGES_PRIORITY),
            AsideFlow(
                BackfillSteps(steps=steps),
                name="backfill",
                queue=queue,
                priority=BACKFILL_PRIORITY,
            ),
        ),
    )
