"""The nouns of jobs that a CI does for the service: what is asked of it, and what became of that.

The store and the flows speak in these, and the adapters to each CI take and return them. Tables,
HTTP and the settings they must not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from service.core.errors import ServiceError

if TYPE_CHECKING:
    from datetime import datetime

    from service.core.identity import CiSystem


class DispatchRefusedError(ServiceError):
    """The CI does not start this job, and asking again changes nothing."""

    status = 502


class DispatchState(StrEnum):
    """How far one dispatch of a job has come."""

    #: Written down and asked for; no runner has come for its order yet.
    ASKED = "asked"
    #: A runner has its order, and the credential for its run.
    TAKEN = "taken"
    #: The run document is here.
    BROUGHT = "brought"
    #: None will come; it says why.
    ENDED = "ended"


#: A runner may still bring the run.
UNDER_WAY: Final = (DispatchState.ASKED, DispatchState.TAKEN)


@dataclass(frozen=True, kw_only=True)
class RunAsk:
    """What is asked of a CI: one run that comes back for the order of one job."""

    job: str
    #: Counts the dispatches of the job: each has a run of its own.
    attempt: int
    host_class: str
    #: For whoever checks out: the order names it again, with everything else.
    candidate: str
    suite: str
    #: The watched branch, whose workflow or steps are run.
    branch: str
    asked_at: datetime

    @property
    def title(self) -> str:
        """What the run is called, by which it is found again."""
        return f"forkwatch {self.job}, attempt {self.attempt}"


class CiRunState(StrEnum):
    """What a CI says about a run."""

    #: It waits for a machine.
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class CiRun:
    """A run of a CI."""

    #: Id of a run on GitHub, number of a build on Buildkite.
    external_id: str
    #: Where people see it.
    page: str
    state: CiRunState
    #: In the CI's own word, such as `cancelled`; empty before its end.
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """News of a CI: a run of its is over."""

    system: CiSystem
    external_id: str
    #: In the CI's own word.
    how: str
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class DispatchedJob:
    """One dispatch of a job to a CI."""

    job: str
    attempt: int
    system: CiSystem
    host_class: str
    state: DispatchState
    #: What its runner is asked, as a job order in JSON without a credential.
    order: str
    #: The flow that waits for it; None where none does.
    flow: str | None
    #: Its run at the CI; None until that is known.
    external_id: str | None
    page: str
    #: Why no run document came of it; empty before that.
    said: str
    asked_at: datetime
    #: When the CI was last asked for its run; None before the first time.
    posted_at: datetime | None
    taken_at: datetime | None
    ended_at: datetime | None


def nobody_waits(_news: object) -> bool:
    """Return that nobody waits for a run of a CI: none was started from here."""
    return False
