"""Job orders: what is asked of a runner, derived from a commit and the plan alone.

The same question always has the same job, run and seed, so that asking twice is asking once.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from results.job import JobOrder
from service.core.model import Job, JobKind, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from service.core.model import CommitRecord
    from service.core.settings import Settings
    from workloads.plan import Plan

_SEEDS: Final = 2**31


def single_order(
    commit: CommitRecord,
    *,
    plan: Plan,
    plan_text: str,
    repository: Path,
    unchanged_from: str | None,
    settings: Settings,
) -> JobOrder:
    """Return the order that measures a commit alone.

    Raises:
        PlanError: The plan has no such suite.
    """
    plan.suite(settings.suite)
    job = job_id(commit.fork, commit.sha, JobKind.SINGLE, settings.host_class)
    return JobOrder(
        job=job,
        run=f"run-{job}",
        repository=repository,
        plan=plan_text,
        branch=plan.fork.branch,
        suite=settings.suite,
        host_class=settings.host_class,
        candidate=commit.sha,
        unchanged_from=unchanged_from,
        seed=_seed(job),
        submit_to=settings.base_url,
    )


def confirm_order(
    single: JobOrder, *, fork: str, baseline: str, alphas: Mapping[str, float], starts: int
) -> JobOrder:
    """Return the order that measures workloads again, paired with their baseline.

    Args:
        single: The order of the commit's own run.
        fork: Its fork.
        baseline: The commit to pair it with.
        alphas: Level of significance at which each workload is looked at after every start.
        starts: The most starts.
    """
    job = job_id(fork, single.candidate, JobKind.CONFIRM, single.host_class)
    return single.model_copy(
        update={
            "job": job,
            "run": f"run-{job}",
            "baseline": baseline,
            "unchanged_from": None,
            "workloads": tuple(alphas),
            "alphas": dict(alphas),
            "starts": starts,
            "seed": _seed(job),
            # For the bisect of an alert, which begins from what this measured.
            "tell_sources": True,
        }
    )


def job_of(order: JobOrder, *, fork: str, kind: JobKind, at: datetime) -> Job:
    """Return the job that an order asks for."""
    return Job(
        id=order.job,
        fork=fork,
        sha=order.candidate,
        kind=kind,
        state=JobState.CREATED,
        host_class=order.host_class,
        run=order.run,
        baseline_sha=order.baseline,
        order=order.model_dump_json(exclude={"credential"}),
        attempts=0,
        created_at=at,
        finished_at=None,
    )


def job_id(fork: str, sha: str, kind: JobKind, host_class: str) -> str:
    """Return the name of a job: readable at the front, unique at the end."""
    about = f"{fork}\x1f{sha}\x1f{kind.value}\x1f{host_class}"
    return f"{kind.value}-{sha[:12]}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"


def _seed(job: str) -> int:
    return int.from_bytes(hashlib.sha256(job.encode()).digest()[:8], "big") % _SEEDS
