"""The parts that most others of the composition need, handed on as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.core.dispatching import nobody_waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.app.replicas import Replicas
    from service.core.buildkite import BuildEnded
    from service.core.clock import Clock
    from service.core.dispatching import RunEnded
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
    #: The other processes of this service.
    replicas: Replicas
    #: Told of runs of GitHub and builds of Buildkite that are over; says whether anybody waited.
    run_ended: Callable[[RunEnded], bool] = nobody_waits
    build_ended: Callable[[BuildEnded], bool] = nobody_waits
