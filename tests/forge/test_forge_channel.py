"""What a real forge takes of forkwatch as GitHub does, and what it does not."""

from __future__ import annotations

import time
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import pytest

from reports.check import CheckText, Conclusion
from service.channels.github.checks import GitHubChecks, GitHubStatuses
from service.channels.github.client import GitHubClient, TokenCredential
from service.channels.github.comments import GitHubComments
from service.channels.github.errors import MissingError, RefusedError
from service.channels.github.issues import GitHubIssues
from service.channels.github.permissions import GitHubPermissions
from service.channels.github.webhooks import CommentMade, PullRequestChanged
from service.core.clock import SystemClock
from service.flows.pull_steps import BEGINNING_ACTIONS
from service.store import migrate
from service.store.database import Database
from service.web.application import web_application
from service.web.pages import missing_page
from service.web.webhooks import NewsDesk, webhooks_router
from tests.fakes.alert_story import an_alert_about
from tests.fakes.hub_signature import SECRET
from tests.fakes.loopback import Loopback
from tests.fakes.run_documents import sha
from tests.forge.gitea import MACHINE, OWNER, PATIENCE_SECONDS
from tests.forge.labels import NumberedLabels
from workloads.plan import Notify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.forge.gitea import ForgeRepository, Gitea

pytestmark = pytest.mark.forge
SUITE = "commit"
SLOWER = CheckText(conclusion=Conclusion.FAILURE, title="scan is 9.1 % slower", summary="")
WAITING = CheckText(conclusion=None, title="is being measured", summary="")
FINE = CheckText(conclusion=Conclusion.SUCCESS, title="unchanged", summary="")


@pytest.fixture(scope="module")
def repository(forge: Gitea) -> ForgeRepository:
    return forge.new_repository("channel")


@pytest.fixture
def client(forge: Gitea, repository: ForgeRepository) -> GitHubClient:
    credential = TokenCredential(token=forge.token)
    return GitHubClient(repository.full_name, credential, api_url=forge.api_url)


@pytest.fixture
def heard(repository: ForgeRepository, tmp_path: Path) -> Iterator[Queue[Any]]:
    """Have the forge tell a door of ours; give what the door understood."""
    url = f"sqlite:///{tmp_path / 'door.sqlite'}"
    migrate.upgrade(url)
    database, said = Database(url), Queue[Any]()

    def commented(news: CommentMade) -> bool:
        said.put(news)
        return True

    router = webhooks_router(
        database,
        clock=SystemClock(),
        secret=SECRET,
        repository=repository.full_name,
        desk=NewsDesk(pushed=said.put, pull_request_changed=said.put, commented=commented),
    )
    app = web_application([router], missing_page=missing_page)
    with Loopback(app) as door, repository.telling(door.url):
        yield said
    database.close()


