"""What pull requests and bisects add to a weekly digest: their hours, and what those bought.

The store's facts of one week come in, parts of a `Digest` go out. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from detectors.verdict import Decision
from reports.digest import EndedBisect
from service.flows.pull_judge import read_verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.digest import MachineTime
    from service.core.bisections import Bisect
    from service.core.digests import BisectWork, FinishedPullJob


def with_other_work(
    used: MachineTime, pulls: Sequence[FinishedPullJob], bisects: BisectWork
) -> MachineTime:
    """Return the machine time of commits with that of pull requests and bisects."""
    judged = {job.pull for job in pulls if job.judged}
    return replace(
        used,
        pull_seconds=sum(job.duration.total_seconds() for job in pulls),
        bisect_seconds=bisects.duration.total_seconds(),
        pulls=len(judged),
        pulls_slower=len({job.pull for job in pulls if job.judged and _is_slower(job)}),
        culprits=bisects.culprits,
    )


def ended_bisects(work: BisectWork) -> tuple[EndedBisect, ...]:
    """Return the bisects that ended, as the digest tells of them."""
    return tuple(_ended(bisect) for bisect in work.ended)


def _ended(bisect: Bisect) -> EndedBisect:
    question = bisect.question
    return EndedBisect(
        id=bisect.id,
        workload=question.workload,
        good=question.good,
        bad=question.bad,
        # The good end is counted among the commits of a bisect, and is not one that was searched.
        commits=bisect.commits - 1,
        said=bisect.said,
        state=bisect.state.value,
        alert=bisect.alert or "",
    )


def _is_slower(job: FinishedPullJob) -> bool:
    """Whether any push of a pull request was; its newest may be faster again."""
    found = read_verdicts(job.verdicts).values()
    return any(verdict.decision is Decision.REGRESSION for verdict in found)
