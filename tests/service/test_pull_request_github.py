"""A pull request from its opening to its fix, told to a GitHub that holds us to its description."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.github_api.opened import a_github
from tests.fakes.github_api.rules import Reply
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.pull_world import a_pull_world
from tests.fakes.webhook_payloads import comment_payload, pull_payload, when

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fakes.github_api.opened import OpenedGitHub
    from tests.fakes.pull_world import PullWorld

LOST = Reply(status=502, body={"message": "Server Error"})


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        opened.world.permissions = {"ada": "write", "mallory": "read"}
        yield opened


@pytest.fixture
def world(github: OpenedGitHub, tmp_path: Path) -> Iterator[PullWorld]:
    with a_pull_world(
        tmp_path / "home",
        checks=github.checks,
        talk=github.comments,
        writers=github.permissions,
    ) as opened:
        yield opened


def runs(github: OpenedGitHub, sha: str) -> list[tuple[str, str, str | None]]:
    """Return the check runs of a commit, as name, status and conclusion."""
    return [
        (run["name"], run["status"], run["conclusion"])
        for run in github.world.check_runs
        if run["head_sha"] == sha
    ]


def order(github: OpenedGitHub, world: PullWorld, number: int, text: str, login: str) -> int:
    """Write a comment on GitHub and hear of it; return its id."""
    made = github.world.new_comment(number, text, login=login)
    payload = comment_payload(
        text, number=number, comment=int(made["id"]), login=login, at=when(3600)
    )
    world.hear(payload)
    world.until_quiet()
    return int(made["id"])


def test_a_pull_request_from_opening_to_fix(github: OpenedGitHub, world: PullWorld) -> None:
    number = github.a_pull_request()
    slow = world.fork.open(number, "Slower speed=0.8")
    # The comment is made and the answer lost: it must not be made twice.
    github.double.go_wrong("POST", "/comments$", LOST, after=True)
    world.news(pull_payload(number, head=slow))
    world.until_quiet()

    assert runs(github, slow) == [("forkwatch / commit", "completed", "failure")]
    [said] = github.texts(number)
    assert "slower" in said

    fixed = world.fork.open(number, "Fast again")
    world.news(pull_payload(number, action="synchronize", head=fixed, before=slow, at=when(60)))
    world.until_quiet()
    assert runs(github, fixed) == [("forkwatch / commit", "completed", "success")]
    [said] = github.texts(number)
    assert "unchanged" in said


def test_orders_are_seen_and_answered_for_those_who_may_give_them(
    github: OpenedGitHub, world: PullWorld
) -> None:
    number = github.a_pull_request()
    head = world.fork.open(number, "Slower speed=0.8")
    world.news(pull_payload(number, head=head, head_repository="mallory/mariadb-fork"))
    order(github, world, number, "/forkwatch run", "mallory")
    order(github, world, number, "/forkwatch run", "nobody-knows")
    assert world.jobs(number) == []

    asked = order(github, world, number, "/forkwatch run", "ada")
    assert runs(github, head) == [("forkwatch / commit", "completed", "failure")]
    assert github.world.reactions == {(asked, "forkwatch[bot]", "eyes")}
    ours = [text for text in github.texts(number) if not text.startswith("/forkwatch")]
    assert len(ours) == 2
    assert f"Measuring `{head[:8]}` against its merge base, suite commit." in ours
    assert any("scan is " in text for text in ours)


def test_a_locked_conversation_keeps_the_check(github: OpenedGitHub, world: PullWorld) -> None:
    number = github.a_pull_request(locked=True)
    head = world.fork.open(number, "Slower speed=0.8")
    world.news(pull_payload(number, head=head))
    world.until_quiet()

    assert runs(github, head) == [("forkwatch / commit", "completed", "failure")]
    assert github.texts(number) == []
