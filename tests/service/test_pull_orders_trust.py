"""What the runner of a pull request is given, and what code of strangers may leave for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from results.job import JobOrder
from service.core.pull_requests import PullJob, PullRequest
from service.core.settings import load_settings
from service.flows.pull_orders import PUSHED, compare_job, pull_order, run_job
from tests.fakes.memory_fork import AT
from tests.fakes.run_documents import sha
from tests.fakes.scripted_measurement import PLAN
from workloads.plan import parse_plan


def a_run_job(*, outside: bool) -> PullJob:
    pull = PullRequest(
        fork="demo",
        number=7,
        head_sha=sha("b"),
        head_at=AT,
        base="main",
        outside=outside,
        draft=False,
        open=True,
        changed_at=AT,
    )
    return run_job(pull, suite="commit", key=PUSHED, at=AT)


def a_compare_job() -> PullJob:
    return compare_job(
        "demo",
        7,
        suite="commit",
        candidate=sha("b"),
        baseline=sha("a"),
        key="comment-1",
        at=AT,
        asked_by="github:ada",
    )


def ordered(job: PullJob) -> JobOrder:
    return pull_order(
        job,
        baseline=sha("a"),
        plan=parse_plan(PLAN),
        plan_text=PLAN,
        repository=Path("/nowhere"),
        settings=load_settings(),
    )


@pytest.mark.parametrize(
    ("job", "trusted"),
    [
        (a_run_job(outside=True), False),
        (a_run_job(outside=False), True),
        # Either of its commits may be a stranger's.
        (a_compare_job(), False),
    ],
    ids=["from outside", "of our own", "compared"],
)
def test_a_job_of_a_pull_request_holds_no_credential_and_is_trusted_as_its_head_is(
    job: PullJob,
    trusted: bool,  # noqa: FBT001  a case of the table
) -> None:
    order = ordered(job)

    assert (order.credential, order.submit_to) == (None, None)
    assert order.trusted is trusted
    # As it lies in the job's folder.
    again = JobOrder.model_validate_json(order.model_dump_json())
    assert (again.credential, again.submit_to, again.trusted) == (None, None, trusted)
