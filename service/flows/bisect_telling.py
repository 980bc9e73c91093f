"""Who hears of a bisect: its alert's state, issue and thread, and the comment that asked for it.

Steps of a durable flow: each is done whole, and doing it again says nothing twice. A bisect comes
in by its id; what is said is worded in `bisect_texts`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING

from bisects.document import BisectEnd
from reports.markup import one_line
from service.core.alert_actions import SERVICE_ACTOR, AlertStep
from service.core.bisections import UNDER_WAY, BisectState
from service.core.errors import ActionError
from service.flows.alert_actions import NOTE_LENGTH_MAX
from service.flows.bisect_evidence import stored_evidence
from service.flows.bisect_texts import begun_sentence, ended_sentence, ended_text, standing_text
from service.store import alerts, bisects

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.core.bisections import AlertNews, AlertSteps, Bisect
    from service.core.ports import PullRequestComments
    from service.core.settings import Settings
    from service.store.database import Database

_log = logging.getLogger("forkwatch.bisect")


class Turn(StrEnum):
    """What the alert of a bisect hears of."""

    BEGUN = "begun"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class BisectTelling:
    """The steps, with everything they touch."""

    database: Database
    settings: Settings
    #: Where the state of an alert is noted.
    steps: AlertSteps
    #: Where alerts are talked about; None where that is nowhere.
    news: AlertNews | None = None
    #: Where whoever asked in a comment is told; None where there are no comments.
    comments: PullRequestComments | None = None
    #: What was read first is not to be said last.
    showing: Lock = field(default_factory=Lock, repr=False, compare=False)

    def advance(self, bisect_id: str, turn: str) -> None:
        """Bring the alert of a bisect to what has become of it; people may have settled it."""
        with self.database.reading() as session:
            bisect = _bisect(session, bisect_id)
            found = bisects.document(session, bisect_id)
        if bisect.alert is None or bisect.started_at is None:
            return
        if turn == Turn.BEGUN:
            step, note = AlertStep.BISECT, f"asked for by {bisect.asked_by}"
        else:
            over = bisect.state is BisectState.OVER
            culprit = over and found is not None and found.end is BisectEnd.CULPRIT
            # Without a culprit the alert is what it was before: shown, by nobody knows what.
            step = AlertStep.NAME_CULPRIT if culprit else AlertStep.CONFIRM
            note = bisect.said
        said, key = one_line(note, length_max=NOTE_LENGTH_MAX), f"{bisect_id}:{turn}"
        try:
            self.steps.advance(bisect.alert, step, actor=SERVICE_ACTOR, note=said, key=key)
        except ActionError as error:
            _log.info("alert %s stays as it is: %s", bisect.alert, error)

    def tell(self, bisect_id: str, turn: str) -> None:
        """Tell the issue and the thread of a bisect's alert, once for each turn.

        Raises:
            TransientError: They cannot be told now.
        """
        with self.database.reading() as session:
            bisect = _bisect(session, bisect_id)
            found = bisects.document(session, bisect_id)
            evidence = stored_evidence(session, found)
            alert = alerts.find(session, bisect.alert) if bisect.alert else None
        if alert is None or self.news is None or bisect.started_at is None:
            return
        page = self._page(bisect)
        if turn == Turn.ENDED:
            sentence = ended_sentence(bisect, page=page)
            text = ended_text(bisect, found, page=page, evidence=evidence)
        elif bisect.state in UNDER_WAY:
            sentence = text = begun_sentence(bisect, page=page)
        else:
            # It ended before anybody could be told of its beginning.
            return
        self.news.tell_news(alert, sentence, text, key=f"{bisect_id}:{turn}")

    def show(self, bisect_id: str) -> None:
        """Have the comment to whoever asked say what is so now.

        Raises:
            TransientError: It may be there or not; showing it again is safe.
        """
        with self.showing:
            self._show(bisect_id)

    def _show(self, bisect_id: str) -> None:
        with self.database.reading() as session:
            bisect = _bisect(session, bisect_id)
            found = bisects.document(session, bisect_id)
            evidence = stored_evidence(session, found)
        if bisect.number is None or self.comments is None:
            return
        text = standing_text(bisect, found, page=self._page(bisect), evidence=evidence)
        self.comments.stick(bisect.number, text, suite=bisect_id, loud=True)

    def _page(self, bisect: Bisect) -> str:
        return f"{self.settings.pages_url}/bisects/{bisect.id}"


def _bisect(session: Session, bisect_id: str) -> Bisect:
    bisect = bisects.find(session, bisect_id)
    assert bisect is not None, "a bisect is written down before its flow begins"
    return bisect
