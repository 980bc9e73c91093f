"""What the claims of a signed token have to say before they are an identity."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from results.job import JobOrder
from service.core.errors import CredentialMissingError, CredentialRefusedError
from service.core.identity import (
    GITHUB_EVENTS,
    LEEWAY,
    LIFETIME_MAX,
    CiSystem,
    Identity,
    Issuer,
    check_may_submit,
    identity_of,
    is_identity_token,
)
from service.core.model import Job, JobKind
from service.core.tokens import mint
from service.flows.orders import job_of
from tests.fakes.memory_fork import AT
from tests.fakes.run_documents import sha

URL, OURS = "https://issuer.example", "https://perf.example"
NOW = int(AT.timestamp())
WORKFLOW = "acme/mysql/.github/workflows/perf.yml@refs/heads/main"
GITHUB = {
    "iss": URL,
    "aud": OURS,
    "iat": NOW,
    "nbf": NOW,
    "exp": NOW + 300,
    "repository": "acme/mysql",
    "repository_id": "74",
    "job_workflow_ref": WORKFLOW,
    "event_name": "push",
    "ref": "refs/heads/main",
    "sha": sha("b"),
    "run_id": "9001",
    "run_attempt": "2",
}
BUILDKITE = {
    "iss": URL,
    "aud": OURS,
    "iat": NOW,
    "nbf": NOW,
    "exp": NOW + 300,
    "organization_slug": "acme",
    "pipeline_slug": "perf",
    "build_branch": "main",
    "build_commit": sha("b"),
    "build_number": 17,
    "job_id": "0184990a",
}
OUR_GITHUB = Issuer(
    system=CiSystem.GITHUB,
    url=URL,
    audience=OURS,
    claims={
        "repository": "acme/mysql",
        "repository_id": "74",
        "job_workflow_ref": WORKFLOW,
    },
)
OUR_BUILDKITE = Issuer(
    system=CiSystem.BUILDKITE,
    url=URL,
    audience=OURS,
    claims={"organization_slug": "acme", "pipeline_slug": "perf"},
)


def github(**changes: Any) -> Identity:
    return identity_of({**GITHUB, **changes}, OUR_GITHUB, digest="d", at=AT)


def buildkite(**changes: Any) -> Identity:
    return identity_of({**BUILDKITE, **changes}, OUR_BUILDKITE, digest="d", at=AT)


def test_the_claims_of_both_systems_are_read() -> None:
    assert github() == Identity(
        system=CiSystem.GITHUB,
        commit=sha("b"),
        branch="main",
        run="github run 9001, attempt 2",
        digest="d",
        expires_at=AT + timedelta(seconds=300),
        run_id="9001",
    )
    assert buildkite().run == "buildkite build 17, job 0184990a"
    assert buildkite().run_id == "17"
    assert (buildkite().commit, buildkite().branch) == (sha("b"), "main")
    assert github(ref="refs/heads/release/8.0").branch == "release/8.0"
    assert github(sha="c" * 64).commit == "c" * 64
    assert github(aud=[OURS]).branch == "main"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"aud": "https://elsewhere.example"}, "ask your CI for the audience"),
        ({"aud": [OURS, "https://elsewhere.example"]}, "for this service alone"),
        ({"aud": []}, "for this service alone"),
        ({"aud": None}, "for this service alone"),
        ({"aud": f"{OURS}/"}, "for this service alone"),
        ({"exp": None}, "exp is no time"),
        ({"exp": str(NOW + 300)}, "exp is no time"),
        ({"exp": True}, "exp is no time"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"exp": float("inf")}, "exp is no time"),
        ({"exp": 10**30}, "exp is no time"),
        ({"iat": None}, "iat is no time"),
        ({"iat": -1}, "iat is no time"),
        ({"nbf": "soon"}, "nbf is no time"),
        ({"exp": NOW - 30}, "past its time"),
        ({"exp": 0}, "past its time"),
        ({"iat": NOW + 31}, "not good yet"),
        ({"nbf": NOW + 31}, "not good yet"),
        ({"exp": NOW + 3601}, "good for longer than 1:00:00"),
        ({"iat": NOW - 7200}, "good for longer than 1:00:00"),
    ],
)
def test_a_token_that_is_not_for_us_or_not_for_now_is_none(
    changes: dict[str, Any], told: str
) -> None:
    for read in (github, buildkite):
        with pytest.raises(CredentialMissingError, match=told):
            read(**changes)


def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    late = NOW - int(LEEWAY.total_seconds())
    early = NOW + int(LEEWAY.total_seconds())

    assert github(exp=late + 1).branch == "main"
    assert github(iat=early, nbf=early, exp=early + 300).branch == "main"
    assert github(exp=NOW + int(LIFETIME_MAX.total_seconds())).branch == "main"
    assert github(nbf=None).branch == "main"
    with pytest.raises(CredentialMissingError):
        github(exp=late)


@pytest.mark.parametrize(
    "event",
    [
        "pull_request",
        # These name the default branch and its head in their tokens, whoever caused them.
        "pull_request_target",
        "issue_comment",
        "workflow_run",
        "pull_request_review",
        "merge_group",
        "PUSH",
        "",
        None,
        ["push"],
    ],
)
def test_a_job_that_a_stranger_can_cause_is_no_identity(event: Any) -> None:
    with pytest.raises(CredentialRefusedError, match=r"brings nothing here|which is no text"):
        github(event_name=event)


@pytest.mark.parametrize("event", GITHUB_EVENTS)
def test_jobs_of_people_with_write_access_are(event: str) -> None:
    assert github(event_name=event).commit == sha("b")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"repository": "evil/mysql"}, "repository is 'evil/mysql'"),
        ({"repository": None}, "repository is None"),
        ({"repository": ["acme/mysql"]}, r"repository is \['acme"),
        # Another repository that took the name when it was free.
        ({"repository_id": "75"}, "repository_id is '75'"),
        ({"job_workflow_ref": "acme/mysql/.github/workflows/other.yml@refs/heads/main"}, "other"),
        ({"job_workflow_ref": f"{WORKFLOW}-2"}, "main-2"),
        ({"ref": "refs/pull/7/merge"}, "no branch"),
        ({"ref": "refs/tags/main"}, "no branch"),
        ({"ref": "main"}, "no branch"),
        ({"ref": None}, "no text"),
        ({"sha": "HEAD"}, "no commit"),
        ({"sha": "b" * 39}, "no commit"),
        ({"sha": "B" * 40}, "no commit"),
        ({"sha": f"{'b' * 40}\n"}, "no commit"),
        ({"sha": 7}, "no text"),
    ],
)
def test_a_job_of_something_else_on_github_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(CredentialRefusedError, match=told):
        github(**changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"organization_slug": "evil"}, "organization_slug is 'evil'"),
        ({"organization_slug": None}, "organization_slug is None"),
        ({"pipeline_slug": "perf-2"}, "pipeline_slug is 'perf-2'"),
        # A build that somebody started by hand, before an agent looked up what it is.
        ({"build_commit": "HEAD"}, "no commit"),
        ({"build_commit": None}, "no text"),
        ({"build_branch": None}, "no text"),
    ],
)
def test_a_job_of_something_else_on_buildkite_is_refused(
    changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(CredentialRefusedError, match=told):
        buildkite(**changes)


def test_what_an_error_quotes_has_an_end() -> None:
    with pytest.raises(CredentialRefusedError) as caught:
        github(repository="x" * 10_000)
    assert len(str(caught.value)) < 400


def test_a_run_has_a_name_whatever_its_claims_are() -> None:
    assert github(run_id="<b>", run_attempt=None).run == "github run ?, attempt None"


def a_job(commit: str, *, branch: str = "main") -> Job:
    order = JobOrder(
        job="single-1",
        run="run-1",
        repository=Path("/nowhere"),
        plan="",
        branch=branch,
        suite="commit",
        host_class="small",
        candidate=commit,
    )
    return job_of(order, fork="demo", kind=JobKind.SINGLE, at=AT)


def test_an_identity_is_good_for_its_own_commit_on_its_own_branch() -> None:
    check_may_submit(github(), a_job(sha("b")))
    with pytest.raises(CredentialRefusedError, match="of the commit 'bbbb"):
        check_may_submit(github(), a_job(sha("c")))
    with pytest.raises(CredentialRefusedError, match=r"of the branch 'main'.*is of 'release'"):
        check_may_submit(github(), a_job(sha("b"), branch="release"))
    # A stranger's branch may have the name of ours, its commits are not ours.
    with pytest.raises(CredentialRefusedError, match="of the commit"):
        check_may_submit(buildkite(build_commit=sha("e")), a_job(sha("b")))
    # One whose commit was pushed here all the same is of another branch.
    with pytest.raises(CredentialRefusedError, match="of the branch 'stranger:main'"):
        check_may_submit(buildkite(build_branch="stranger:main"), a_job(sha("b")))


def test_what_we_make_ourselves_never_looks_like_a_token_of_a_ci() -> None:
    assert is_identity_token("e30.e30.c2ln")
    assert not any(is_identity_token(mint().text) for _ in range(100))
