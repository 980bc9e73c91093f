"""What is asked of a runner for a bisect: jobs and their orders, derived from the bisect alone.

The same measurement of the same bisect always has the same job, run and seed, so that asking twice
is asking once; the next one of the same commit is a job of its own.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from results.job import JobOrder
from service.core.bisections import BisectJob, BisectJobState
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from bisects.document import BisectQuestion
    from bisects.search import NextOrder
    from service.core.bisections import Material

_SEEDS: Final = 2**31
#: A runner looks at a pair after each start, and needs two for its first look.
STARTS_MIN: Final = 2


def job_of(question: BisectQuestion, wanted: NextOrder, *, number: int, at: datetime) -> BisectJob:
    """Return the job that measures a commit.

    Args:
        question: What is searched for.
        wanted: The commit, and how often it is to be started.
        number: Jobs of this commit that have ended before.
        at: When.
    """
    job = f"{question.id}-{wanted.commit}-{number}"
    return BisectJob(
        id=job,
        bisect=question.id,
        commit=wanted.commit,
        sha=wanted.sha,
        state=BisectJobState.WAITING,
        run=f"run-{job}",
        starts=max(STARTS_MIN, wanted.starts),
        attempts=0,
        said="",
        observation=None,
        created_at=at,
        started_at=None,
        finished_at=None,
    )


def order_of(
    job: BisectJob, question: BisectQuestion, material: Material, *, repository: Path
) -> JobOrder:
    """Return what a runner is asked; its document stays in the job's folder, as of pull requests.

    There the flow takes it, so the runner holds no credential at all.

    Raises:
        PlanError: The plan cannot be read any more.
    """
    return JobOrder(
        job=job.id,
        run=job.run,
        repository=repository,
        plan=material.plan_text,
        branch=parse_plan(material.plan_text).fork.branch,
        suite=question.suite,
        host_class=question.host_class,
        candidate=job.sha,
        baseline=question.good,
        trusted=material.trusted,
        workloads=(question.workload,),
        starts=job.starts,
        # Both ends are in it, so that it tells what neither server is made of.
        tell_sources=job.commit == len(material.commits) - 1 and not material.outside,
        seed=int.from_bytes(hashlib.sha256(job.id.encode()).digest()[:8], "big") % _SEEDS,
    )


def builds_prefix(bisect_id: str) -> str:
    """Return how the names of all jobs begin that only build for a bisect."""
    return f"{bisect_id}-build-"


def build_order_of(
    commit: int, question: BisectQuestion, material: Material, *, repository: Path
) -> JobOrder:
    """Return what a runner elsewhere is asked that only builds a commit, for the fleet's cache.

    Raises:
        PlanError: The plan cannot be read any more.
    """
    job = f"{builds_prefix(question.id)}{commit}"
    return JobOrder(
        job=job,
        run=f"run-{job}",
        repository=repository,
        plan=material.plan_text,
        branch=parse_plan(material.plan_text).fork.branch,
        suite=question.suite,
        host_class=question.host_class,
        candidate=material.commits[commit].sha,
        trusted=material.trusted,
        workloads=(question.workload,),
        build_only=True,
    )
