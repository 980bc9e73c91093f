"""What is asked of a runner for a pull request: jobs and their orders, derived from the plan alone.

The plan is the one of the default branch, so that a pull request cannot loosen the gate that it is
measured against. The same question always has the same job.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from results.job import JobOrder
from service.core.pull_requests import PullJob, PullJobKind, PullJobState
from service.flows.pull_judge import level_of_each

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from service.core.pull_requests import PullRequest
    from service.core.settings import Settings
    from workloads.plan import Plan

_SEEDS: Final = 2**31
#: The key of the job that a push begins.
PUSHED: Final = "push"


def run_job(
    pull: PullRequest, *, suite: str, key: str, at: datetime, asked_by: str = ""
) -> PullJob:
    """Return the job that measures the head of a pull request against its merge base.

    Args:
        pull: With the head.
        suite: What to run.
        key: What asks for it; another key measures again.
        at: When.
        asked_by: Who asked in a comment.
    """
    return _job(
        pull.fork,
        pull.number,
        PullJobKind.RUN,
        suite=suite,
        candidate=pull.head_sha,
        baseline=None,
        key=key,
        at=at,
        asked_by=asked_by,
        trusted=not pull.outside,
    )


def compare_job(
    fork: str,
    number: int,
    *,
    suite: str,
    candidate: str,
    baseline: str,
    key: str,
    at: datetime,
    asked_by: str,
) -> PullJob:
    """Return the job that compares two commits for the issue or pull request that asked.

    Either of them may be a stranger's, so what is built fills no shared cache.
    """
    return _job(
        fork,
        number,
        PullJobKind.COMPARE,
        suite=suite,
        candidate=candidate,
        baseline=baseline,
        key=key,
        at=at,
        asked_by=asked_by,
        trusted=False,
    )


def pull_order(
    job: PullJob,
    *,
    baseline: str,
    plan: Plan,
    plan_text: str,
    repository: Path,
    settings: Settings,
) -> JobOrder:
    """Return the order of a job; its document stays in the job's folder, where the flow takes it.

    Raises:
        PlanError: The plan has no such suite, or one of its workloads cannot run.
    """
    workloads = plan.workloads(job.suite)
    level = level_of_each(len(workloads), plan.gates)
    return JobOrder(
        job=job.id,
        run=job.run,
        repository=repository,
        plan=plan_text,
        branch=plan.fork.branch,
        suite=job.suite,
        host_class=settings.host_class,
        candidate=job.candidate_sha,
        baseline=baseline,
        trusted=job.trusted,
        alphas=dict.fromkeys(workloads, level),
        starts=plan.suite(job.suite).confirm_starts,
        seed=int.from_bytes(hashlib.sha256(job.id.encode()).digest()[:8], "big") % _SEEDS,
    )


def _job(
    fork: str,
    number: int,
    kind: PullJobKind,
    *,
    suite: str,
    candidate: str,
    baseline: str | None,
    key: str,
    at: datetime,
    asked_by: str,
    trusted: bool,
) -> PullJob:
    about = "\x1f".join([fork, str(number), kind.value, suite, candidate, baseline or "", key])
    digest = hashlib.sha256(about.encode()).hexdigest()[:12]
    job = f"pull-{number}-{candidate[:12]}-{digest}"
    return PullJob(
        id=job,
        fork=fork,
        pull=number,
        kind=kind,
        state=PullJobState.WAITING,
        suite=suite,
        candidate_sha=candidate,
        baseline_sha=baseline,
        run=f"run-{job}",
        asked_by=asked_by,
        trusted=trusted,
        order="",
        attempts=0,
        said="",
        verdicts="",
        accepted_by="",
        accepted_reason="",
        created_at=at,
        started_at=None,
        finished_at=None,
    )
