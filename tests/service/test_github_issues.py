"""Issues of alerts: one each, ours to describe and people's to handle."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from service.channels.github.issues import GitHubIssues
from service.channels.github.markers import marked
from service.core.errors import CodeHostError
from service.core.model import Alert, AlertState, AlertWorkload
from tests.fakes.github_api.opened import BOT, a_github
from tests.fakes.github_api.rules import Reply
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.memory_fork import AT
from tests.fakes.run_documents import sha
from workloads.plan import Notify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.fakes.github_api.opened import OpenedGitHub

LOST = Reply(status=502, body={"message": "Server Error"})
TEXT = "# demo/main: scan 9.1 % slower\n\n**scan is 9.1 % slower**\n"


def slower(workload: str, percent: float) -> AlertWorkload:
    effect = math.log1p(-percent / 100)
    return AlertWorkload(
        workload=workload,
        effect=effect,
        low=effect - 0.01,
        high=effect + 0.01,
        p_value=1e-6,
        gate=0.05,
    )


ALERT = Alert(
    id="alert-bbbbbbbbbbbb-01234567",
    fork="demo",
    sha=sha("b"),
    subject="Check the record format",
    author="Ada Lovelace",
    baseline_sha=sha("a"),
    state=AlertState.CONFIRMED,
    workloads=(slower("scan", 9.1),),
    run="run-1",
    opened_at=AT,
)


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


def the_issue(github: OpenedGitHub) -> dict[str, Any]:
    (issue,) = [item for item in github.world.issues if item["user"]["login"] == BOT]
    return issue


def labels(issue: dict[str, Any]) -> list[str]:
    return [label["name"] for label in issue["labels"]]


def test_an_alert_opens_an_issue(github: OpenedGitHub) -> None:
    where = github.issues.raise_alert(ALERT, TEXT, Notify())

    issue = the_issue(github)
    assert where == issue["html_url"]
    assert issue["title"] == "demo: scan 9.1 % slower at bbbbbbbb"
    # The title is not said twice.
    assert issue["body"].partition("\n")[2] == "**scan is 9.1 % slower**\n"
    assert labels(issue) == ["forkwatch", "forkwatch: scan"]


def test_telling_again_changes_nothing(github: OpenedGitHub) -> None:
    first = github.issues.raise_alert(ALERT, TEXT, Notify())
    writes = github.double.writes()

    assert github.issues.raise_alert(ALERT, TEXT, Notify()) == first
    assert github.double.writes() == writes


def test_an_issue_whose_answer_was_lost_is_not_opened_twice(github: OpenedGitHub) -> None:
    github.double.go_wrong("POST", "/issues$", LOST, after=True)

    with pytest.raises(CodeHostError):
        github.issues.raise_alert(ALERT, TEXT, Notify())
    again = GitHubIssues(github.client, github.comments)
    again.raise_alert(ALERT, TEXT, Notify())

    assert the_issue(github)["state"] == "open"


def test_an_issue_is_found_among_many_others(github: OpenedGitHub) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())
    for number in range(150):
        other = replace(ALERT, id=f"alert-{number}")
        github.world.new_issue(
            {"title": "x", "body": marked(f"alert:{other.id}", "text")}, login=BOT
        )
        github.a_pull_request()
    before = len(github.world.issues)

    github.issues.raise_alert(ALERT, TEXT, Notify())

    assert len(github.world.issues) == before


def test_a_stranger_cannot_pass_for_our_issue(github: OpenedGitHub) -> None:
    body = marked(f"alert:{ALERT.id}", "nothing to see here")
    github.world.new_issue({"title": "x", "body": body}, login="somebody")

    github.issues.raise_alert(ALERT, TEXT, Notify())

    assert len(github.world.issues) == 2


def test_news_change_the_text_and_our_labels_and_leave_what_people_did(
    github: OpenedGitHub,
) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())
    issue = the_issue(github)
    issue["title"] = "The scan thing"
    issue["labels"] = github.world.labels(["forkwatch", "forkwatch: scan", "innodb"])

    worse = replace(ALERT, workloads=(slower("point-query", 6.0),))
    github.issues.raise_alert(worse, "point-query is slower", Notify())

    assert issue["title"] == "The scan thing"
    assert issue["body"].endswith("-->\npoint-query is slower")
    assert labels(issue) == ["innodb", "forkwatch", "forkwatch: point-query"]


def test_a_fix_closes_the_issue_and_says_why_once(github: OpenedGitHub) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())

    for _ in range(2):
        where = github.issues.close_alert(ALERT, "As fast as before.", key=sha("c"))

    issue = the_issue(github)
    assert where == issue["html_url"]
    assert (issue["state"], issue["state_reason"]) == ("closed", "completed")
    assert github.texts(issue["number"]) == ["As fast as before."]


def test_a_loss_that_is_intended_closes_it_as_not_planned(github: OpenedGitHub) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())

    github.issues.close_alert(ALERT, "Accepted.", key="accepted", intended=True)

    assert the_issue(github)["state_reason"] == "not_planned"


@pytest.mark.parametrize(("method", "path"), [("POST", "/comments$"), ("PATCH", "/issues/")])
@pytest.mark.parametrize("after", [False, True])
def test_closing_interrupted_anywhere_is_completed_and_not_repeated(
    github: OpenedGitHub, method: str, path: str, *, after: bool
) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())
    github.double.go_wrong(method, path, LOST, after=after)

    with pytest.raises(CodeHostError):
        github.issues.close_alert(ALERT, "As fast as before.", key=sha("c"))
    github.issues.close_alert(ALERT, "As fast as before.", key=sha("c"))

    issue = the_issue(github)
    assert issue["state"] == "closed"
    assert github.texts(issue["number"]) == ["As fast as before."]


def test_the_same_loss_opens_it_again(github: OpenedGitHub) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())
    github.issues.close_alert(ALERT, "As fast as before.", key=sha("c"))

    github.issues.reopen_alert(ALERT, "Slower again.", key=sha("d"))

    issue = the_issue(github)
    assert issue["state"] == "open"
    assert github.texts(issue["number"]) == ["As fast as before.", "Slower again."]


def test_who_closes_an_issue_by_hand_has_the_last_word(github: OpenedGitHub) -> None:
    github.issues.raise_alert(ALERT, TEXT, Notify())
    issue = the_issue(github)
    issue["state"] = "closed"
    github.issues.raise_alert(ALERT, "News.", Notify())
    assert issue["state"] == "closed"

    github.issues.reopen_alert(ALERT, "Slower again.", key=sha("d"))
    issue["state"] = "closed"
    github.issues.reopen_alert(ALERT, "Slower again.", key=sha("d"))

    assert issue["state"] == "closed"


def test_what_has_no_issue_is_not_closed_or_reopened(github: OpenedGitHub) -> None:
    assert github.issues.close_alert(ALERT, "text", key="k") is None
    assert github.issues.reopen_alert(ALERT, "text", key="k") is None
    assert github.world.issues == []


def test_news_are_a_comment_once_for_each_key(github: OpenedGitHub) -> None:
    assert github.issues.tell_news(ALERT, "short", "Too early.", key="k") is None
    github.issues.raise_alert(ALERT, TEXT, Notify())

    for _ in range(2):
        where = github.issues.tell_news(ALERT, "short", "A bisect has begun.", key="b:begun")
    github.issues.tell_news(ALERT, "short", "Found by *it*.", key="b:ended")

    issue = the_issue(github)
    assert where == issue["html_url"]
    assert issue["state"] == "open"
    assert github.texts(issue["number"]) == ["A bisect has begun.", "Found by *it*."]


def test_many_workloads_make_a_title_and_labels_that_can_be_read(github: OpenedGitHub) -> None:
    many = tuple(slower(f"w{number}, or so{'o' * 80}", 6 + number) for number in range(9))
    github.issues.raise_alert(replace(ALERT, workloads=many), TEXT, Notify())

    issue = the_issue(github)
    assert len(issue["title"]) <= 256
    assert "and 6 more slower" in issue["title"]
    assert len(labels(issue)) == 6
    assert all(len(name) <= 50 and "," not in name for name in labels(issue))
    writes = github.double.writes()
    github.issues.raise_alert(replace(ALERT, workloads=many), TEXT, Notify())
    assert github.double.writes() == writes
