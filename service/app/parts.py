"""The parts that most others of the composition need, handed on as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.core.clock import Clock
    from service.core.ports import CodeHost, Dispatcher
    from service.core.settings import Settings
    from service.flows.alert_actions import StoredAlertActions
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class Common:
    """What a service is made of, whatever is built around it."""

    settings: Settings
    database: Database
    clock: Clock
    #: Where commits and the plan come from.
    code_host: CodeHost
    #: Starts jobs.
    dispatcher: Dispatcher
    #: Orders about alerts.
    actions: StoredAlertActions
