"""Observing: what the run document of a paired job says of its candidate.

A run document comes in, log ratios and observations go out. The baseline of the pair is the good
end of a range; which commit of the range the candidate is, the caller knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bisects.document import CommitState, Observation
from bisects.errors import BisectError
from detectors.errors import DataError
from detectors.pooling import paired_differences
from results.document import Cause, Outcome
from results.metric import THROUGHPUT
from results.slice import SideName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.document import RunDocument

#: Name of the stage that both sides are built in.
_BUILD: Final = "build"


def log_ratios(document: RunDocument, workload: str) -> tuple[float, ...]:
    """Return the log of candidate over baseline for each start that has both sides.

    These are the paired differences that a verdict on the pair rests on.

    Raises:
        BisectError: A throughput is no positive number.
    """
    sides = (
        document.samples(workload, THROUGHPUT.name, SideName.BASELINE),
        document.samples(workload, THROUGHPUT.name, SideName.CANDIDATE),
    )
    try:
        differences = paired_differences([sides])[0]
    except DataError as error:
        raise BisectError(f"run {document.id} cannot be used: {error}") from error
    return tuple(float(value) for value in differences[np.isfinite(differences)])


def observation_of(
    document: RunDocument, *, commit: int, workload: str, seconds: float
) -> Observation:
    """Return what a paired job says of its candidate.

    Args:
        document: The run document of the job.
        commit: Place of the candidate in the range.
        workload: Which of its workloads.
        seconds: Wall time of the job.

    Raises:
        BisectError: It says nothing: the host was unstable, the job failed, or there is no start
            with both sides. Another try may.
    """
    if document.baseline is None:
        raise BisectError(f"run {document.id} is no pair, so that it says nothing of the good end")
    values: tuple[float, ...] = ()
    failure = ""
    match document.outcome:
        case Outcome.MEASURED:
            state, values = CommitState.MEASURED, log_ratios(document, workload)
            if not values:
                raise BisectError(f"run {document.id} has no start of {workload} with both sides")
        case Outcome.UNCHANGED:
            state = CommitState.SAME
        case Outcome.BUILD_FAILED:
            state, failure = CommitState.BROKEN, reason(document)
        case Outcome.FAILED | Outcome.UNSTABLE | Outcome.BUILT:
            raise BisectError(reason(document))
    artifact = document.candidate.artifact
    return Observation(
        commit=commit,
        job=document.job,
        state=state,
        log_ratios=values,
        seconds=seconds,
        build_seconds=min(seconds, document.stage_seconds.get(_BUILD, 0.0)),
        failure=failure,
        artifact=artifact.content_hash if artifact else "",
    )


def given_up(
    *, commit: int, job: str, why: str, seconds: float, build_seconds: float = 0.0, tries: int = 0
) -> Observation:
    """Return the observation of a commit that is set aside, because no job of it brought numbers.

    Args:
        commit: Its place in the range.
        job: The last of its jobs.
        why: What that came to, as `reason` has it.
        seconds: Wall time of all of them.
        build_seconds: How much of it went into building.
        tries: So often it was the host that kept it from its numbers; 0 where it was not the host.
    """
    times = f"{tries} times" if tries > 1 else "once"
    return Observation(
        commit=commit,
        job=job,
        state=CommitState.BROKEN,
        seconds=seconds,
        build_seconds=build_seconds,
        failure=f"the host, not the commit, ended it {times}: {why}" if tries else why,
        by_host=tries > 0,
    )


def is_hosts_fault(document: RunDocument) -> bool:
    """Whether the host kept a job from its numbers: another try of the same commit may go well."""
    failure = document.failure
    ended_build = failure is not None and failure.cause is Cause.HOST
    return ended_build or document.outcome is Outcome.UNSTABLE


def host_fails(before: Sequence[Observation], one: Observation) -> bool:
    """Whether the host set two commits aside, one right after the other.

    One may need more memory than there is. Two that it does not measure either are no chance, and
    a search that went on would set aside all others in the same way.
    """
    return one.by_host and bool(before) and before[-1].by_host


def good_end_fails(document: RunDocument) -> bool:
    """Whether it is not the commit in question that could not be built, but the good end.

    The candidate is built first, so that it would be without an artifact if it were the one.
    """
    return (
        document.outcome is Outcome.FAILED
        and document.candidate.artifact is not None
        and document.baseline is not None
        and document.baseline.artifact is None
    )


def reason(document: RunDocument) -> str:
    """Return why a job has no numbers, as one paragraph."""
    if document.failure is None:
        return f"the job ended as {document.outcome.value}"
    words = " ".join(document.failure.message.split())
    return f"{document.failure.stage}: {words}"
