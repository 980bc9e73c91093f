"""The whole service beside a real forge: a push becomes statuses, an issue, a gate and its key."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pygit2
import pytest
from dbos import DBOS

from service.app.compose import compose
from service.channels.github.client import TokenCredential
from service.channels.github.comments import GitHubComments
from service.channels.github.issues import GitHubIssues
from service.channels.this_machine import ThisMachine
from service.core.settings import load_settings
from service.store import migrate
from tests.fakes.hub_signature import SECRET
from tests.fakes.loopback import Loopback
from tests.fakes.scripted_measurement import PLAN
from tests.forge.gitea import MACHINE
from tests.forge.labels import NumberedLabels
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.forge.gitea import ForgeRepository, Gitea

pytestmark = pytest.mark.forge
#: A commit is measured in a second or two; this only bounds a hang.
PATIENCE_SECONDS = 180
RUNNER = (sys.executable, "-m", "tests.fakes.leaving_runner")
CONTEXT = "forkwatch / commit"


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A forge, and the service that it tells of its news."""

    repository: ForgeRepository

    def until_said(self, sha: str, state: str) -> list[tuple[str, str]]:
        """Wait until a commit has that status; return all that it has had, oldest first."""

        def last() -> str:
            found = self.repository.statuses(sha)
            return found[-1][0] if found else ""

        until(lambda: last() == state)
        return self.repository.statuses(sha)

    def push(self, message: str, state: str) -> list[tuple[str, str]]:
        """Push a commit and wait until it is judged so; return what was said of it on the way."""
        return self.until_said(self.repository.commit(message), state)

    def issues(self) -> list[Any]:
        """Return the issues, closed ones too."""
        path = f"{self.repository.path}/issues?type=issues&state=all"
        found: list[Any] = self.repository.forge.get(path)
        return found


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.2)


@contextmanager
def a_service(forge: Gitea, repository: ForgeRepository, folder: Path) -> Iterator[str]:
    """Run a service that follows a mirror of the repository; give its address."""
    mirror, home = folder / "mirror.git", folder / "home"
    clone = pygit2.clone_repository(repository.clone_url, str(mirror), bare=True)
    clone.config["remote.origin.mirror"] = True
    home.mkdir()
    settings = load_settings(
        home=home,
        host_class="small",
        repository=mirror,
        poll_seconds=0.2,
        github_repository=repository.full_name,
        github_token=forge.token,
        github_api_url=forge.api_url,
        github_webhook_secret=SECRET,
    )
    migrate.upgrade(settings.data_url)
    client = NumberedLabels(
        repository.full_name, TokenCredential(token=forge.token), api_url=forge.api_url
    )
    service = compose(
        settings,
        dispatcher=ThisMachine(home, command=RUNNER),
        alerts=GitHubIssues(client, GitHubComments(client)),
    )
    try:
        with Loopback(service.app) as door:
            service.start()
            yield door.url
    finally:
        service.stop()
        DBOS.destroy(destroy_registry=True)
        service.database.close()


@pytest.fixture(scope="module")
def beside(forge: Gitea, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    repository = forge.new_repository("whole")
    first = repository.commit("Import", file=PLAN_FILE, text=PLAN)
    with (
        a_service(forge, repository, tmp_path_factory.mktemp("beside")) as url,
        repository.telling(url),
    ):
        found = Beside(repository=repository)
        found.until_said(first, "success")
        yield found


def test_a_push_is_heard_measured_and_said_on_its_commit(beside: Beside) -> None:
    # Nobody looks at the forge unasked: without its webhook this commit would never be seen.
    said = beside.push("Quiet", "success")

    assert [state for state, _ in said[:-1]] == ["pending"] * (len(said) - 1)
    assert len(said) == len(set(said)) > 1
    assert "scan" in said[-1][1]


def test_a_loss_is_a_status_and_an_issue_until_it_is_gone(beside: Beside) -> None:
    beside.push("Quiet too", "success")
    slower = beside.push("Slower speed=0.8", "failure")
    until(beside.issues)
    (issue,) = beside.issues()

    assert slower[-1][1].startswith("scan is ")
    assert (issue["state"], issue["user"]["login"]) == ("open", MACHINE)
    assert {label["name"] for label in issue["labels"]} == {"forkwatch", "forkwatch: scan"}

    beside.push("Fast again speed=1.0", "success")
    until(lambda: beside.issues()[0]["state"] == "closed")
    beside.push("Slow again speed=0.8", "failure")
    comments = beside.repository.comments
    until(lambda: len(comments(issue["number"])) == 2)

    assert beside.issues()[0]["state"] == "open"
    gone, back = (one["body"].partition("\n")[2] for one in comments(issue["number"]))
    assert gone.startswith("As fast as before again since ")
    assert back.startswith("Slower again since ")


def test_a_slower_pull_request_is_merged_once_somebody_accepts_it(beside: Beside) -> None:
    repository = beside.repository
    with repository.guarded([CONTEXT]):
        number, head = repository.open_pull("slower", "Slower still speed=0.5")
        beside.until_said(head, "failure")
        assert not repository.merge(number)
        until(lambda: repository.comments(number))
        (comment,) = repository.comments(number)
        assert comment["user"]["login"] == MACHINE
        assert "| regression |" in comment["body"]

        order = {"body": "/forkwatch accept It does more"}
        repository.forge.post(f"{repository.path}/issues/{number}/comments", order)
        said = beside.until_said(head, "success")
        assert said[-1][1].startswith("accepted by acme")
        assert repository.merge(number)

    # The sticky comment, the order, and its answer.
    until(lambda: len(repository.comments(number)) == 3)