def until(heard: Queue[Any], wanted: Callable[[Any], bool]) -> Any:
    """Return the first thing heard that is wanted; the forge keeps no order among its news."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            news = heard.get(timeout=max(0.01, deadline - time.monotonic()))
        except Empty:
            raise AssertionError("it was never heard") from None
        if wanted(news):
            return news


def test_its_webhooks_are_signed_as_githubs_are(
    repository: ForgeRepository, heard: Queue[Any]
) -> None:
    repository.commit("Pushed")
    assert until(heard, lambda news: isinstance(news, str)) == "main"

    number, head = repository.open_pull("told", "Told")
    opened = until(heard, lambda news: isinstance(news, PullRequestChanged))
    assert (opened.number, opened.head_sha, opened.base) == (number, head, "main")
    assert (opened.action, opened.open, opened.outside) == ("opened", True, False)
    assert opened.action in BEGINNING_ACTIONS

    text = {"body": "/forkwatch run"}
    repository.forge.post(f"{repository.path}/issues/{number}/comments", text)
    said = until(heard, lambda news: isinstance(news, CommentMade))
    assert (said.number, said.login, said.text) == (number, OWNER, "/forkwatch run")
    assert said.on_pull_request


def test_a_new_head_has_another_word_there(repository: ForgeRepository, heard: Queue[Any]) -> None:
    number, _ = repository.open_pull("pushed-again", "Before")
    head = repository.commit_again("After", branch="pushed-again")
    changed = until(
        heard, lambda news: isinstance(news, PullRequestChanged) and news.head_sha == head
    )

    assert changed.number == number
    # GitHub's is `synchronize`, and only that begins a measurement.
    assert changed.action == "synchronized"


def test_a_status_gates_a_merge(repository: ForgeRepository, client: GitHubClient) -> None:
    statuses = GitHubStatuses(client)
    with repository.guarded([f"forkwatch / {SUITE}"]):
        number, head = repository.open_pull("gated", "Gated")
        for check in (WAITING, SLOWER):
            statuses.publish(head, check, suite=SUITE, key="job")
            statuses.publish(head, check, suite=SUITE, key="job")
            assert not repository.merge(number)
        statuses.publish(head, FINE, suite=SUITE, key="job")
        assert repository.merge(number)

    assert repository.statuses(head) == [
        ("pending", "is being measured"),
        ("failure", "scan is 9.1 % slower"),
        ("success", "unchanged"),
    ]


def test_a_comment_is_there_once_and_edited(
    repository: ForgeRepository, client: GitHubClient
) -> None:
    number, _ = repository.open_pull("talked-about", "Talked about")
    comments = GitHubComments(client)
    where = comments.stick(number, "slower", suite=SUITE, loud=True)
    assert comments.stick(number, "unchanged", suite=SUITE, loud=False) == where

    (there,) = repository.comments(number)
    assert there["user"]["login"] == MACHINE
    assert there["body"].endswith("\nunchanged")


def test_an_issue_is_opened_once_commented_closed_and_opened_again(
    forge: Gitea, repository: ForgeRepository
) -> None:
    client = NumberedLabels(
        repository.full_name, TokenCredential(token=forge.token), api_url=forge.api_url
    )
    issues = GitHubIssues(client, GitHubComments(client))
    alert = an_alert_about(sha("d"), sha("c"), "run-2", scan=9.0)

    where = issues.raise_alert(alert, "# Slower\n\n**much**\n", Notify())
    assert issues.raise_alert(alert, "# Slower\n\n**very much**\n", Notify()) == where
    (issue,) = forge.get(f"{repository.path}/issues?type=issues&state=all")
    assert issue["user"]["login"] == MACHINE
    assert issue["body"].endswith("\n**very much**\n")
    assert {label["name"] for label in issue["labels"]} == {"forkwatch", "forkwatch: scan"}

    def state() -> str:
        return str(forge.get(f"{repository.path}/issues/{issue['number']}")["state"])

    for _ in range(2):
        assert issues.close_alert(alert, "fast again", key=sha("e")) == where
    assert state() == "closed"
    for _ in range(2):
        assert issues.reopen_alert(alert, "slow again", key=sha("f")) == where
    assert state() == "open"
    said = [comment["body"].partition("\n")[2] for comment in repository.comments(issue["number"])]
    assert said == ["fast again", "slow again"]


def test_it_wants_labels_by_their_numbers(client: GitHubClient) -> None:
    alert = an_alert_about(sha("b"), sha("a"), "run-1", scan=9.0)

    with pytest.raises(RefusedError, match="422"):
        GitHubIssues(client, GitHubComments(client)).raise_alert(alert, "# Slower\n", Notify())


def test_it_has_no_checks(client: GitHubClient, repository: ForgeRepository) -> None:
    head = repository.commit("Checked")

    with pytest.raises(MissingError):
        GitHubChecks(client).publish(head, WAITING, suite=SUITE, key="job")


def test_it_knows_who_may_write(client: GitHubClient) -> None:
    permissions = GitHubPermissions(client)

    assert permissions.may_write(OWNER)
    assert permissions.may_write(MACHINE)
    assert not permissions.may_write("nobody")
