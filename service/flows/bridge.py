"""Where a series begins anew: what has changed around a commit, and the bridge that is ordered.

A run with its gathered inputs comes in; the inputs that may still be compared go out, and a bridge
goes into the store: the last commit of the old series, to be measured once more under the new
conditions. A series begins anew by its identity, or, where that stays and the compiler or the
options behind a name have changed, by a mark on its baseline.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from results.job import JobOrder
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.alert_actions import SERVICE_ACTOR
from service.core.alert_records import BaselineMark, MarkKind
from service.core.bridges import Bridge, BridgeState, Joint
from service.core.model import EventKind
from service.flows.bridge_texts import began_words
from service.flows.conditions import SERIES_FIELDS, changed_conditions, difference
from service.store import baseline_marks, bridges, commits, events, series
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from results.series import SeriesKey
    from service.core.model import Job
    from service.flows.baseline import SingleInputs

_SEEDS: Final = 2**31
#: Fields of a series of which both values can be measured in one job, side by side.
_PAIRED: Final = frozenset({"variant", "config"})


@dataclass(frozen=True, kw_only=True)
class _Break:
    """Series that begin anew together."""

    old_sha: str
    why: str
    joints: tuple[Joint, ...]
    #: The key of a series before, where the new one has another.
    before: SeriesKey | None = None


def begin_anew(
    session: Session,
    job: Job,
    document: RunDocument,
    inputs: Sequence[SingleInputs],
    *,
    at: datetime,
) -> list[SingleInputs]:
    """Return the inputs, without the history that was measured under other conditions.

    Where there is such a history, it is said once, and a bridge is ordered; doing it again changes
    nothing.
    """
    found = _changed(session, job, document, inputs)
    if found is not None:
        _mark(session, job, inputs, why=found.why, at=at)
        inputs = [replace(item, history=()) for item in inputs]
    else:
        found = _renamed(session, job, inputs)
    if found is not None:
        _order(session, job, document, found, at=at)
    return list(inputs)


def _changed(
    session: Session, job: Job, document: RunDocument, inputs: Sequence[SingleInputs]
) -> _Break | None:
    """Return the break of series that keep their names, None where nothing behind those changed."""
    past = next((item.history for item in inputs if item.history), ())
    found = changed_conditions(session, job, document, past)
    if found is None:
        return None
    return _Break(
        old_sha=found.sha,
        why=found.why,
        joints=tuple(
            Joint(workload=item.series.workload, before=item.series.id, after=item.series.id)
            for item in inputs
            if item.history
        ),
    )


def _renamed(session: Session, job: Job, inputs: Sequence[SingleInputs]) -> _Break | None:
    """Return the break of series that are new while others of their workloads are not."""
    shas = [commit.sha for commit in commits.first_parents(session, job.fork, job.sha)]
    before: dict[str, tuple[int, SeriesKey]] = {}
    for item in inputs:
        if not item.history:
            nearest = _nearest(session, item.series, shas)
            if nearest is not None:
                before[item.series.id] = nearest
    if not before:
        return None
    # One commit is measured again; workloads that were last measured elsewhere stay unrelated.
    place = min(place for place, _ in before.values())
    joined = [item.series for item in inputs if before.get(item.series.id, (-1,))[0] == place]
    old = before[joined[0].id][1]
    return _Break(
        old_sha=shas[place],
        why=difference(old, joined[0]),
        joints=tuple(
            Joint(workload=key.workload, before=before[key.id][1].id, after=key.id)
            for key in joined
        ),
        before=old,
    )


def _nearest(session: Session, key: SeriesKey, shas: Sequence[str]) -> tuple[int, SeriesKey] | None:
    """Return another series of the workload and the place of its last commit, the nearest one."""
    last: list[tuple[int, SeriesKey]] = []
    for other in series.of_fork(session, key.fork, workload=key.workload, metric=THROUGHPUT.name):
        if other.id != key.id and other.branch == key.branch:
            measured = bridges.measured_of(session, other, shas)
            last += [(place, other) for place, sha in enumerate(shas) if sha in measured][:1]
    return min(last, key=lambda one: one[0]) if last else None


def _mark(
    session: Session, job: Job, inputs: Sequence[SingleInputs], *, why: str, at: datetime
) -> None:
    """Have the baselines begin anew at the commit; a mark that it has already stays."""
    for item in inputs:
        if item.history and baseline_marks.find(session, item.series.id, job.sha) is None:
            mark = BaselineMark(
                series=item.series.id,
                fork=job.fork,
                sha=job.sha,
                kind=MarkKind.RESET,
                alert=None,
                actor=SERVICE_ACTOR,
                note=why,
                at=at,
            )
            baseline_marks.put(session, mark)


def _order(
    session: Session, job: Job, document: RunDocument, found: _Break, *, at: datetime
) -> None:
    """Write the bridge down, and say that it is ordered."""
    about = hashlib.sha256(f"{job.fork}\x1f{job.sha}".encode()).hexdigest()[:8]
    name = f"bridge-{job.sha[:12]}-{about}"
    own = JobOrder.model_validate_json(job.order)
    sides = _sides(own, document, found.before)
    asked = own.model_copy(
        update={
            "job": name,
            "run": f"run-{name}",
            "candidate": found.old_sha,
            # The same commit on both sides: what differs is what it is measured under.
            "baseline": found.old_sha if sides else None,
            "unchanged_from": None,
            "workloads": tuple(joint.workload for joint in found.joints),
            "seed": int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % _SEEDS,
            # The document stays with the runner, where the flow takes it: no baseline learns of it.
            "submit_to": None,
            "credential": None,
            **sides,
        }
    )
    bridge = bridges.add_once(
        session,
        Bridge(
            id=name,
            fork=job.fork,
            sha=job.sha,
            old_sha=found.old_sha,
            state=BridgeState.WAITING,
            why=found.why,
            joints=found.joints,
            paired=bool(sides),
            order=asked.model_dump_json(exclude={"credential"}),
            run=asked.run,
            attempts=0,
            said="",
            created_at=at,
            started_at=None,
            finished_at=None,
        ),
    )
    events.append_once(
        session,
        job.fork,
        job.sha,
        EventKind.SERIES_BEGAN,
        began_words(bridge),
        at=at,
        about=name,
    )


def _sides(
    own: JobOrder, document: RunDocument, before: SeriesKey | None
) -> Mapping[str, dict[SideName, str]]:
    """Return build and config of both sides, nothing where old and new cannot be had together."""
    if before is None:
        return {}
    now = document.series(before.workload, before.metric)
    moved = {name for name in SERIES_FIELDS if getattr(before, name) != getattr(now, name)}
    plan = parse_plan(own.plan)
    if not moved <= _PAIRED or before.variant not in plan.builds:
        return {}
    if before.config not in plan.configs:
        return {}
    return {
        "variants": {SideName.BASELINE: before.variant, SideName.CANDIDATE: now.variant},
        "configs": {SideName.BASELINE: before.config, SideName.CANDIDATE: now.config},
    }
