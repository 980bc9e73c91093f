"""Orders in comments, carried out by the real flow on real DBOS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.check import Conclusion
from results.job import JobOrder
from service.core.alert_actions import AlertAction
from service.core.errors import ActionError
from service.core.pull_requests import PullJobKind, PullJobState
from tests.fakes.memory_fork import AT
from tests.fakes.pull_world import BOT, PullWorld, a_pull_world
from tests.fakes.webhook_payloads import comment_payload, pull_payload, when

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.postgres_server import PostgresServer

STRANGERS = "mallory/mariadb-fork"
ALERT_BODY = "<!-- forkwatch alert:alert-5f-1 -->\nscan is slower"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PullWorld]:
    url = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database()
    with a_pull_world(tmp_path_factory.mktemp("home"), url) as opened:
        yield opened


def from_outside(world: PullWorld, subject: str) -> tuple[int, str]:
    """Open a pull request from a stranger's repository."""
    number = next(world.numbers)
    head = world.fork.open(number, subject)
    world.news(pull_payload(number, head=head, head_repository=STRANGERS))
    return number, head


def test_code_from_outside_is_measured_when_a_writer_says_so(world: PullWorld) -> None:
    number, head = from_outside(world, "Tidy up")
    asked = world.say("Looks fine.\n\n/forkwatch run", number=number, at=when(60))
    answer = world.until_answered(asked)

    [job] = world.jobs(number)
    assert (job.state, job.asked_by, job.trusted) == (PullJobState.JUDGED, "github:ada", False)
    assert JobOrder.model_validate_json(job.order).trusted is False
    assert answer == f"Measuring `{head[:8]}` against its merge base, suite commit."
    assert asked in world.talk.seen
    assert [check.conclusion for check in world.checks.of(head)] == [Conclusion.SUCCESS]
    # Whoever asks is told, also that nothing is wrong.
    assert "unchanged" in world.talk.stuck[number, "commit"]


def test_whoever_may_not_write_gets_neither_work_nor_words(world: PullWorld) -> None:
    number, head = from_outside(world, "Tidy up")
    asked = world.say("/forkwatch run", number=number, at=when(60), login="mallory")

    assert world.until_answered(asked) == ""
    assert world.jobs(number) == []
    assert asked not in world.talk.seen
    assert world.checks.of(head) == []


def test_permission_is_asked_for_each_time(world: PullWorld) -> None:
    number, _ = from_outside(world, "Tidy up")
    world.writers.logins.add("eve")
    first = world.say("/forkwatch explain", number=number, at=when(60), login="eve")
    world.until_answered(first)
    world.writers.logins.remove("eve")
    second = world.say("/forkwatch run", number=number, at=when(61), login="eve")

    assert world.until_answered(second) == ""
    assert first in world.talk.answers
    assert world.writers.asked[-2:] == ["eve", "eve"]


def test_an_order_is_for_the_head_that_its_writer_saw(world: PullWorld) -> None:
    """Whoever pushes between the look and the order gets nothing measured."""
    number, seen = from_outside(world, "Harmless")
    pushed = world.fork.open(number, "Not what was looked at")
    asked = world.say("/forkwatch run", number=number, at=when(60))
    answer = world.until_answered(asked)

    assert answer.startswith("Not begun: the head may not be the one that you saw.")
    assert f"`{pushed[:8]}`" in answer
    assert world.jobs(number) == []

    again = world.say("/forkwatch run", number=number, at=when(61))
    world.until_answered(again)
    [job] = world.jobs(number)
    assert (job.candidate_sha, job.state) == (pushed, PullJobState.JUDGED)
    assert world.checks.of(seen) == []


def test_an_order_older_than_the_push_is_not_for_it(world: PullWorld) -> None:
    """News of the push may come before the comment that was written earlier."""
    number, first = from_outside(world, "Harmless")
    pushed = world.fork.open(number, "Not what was looked at")
    world.news(
        pull_payload(
            number,
            action="synchronize",
            head=pushed,
            before=first,
            head_repository=STRANGERS,
            at=when(30),
        )
    )
    for seconds in (29, 30):
        asked = world.say("/forkwatch run", number=number, at=when(seconds))
        assert "Not begun" in world.until_answered(asked)
    assert world.jobs(number) == []

    later = world.say("/forkwatch run", number=number, at=when(31))
    assert "Measuring" in world.until_answered(later)


def test_a_later_push_needs_an_order_of_its_own(world: PullWorld) -> None:
    number, first = from_outside(world, "Harmless")
    world.until_answered(world.say("/forkwatch run", number=number, at=when(60)))
    pushed = world.fork.open(number, "More")
    world.news(
        pull_payload(
            number,
            action="synchronize",
            head=pushed,
            before=first,
            head_repository=STRANGERS,
            at=when(90),
        )
    )
    world.until_quiet()

    assert [job.candidate_sha for job in world.jobs(number)] == [first]
    assert world.checks.of(pushed) == []


