"""Asking GitHub: who we are, when to wait, when to ask again, and when better not."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from service.channels.github.client import (
    TRIES_MAX,
    WRITE_PAUSE_SECONDS,
    AppCredential,
    TokenCredential,
    segment,
)
from service.channels.github.errors import MissingError, RateLimitedError, RefusedError
from service.core.errors import CodeHostError
from tests.fakes.github_api.credentials import APP_ID, USER, USER_TOKEN, new_key, private_key
from tests.fakes.github_api.double import primary_limit, secondary_limit
from tests.fakes.github_api.opened import BOT, a_github
from tests.fakes.github_api.rules import Reply, refusal
from tests.fakes.github_api.server import DoubleServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub

BAD_GATEWAY = Reply(status=502, body={"message": "Server Error"})


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


def post_a_comment(github: OpenedGitHub, number: int) -> None:
    github.client.post(f"{github.client.path}/issues/{number}/comments", {"body": "words"})


def test_an_app_signs_in_once_for_many_requests(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()

    for _ in range(3):
        post_a_comment(github, pull)

    paths = [path for _, path, _ in github.double.asked]
    assert sum(path.endswith("/access_tokens") for path in paths) == 1
    assert sum(path.endswith("/installation") for path in paths) == 1
    assert {comment["user"]["login"] for _, comment in github.world.comments} == {BOT}


def test_each_knows_its_own_name(github: OpenedGitHub) -> None:
    assert github.client.login() == BOT
    assert github.token_client.login() == USER


def test_two_apps_in_one_process_are_not_confused(github: OpenedGitHub) -> None:
    assert github.client.login() == BOT

    other = github.new_client(AppCredential(app_id=APP_ID, private_key=new_key()))
    with pytest.raises(RefusedError, match="401"):
        other.login()


def test_an_app_that_is_not_installed_says_what_to_do(github: OpenedGitHub) -> None:
    github.double.go_wrong("GET", "/installation$", refusal(404, "Not Found"), times=9)

    with pytest.raises(RefusedError, match="not installed on acme/mariadb-fork: install it there"):
        github.client.get(f"{github.client.path}/issues")


def test_an_enterprise_server_answers_below_its_own_path(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    app = AppCredential(app_id=APP_ID, private_key=private_key())
    client = github.new_client(app, below="/api/v3")

    client.post(f"{client.path}/issues/{pull}/comments", {"body": "words"})

    assert client.login() == BOT
    assert github.texts(pull) == ["words"]


def test_a_wrong_token_is_refused_and_never_repeated_in_words(github: OpenedGitHub) -> None:
    stranger = github.new_client(TokenCredential(token="not-ours-at-all"))

    with pytest.raises(RefusedError, match="401 Bad credentials") as caught:
        stranger.login()

    assert "not-ours-at-all" not in str(caught.value)
    assert github.time.waited == []


def test_credentials_do_not_show_themselves() -> None:
    shown = repr((AppCredential(app_id="1", private_key="PEM"), TokenCredential(token="TOKEN")))

    assert "PEM" not in shown
    assert "TOKEN" not in shown


def test_a_read_is_tried_again(github: OpenedGitHub) -> None:
    github.double.go_wrong("GET", "/issues$", BAD_GATEWAY, times=TRIES_MAX - 1)

    assert github.client.get(f"{github.client.path}/issues") == []
    assert github.time.waited == [1.0, 2.0]


def test_a_read_is_not_tried_for_ever(github: OpenedGitHub) -> None:
    github.double.go_wrong("GET", "/issues$", BAD_GATEWAY, times=99)

    with pytest.raises(CodeHostError, match="502 Server Error"):
        github.client.get(f"{github.client.path}/issues")

    assert sum(path.endswith("/issues") for _, path, _ in github.double.asked) == TRIES_MAX


@pytest.mark.parametrize("after", [False, True])
def test_a_write_that_may_have_been_done_is_never_repeated(
    github: OpenedGitHub, *, after: bool
) -> None:
    pull = github.a_pull_request()
    github.double.go_wrong("POST", "/comments$", BAD_GATEWAY, after=after)

    with pytest.raises(CodeHostError, match="502"):
        post_a_comment(github, pull)

    assert len(github.world.comments) == int(after)


@pytest.mark.parametrize("seconds", [0, 7, 60])
def test_a_write_that_was_refused_for_now_is_done_once_after_the_wait(
    github: OpenedGitHub, seconds: int
) -> None:
    pull = github.a_pull_request()
    github.double.go_wrong("POST", "/comments$", secondary_limit(seconds))

    post_a_comment(github, pull)

    assert github.time.waited == [seconds]
    assert len(github.world.comments) == 1


def test_a_secondary_limit_without_a_time_is_a_minute(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.double.go_wrong("POST", "/comments$", secondary_limit(None))

    post_a_comment(github, pull)

    assert github.time.waited == [60]


def test_a_limit_until_a_time_of_day_is_waited_for(github: OpenedGitHub) -> None:
    github.double.go_wrong("GET", "/issues$", primary_limit(github.time.wall() + 30))

    github.client.get(f"{github.client.path}/issues")

    (waited,) = github.time.waited
    assert 29 <= waited <= 30


@pytest.mark.parametrize("seconds", [61, 3000])
def test_a_long_limit_is_handed_on_with_its_time(github: OpenedGitHub, seconds: int) -> None:
    github.double.go_wrong("GET", "/issues$", secondary_limit(seconds), times=9)

    with pytest.raises(RateLimitedError) as caught:
        github.client.get(f"{github.client.path}/issues")

    assert caught.value.retry_after_s == seconds
    assert github.time.waited == []


def test_a_limit_keeps_its_time_in_a_flow_that_remembers_it() -> None:
    error = RateLimitedError("told", retry_after_s=300)

    again = pickle.loads(pickle.dumps(error))

    assert (str(again), again.retry_after_s, again.status) == ("told", 300, 503)


def test_a_limit_that_does_not_end_is_handed_on(github: OpenedGitHub) -> None:
    github.double.go_wrong("GET", "/issues$", secondary_limit(5), times=99)

    with pytest.raises(RateLimitedError, match="for 5 s"):
        github.client.get(f"{github.client.path}/issues")

    assert github.time.waited == [5, 5]


def test_what_is_forbidden_is_not_a_limit(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.world.granted["issues"] = "read"

    with pytest.raises(RefusedError, match="403 Resource not accessible by integration"):
        post_a_comment(github, pull)

    assert github.time.waited == []


def test_what_is_missing_is_said_so(github: OpenedGitHub) -> None:
    with pytest.raises(MissingError, match="404 Not Found"):
        github.client.get(f"{github.client.path}/issues/12345")


def test_github_gets_a_second_between_writes(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()

    post_a_comment(github, pull)
    post_a_comment(github, pull)
    github.client.get(f"{github.client.path}/issues")

    assert github.time.waited == [WRITE_PAUSE_SECONDS]


@pytest.mark.parametrize(("count", "requests"), [(0, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
def test_lists_are_read_to_their_end(github: OpenedGitHub, count: int, requests: int) -> None:
    pull = github.a_pull_request()
    for number in range(count):
        github.world.new_comment(pull, f"comment {number}", login="somebody")

    path = f"{github.client.path}/issues/{pull}/comments"
    bodies = [item["body"] for item in github.client.items(path)]

    assert bodies == [f"comment {number}" for number in range(count)]
    assert sum(asked == path for _, asked, _ in github.double.asked) == requests


def test_a_value_is_one_segment_of_a_path_whatever_is_in_it() -> None:
    assert segment("../a?b#c d") == "..%2Fa%3Fb%23c%20d"


def test_what_is_gone_already_is_deleted(github: OpenedGitHub) -> None:
    github.client.delete(f"{github.client.path}/issues/comments/999")

    assert github.double.asked[-1][2] == 404


def test_somebody_in_between_is_not_github(github: OpenedGitHub) -> None:
    sign_in = Reply(status=200, body="<html>Please sign in</html>")
    github.double.go_wrong("GET", "/issues$", sign_in, times=99)

    with pytest.raises(CodeHostError, match="not JSON"):
        github.client.get(f"{github.client.path}/issues")


def test_a_moved_repository_is_not_followed(github: OpenedGitHub) -> None:
    away = {"location": "https://elsewhere.example/repos/acme/renamed/issues"}
    moved = Reply(status=301, body={"message": "Moved Permanently"}, headers=away)
    github.double.go_wrong("GET", "/issues$", moved)

    with pytest.raises(RefusedError, match="correct FORKWATCH_GITHUB_REPOSITORY"):
        github.client.get(f"{github.client.path}/issues")


def test_nobody_there_is_a_passing_trouble_and_names_no_secret() -> None:
    with DoubleServer() as server, a_github(server) as github:
        client = github.new_client(AppCredential(app_id=APP_ID, private_key=private_key()))

    with pytest.raises(CodeHostError, match="GET /app: no answer") as caught:
        client.login()

    assert "Bearer" not in str(caught.value)
    assert USER_TOKEN not in str(caught.value)
