"""Carrying out orders about alerts: each in one transaction, and once for each key.

An order comes in from whichever channel, the alert as it is then goes out; state, marks on
baselines and the audit log are written together or not at all. Whether somebody may give the order
was decided where it came in. Issue and chat are told afterwards, by `alert_life`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from detectors.verdict import Decision
from service.core.alert_actions import (
    CLOSED_STATES,
    AlertAction,
    AlertStep,
    OrderVia,
    is_turn,
    next_state,
)
from service.core.alert_records import (
    AuditSubject,
    BaselineMark,
    MarkKind,
    standing,
)
from service.core.errors import ActionError
from service.core.model import AlertState, EventKind
from service.store import alerts, audit, baseline_marks, events, verdicts
from service.store.audit import NewEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.alert_actions import AlertOrder
    from service.core.alert_records import AuditEntry
    from service.core.clock import Clock
    from service.core.model import Alert, VerdictRecord
    from service.store.database import Database

#: A reason that is longer is a document, and belongs where people write documents.
NOTE_LENGTH_MAX: Final = 2_000
#: The columns hold this many.
NAME_LENGTH_MAX: Final = 200
#: A mute without an end: until everybody was at work once.
MUTE_USUAL: Final = timedelta(days=7)
#: Whoever wants silence for longer means accept, or false alarm.
MUTE_MAX: Final = timedelta(days=90)
#: What these do to the baseline of every series that the alert names.
_MARKS: Final = {
    AlertAction.ACCEPT: MarkKind.ACCEPTED,
    AlertAction.FALSE_ALARM: MarkKind.VOID,
}


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of an order."""

    alert: Alert
    #: Id of the entry that issue and chat have still to hear of, if any.
    to_tell: int | None


class StoredAlertActions:
    """Orders about the alerts of a store."""

    def __init__(
        self, database: Database, clock: Clock, *, settled: Callable[[int], None] | None = None
    ) -> None:
        """Remember the parts.

        Args:
            database: Where the alerts are.
            clock: Tells the time of an order.
            settled: Told, after the transaction, the id of the entry that issue and chat have to
                hear of, whenever an alert was closed or opened again.
        """
        self._database = database
        self._clock = clock
        self._settled = settled

    def settle_through(self, settled: Callable[[int], None]) -> None:
        """Have this told from now on; for a teller that has to know these actions itself."""
        self._settled = settled

    def act(self, order: AlertOrder) -> Alert:
        """Carry an order out and return the alert as it is then; the same key is done once.

        Raises:
            ActionError: There is no such alert, or the order is not possible now; the message is
                for whoever gave it.
        """
        with self._database.writing() as session:
            done = carry_out(session, order, at=self._clock.now())
        if done.to_tell is not None and self._settled is not None:
            self._settled(done.to_tell)
        return done.alert

    def advance(
        self, alert_id: str, step: AlertStep, *, actor: str, note: str = "", key: str = ""
    ) -> Alert:
        """Note what the service itself has begun or found out about an alert.

        Raises:
            ActionError: There is no such alert, or that cannot happen now.
        """
        at = self._clock.now()
        with self._database.writing() as session:
            alert = alerts.locked(session, alert_id)
            if _repeated(session, alert_id, step, key):
                return alert
            changed = replace(alert, state=next_state(alert.state, step))
            entry = NewEntry(
                at=at,
                subject=AuditSubject.ALERT,
                about=alert_id,
                what=step.value,
                actor=actor,
                via=OrderVia.FLOW.value,
                note=note,
                key=key,
                before=alert.state.value,
                after=changed.state.value,
            )
            return _write(session, changed, entry)[0]


def carry_out(
    session: Session, order: AlertOrder, *, at: datetime, details: Mapping[str, Any] | None = None
) -> Done:
    """Carry an order out inside a transaction that others have begun.

    Args:
        session: Of the transaction.
        order: What to do.
        at: When.
        details: Kept with the order in the audit log.

    Raises:
        ActionError: There is no such alert, or the order is not possible now.
    """
    order = _checked(order, at=at)
    alert = alerts.locked(session, order.alert)
    # Looked for under the lock, so that two that bring one order do not both find nothing.
    known = _repeated(session, alert.id, order.action, order.key)
    if known is not None:
        return Done(alert=alert, to_tell=known.id if known.told_at is None else None)
    changed = _changed(alert, order, at=at)
    _mark(session, alert, order, at=at)
    entry = NewEntry(
        at=at,
        subject=AuditSubject.ALERT,
        about=alert.id,
        what=order.action.value,
        actor=order.actor,
        via=order.via,
        note=order.note,
        key=order.key,
        before=alert.state.value,
        after=changed.state.value,
        details={**_details(order, changed), **(details or {})},
        to_tell=is_turn(alert.state, changed.state),
    )
    written, entry_id = _write(session, changed, entry)
    return Done(alert=written, to_tell=entry_id if entry.to_tell else None)


