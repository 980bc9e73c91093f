"""Bisects that nobody asked for: begun by an alert, where the settings want that.

An alert that was raised comes in. What follows is a flow of its own, so that a repository which is
away for a while holds nobody up, and the flow of the commit stays as it was.
"""

from __future__ import annotations

import logging
from contextvars import Context
from typing import TYPE_CHECKING

from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from service.flows.durable import RECOVERIES_MAX, run_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.flows.bisect_asks import BisectAsks

_log = logging.getLogger("forkwatch.bisect")


class AlertedBisects:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(self, asks: BisectAsks, *, step_pause_seconds: float = 1.0) -> None:
        """Register the workflow.

        Args:
            asks: Begins bisects.
            step_pause_seconds: The first pause before a step is tried again.
        """
        self._asks = asks
        self._pause = step_pause_seconds
        self._workflow = self._registered()

    def alerted(self, alert_id: str, sha: str) -> None:
        """Begin what follows from an alert that was raised with a commit, once for both.

        It is called in the flow of that commit, and is no step of it.
        """
        if not self._asks.settings.bisect_automatically:
            return
        try:
            # Begun in the other flow's context, it would take the place of that one's next step.
            Context().run(self._start, alert_id, sha)
        except (dbos_error.DBOSException, OperationalError) as error:
            _log.warning("alert %s is not bisected: %s", alert_id, error)

    def _start(self, alert_id: str, sha: str) -> None:
        with SetWorkflowID(f"bisect-alert:{alert_id}:{sha}"):
            DBOS.start_workflow(self._workflow, alert_id)

    def _registered(self) -> Callable[[str], None]:
        @DBOS.workflow(name="bisect_alert", max_recovery_attempts=RECOVERIES_MAX)
        def bisect_alert(alert_id: str) -> None:
            try:
                run_step(self._asks.alerted, alert_id, pause_seconds=self._pause)
            except Exception:  # noqa: BLE001  the alert stands, searched or not
                _log.exception("alert %s could not be bisected", alert_id)

        return bisect_alert
