"""Bridges between series: what a series was measured under has changed, and how old relates to new.

Frozen values that the store returns and the flows and pages read. This module knows neither tables
nor HTTP. A relation is said beside numbers and never multiplied into them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime


class BridgeState(StrEnum):
    """How far a bridge has come."""

    #: Written down; its measurement waits until nothing else does.
    WAITING = "waiting"
    #: A runner measures it.
    MEASURING = "measuring"
    #: Old and new series are related.
    RELATED = "related"
    #: Nothing relates them; the bridge says why.
    FAILED = "failed"


#: States in which something is still to come.
OPEN: Final = (BridgeState.WAITING, BridgeState.MEASURING)


@dataclass(frozen=True, kw_only=True)
class Joint:
    """One workload whose series begins anew: ids of the series before, and of the one after.

    They are equal where the series is the same and its baseline begins anew.
    """

    workload: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Bridge:
    """The last commit of old series, to be measured once more under the new conditions."""

    id: str
    fork: str
    #: The first commit measured under the new conditions.
    sha: str
    #: The last one measured under the old: what is measured again.
    old_sha: str
    state: BridgeState
    #: What has changed, as words.
    why: str
    joints: tuple[Joint, ...]
    #: Both conditions are measured side by side.
    paired: bool
    #: What the runner is asked, as a job order in JSON; it holds no credential.
    order: str
    run: str
    attempts: int
    #: What came of it; empty before.
    said: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How a workload's new level relates to its old one, as one commit showed it under both."""

    bridge: str
    workload: str
    #: Ids of the series.
    before: str
    after: str
    #: The first commit of the new conditions, and the one that was measured under both.
    sha: str
    old_sha: str
    #: Log ratio, new conditions over old, with its interval.
    effect: float
    low: float
    high: float
    confidence: float
    paired: bool
    method: str
    at: datetime

    @property
    def words(self) -> str:
        """The relation in a few words."""
        if not all(map(math.isfinite, (self.effect, self.low, self.high))):
            return f"{self.workload} was measured too seldom to say"
        ratio, low, high = map(math.exp, (self.effect, self.low, self.high))
        share = f"{self.confidence * 100:.0f} %"
        return f"{self.workload} x {ratio:.3f} ({share}: {low:.3f} to {high:.3f})"
