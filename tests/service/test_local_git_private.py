"""A private repository: read with a token that is told to its remote alone, and kept nowhere."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygit2
import pytest

from service.app.compose import code_host_of
from service.channels.git_credentials import USER, GitCredentials
from service.channels.github.connect import connect
from service.channels.github.errors import RateLimitedError, RefusedError
from service.channels.local_git import LocalGit
from service.core.errors import CodeHostError
from service.core.settings import load_settings
from tests.fakes.git_fork import GitFork
from tests.fakes.loopback import Loopback
from tests.fakes.private_git import PrivateGit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOKEN = "ghs_thisWouldBeAnAppsToken0123456789"


@dataclass(kw_only=True)
class Forge:
    """A forge with one private repository, and an empty mirror of it."""

    git: PrivateGit
    url: str
    origin: GitFork
    mirror: Path

    @property
    def address(self) -> str:
        return f"{self.url}/acme/fork"

    def host(self, token: Callable[[], str] = lambda: TOKEN, *, address: str = "") -> LocalGit:
        known = GitCredentials(address=address or self.address, token=token)
        return LocalGit(self.mirror, known)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    repositories = tmp_path / "repositories"
    origin = GitFork(repositories / "acme" / "fork.git")
    git = PrivateGit(folder=repositories, user=USER, password=TOKEN)
    with Loopback(git.app) as running:
        mirror = tmp_path / "mirror.git"
        made = pygit2.init_repository(str(mirror), bare=True)
        made.remotes.create("origin", f"{running.url}/acme/fork.git")
        made.config["remote.origin.mirror"] = True
        yield Forge(git=git, url=running.url, origin=origin, mirror=mirror)


def test_a_mirror_of_a_private_repository_is_brought_up_to_date(forge: Forge) -> None:
    shas = [forge.origin.push("One"), forge.origin.push("Two")]
    host = forge.host()

    host.refresh("main")

    assert [commit.sha for commit in host.branch_commits("main", limit=9)] == shas
    # Nobody is told anything before they ask.
    assert forge.git.heard[0] == ("", "")
    assert set(forge.git.heard[1:]) == {(USER, TOKEN)}


def test_a_pull_request_of_a_private_repository_is_fetched(forge: Forge) -> None:
    parted = forge.origin.push("One")
    head = forge.origin.commit_aside("Faster", parent=parted)
    theirs = pygit2.Repository(str(forge.origin.folder))
    theirs.references.create("refs/pull/7/head", pygit2.Oid(hex=head))

    found = forge.host().pull_request(7, base="main")

    assert found.head.sha == head
    assert found.merge_base is not None
    assert found.merge_base.sha == parted


def test_the_token_is_kept_nowhere(forge: Forge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    forge.origin.push("One")
    host = forge.host()
    host.refresh("main")

    files = [path for path in forge.mirror.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in caplog.text
    known = GitCredentials(address=forge.address, token=lambda: TOKEN)
    assert TOKEN not in repr((known, vars(host)))


def test_each_fetch_asks_for_a_token_of_its_own(forge: Forge) -> None:
    given = []

    def token() -> str:
        given.append(TOKEN)
        return TOKEN

    host = forge.host(token)
    for subject in ("One", "Two"):
        forge.origin.push(subject)
        host.refresh("main")

    assert len(given) == 2


def test_a_token_that_is_refused_is_tried_once(forge: Forge) -> None:
    forge.origin.push("One")

    with pytest.raises(CodeHostError, match="refuses the token") as caught:
        forge.host(lambda: "not-ours").refresh("main")

    assert "not-ours" not in str(caught.value)
    assert forge.git.heard.count((USER, "not-ours")) == 1


@pytest.mark.parametrize("elsewhere", ["/acme/other", "/acme", "/acme/fork/more"])
def test_another_repository_is_told_nothing(forge: Forge, elsewhere: str) -> None:
    forge.origin.push("One")

    with pytest.raises(CodeHostError, match=rf"only {forge.url}{elsewhere} is told"):
        forge.host(address=f"{forge.url}{elsewhere}").refresh("main")

    assert set(forge.git.heard) == {("", "")}


def test_another_host_is_told_nothing(forge: Forge) -> None:
    forge.origin.push("One")

    with pytest.raises(CodeHostError, match=r"git remote set-url origin https://github\.example"):
        forge.host(address="https://github.example/acme/fork").refresh("main")

    assert set(forge.git.heard) == {("", "")}


def test_without_a_token_a_private_repository_cannot_be_fetched(forge: Forge) -> None:
    with pytest.raises(CodeHostError, match="cannot be fetched from origin"):
        LocalGit(forge.mirror).refresh("main")


def test_where_github_gives_no_token_it_is_said_why(forge: Forge) -> None:
    def refused() -> str:
        raise RefusedError("422: no such permission")

    def later() -> str:
        raise RateLimitedError("wait", retry_after_s=60)

    with pytest.raises(CodeHostError, match=r"no token to read .*: 422: no such permission"):
        forge.host(refused).refresh("main")
    with pytest.raises(RateLimitedError):
        forge.host(later).refresh("main")


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://github.com/Acme/Fork", True),
        ("https://github.com/acme/fork.git", True),
        ("https://github.com:443/acme/fork/", True),
        ("https://somebody@github.com/acme/fork", True),
        ("http://github.com/acme/fork", False),
        ("https://github.com.evil.example/acme/fork", False),
        ("https://evil.example/github.com/acme/fork", False),
        ("https://github.com:444/acme/fork", False),
        ("https://github.com:x/acme/fork", False),
        ("https://github.com/acme/fork2", False),
        ("git@github.com:acme/fork.git", False),
        ("ssh://git@github.com/acme/fork.git", False),
    ],
)
def test_one_repository_has_several_addresses(url: str, *, same: bool) -> None:
    known = GitCredentials(address="https://github.com/acme/fork", token=lambda: TOKEN)

    assert known.are_for(url) is same


def test_a_service_reads_with_what_it_has_for_github(forge: Forge) -> None:
    sha = forge.origin.push("One")
    settings = load_settings(
        repository=forge.mirror,
        github_repository="acme/fork",
        github_token=TOKEN,
        github_api_url=f"{forge.url}/api/v3",
    )
    host = code_host_of(settings, connect(settings))

    host.refresh("main")

    assert host.commit(sha).subject == "One"
    assert code_host_of(settings, None).commit(sha).subject == "One"
