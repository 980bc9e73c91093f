"""The durable flow that tells issue and chat about an alert that people closed or opened again.

An entry of the audit log comes in; `alert_life` knows what is said about it. DBOS remembers that
the flow was begun, so a service killed in the middle goes on, and beginning it twice is once.
"""

from __future__ import annotations

import logging
from contextvars import Context
from typing import TYPE_CHECKING

from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from service.flows.durable import run_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.flows.alert_life import AlertLife

_log = logging.getLogger("forkwatch.flow")


class AlertFlow:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(self, life: AlertLife, *, step_pause_seconds: float = 1.0) -> None:
        self._life = life
        self._pause = step_pause_seconds
        self._workflow = self._registered()

    def begin(self, entry_id: int) -> None:
        """Tell about an entry of the audit log, now or after a restart.

        Where it cannot be begun, the entry stays untold, and the next start or commit finds it.
        """
        try:
            # Orders are given inside the steps of other flows too. Begun in their context, this one
            # would be written down as a part of the step, in the step's own place.
            Context().run(self._start, entry_id)
        except (dbos_error.DBOSException, OperationalError) as error:
            _log.warning("entry %d of the audit log is not told yet: %s", entry_id, error)

    def resume(self) -> None:
        """Tell about what a killed service wrote down and never began to tell."""
        for entry_id in self._life.untold():
            self.begin(entry_id)

    def _start(self, entry_id: int) -> None:
        with SetWorkflowID(workflow_id(entry_id)):
            DBOS.start_workflow(self._workflow, entry_id)

    def _registered(self) -> Callable[[int], None]:
        @DBOS.workflow(name="tell_alert")
        def tell_alert(entry_id: int) -> None:
            run_step(self._life.tell, entry_id, pause_seconds=self._pause)

        return tell_alert


def workflow_id(entry_id: int) -> str:
    """Return the id of an entry's flow."""
    return f"alert-entry:{entry_id}"
