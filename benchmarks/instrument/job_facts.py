"""What parts keep of a paired job: verdicts, stopping, and where its wall time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detectors.errors import DataError
from forkwatch.comparing import conclude
from results.document import Outcome
from results.slice import SliceState
from runner.errors import StageError

if TYPE_CHECKING:
    from benchmarks.instrument.ledger import Record
    from benchmarks.instrument.rig import Done


def facts(done: Done) -> Record:
    """Return the record of a job; one on an unstable host has no verdicts.

    Raises:
        StageError: It was not measured, or a workload has no sample to judge.
    """
    document = done.document
    if document.outcome not in {Outcome.MEASURED, Outcome.UNSTABLE} or not document.starts:
        reason = document.failure.message if document.failure else ""
        raise StageError("job", f"the job ended as {document.outcome}: {reason}")
    try:
        verdicts = conclude(document, done.plan).verdicts
    except DataError as error:
        raise StageError("job", f"every slice of a side was disturbed: {error}") from error
    stopping = {one.workload: one for one in document.stopping}
    ends: list[float] = []
    for start in document.starts:
        ends.append((ends[-1] if ends else 0.0) + start.seconds)
    workloads = {}
    for name, verdict in verdicts.items():
        interval = verdict.change.interval
        starts = stopping[name].starts if name in stopping else len(document.starts)
        workloads[name] = {
            "verdict": verdict.decision.value,
            "stop": stopping[name].reason if name in stopping else "",
            "starts": starts,
            "effect": verdict.change.effect,
            "low": interval.low,
            "high": interval.high,
            # A workload is in every start until it stops. What comes after the last start counts
            # for all, since people hear of it at the end of the job.
            "decided_s": done.wall_s - ends[-1] + ends[starts - 1],
        }
    return {
        "outcome": document.outcome.value,
        "workloads": workloads,
        "wall_s": done.wall_s,
        "starts_s": ends,
        "shares_s": shares(done),
        "warnings": [*document.warnings, *document.host.warnings],
    }


def shares(done: Done) -> dict[str, float]:
    """Return where the wall seconds of a job went; together they are all of it."""
    document = done.document
    starts = document.starts
    slices = sum(start.measured_seconds for start in starts)
    repeated = sum(
        piece.seconds
        for start in starts
        for piece in start.slices
        if piece.state is not SliceState.OK
    )
    made_ready = [one for start in starts for one in start.preparations]
    warm_up = sum(one.warm_up_seconds for one in made_ready)
    settle = sum(one.settle_seconds for one in made_ready)
    inside = sum(start.seconds for start in starts)
    other = {name: took for name, took in document.stage_seconds.items() if name != "measure"}
    return {
        "measuring": slices - repeated,
        "disturbed slices": repeated,
        "warm-up": warm_up,
        "settling": settle,
        "data, servers, clients": inside - slices - warm_up - settle,
        **other,
        "the rest": done.wall_s - inside - sum(other.values()),
    }
