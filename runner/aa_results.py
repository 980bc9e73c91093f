"""Results of A/A checks: what a pair of equals says of its host, and what earlier ones said.

A run document of two copies of one artifact comes in, with the gates of the fork's own plan. Out
goes, for each workload, whether the ordinary pair would have called it changed, how much the log
ratio scatters between starts, and the smallest loss that this host can see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict

from detectors.pairwise import STARTS_MIN
from detectors.pooling import paired_differences
from detectors.verdict import Decision, decide, log_loss
from reports.numbers import detectable_percent
from results.document import samples_of
from results.metric import THROUGHPUT
from results.slice import SideName
from runner.deciding import ALPHA, Question, look_at
from runner.host.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from detectors.sequential import Look
    from results.document import RunDocument, Start
    from workloads.plan import Gates

#: No plan allows more.
STARTS_MAX: Final = 100
#: Older checks say little about a machine with updates every month.
HISTORY_USED: Final = 12


class AaResult(BaseModel):
    """One workload of one check, as the host's history keeps it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    taken_at: AwareDatetime
    job: str
    fingerprint: str
    placement: str
    fork: str
    suite: str
    workload: str
    #: Starts in which both sides were measured.
    starts: int
    #: Standard deviation of the log ratio between starts.
    sd_percent: float | None
    #: Of one copy against the other, with the bounds that hold at every look.
    effect_percent: float
    low_percent: float | None
    high_percent: float | None
    #: Smallest loss that these starts would have shown; None where that is any.
    sees_percent: float | None
    gate_percent: float
    #: What the ordinary pair would have said, at its first look that stops.
    verdict: Decision

    @property
    def alarms(self) -> bool:
        """Whether two copies of one artifact were called different."""
        return self.verdict in {Decision.REGRESSION, Decision.IMPROVEMENT}

    @property
    def fits(self) -> bool:
        """Whether the host sees a loss as small as the plan's gate with so many starts."""
        return self.sees_percent is not None and self.sees_percent <= self.gate_percent

    @property
    def starts_needed(self) -> int | None:
        """About how many starts would see the gate, or None where no plan allows as many."""
        if self.sees_percent is None or self.sees_percent >= 100:  # noqa: PLR2004  all of it
            return None
        sees, gate = (log_loss(value / 100) for value in (self.sees_percent, self.gate_percent))
        needed = math.ceil(self.starts * (sees / gate) ** 2)
        return needed if needed <= STARTS_MAX else None


@dataclass(frozen=True, kw_only=True)
class Past:
    """What the checks of one workload on this host have shown so far, the newest included."""

    checks: int
    alarms: int
    since: datetime
    #: Pooled over the checks.
    sd_percent: float | None


def history(folder: Path) -> History[AaResult]:
    """Return the checks that the host's folder keeps."""
    return History(folder / "aa.jsonl", AaResult)


def results_of(document: RunDocument, gates: Gates, *, at: datetime) -> tuple[AaResult, ...]:
    """Return what a measured pair of equals says of its host, workload by workload.

    The level is shared among the workloads, so that of a good host's checks one in a hundred alarms
    at the most.
    """
    workloads = document.workloads()
    question = Question(
        gates=gates,
        alphas=dict.fromkeys(workloads, ALPHA / max(1, len(workloads))),
        starts_max=document.starts_max or len(document.starts),
        budget_s=math.inf,
    )
    seen = {workload: look_at(document.starts, workload, question) for workload in workloads}
    return tuple(
        _result(document, workload, whole, question, at=at)
        for workload, whole in seen.items()
        if whole is not None
    )


def past_of(kept: Sequence[AaResult], now: Sequence[AaResult]) -> Mapping[str, Past]:
    """Return what the checks in a history showed that are comparable with those of now."""
    found = {}
    for one in now:
        alike = [past for past in kept if _identity(past) == _identity(one)][-HISTORY_USED:]
        spreads = [
            (past.sd_percent, past.starts - 1) for past in alike if past.sd_percent is not None
        ]
        weights = sum(weight for _, weight in spreads)
        squares = sum(weight * sd**2 for sd, weight in spreads)
        found[one.workload] = Past(
            checks=len(alike),
            alarms=sum(past.alarms for past in alike),
            since=alike[0].taken_at if alike else one.taken_at,
            sd_percent=math.sqrt(squares / weights) if weights else None,
        )
    return found


def _identity(one: AaResult) -> tuple[str, ...]:
    return (one.workload, one.suite, one.fork, one.fingerprint, one.placement)


def _result(
    document: RunDocument, workload: str, whole: Look, question: Question, *, at: datetime
) -> AaResult:
    change, gate = whole.change, question.gates.gate(workload)
    stopped = _first_stop(document.starts, workload, question) or whole
    verdict = decide(
        stopped.change,
        direction=THROUGHPUT.direction,
        gate=gate,
        alpha=question.plan(workload).alpha,
    )
    seen = change.detectable_effect
    return AaResult(
        taken_at=at,
        job=document.job,
        fingerprint=document.host.fingerprint,
        placement=document.placement.mode,
        fork=document.fork,
        suite=document.suite,
        workload=workload,
        starts=whole.starts,
        sd_percent=_sd_percent(document.starts, workload),
        effect_percent=100 * math.expm1(change.effect),
        low_percent=_bound(change.interval.low),
        high_percent=_bound(change.interval.high),
        sees_percent=detectable_percent(seen) if math.isfinite(seen) else None,
        gate_percent=100 * gate,
        verdict=verdict.decision,
    )


def _first_stop(starts: Sequence[Start], workload: str, question: Question) -> Look | None:
    """Return the look at which the ordinary pair would have left the workload alone, if any."""
    for count in range(1, len(starts) + 1):
        seen = look_at(starts[:count], workload, question)
        if seen is not None and seen.stopped:
            return seen
    return None


def _sd_percent(starts: Sequence[Start], workload: str) -> float | None:
    baseline, candidate = (
        samples_of(starts, workload, THROUGHPUT.name, side)
        for side in (SideName.BASELINE, SideName.CANDIDATE)
    )
    differences = paired_differences([(baseline, candidate)])[0]
    there = differences[np.isfinite(differences)]
    return 100 * float(np.std(there, ddof=1)) if there.size >= STARTS_MIN else None


def _bound(effect: float) -> float | None:
    return 100 * math.expm1(effect) if math.isfinite(effect) else None