def losses_of(session: Session, alert: Alert) -> list[VerdictRecord]:
    """Return the verdicts that an alert stands for, the first one of each workload first.

    Workloads can be there twice, where two commits were seen to have the same cause.
    """
    named = {item.workload for item in alert.workloads}
    return [
        verdict
        for commit in standing(alerts.commits_of(session, alert.id))
        if commit.run is not None
        for verdict in verdicts.of_run(session, commit.run)
        if verdict.decision is Decision.REGRESSION and verdict.series.workload in named
    ]


def _checked(order: AlertOrder, *, at: datetime) -> AlertOrder:
    """Return an order whose words the store can hold."""
    if not order.actor or order.via not in set(OrderVia):
        raise ActionError(f"an order has an actor, and comes via one of {', '.join(OrderVia)}")
    names = (order.actor, order.key, order.owner)
    if any(len(name) > NAME_LENGTH_MAX or "\0" in name for name in names):
        raise ActionError(f"actor, key and owner have at most {NAME_LENGTH_MAX} characters each")
    if len(order.note) > NOTE_LENGTH_MAX:
        raise ActionError(f"a note has at most {NOTE_LENGTH_MAX} characters")
    if order.action is AlertAction.NOTE and not order.note.strip():
        raise ActionError("a note without words says nothing")
    if order.until is not None and not at < order.until <= at + MUTE_MAX:
        raise ActionError(f"an alert can be muted for at most {MUTE_MAX.days} days from now")
    # PostgreSQL takes no zero byte.
    return replace(order, via=str(order.via), note=order.note.replace("\0", ""))


def _repeated(
    session: Session, alert_id: str, what: AlertAction | AlertStep, key: str
) -> AuditEntry | None:
    """Return the entry that this key made already, None where it has made none."""
    if not key:
        return None
    entry = audit.with_key(session, AuditSubject.ALERT, alert_id, key)
    if entry is not None and entry.what != what:
        raise ActionError(f"the key {key!r} was used for {entry.what!r} before; take a new one")
    return entry


def _changed(alert: Alert, order: AlertOrder, *, at: datetime) -> Alert:
    """Return the alert as the order leaves it."""
    state = next_state(alert.state, order.action)
    closed_at = (alert.closed_at or at) if state in CLOSED_STATES else None
    changed = replace(alert, state=state, closed_at=closed_at)
    match order.action:
        case AlertAction.ACKNOWLEDGE:
            # Whoever has seen it has it, unless somebody has it already.
            changed = replace(changed, owner=alert.owner or order.actor)
        case AlertAction.ACCEPT | AlertAction.TRUE_ALARM:
            changed = replace(changed, true_alarm=True)
        case AlertAction.FALSE_ALARM:
            changed = replace(changed, true_alarm=False)
        case AlertAction.MUTE:
            changed = replace(changed, muted_until=order.until or at + MUTE_USUAL)
        case AlertAction.ASSIGN:
            changed = replace(changed, owner=order.owner or order.actor, due_on=order.due_on)
        case AlertAction.REOPEN:
            # That it was a false alarm is what reopening takes back.
            said = None if alert.state is AlertState.FALSE else alert.true_alarm
            changed = replace(changed, muted_until=None, true_alarm=said)
        case AlertAction.NOTE | AlertAction.FIXED:
            pass
    return changed


def _mark(session: Session, alert: Alert, order: AlertOrder, *, at: datetime) -> None:
    """Say where the baselines of the alert's series begin, as far as the order is about that."""
    if order.action is AlertAction.REOPEN:
        baseline_marks.remove_of_alert(session, alert.id)
    kind = _MARKS.get(order.action)
    if kind is None:
        return
    for loss in losses_of(session, alert):
        baseline_marks.put(
            session,
            BaselineMark(
                series=loss.series.id,
                fork=alert.fork,
                sha=loss.sha,
                kind=kind,
                alert=alert.id,
                actor=order.actor,
                note=order.note,
                at=at,
            ),
        )


def _details(order: AlertOrder, changed: Alert) -> dict[str, Any]:
    """Return what the audit log keeps of an order beside its words."""
    if order.action is AlertAction.ASSIGN:
        due = changed.due_on.isoformat() if changed.due_on else None
        return {"owner": changed.owner, "due_on": due}
    if order.action is AlertAction.MUTE:
        assert changed.muted_until is not None, "a muted alert has an end of silence"
        return {"until": changed.muted_until.isoformat()}
    return {}


def _write(session: Session, changed: Alert, entry: NewEntry) -> tuple[Alert, int]:
    """Write the alert, the log and the event of its commit; return the alert and the entry's id."""
    written = alerts.keep(session, changed)
    entry_id = audit.append(session, entry).id
    words = f": {entry.note}" if entry.note else ""
    events.append_once(
        session,
        written.fork,
        written.sha,
        EventKind.ALERT_CHANGED,
        f"alert {written.id}: {entry.what} by {entry.actor}{words}",
        at=entry.at,
        about=str(entry_id),
    )
    return written, entry_id
