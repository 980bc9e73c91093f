"""A double with everything of the service connected to it, and a time that only waits.

with a_github(server) as github:
    github.comments.stick(...)
    assert github.world.comments == ...
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from service.channels.github.checks import GitHubChecks, GitHubStatuses
from service.channels.github.client import AppCredential, GitHubClient, TokenCredential
from service.channels.github.comments import GitHubComments
from service.channels.github.issues import GitHubIssues
from service.channels.github.permissions import GitHubPermissions
from tests.fakes.github_api.contract import Contract
from tests.fakes.github_api.credentials import APP_ID, USER_TOKEN, private_key
from tests.fakes.github_api.description import description
from tests.fakes.github_api.double import GitHubDouble
from tests.fakes.github_api.world import NAME, OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.server import DoubleServer
    from tests.fakes.github_api.world import World

REPOSITORY = f"{OWNER}/{NAME}"
BOT = "forkwatch[bot]"


@dataclass
class PassingTime:
    """A clock that waiting moves, and nothing else."""

    waited: list[float] = field(default_factory=list)
    _begin: float = field(default_factory=time.time)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        assert seconds >= 0
        self.waited.append(seconds)

    def monotonic(self) -> float:
        """Return the seconds that were waited."""
        return sum(self.waited)

    def wall(self) -> float:
        """Return the time of day."""
        return self._begin + sum(self.waited)


class OpenedGitHub:
    """The double, and the service's parts on it."""

    def __init__(self, double: GitHubDouble, url: str) -> None:
        self.double = double
        self.url = url
        self.world: World = double.world
        self.time = PassingTime()
        app = AppCredential(app_id=APP_ID, private_key=private_key())
        self.client = self.new_client(app)
        self.comments = GitHubComments(self.client)
        self.checks = GitHubChecks(self.client)
        self.issues = GitHubIssues(self.client, self.comments)
        self.permissions = GitHubPermissions(self.client)
        self.token_client = self.new_client(TokenCredential(token=USER_TOKEN))
        self.statuses = GitHubStatuses(self.token_client)

    def new_client(
        self, credential: AppCredential | TokenCredential, *, below: str = ""
    ) -> GitHubClient:
        """Return a client that knows nothing yet, as after a restart."""
        return GitHubClient(
            REPOSITORY,
            credential,
            api_url=f"{self.url}{below}",
            sleep=self.time.sleep,
            monotonic=self.time.monotonic,
            wall=self.time.wall,
        )

    def a_pull_request(self, *, locked: bool = False) -> int:
        """Open a pull request as somebody; return its number."""
        made = self.world.new_issue({"title": "Faster"}, login="contributor", pull=True)
        made["locked"] = locked
        return int(made["number"])

    def texts(self, number: int) -> list[str]:
        """Return the comments on an issue or pull request, without our first lines."""
        bodies = [comment["body"] for on, comment in self.world.comments if on == number]
        return [body.split("-->\n", 1)[-1] for body in bodies]


@cache
def _contract() -> Contract:
    return Contract(description())


@contextmanager
def a_github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    """Open a double; in the end it must have behaved as GitHub does."""
    double = GitHubDouble(description(), _contract())
    server.double = double
    yield OpenedGitHub(double, server.url)
    server.double = None
    told = "\n".join(double.faults)
    assert not told, f"the double answered as GitHub never would:\n{told}"