def test_a_pull_request_never_heard_of_is_looked_at_twice(world: PullWorld) -> None:
    """The service may be younger than the pull request; nobody knows yet whose it is."""
    number = next(world.numbers)
    head = world.fork.open(number, "Old")
    asked = world.say("/forkwatch run", number=number, at=world.clock.now())
    assert "Not begun" in world.until_answered(asked)

    again = world.say("/forkwatch run", number=number, at=world.clock.now() + (when(1) - AT))
    world.until_answered(again)
    [job] = world.jobs(number)
    assert (job.candidate_sha, job.trusted) == (head, False)


def test_a_head_of_our_own_needs_no_look(world: PullWorld) -> None:
    number = next(world.numbers)
    first = world.fork.open(number, "One")
    world.news(pull_payload(number, head=first))
    world.until_quiet()
    second = world.fork.open(number, "Two")
    world.until_answered(world.say("/forkwatch run", number=number, at=when(0)))
    world.news(pull_payload(number, action="synchronize", head=second, before=first, at=when(9)))
    world.until_quiet()

    # News of the push, which comes later, finds it measured.
    assert [job.candidate_sha for job in world.jobs(number)] == [first, second]
    assert [job.trusted for job in world.jobs(number)] == [True, True]


def test_the_same_comment_is_carried_out_once(world: PullWorld) -> None:
    number, _ = from_outside(world, "Tidy up")
    payload = comment_payload("/forkwatch run", number=number, comment=10_001, at=when(60))
    world.hear(payload)
    world.hear(payload)
    world.until_quiet()
    world.hear(payload)
    world.until_quiet()

    assert len(world.jobs(number)) == 1
    assert world.talk.answered[10_001] == 1


def test_what_is_measured_already_is_said_and_what_was_is_measured_again(
    world: PullWorld,
) -> None:
    number, head = from_outside(world, "Takes long wait=yes")
    world.until_answered(world.say("/forkwatch run", number=number, at=when(60)))
    asked = world.say("/forkwatch run", number=number, at=when(70))
    assert world.until_answered(asked) == f"`{head[:8]}` is being measured already."

    world.runners.release(world.jobs(number)[0].id)
    world.until_quiet()
    world.say("/forkwatch run", number=number, at=when(80))
    world.until(lambda: bool(world.runners.at_work))
    world.runners.release(world.jobs(number)[1].id)

    states = [job.state for job in world.until_over(number)]
    assert states == [PullJobState.JUDGED, PullJobState.JUDGED]


def test_two_commits_are_compared_in_a_comment_of_their_own(world: PullWorld) -> None:
    number, head = from_outside(world, "Slower speed=0.8")
    base = world.fork.commits[0].sha
    asked = world.say(f"/forkwatch compare {base}", number=number, at=when(60))
    answer = world.until_answered(asked)

    [job] = world.jobs(number)
    assert (job.kind, job.candidate_sha, job.baseline_sha) == (PullJobKind.COMPARE, head, base)
    assert job.trusted is False
    assert f"`{head[:8]}` against `{base[:8]}`" in answer
    assert "slower" in world.talk.stuck[number, f"commit:{base[:12]}..{head[:12]}"]
    # A check would speak about the head and its merge base.
    assert world.checks.of(head) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/forkwatch compare nowhere main", "names no commit here"),
        ("/forkwatch compare main main", "the same commit"),
        ("/forkwatch compare main", "no pull request"),
        ("/forkwatch run", "no pull request"),
        ("/forkwatch run nightly", "no such suite. It has: `commit`"),
        ("/forkwatch bisect main main~1", "cannot bisect yet"),
        ("/forkwatch accept it is meant", "nothing to accept here"),
        ("/forkwatch explain", "Nothing was judged here yet"),
        ("/forkwatch rum", "did you mean `/forkwatch run [SUITE]`?"),
    ],
)
def test_what_cannot_be_done_is_answered_without_the_words_of_the_order(
    world: PullWorld, text: str, words: str
) -> None:
    number = next(world.numbers)
    asked = world.say(text, number=number, at=when(60), on_pull_request=False)
    answer = world.until_answered(asked)

    assert words in answer
    assert world.jobs(number) == []
    for word in ("nowhere", "nightly", "meant", "rum`"):
        assert word not in answer


def test_several_orders_have_one_answer(world: PullWorld) -> None:
    number, _ = from_outside(world, "Tidy up")
    text = "/forkwatch run\n\n/forkwatch bisect main main~1\n\n/forkwatch nonsense"
    asked = world.say(text, number=number, at=when(60))
    paragraphs = world.until_answered(asked).split("\n\n")

    assert [words.split()[0] for words in paragraphs] == ["Measuring", "The", "There"]
    assert world.talk.answered[asked] == 1


def test_a_comment_without_orders_begins_nothing(world: PullWorld) -> None:
    asked = len(world.writers.asked)
    comment = world.say("Try `/forkwatch run`.", number=7, at=when(60))
    world.until_quiet()

    assert comment not in world.talk.answers
    assert len(world.writers.asked) == asked


