"""Orders for jobs of a CI: an identity comes in, the order of a job that waits goes out.

With the order goes a credential that is good for the run of this one job: a measurement takes
hours, and the token that proved the identity is good for minutes.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003  the API makes its schema from these classes
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from results.job import JobOrder
from service.core.errors import CredentialMissingError, NotFoundError, TransientError
from service.core.identity import LEEWAY, check_may_submit
from service.core.model import EventKind
from service.flows.steps import CREDENTIAL_BYTES, CREDENTIAL_GRACE, credential_hash
from service.store import events, jobs, waiting_jobs

if TYPE_CHECKING:
    from datetime import timedelta

    from sqlalchemy.orm import Session

    from service.core.clock import Clock
    from service.core.identity import Identity
    from service.core.model import Job
    from service.store.database import Database

#: Tokens remembered at once. Each took a job of the CI some seconds to ask for and is forgotten
#: after an hour and a bit, so more than this are no jobs.
SPENT_MAX: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class HandedOrder:
    """What a job of the CI is to measure, its credential included."""

    order: JobOrder
    credential_expires_at: datetime


class SpentTokens:
    """Tokens that were exchanged, for as long as they would be good."""

    def __init__(self, *, at_most: int = SPENT_MAX) -> None:
        self._at_most = at_most
        self._until: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def spend(self, identity: Identity, *, at: datetime) -> None:
        """Note that a token was exchanged.

        Raises:
            CredentialMissingError: It was before.
            TransientError: There are too many to remember another one.
        """
        with self._lock:
            self._until = {one: until for one, until in self._until.items() if until > at}
            if identity.digest in self._until:
                raise CredentialMissingError("this token was used before: ask for a new one")
            if len(self._until) >= self._at_most:
                raise TransientError("too many tokens were exchanged within the hour")
            self._until[identity.digest] = identity.expires_at + LEEWAY


@dataclass(frozen=True, kw_only=True)
class CiOrders:
    """The orders that jobs of a CI may ask for."""

    database: Database
    clock: Clock
    #: Longest time one job may take; its credential is good for a while longer.
    job_time: timedelta
    spent: SpentTokens = field(default_factory=SpentTokens)

    def hand_over(self, identity: Identity, host_class: str) -> HandedOrder:
        """Return the order of the oldest job that waits for the identity's commit.

        Its new credential takes the place of an older one, as for every runner that is started: a
        job of the CI that was started again may ask again.

        Raises:
            NotFoundError: None waits.
            CredentialMissingError: The token was exchanged before.
            CredentialRefusedError: The job is of another branch.
        """
        now = self.clock.now()
        credential = secrets.token_urlsafe(CREDENTIAL_BYTES)
        expires_at = now + self.job_time + CREDENTIAL_GRACE
        with self.database.writing() as session:
            job = waiting_jobs.oldest(session, sha=identity.commit, host_class=host_class)
            if job is None:
                raise NotFoundError(
                    f"no job waits for {identity.commit[:12]} on the host class {host_class!r}"
                )
            check_may_submit(identity, job)
            self.spent.spend(identity, at=now)
            jobs.begin_attempt(
                session,
                job.id,
                job.attempts,
                credential_hash=credential_hash(credential),
                expires_at=expires_at,
            )
            _note(session, job, identity, at=now)
        order = JobOrder.model_validate_json(job.order)
        return HandedOrder(
            order=order.model_copy(update={"credential": SecretStr(credential)}),
            credential_expires_at=expires_at,
        )


def _note(session: Session, job: Job, identity: Identity, *, at: datetime) -> None:
    events.append_once(
        session,
        job.fork,
        job.sha,
        EventKind.DISPATCHED,
        f"{job.kind.value} job handed to {identity.run} for host class {job.host_class}",
        at=at,
        about=f"{job.id}:{identity.digest[:12]}",
    )
