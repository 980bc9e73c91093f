"""People's orders about the baseline of one series: begin it anew at a commit, or take that back.

An order comes in, the mark that is set goes out; mark and audit log are written together. Verdicts
that were made before keep the samples they were made from, so they can still be replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.core.alert_records import AuditSubject, BaselineMark, MarkKind
from service.core.errors import ActionError, NotFoundError
from service.flows.alert_actions import NAME_LENGTH_MAX, NOTE_LENGTH_MAX
from service.store import audit, baseline_marks, commits, series
from service.store.audit import NewEntry

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.series import SeriesKey
    from service.core.clock import Clock
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class BaselineOrder:
    """One order about one series by somebody who may give it."""

    #: Id of the series.
    series: str
    sha: str
    actor: str
    via: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class StoredBaselines:
    """Orders about the baselines of a store."""

    database: Database
    clock: Clock

    def reset(self, order: BaselineOrder) -> BaselineMark:
        """Begin the baseline of a series anew at a commit; the commits before it count no more.

        Doing it again changes nothing.

        Raises:
            NotFoundError: There is no such series, or its fork has no such commit.
            ActionError: The order's words are too long.
        """
        now = self.clock.now()
        with self.database.writing() as session:
            key = _known(session, order)
            known = baseline_marks.find(session, key.id, order.sha)
            if known is not None and known.kind is MarkKind.RESET:
                return known
            mark = BaselineMark(
                series=key.id,
                fork=key.fork,
                sha=order.sha,
                kind=MarkKind.RESET,
                alert=None,
                actor=order.actor,
                note=order.note,
                at=now,
            )
            baseline_marks.put(session, mark)
            _log(session, order, "reset", at=now)
        return mark

    def take_back(self, order: BaselineOrder) -> None:
        """Take back the mark that a commit has in a series, whoever set it; none is fine too.

        Raises:
            NotFoundError: There is no such series, or its fork has no such commit.
            ActionError: The order's words are too long.
        """
        with self.database.writing() as session:
            key = _known(session, order)
            if baseline_marks.find(session, key.id, order.sha) is not None:
                baseline_marks.remove(session, key.id, order.sha)
                _log(session, order, "take-back", at=self.clock.now())


def _known(session: Session, order: BaselineOrder) -> SeriesKey:
    """Return the series of an order that can be carried out."""
    if len(order.note) > NOTE_LENGTH_MAX or len(order.actor) > NAME_LENGTH_MAX:
        raise ActionError(f"a note has at most {NOTE_LENGTH_MAX} characters")
    key = series.find(session, order.series)
    if key is None:
        raise NotFoundError(f"there is no series {order.series!r}")
    if commits.find(session, key.fork, order.sha) is None:
        raise NotFoundError(f"fork {key.fork!r} has no commit {order.sha!r} here")
    return key


def _log(session: Session, order: BaselineOrder, what: str, *, at: datetime) -> None:
    audit.append(
        session,
        NewEntry(
            at=at,
            subject=AuditSubject.SERIES,
            about=order.series,
            what=what,
            actor=order.actor,
            via=order.via,
            note=order.note,
            details={"commit": order.sha},
        ),
    )