def test_a_loss_is_accepted_on_the_issue_of_its_alert(world: PullWorld) -> None:
    asked = world.say(
        "/forkwatch accept The new check is worth it.",
        number=900,
        at=when(60),
        on_pull_request=False,
        issue_login=BOT,
        issue_body=ALERT_BODY,
    )
    answer = world.until_answered(asked)

    order = world.actions.orders[-1]
    assert (order.alert, order.action, order.actor, order.via) == (
        "alert-5f-1",
        AlertAction.ACCEPT,
        "github:ada",
        "github",
    )
    assert order.note == "The new check is worth it."
    assert order.key == f"comment:{asked}:0"
    assert answer.startswith("Accepted")


def test_a_loss_of_a_measured_head_is_accepted_and_its_check_blocks_nobody(
    world: PullWorld,
) -> None:
    number, head = from_outside(world, "Slower speed=0.8")
    early = world.say("/forkwatch accept too early", number=number, at=when(50))
    assert "nothing to accept here" in world.until_answered(early)
    world.until_answered(world.say("/forkwatch run", number=number, at=when(60)))
    [failed] = world.checks.of(head)
    asked = world.say("/forkwatch accept It is <b>safer</b>.", number=number, at=when(70))
    answer = world.until_answered(asked)

    [check] = world.checks.of(head)
    assert answer.startswith("Accepted: its check blocks nobody any more.")
    assert (failed.conclusion, check.conclusion) == (Conclusion.FAILURE, Conclusion.NEUTRAL)
    assert check.title.startswith("accepted by ada; scan is ")
    said = world.talk.stuck[number, "commit"]
    assert said.startswith("Accepted as intended by ada: It is &lt;b&gt;safer&lt;/b&gt;.")
    assert "slower" in said
    assert said.split("\n\n")[0] in check.summary


def test_what_is_not_slower_or_not_the_head_any_more_is_not_accepted(world: PullWorld) -> None:
    calm, _ = from_outside(world, "Tidy up")
    world.until_answered(world.say("/forkwatch run", number=calm, at=when(60)))
    moved, first = from_outside(world, "Slower speed=0.8")
    world.until_answered(world.say("/forkwatch run", number=moved, at=when(60)))
    pushed = world.fork.open(moved, "More")
    news = pull_payload(
        moved,
        action="synchronize",
        head=pushed,
        before=first,
        head_repository=STRANGERS,
        at=when(90),
    )
    world.news(news)

    for number in (calm, moved):
        asked = world.say("/forkwatch accept it is meant", number=number, at=when(99))
        assert "nothing to accept here" in world.until_answered(asked)
        assert {job.accepted_by for job in world.jobs(number)} == {""}


def test_an_issue_that_somebody_made_to_look_like_ours_is_none(world: PullWorld) -> None:
    orders = len(world.actions.orders)
    asked = world.say(
        "/forkwatch accept it",
        number=901,
        at=when(60),
        on_pull_request=False,
        issue_login="mallory",
        issue_body=ALERT_BODY,
    )

    assert "nothing to accept here" in world.until_answered(asked)
    assert len(world.actions.orders) == orders


def test_what_an_alert_refuses_is_said_and_inert(world: PullWorld) -> None:
    world.actions.refusal = ActionError("@everyone: it is *fixed* already")
    try:
        asked = world.say(
            "/forkwatch accept it",
            number=902,
            at=when(60),
            on_pull_request=False,
            issue_login=BOT,
            issue_body=ALERT_BODY,
        )
        answer = world.until_answered(asked)
    finally:
        world.actions.refusal = None

    assert answer.startswith("Not accepted:")
    assert "@everyone" not in answer
    assert "\\*fixed\\*" in answer


def test_a_verdict_is_explained_from_what_was_judged(world: PullWorld) -> None:
    number, _ = from_outside(world, "Slower speed=0.8")
    world.until_answered(world.say("/forkwatch run", number=number, at=when(60)))
    every = world.until_answered(world.say("/forkwatch explain", number=number, at=when(70)))
    one = world.until_answered(world.say("/forkwatch explain scan", number=number, at=when(80)))
    none = world.until_answered(world.say("/forkwatch explain q", number=number, at=when(90)))

    assert "- scan: regression;" in every
    assert "- point-query: no-change;" in every
    assert one.startswith("- scan: regression;")
    assert "point-query" not in one
    assert none == "No workload of that name was judged here."


def test_a_limit_of_githubs_is_slept_through(world: PullWorld) -> None:
    world.mood.limits = [0.1, 0.1]
    number, _ = from_outside(world, "Tidy up")
    asked = world.say("/forkwatch bisect main main~1", number=number, at=when(60))

    assert "cannot bisect yet" in world.until_answered(asked)
    assert world.mood.limits == []
    assert world.talk.answered[asked] == 1
