"""The end of a commit as its fork's alerts see it: what is fixed with it, and who is told.

Steps of a durable flow: each is done whole, and doing it again changes nothing. `settle` decides
and writes in one transaction; `tell` speaks to issue and chat after it, once for each entry of the
audit log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from reports.issue import (
    accepted_markdown,
    fast_again_markdown,
    settled_markdown,
    slower_again_markdown,
)
from results.document import Commit
from service.core.alert_actions import (
    CLOSED_STATES,
    OPEN_STATES,
    SERVICE_ACTOR,
    AlertAction,
    AlertOrder,
    OrderVia,
    is_turn,
)
from service.core.alert_records import AlertCommit, AlertPart, AuditSubject
from service.core.model import AlertState, EventKind
from service.flows.alert_actions import carry_out
from service.flows.recovery import find_recovery
from service.store import alerts, audit, commits, events

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.alert_records import AuditEntry
    from service.core.clock import Clock
    from service.core.model import Alert
    from service.core.ports import AlertTracker
    from service.flows.recovery import Recovery
    from service.store.database import Database

#: An entry that nobody heard of for so long is told with the next commit: whatever should have told
#: it has given up, or was lost in a crash.
UNTOLD_AFTER: Final = timedelta(hours=1)
#: Of these at most so many with one commit: where a channel refuses for good, a commit must not
#: wait for all of them each time.
LEFT_OVER_MAX: Final = 20
#: What a person said who closed an alert, up to their name.
_HOW: Final[dict[str, str]] = {
    AlertState.FIXED: "Fixed, says",
    AlertState.FALSE: "Called a false alarm by",
}


@dataclass(frozen=True, kw_only=True)
class AlertLife:
    """The steps, with everything they touch."""

    database: Database
    clock: Clock
    #: Where alerts are kept open; None where nothing can be closed, as with files.
    tracker: AlertTracker | None
    #: Where people find the pages.
    base_url: str

    def settle(self, fork: str, sha: str) -> list[int]:
        """Close the alerts whose loss is gone with a commit; return the entries to tell.

        Those are the ones about this commit, and any that were left untold for long.
        """
        now = self.clock.now()
        with self.database.writing() as session:
            _close_fixed(session, fork, sha, at=now)
            waiting = audit.untold(session)
        own = [entry.id for entry in waiting if entry.details.get("commit") == sha]
        left = [
            entry.id for entry in waiting if entry.id not in own and now - entry.at > UNTOLD_AFTER
        ]
        return [*own, *left[:LEFT_OVER_MAX]]

    def untold(self) -> list[int]:
        """Return the entries that issue and chat have still to hear of, oldest first."""
        with self.database.reading() as session:
            return [entry.id for entry in audit.untold(session)]

    def tell(self, entry_id: int) -> None:
        """Bring issue and chat to what an entry of the audit log says, once.

        An entry that a later one of the same alert has overtaken is only noted as told.

        Raises:
            TransientError: They cannot be told now.
        """
        with self.database.reading() as session:
            entry = audit.find(session, entry_id)
            if entry is None or entry.told_at is not None:
                return
            alert = alerts.find(session, entry.about)
            assert alert is not None, "the log is about alerts that are there"
            last = _last_turn(session, alert)
            text = _text(session, alert, entry, page=f"{self.base_url}/alerts/{alert.id}")
        where = self._speak(alert, entry, text) if last == entry.id else None
        self._note(alert, entry, where)

    def _speak(self, alert: Alert, entry: AuditEntry, text: str) -> str | None:
        if self.tracker is None:
            return None
        key = str(entry.details.get("commit") or f"order-{entry.id}")
        if entry.after in CLOSED_STATES:
            intended = entry.after != AlertState.FIXED
            return self.tracker.close_alert(alert, text, key=key, intended=intended)
        return self.tracker.reopen_alert(alert, text, key=key)

    def _note(self, alert: Alert, entry: AuditEntry, where: str | None) -> None:
        now = self.clock.now()
        with self.database.writing() as session:
            audit.mark_told(session, entry.id, at=now)
            if where is not None:
                events.append_once(
                    session,
                    alert.fork,
                    alert.sha,
                    EventKind.ALERT_CHANGED,
                    f"alert {alert.id} is {entry.after}, told: {where}",
                    at=now,
                    about=f"{entry.id}:told",
                )


def _close_fixed(session: Session, fork: str, sha: str, *, at: datetime) -> None:
    """Close every alert of a fork whose loss is gone with a commit."""
    open_ = alerts.in_states(session, fork, OPEN_STATES)
    if not open_:
        return
    chain = [sha, *(commit.sha for commit in commits.first_parents(session, fork, sha))]
    for alert in open_:
        if alert.sha not in chain[1:]:
            continue
        recovery = find_recovery(session, alert, chain)
        # Somebody may have settled it in the meantime; from here on nobody can.
        if recovery is not None and alerts.locked(session, alert.id).state in OPEN_STATES:
            _close(session, alert, recovery, sha=sha, at=at)


def _close(session: Session, alert: Alert, recovery: Recovery, *, sha: str, at: datetime) -> None:
    order = AlertOrder(
        alert=alert.id,
        action=AlertAction.FIXED,
        actor=SERVICE_ACTOR,
        via=OrderVia.FLOW,
        note=recovery.words(sha),
        key=f"fixed:{sha}",
    )
    details = {"commit": sha, "gains": dict(recovery.gains)}
    commit = AlertCommit(fork=alert.fork, sha=sha, part=AlertPart.FIXED, run=None, at=at)
    alerts.add_commit_once(session, alert.id, commit)
    carry_out(session, order, at=at, details=details)


def _last_turn(session: Session, alert: Alert) -> int | None:
    """Return the newest entry that closed an alert or opened it again."""
    log = audit.history(session, AuditSubject.ALERT, alert.id)
    turns = [entry.id for entry in log if is_turn(entry.before, entry.after)]
    return turns[-1] if turns else None


def _text(session: Session, alert: Alert, entry: AuditEntry, *, page: str) -> str:
    """Return what issue and chat are told about an entry, in Markdown."""
    by, reason = _person(entry.actor), entry.note
    if entry.after == AlertState.ACCEPTED:
        return accepted_markdown(by=by, reason=reason, page=page)
    commit = _commit(session, alert.fork, entry.details.get("commit"))
    if commit is not None and entry.after == AlertState.FIXED:
        return fast_again_markdown(entry.details.get("gains", {}), at=commit, page=page)
    if commit is not None:
        losses = {item.workload: item.effect for item in alert.workloads}
        return slower_again_markdown(losses, at=commit, page=page)
    how = _HOW.get(entry.after or "")
    if how is None:
        return settled_markdown(
            how="Opened again by", by=by, reason=reason, closed=False, page=page
        )
    return settled_markdown(how=how, by=by, reason=reason, page=page)


def _person(actor: str) -> str:
    """Return an actor as people write it: without the place that the order came through."""
    return actor.partition(":")[2] or actor


def _commit(session: Session, fork: str, sha: object) -> Commit | None:
    record = commits.find(session, fork, sha) if isinstance(sha, str) else None
    if record is None:
        return None
    return Commit(
        sha=record.sha,
        tree=record.tree,
        author=record.author,
        subject=record.subject,
        committed_at=record.committed_at,
    )
