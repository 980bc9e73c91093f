"""The weekly digest as a durable flow: which weeks are due, writing each once, sending it.

A schedule asks every Monday, and every start of the service asks for what was missed while it was
away. The row of a fork's week in the store keeps a digest from being written twice, the flow's id
and the sink's own memory from being sent twice, whatever the number of replicas.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS, SetWorkflowID

from reports.digest_sections import headline
from reports.digest_text import digest_document, digest_markdown
from service.core.digests import StoredDigest
from service.core.errors import NotFoundError
from service.core.weeks import parse_week, week_of
from service.flows.digest_contents import digest_of
from service.flows.durable import run_step
from service.store import digests, forks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from dbos import WorkflowHandle
    from sqlalchemy.orm import Session

    from reports.digest import Digest
    from service.core.clock import Clock
    from service.core.model import Fork
    from service.core.ports import DigestSink
    from service.core.weeks import Week
    from service.store.database import Database

_log = logging.getLogger("forkwatch.digests")

#: Monday at seven, in the zone of the digests: before people read their mail.
SCHEDULE: Final = "0 7 * * 1"
SCHEDULE_NAME: Final = "weekly-digests"
#: Weeks that are made up for after a pause. What is older nobody reads any more.
CATCH_UP_WEEKS_MAX: Final = 8
#: Tries of a step when something outside fails, with pauses of 1, 2, 4 ... seconds: some hours, as
#: a digest can wait and nobody looks after it on a Monday morning.
STEP_TRIES_MAX: Final = 14


@dataclass(frozen=True, kw_only=True)
class DigestSteps:
    """The steps, with everything they touch; doing one again changes nothing."""

    database: Database
    clock: Clock
    sink: DigestSink
    #: Whose weeks they are.
    zone: ZoneInfo
    #: Base address of the pages.
    base_url: str
    #: The commit that branches are compared with; each fork's first measured one where absent.
    against: str | None = None

    def due(self) -> list[tuple[str, str]]:
        """Return what is to be written or sent, as (fork, week), the oldest week first."""
        last = week_of(self.clock.now(), self.zone).after(-1)
        with self.database.reading() as session:
            found = [
                (week.name, fork.name)
                for fork in forks.everything(session)
                for week in _due_weeks(session, fork, last=last, zone=self.zone)
            ]
        return [(fork, week) for week, fork in sorted(found)]

    def write(self, fork: str, week: str) -> str:
        """Write the digest of a week down, unless it is; return its headline."""
        chosen = parse_week(week)
        with self.database.reading() as session:
            known = digests.find(session, fork, chosen)
        if known is not None:
            return known.headline
        written = self._written(fork, chosen)
        with self.database.writing() as session:
            return digests.store_once(session, written).headline

    def send(self, fork: str, week: str) -> str:
        """Send a digest that is written and not sent yet; return where it went.

        Raises:
            TransientError: The sink does not take it now.
        """
        chosen = parse_week(week)
        with self.database.reading() as session:
            digest = digests.find(session, fork, chosen)
        assert digest is not None, "a digest is written before it is sent"
        if digest.sent_at is not None:
            return digest.sent_to
        where = self.sink.send_digest(digest)
        with self.database.writing() as session:
            digests.mark_sent(session, fork, chosen, where=where, at=self.clock.now())
        return where

    def _written(self, fork: str, week: Week) -> StoredDigest:
        """Return the digest as it will be stored; the reading is over before the writing begins."""
        now = self.clock.now()
        with self.database.reading() as session:
            found = forks.find(session, fork)
            assert found is not None, "a fork stays once it was seen"
            digest = self._digest(session, found, week, now=now)
        return StoredDigest(
            fork=fork,
            week=week,
            zone=self.zone.key,
            headline=headline(digest),
            text=digest_markdown(digest, page=f"{self.base_url}/digests/{week.name}"),
            document=digest_document(digest),
            created_at=now,
        )

    def _digest(self, session: Session, fork: Fork, week: Week, *, now: datetime) -> Digest:
        try:
            return digest_of(session, fork, week, zone=self.zone, now=now, against=self.against)
        except NotFoundError as error:
            # The commit may be one of another fork, and the week has more to tell than that.
            _log.warning("%s; the digest compares with the first measured one", error)
            return digest_of(session, fork, week, zone=self.zone, now=now)


class DigestFlow:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(self, steps: DigestSteps, *, step_pause_seconds: float = 1.0) -> None:
        self._steps = steps
        self._pause = step_pause_seconds
        self._write_one = self._registered_one()
        self._write_due = self._registered_all()

    def open_schedule(self) -> None:
        """Declare the weekly schedule, and begin with what was missed; DBOS has to be launched."""
        DBOS.apply_schedules(
            [
                {
                    "schedule_name": SCHEDULE_NAME,
                    "workflow_fn": self._write_due,
                    "schedule": SCHEDULE,
                    "cron_timezone": self._steps.zone.key,
                }
            ]
        )
        self.catch_up()

    def catch_up(self) -> WorkflowHandle[None]:
        """Begin to write and send what is due; return a handle of the flow."""
        return DBOS.start_workflow(self._write_due, self._steps.clock.now(), None)

    def _registered_one(self) -> Callable[[str, str], None]:
        @DBOS.workflow(name="write_digest")
        def write_digest(fork: str, week: str) -> None:
            self._step(self._steps.write, fork, week)
            self._step(self._steps.send, fork, week)

        return write_digest

    def _registered_all(self) -> Callable[[datetime, Any], None]:
        @DBOS.workflow(name="write_due_digests")
        def write_due_digests(scheduled_at: datetime, context: Any) -> None:
            # What is due is read from the store, whatever hour it was planned for.
            del scheduled_at, context
            for fork, week in self._step(self._steps.due):
                with SetWorkflowID(f"digest:{fork}:{week}"):
                    handle = DBOS.start_workflow(self._write_one, fork, week)
                try:
                    handle.get_result()
                except Exception:  # noqa: BLE001  the other weeks and forks have digests of their own
                    _log.exception("the digest of %s, week %s, failed", fork, week)

        return write_due_digests

    def _step(self, step: Callable[..., Any], *arguments: str) -> Any:
        """Do a step once and for all, trying again while the outside fails."""
        return run_step(
            step,
            *arguments,
            pause_seconds=self._pause,
            name=f"digest_{step.__name__}",
            tries_max=STEP_TRIES_MAX,
        )


def _due_weeks(session: Session, fork: Fork, *, last: Week, zone: ZoneInfo) -> Iterator[Week]:
    """Give the weeks of a fork up to `last` that are not sent yet, oldest first."""
    earliest = max(week_of(fork.first_seen_at, zone), last.after(1 - CATCH_UP_WEEKS_MAX))
    week = earliest
    while week <= last:
        known = digests.find(session, fork.name, week)
        if known is None or known.sent_at is None:
            yield week
        week = week.after(1)
