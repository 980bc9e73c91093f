"""Measuring aside put together: the past, bridges between series, A/A checks, and their routes.

The parts of the service come in, what begins its flows goes out. It is a part of the composition
root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.flows.aa_checks import AaChecks
from service.flows.aa_steps import AaSteps
from service.flows.aside_flow import AA_PRIORITY, BACKFILL_PRIORITY, BRIDGES_PRIORITY, AsideFlow
from service.flows.backfill import Backfills, BackfillSteps
from service.flows.bridge_steps import BridgeSteps
from service.web.aa_api import aa_router
from service.web.backfill_api import backfills_router

if TYPE_CHECKING:
    from fastapi import APIRouter

    from service.app.parts import Common
    from service.flows.steps import Steps
    from service.web.credentials import Guard


@dataclass(frozen=True, kw_only=True)
class Histories:
    """Everything about measuring the past, and measuring the hosts."""

    asks: Backfills
    checks: AaChecks
    #: In the order in which they go.
    flows: tuple[AsideFlow, ...]

    def begin_waiting(self) -> None:
        """Begin what was asked for, here or from a command line, and the check that is due.

        DBOS has to be launched.

        Raises:
            CodeHostError, PlanError: The plan for a check cannot be read or is wrong.
        """
        for flow in self.flows:
            flow.begin_waiting()
        # What is due now begins with the next look at the branch; trouble with it stops no other.
        self.checks.ask_when_due()

    def routers(self, guard: Guard) -> list[APIRouter]:
        """Return the API."""
        return [backfills_router(self.asks, guard=guard), aa_router(self.checks, guard=guard)]


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
    checks = AaSteps(
        database=common.database,
        clock=common.clock,
        code_host=common.code_host,
        dispatcher=common.dispatcher,
        settings=common.settings,
    )
    past = BackfillSteps(steps=steps)
    return Histories(
        asks=Backfills(database=common.database, clock=common.clock, code_host=common.code_host),
        checks=AaChecks(
            database=common.database,
            clock=common.clock,
            code_host=common.code_host,
            settings=common.settings,
        ),
        flows=(
            AsideFlow(bridges, name="bridge", queue=queue, priority=BRIDGES_PRIORITY),
            AsideFlow(checks, name="aa-check", queue=queue, priority=AA_PRIORITY),
            AsideFlow(past, name="backfill", queue=queue, priority=BACKFILL_PRIORITY),
        ),
    )
