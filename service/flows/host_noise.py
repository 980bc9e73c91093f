"""Host noise: what a run document tells about its machine rather than about its commit.

A document comes in when its run is stored; the machine, the scatter of each workload and the canary
go into the store. It judges nothing, and must never look at how fast anything was: a standard
deviation of logs is the same for a slow commit and a fast one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from results.metric import THROUGHPUT
from results.slice import SideName, SliceState
from service.core.hosts import UNKNOWN, HostNoise, Spread, UsualNoise, WorkloadNoise
from service.store import hosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray
    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from results.slice import Slice
    from service.core.hosts import NoiseRecord

    Array = NDArray[np.float64]

#: A suite has at most 200 workloads; a document with more comes from somebody's own runner.
WORKLOADS_MAX: Final = 200


def record(session: Session, document: RunDocument, *, at: datetime) -> None:
    """Write down what a stored run tells about its host; doing it again changes nothing."""
    hosts.see(session, document, at=at)
    hosts.append_once(session, document, noise_of(document), at=at)


def noise_of(document: RunDocument) -> list[WorkloadNoise]:
    """Return the noise of each workload of a run, in the order they were measured."""
    return [_noise(document, workload) for workload in document.workloads()[:WORKLOADS_MAX]]


def of_host(
    session: Session,
    name: str,
    *,
    host_class: str | None,
    workload: str | None,
    limit: int,
    readings: int | None = None,
) -> list[HostNoise]:
    """Return the noise of a machine, once for each host class that it ran in.

    Args:
        session: An open transaction.
        name: The machine's name.
        host_class: Only this class, where given.
        workload: Only this workload, where given.
        limit: Records of each history at most, the newest.
        readings: Of the canary at most; as many as records where None.
    """
    found = []
    for host in hosts.named(session, name, host_class=host_class):
        history = hosts.noise(session, host, workload=workload, limit=limit)
        found.append(
            HostNoise(
                host=host,
                usual=usual_noise([one for one in history if one.fingerprint == host.fingerprint]),
                history=history,
                canary=hosts.canary(session, host, limit=readings or limit),
            )
        )
    return found


def usual_noise(records: Iterable[NoiseRecord]) -> list[UsualNoise]:
    """Return what each workload usually shows, each run counting by its degrees of freedom."""
    by_workload: dict[str, list[WorkloadNoise]] = defaultdict(list)
    for one in records:
        by_workload[one.noise.workload].append(one.noise)
    return [
        UsualNoise(
            workload=workload,
            runs=len(seen),
            between_starts_percent=_percent(pooled([one.between_starts for one in seen])),
            between_slices_percent=_percent(pooled([one.between_slices for one in seen])),
            between_pairs_percent=_percent(pooled([one.between_pairs for one in seen])),
            disturbed_percent=100
            * sum(one.disturbed for one in seen)
            / max(1, sum(one.slices for one in seen)),
        )
        for workload, seen in sorted(by_workload.items())
    ]


def pooled(spreads: Sequence[Spread]) -> Spread:
    """Return one spread for all, by the mean square over their degrees of freedom."""
    known = [one for one in spreads if one.known]
    df = sum(one.df for one in known)
    if df == 0:
        return UNKNOWN
    return Spread(sd=math.sqrt(sum(one.df * one.sd**2 for one in known) / df), df=df)


def _noise(document: RunDocument, workload: str) -> WorkloadNoise:
    pieces = [
        piece for start in document.starts for piece in start.slices if piece.workload == workload
    ]
    sides = [_logs(document, workload, side) for side in SideName]
    return WorkloadNoise(
        workload=workload,
        starts=max(len(side) for side in sides),
        slices=len(pieces),
        disturbed=sum(piece.state is SliceState.DISTURBED for piece in pieces),
        steal_percent_max=_steal(pieces),
        between_starts=pooled([_spread(_levels(side)) for side in sides]),
        between_slices=pooled([_spread(start) for side in sides for start in side]),
        between_pairs=_spread(_levels(sides[1]) - _levels(sides[0]))
        if document.paired
        else UNKNOWN,
    )


def _logs(document: RunDocument, workload: str, side: SideName) -> list[Array]:
    """Return the logs of a side's slices by start; a start without any is an empty array."""
    rows = document.samples(workload, THROUGHPUT.name, side)
    # A throughput of zero has no log; the runner calls it a failure, a stranger's may not.
    return [np.log([value for value in row if value > 0]) for row in rows]


def _levels(starts: Sequence[Array]) -> Array:
    return np.array([np.mean(start) if start.size else np.nan for start in starts])


def _spread(values: Array) -> Spread:
    there = values[np.isfinite(values)]
    if there.size < 2:  # noqa: PLR2004  one value has no spread
        return UNKNOWN
    return Spread(sd=float(np.std(there, ddof=1)), df=int(there.size) - 1)


def _steal(pieces: Sequence[Slice]) -> float:
    shares = (piece.counters.machine_steal_percent for piece in pieces if piece.counters)
    return max(shares, default=0.0)


def _percent(spread: Spread) -> float | None:
    return 100 * spread.sd if spread.known else None
