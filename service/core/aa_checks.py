"""A/A checks: one commit measured against itself on a host class, and what that says of a host.

Frozen values that the store returns and the flows, the API and the pages read, and the rule of when
a check is due. This module knows neither tables nor HTTP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from detectors.verdict import Decision
from service.core.errors import ConflictError


class AaRefusedError(ConflictError):
    """This A/A check cannot be begun now; the message says why."""


class AaState(StrEnum):
    """How far a check has come."""

    #: Written down; it is measured when no commit, pull request or bisect waits.
    WAITING = "waiting"
    #: A runner measures it.
    MEASURING = "measuring"
    #: It has numbers.
    DONE = "done"
    #: It has none that may be judged, and says why.
    FAILED = "failed"


#: States in which something is still to come.
OPEN: Final = (AaState.WAITING, AaState.MEASURING)


@dataclass(frozen=True, kw_only=True)
class AaResult:
    """What a check showed of one workload; effects are log ratios of one copy over the other."""

    workload: str
    #: Starts in which both copies were measured.
    starts: int
    #: Standard deviation of the log ratio between starts; None where it was not replicated.
    sd: float | None
    effect: float
    #: Bounds that hold at every look; None where there are none.
    low: float | None
    high: float | None
    confidence: float
    #: Smallest |log ratio| that so many starts would have shown; None where that is any.
    detectable_effect: float | None
    #: Of the fork's own plan.
    gate: float
    #: What the ordinary pair would have said, at its first look that stops.
    decision: Decision

    @property
    def alarms(self) -> bool:
        """Whether two copies of one artifact were called different."""
        return self.decision in {Decision.REGRESSION, Decision.IMPROVEMENT}

    @property
    def sees_percent(self) -> float | None:
        """The smallest loss that was within sight, in percent; None where none was."""
        effect = self.detectable_effect
        return None if effect is None else -100 * math.expm1(-abs(effect))

    @property
    def fits(self) -> bool:
        """Whether the host sees a loss as small as the plan's gate with so many starts."""
        return self.sees_percent is not None and self.sees_percent <= 100 * self.gate


@dataclass(frozen=True, kw_only=True)
class AaCheck:
    """One commit measured against itself, as asked for and as it came out."""

    #: Also the name of its job.
    id: str
    fork: str
    sha: str
    host_class: str
    state: AaState
    asked_by: str
    via: str
    #: Identifier of its run document, by which the host's noise is kept.
    run: str
    attempts: int
    #: What came of it, as one sentence; empty before.
    said: str
    #: The machine that measured it, and as what; empty before.
    host_name: str
    fingerprint: str
    results: tuple[AaResult, ...]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def open(self) -> bool:
        """Whether something is still to come."""
        return self.state in OPEN

    @property
    def alarms(self) -> tuple[AaResult, ...]:
        """The workloads of which two copies were called different."""
        return tuple(one for one in self.results if one.alarms)


@dataclass(frozen=True, kw_only=True)
class AaSchedule:
    """How often the service checks its host class by itself."""

    host_class: str
    #: Days from one check to the next; 0 for never.
    days: int

    def due(self, last: AaCheck | None, *, now: datetime) -> bool:
        """Whether a check is due; whatever became of the last one, whoever asked for it."""
        if not self.days:
            return False
        return last is None or now >= self.next_after(last)

    def next_after(self, last: AaCheck) -> datetime:
        """Return when the check after this one is due."""
        return last.created_at + timedelta(days=self.days)
