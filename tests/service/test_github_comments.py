"""Comments: one per topic, edited in place, ours only, and never two of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from service.channels.github.comments import GitHubComments
from service.channels.github.errors import RefusedError
from service.channels.github.limits import BODY_LENGTH_MAX
from service.channels.github.markers import marked
from service.core.errors import CodeHostError
from tests.fakes.github_api.opened import BOT, a_github
from tests.fakes.github_api.rules import Reply
from tests.fakes.github_api.server import DoubleServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.github_api.opened import OpenedGitHub

LOST = Reply(status=502, body={"message": "Server Error"})


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


def test_one_comment_is_edited_in_place(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()

    first = github.comments.stick(pull, "slower", suite="commit", loud=True)
    second = github.comments.stick(pull, "much slower", suite="commit", loud=True)

    assert first == second
    assert github.texts(pull) == ["much slower"]


def test_saying_the_same_again_writes_nothing(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.comments.stick(pull, "slower\n\n| a |\n", suite="commit", loud=True)
    writes = github.double.writes()

    github.comments.stick(pull, "slower\n\n| a |\n", suite="commit", loud=True)

    assert github.double.writes() == writes


def test_nothing_is_said_unasked_when_nothing_is_wrong(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()

    assert github.comments.stick(pull, "unchanged", suite="commit", loud=False) is None
    assert github.texts(pull) == []


def test_what_was_wrong_and_is_over_is_said_where_it_was_said(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.comments.stick(pull, "slower", suite="commit", loud=True)

    github.comments.stick(pull, "unchanged", suite="commit", loud=False)

    assert github.texts(pull) == ["unchanged"]


def test_each_suite_and_each_pull_request_has_its_own(github: OpenedGitHub) -> None:
    pull, other = github.a_pull_request(), github.a_pull_request()

    for number, suite in ((pull, "commit"), (pull, "full"), (other, "commit")):
        github.comments.stick(number, f"{suite} slower", suite=suite, loud=True)

    assert github.texts(pull) == ["commit slower", "full slower"]
    assert github.texts(other) == ["commit slower"]


def test_our_comment_is_found_among_many(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    for _ in range(120):
        github.world.new_comment(pull, "talk", login="somebody")
    github.comments.stick(pull, "slower", suite="commit", loud=True)
    for _ in range(120):
        github.world.new_comment(pull, "talk", login="somebody")

    github.comments.stick(pull, "faster", suite="commit", loud=True)

    assert [text for text in github.texts(pull) if text != "talk"] == ["faster"]


def test_a_stranger_with_our_first_line_stays_untouched(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    stolen = marked("pull:commit", "I was here first")
    github.world.new_comment(pull, stolen, login="somebody")

    github.comments.stick(pull, "slower", suite="commit", loud=True)

    assert github.texts(pull) == ["I was here first", "slower"]


def test_our_first_line_quoted_in_another_comment_of_ours_is_not_it(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    log = marked("pull:commit", "printed by a hostile build")
    github.comments.stick(pull, f"failed\n```text\n{log}\n```", suite="full", loud=True)

    github.comments.stick(pull, "slower", suite="commit", loud=True)

    assert len(github.texts(pull)) == 2


def test_an_edit_by_a_person_is_replaced_and_its_line_ends_do_no_harm(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.comments.stick(pull, "slower", suite="commit", loud=True)
    comment = github.world.comments[-1][1]
    comment["body"] = comment["body"].replace("\n", "\r\n") + "\r\nnot true!"

    github.comments.stick(pull, "slower", suite="commit", loud=True)

    assert github.texts(pull) == ["slower"]


def test_a_comment_whose_answer_was_lost_is_not_posted_twice(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.double.go_wrong("POST", "/comments$", LOST, after=True)

    with pytest.raises(CodeHostError):
        github.comments.stick(pull, "slower", suite="commit", loud=True)
    # The flow's next try, in another process for all we know.
    again = GitHubComments(github.client)
    where = again.stick(pull, "slower", suite="commit", loud=True)

    assert github.texts(pull) == ["slower"]
    assert where == github.world.comments[0][1]["html_url"]


def test_a_comment_that_was_not_posted_is_posted_at_the_next_try(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    github.double.go_wrong("POST", "/comments$", LOST, after=False)

    with pytest.raises(CodeHostError):
        github.comments.stick(pull, "slower", suite="commit", loud=True)
    github.comments.stick(pull, "slower", suite="commit", loud=True)

    assert github.texts(pull) == ["slower"]


def test_two_comments_of_the_past_become_one(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    for text in ("first", "second"):
        github.world.new_comment(pull, marked("pull:commit", text), login=BOT)

    github.comments.stick(pull, "slower", suite="commit", loud=False)

    assert github.texts(pull) == ["slower"]


def test_threads_that_speak_at_once_leave_one_comment(
    github: OpenedGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull = github.a_pull_request()
    look = GitHubComments._find

    def look_and_dawdle(*arguments: Any) -> list[Any]:
        found = look(*arguments)
        time.sleep(0.05)
        return found

    monkeypatch.setattr(GitHubComments, "_find", look_and_dawdle)

    with ThreadPoolExecutor(6) as threads:
        said = [
            threads.submit(github.comments.stick, pull, "slower", suite="commit", loud=True)
            for _ in range(6)
        ]
        places = {future.result() for future in said}

    assert github.texts(pull) == ["slower"]
    assert len(places) == 1


def test_a_locked_conversation_is_a_refusal_and_no_reason_to_go_on_trying(
    github: OpenedGitHub,
) -> None:
    pull = github.a_pull_request(locked=True)

    with pytest.raises(RefusedError, match="issue is locked"):
        github.comments.stick(pull, "slower", suite="commit", loud=True)


def test_a_text_that_is_too_long_is_cut_and_says_so(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    text = "slower\n<details><summary>log</summary>\n\n```text\n" + "ä line\n" * 20_000 + "```\n"

    github.comments.stick(pull, text, suite="commit", loud=True)

    body = github.world.comments[-1][1]["body"]
    assert len(body.encode()) <= BODY_LENGTH_MAX
    assert body.endswith(
        "\nä line\n```\n</details>\n\n**Cut here: the text is too long for GitHub.**\n"
    )
    github.comments.stick(pull, text, suite="commit", loud=True)
    assert len(github.world.comments) == 1


def test_a_question_is_answered_once(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    question = github.world.new_comment(pull, "/forkwatch run", login="maintainer")["id"]

    github.comments.answer(pull, question, "It runs.")
    github.comments.answer(pull, question, "It runs.")
    github.comments.answer(pull, question + 1, "Another.")

    assert github.texts(pull) == ["/forkwatch run", "It runs.", "Another."]


def test_a_sign_that_it_was_seen_is_left_once(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    question = github.world.new_comment(pull, "/forkwatch run", login="maintainer")["id"]

    github.comments.acknowledge(question)
    github.comments.acknowledge(question)

    assert github.world.reactions == {(question, BOT, "eyes")}


def test_a_suite_cannot_name_itself_out_of_the_first_line(github: OpenedGitHub) -> None:
    pull = github.a_pull_request()
    for suite in ("a-->b", "a--b", "a\nb", "a-"):
        github.comments.stick(pull, suite, suite=suite, loud=True)
        github.comments.stick(pull, "again", suite=suite, loud=True)

    assert github.texts(pull) == ["again"] * 4
    firsts = [comment["body"].partition("\n")[0] for _, comment in github.world.comments]
    assert len(set(firsts)) == 4
    assert all(first.endswith(" -->") and first.count("--") == 2 for first in firsts)
