"""What is on GitHub's site, known from the address of its API: commits to link to, and contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.check import CheckText, Conclusion
from service.channels.github.checks import GitHubChecks
from service.channels.github.client import (
    GIT_TOKEN_SECONDS,
    AppCredential,
    GitHubClient,
    TokenCredential,
)
from service.channels.github.comments import GitHubComments
from service.channels.github.errors import RefusedError
from service.channels.github.issues import GitHubIssues
from service.channels.github.limits import BODY_LENGTH_MAX
from service.core.model import Alert, AlertState
from tests.fakes.github_api.credentials import APP_ID, USER_TOKEN, private_key
from tests.fakes.github_api.opened import a_github
from tests.fakes.github_api.rules import refusal
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.run_documents import AT
from workloads.plan import Notify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub

SHA = "3f2c1ab0" * 5


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


@pytest.fixture
def client(github: OpenedGitHub) -> GitHubClient:
    """As of an Enterprise Server, whose site is known from where its API lies."""
    app = AppCredential(app_id=APP_ID, private_key=private_key())
    return github.new_client(app, below="/api/v3")


@pytest.mark.parametrize(
    ("api", "site"),
    [
        ("https://api.github.com", "https://github.com/acme/fork"),
        ("https://api.github.com/", "https://github.com/acme/fork"),
        ("https://github.example/api/v3", "https://github.example/acme/fork"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com/acme/fork"),
        ("http://127.0.0.1:8080", None),
        ("https://forge.example/api/v1", None),
    ],
)
def test_the_site_is_known_from_the_address_of_the_api(api: str, site: str | None) -> None:
    client = GitHubClient("acme/fork", TokenCredential(token="t"), api_url=api)

    assert client.site_url == site
    assert client.commits_url == (f"{site}/commit" if site else None)


def test_commits_of_a_comment_can_be_opened(github: OpenedGitHub, client: GitHubClient) -> None:
    pull = github.a_pull_request()
    comments = GitHubComments(client)

    comments.stick(pull, "- Base `3f2c1ab0`", suite="commit", loud=True)
    writes = github.double.writes()
    comments.stick(pull, "- Base `3f2c1ab0`", suite="commit", loud=True)

    where = f"{github.url}/acme/mariadb-fork/commit/3f2c1ab0"
    assert github.texts(pull) == [f"- Base [`3f2c1ab0`]({where})"]
    assert github.double.writes() == writes


def test_a_check_links_its_own_commit_by_its_whole_hash(
    github: OpenedGitHub, client: GitHubClient
) -> None:
    check = CheckText(conclusion=Conclusion.SUCCESS, title="unchanged", summary="`3f2c1ab0`")

    GitHubChecks(client).publish(SHA, check, suite="commit", key="job-1")
    writes = github.double.writes()
    GitHubChecks(client).publish(SHA, check, suite="commit", key="job-1")

    (run,) = github.world.check_runs
    where = f"{github.url}/acme/mariadb-fork/commit/{SHA}"
    assert run["output"]["summary"] == f"[`3f2c1ab0`]({where})"
    assert github.double.writes() == writes


def test_an_issue_links_both_ends_by_their_whole_hashes(
    github: OpenedGitHub, client: GitHubClient
) -> None:
    alert = Alert(
        id="alert-1",
        fork="demo",
        sha=SHA,
        subject="",
        author="",
        baseline_sha="a" * 40,
        state=AlertState.CONFIRMED,
        workloads=(),
        run="run-1",
        opened_at=AT,
    )

    text = "# Title\n\none of (`aaaaaaaa`, `3f2c1ab0`]"
    GitHubIssues(client, GitHubComments(client)).raise_alert(alert, text, Notify())

    (issue,) = github.world.issues
    where = f"{github.url}/acme/mariadb-fork/commit"
    both = f"([`aaaaaaaa`]({where}/{'a' * 40}), [`3f2c1ab0`]({where}/{SHA})]"
    assert f"one of {both}" in issue["body"]


def test_links_do_not_make_a_text_too_long(github: OpenedGitHub, client: GitHubClient) -> None:
    pull = github.a_pull_request()
    text = "`3f2c1ab0`\n" * 5_000

    GitHubComments(client).stick(pull, text, suite="commit", loud=True)

    (said,) = github.texts(pull)
    assert len(said) <= BODY_LENGTH_MAX
    assert said.startswith("[`3f2c1ab0`](")
    assert said.rstrip().endswith("`3f2c1ab0`")


def test_git_reads_with_a_token_of_the_app_for_as_long_as_it_is_good(
    github: OpenedGitHub,
) -> None:
    first = github.client.git_token()

    assert github.client.git_token() == first
    github.time.sleep(GIT_TOKEN_SECONDS)
    assert github.client.git_token() != first
    paths = [path for _, path, _ in github.double.asked]
    assert sum(path.endswith("/access_tokens") for path in paths) == 2


def test_git_reads_with_the_token_of_the_settings(github: OpenedGitHub) -> None:
    assert github.token_client.git_token() == USER_TOKEN
    assert github.double.asked == []


def test_an_app_that_may_not_read_contents_says_what_it_lacks(github: OpenedGitHub) -> None:
    reply = refusal(422, "The permissions requested are not granted to this installation.")
    github.double.go_wrong("POST", "/access_tokens$", reply, times=9)

    with pytest.raises(RefusedError, match="Contents: read"):
        github.client.git_token()
