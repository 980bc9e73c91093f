"""Who may give orders: asked of GitHub each time, and no on any doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.channels.github.errors import RefusedError
from service.core.errors import CodeHostError
from tests.fakes.github_api.opened import a_github
from tests.fakes.github_api.rules import Reply, refusal
from tests.fakes.github_api.server import DoubleServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


@pytest.mark.parametrize(
    ("permission", "may"), [("admin", True), ("write", True), ("read", False), ("none", False)]
)
def test_those_who_may_write_may_give_orders(
    github: OpenedGitHub, permission: str, *, may: bool
) -> None:
    github.world.permissions["somebody"] = permission

    assert github.permissions.may_write("somebody") is may


def test_a_permission_that_was_withdrawn_counts_at_once(github: OpenedGitHub) -> None:
    github.world.permissions["somebody"] = "write"
    assert github.permissions.may_write("somebody")

    github.world.permissions["somebody"] = "read"
    assert not github.permissions.may_write("somebody")


def test_nobody_is_nobody(github: OpenedGitHub) -> None:
    assert not github.permissions.may_write("unheard-of")


def test_an_app_is_asked_about_by_its_whole_name(github: OpenedGitHub) -> None:
    github.world.permissions["renovate[bot]"] = "write"

    assert github.permissions.may_write("renovate[bot]")
    assert not github.permissions.may_write("renovate")


@pytest.mark.parametrize(
    "login",
    ["", "..", "../../installation", "a/b", "a?b", "a#b", "a b", "a\nb", "%2e%2e", "-a", "a" * 200],
)
def test_what_is_no_login_is_not_asked_about(github: OpenedGitHub, login: str) -> None:
    assert not github.permissions.may_write(login)
    assert github.double.asked == []


def test_when_github_cannot_say_nobody_gets_in(github: OpenedGitHub) -> None:
    github.world.permissions["somebody"] = "admin"
    lost = Reply(status=503, body={"message": "Service Unavailable"})
    github.double.go_wrong("GET", "/permission$", lost, times=9)

    with pytest.raises(CodeHostError):
        github.permissions.may_write("somebody")


def test_when_github_will_not_say_nobody_gets_in(github: OpenedGitHub) -> None:
    github.double.go_wrong("GET", "/permission$", refusal(403, "Must have push access"))

    with pytest.raises(RefusedError, match="push access"):
        github.permissions.may_write("somebody")
