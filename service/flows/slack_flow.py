"""The durable side of Slack: a click is carried out, and an alert that waited is told.

Clicks come in from the web; each is a workflow named after the click, so that pressing once is
doing once. A thread looks once a minute for alerts whose quiet hours are over. What is done is in
`slack_clicks`.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import OperationalError

from service.core.slack import SlackClick
from service.flows.durable import run_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.core.clock import Clock
    from service.core.slack import SlackMemory
    from service.flows.slack_clicks import SlackSteps

_log = logging.getLogger("forkwatch.slack")

#: Starts of the service during one flow before it counts as the cause of the crashes.
RECOVERIES_MAX: Final = 100
#: Between looks at alerts that wait; the end of a night is not that exact.
LOOK_SECONDS: Final = 60.0


class SlackFlow:
    """The flows, registered with DBOS; make one before DBOS is launched."""

    def __init__(
        self,
        steps: SlackSteps,
        memory: SlackMemory,
        *,
        clock: Clock,
        step_pause_seconds: float = 1.0,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._steps, self._memory, self._clock = steps, memory, clock
        self._pause, self._look_seconds = step_pause_seconds, look_seconds
        self._carry_out, self._tell_waiting = self._registered()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slack", daemon=True)

    def start(self) -> None:
        """Begin to look for alerts that waited; DBOS has to be launched."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; flows go on until the process ends."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def begin(self, click: SlackClick) -> None:
        """See to a click, once however often it arrives; returns before it is done."""
        with SetWorkflowID(f"click:{click.key}"):
            DBOS.start_workflow(self._carry_out, asdict(click))

    def look(self) -> list[str]:
        """Begin to tell the alerts that waited until now; return them."""
        now = self._clock.now()
        waiting = self._memory.due(now)
        for alert in waiting:
            # Another one each hour: should this one fail, the alert is not forgotten.
            with SetWorkflowID(f"morning:{alert}:{now:%Y-%m-%dT%H}"):
                DBOS.start_workflow(self._tell_waiting, alert)
        return waiting

    def _registered(self) -> tuple[Callable[[dict[str, Any]], None], Callable[[str], None]]:
        @DBOS.workflow(name="slack_click", max_recovery_attempts=RECOVERIES_MAX)
        def slack_click(click: dict[str, Any]) -> None:
            pressed = SlackClick(**click)
            if not self._step(self._steps.carry_out, pressed):
                self._step(self._steps.excuse, pressed)

        @DBOS.workflow(name="slack_morning", max_recovery_attempts=RECOVERIES_MAX)
        def slack_morning(alert: str) -> None:
            self._step(self._steps.tell_waiting, alert)

        return slack_click, slack_morning

    def _step(self, step: Callable[[Any], None], about: SlackClick | str) -> bool:
        """Do a step once and for all, trying again while the outside fails; return whether."""
        try:
            run_step(step, about, pause_seconds=self._pause)
        except Exception:  # noqa: BLE001  a flow that fails is begun again by nobody
            _log.exception("%s of %s failed", step.__name__, about)
            return False
        return True

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.look()
            except (OperationalError, dbos_error.DBOSException) as error:
                _log.warning("alerts that waited cannot be looked for now: %s", error)
            self._stopped.wait(self._look_seconds)
