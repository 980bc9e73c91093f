"""What a button on Slack does, and the morning after the quiet hours.

A click comes in; the order is carried out if the person may give it, and the person is told if not.
Every part is done once for a click, however often it is begun again. `slack_flow` makes it durable.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bisects.document import BisectEnd
from reports.rows import rows_of_pair
from reports.slack import answer_message
from service.core.alert_actions import CLOSED_STATES, AlertAction, AlertOrder, OrderVia
from service.core.bisections import BisectState
from service.core.errors import ActionError, NotFoundError
from service.core.slack import AlertDetails
from service.flows.verdict_steps import read_alert
from service.store import bisects, runs, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

    from service.channels.slack.connect import SlackChannel
    from service.core.model import Alert
    from service.core.ports import AlertActions
    from service.core.settings import Settings
    from service.core.slack import SlackClick
    from service.store.database import Database

_log = logging.getLogger("forkwatch.slack")

#: The one button that orders something else than an action on the alert.
BISECT: Final = "bisect"
_DEEDS: Final = {
    AlertAction.ACKNOWLEDGE: "Acknowledged",
    AlertAction.ACCEPT: "Accepted as intended",
    AlertAction.MUTE: "Muted for a week",
    AlertAction.FALSE_ALARM: "Called a false alarm",
}


class StoredAlertDetails:
    """Reads what a message about an alert is made from."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings

    def __call__(self, alert: Alert) -> AlertDetails:
        """Return the rows and the run behind an alert."""
        with self._database.reading() as session:
            document = runs.document(session, alert.run)
            judged = {v.series.workload: v.verdict for v in verdicts.of_run(session, alert.run)}
            found = _found(session, alert)
        return AlertDetails(
            rows=rows_of_pair(document, judged),
            document=document,
            page=f"{self._settings.pages_url}/alerts/{alert.id}",
            found=found,
        )


@dataclass(frozen=True, kw_only=True)
class SlackSteps:
    """The steps, with everything they touch."""

    database: Database
    settings: Settings
    slack: SlackChannel
    actions: AlertActions
    #: Begins a bisect in the range of an alert, in the name of somebody; None where there is none.
    bisect: Callable[[str, str], None] | None = None

    def carry_out(self, click: SlackClick) -> None:
        """Do what was pressed and say so in the thread; whoever may not is told so alone.

        Raises:
            SlackUnavailableError: Not everything may be said yet; calling again is safe.
        """
        if click.user not in self.settings.slack_writer_ids:
            _log.warning("slack:%s may not %s", click.user, click.action)
            self._answer(
                click,
                "You may not do this. Whoever runs forkwatch can add your id, "
                f"{click.user}, to FORKWATCH_SLACK_WRITERS.",
            )
            return
        actor = f"slack:{click.user}"
        try:
            if click.action == BISECT:
                self._bisect(click, actor)
                return
            action = AlertAction(click.action)
            alert = self.actions.act(
                AlertOrder(
                    alert=click.alert,
                    action=action,
                    actor=actor,
                    via=OrderVia.SLACK,
                    key=click.key,
                )
            )
        except ActionError as error:
            self._answer(click, f"That was not done: {error}")
            return
        self.slack.alerts.tell_deed(alert, _DEEDS[action], user=click.user, key=click.key)

    def excuse(self, click: SlackClick) -> None:
        """Tell whoever pressed that it came to nothing."""
        self._answer(click, "That did not work, or not all of it; the service's log says why.")

    def tell_waiting(self, alert_id: str) -> None:
        """Post an alert whose quiet hours are over, unless it was settled in the meantime."""
        page = f"{self.settings.pages_url}/alerts/{alert_id}"
        try:
            with self.database.reading() as session:
                alert, text, notify = read_alert(session, alert_id, page=page)
        except NotFoundError:
            return
        if alert.state in CLOSED_STATES:
            self.slack.alerts.close_alert(alert, "Settled before the morning.", key="waiting")
            return
        self.slack.alerts.raise_alert(alert, text, notify)

    def _bisect(self, click: SlackClick, actor: str) -> None:
        if self.bisect is None:
            self._answer(click, "This service cannot bisect.")
            return
        self.bisect(click.alert, actor)
        self._answer(click, "The bisect has begun; what it finds is said in the thread.")

    def _answer(self, click: SlackClick, text: str) -> None:
        self.slack.posts.whisper(click.channel, click.user, answer_message(text))


def _found(session: Session, alert: Alert) -> str:
    """Return the sentence of the newest bisect that named a commit of the alert's range."""
    for bisect in bisects.newest(session, alert=alert.id):
        asked = bisect.question
        # An alert that was opened again is about another range.
        same = (asked.good, asked.bad) == (alert.baseline_sha, alert.sha)
        if same and bisect.state is BisectState.OVER:
            document = bisects.document(session, bisect.id)
            if document is not None and document.end is BisectEnd.CULPRIT:
                return bisect.said
    return ""
