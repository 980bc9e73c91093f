"""Pull requests walked by the real flow on real DBOS; each test has pull requests of its own."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from detectors.verdict import Decision
from reports.check import Conclusion
from results.job import JobOrder
from results.slice import SideName
from service.channels.github.errors import RateLimitedError
from service.core.errors import CodeHostError
from service.core.pull_requests import PullJobKind, PullJobState
from service.flows.pull_judge import judge_pull, keep_verdicts, level_of_each, read_verdicts
from service.store import pull_requests
from tests.fakes.pull_world import PullWorld, a_pull_world
from tests.fakes.run_documents import a_run
from tests.fakes.scripted_measurement import PLAN
from tests.fakes.verdicts import a_verdict
from tests.fakes.webhook_payloads import pull_payload, when
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.postgres_server import PostgresServer


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


def opened(world: PullWorld, subject: str, **named: object) -> tuple[int, str]:
    """Open a pull request, tell about it, and wait; return its number and head."""
    number = next(world.numbers)
    head = world.fork.open(number, subject)
    world.news(pull_payload(number, head=head, **named))  # type: ignore[arg-type]
    world.until_quiet()
    return number, head


def test_a_head_is_measured_against_its_merge_base_and_quiet_when_nothing_is_wrong(
    world: PullWorld,
) -> None:
    number, head = opened(world, "Tidy up")

    [job] = world.jobs(number)
    order = JobOrder.model_validate_json(job.order)
    assert (job.kind, job.state) == (PullJobKind.RUN, PullJobState.JUDGED)
    assert (order.candidate, order.baseline) == (head, world.fork.commits[-1].sha)
    assert (order.trusted, order.submit_to, order.starts) == (True, None, 10)
    [check] = world.checks.of(head)
    assert check.conclusion is Conclusion.SUCCESS
    assert "unchanged" in check.title
    assert (number, "commit") not in world.talk.stuck


def test_a_slower_head_fails_its_check_and_is_told_once(world: PullWorld) -> None:
    number, head = opened(world, "Slower speed=0.8")
    world.until_over(number)

    [check] = world.checks.of(head)
    said = world.talk.stuck[number, "commit"]
    assert check.conclusion is Conclusion.FAILURE
    assert "slower" in check.title
    assert check.title.split(" (")[0] in said
    # The sentence, the table, the smallest loss to be seen, the host, and how to see it oneself.
    for part in ("| scan |", "would have shown", "Host state", f"git fetch origin pull/{number}/"):
        assert part in said


def test_what_was_wrong_and_is_over_is_said_where_it_was_said(world: PullWorld) -> None:
    number, slow = opened(world, "Slower speed=0.8")
    fixed = world.fork.open(number, "Fast again")
    world.news(pull_payload(number, action="synchronize", head=fixed, before=slow, at=when(60)))
    world.until_over(number)

    assert "unchanged" in world.talk.stuck[number, "commit"]
    assert [check.conclusion for check in world.checks.of(slow)] == [Conclusion.FAILURE]
    assert [check.conclusion for check in world.checks.of(fixed)] == [Conclusion.SUCCESS]


@pytest.mark.parametrize(
    "named",
    [
        {"head_repository": "mallory/mariadb-fork"},
        {"head_repository": None},
        {"draft": True},
        {"base": "release-1"},
        {"state": "closed"},
        {"action": "labeled"},
    ],
)
def test_what_nobody_has_asked_for_is_not_measured(
    world: PullWorld, named: dict[str, object]
) -> None:
    number, head = opened(world, "Slower speed=0.8", **named)

    assert world.jobs(number) == []
    assert world.checks.of(head) == []
    with world.database.reading() as session:
        known = pull_requests.find(session, "demo", number)
    assert known is not None
    assert known.head_sha == head


def test_a_draft_is_measured_once_it_is_ready(world: PullWorld) -> None:
    number, head = opened(world, "Tidy up", draft=True)
    world.news(pull_payload(number, action="ready_for_review", head=head, at=when(60)))

    [job] = world.until_over(number)
    assert job.state is PullJobState.JUDGED


def test_the_same_news_twice_is_measured_once(world: PullWorld) -> None:
    number, head = opened(world, "Tidy up")
    world.news(pull_payload(number, head=head))
    world.news(pull_payload(number, action="reopened", head=head, at=when(5)))
    world.pulls.open_queue()

    assert len(world.until_over(number)) == 1
    assert world.runners.starts_of(world.jobs(number)[0].id) == 1


def test_older_news_after_newer_does_nothing(world: PullWorld) -> None:
    """GitHub promises no order."""
    number = next(world.numbers)
    old = world.fork.open(number, "Slower speed=0.8")
    new = world.fork.open(number, "Fast again")
    world.news(pull_payload(number, action="synchronize", head=new, before=old, at=when(60)))
    world.news(pull_payload(number, head=old, at=when(0)))
    world.news(pull_payload(number, action="closed", state="closed", head=old, at=when(30)))

    [job] = world.until_over(number)
    assert (job.candidate_sha, job.state) == (new, PullJobState.JUDGED)
    assert world.checks.of(old) == []


def test_of_two_pushes_in_one_second_the_later_one_counts(world: PullWorld) -> None:
    """GitHub's times are whole seconds; the head before tells which came first."""
    number = next(world.numbers)
    first = world.fork.open(number, "One")
    second = world.fork.open(number, "Two")
    opened_first = pull_payload(number, head=first)
    pushed = pull_payload(number, action="synchronize", head=second, before=first)
    world.news(opened_first)
    world.news(pushed)
    world.news(opened_first)
    world.until_over(number)

    with world.database.reading() as session:
        known = pull_requests.find(session, "demo", number)
    assert known is not None
    assert known.head_sha == second


def test_a_newer_head_ends_the_job_of_the_older_one(world: PullWorld) -> None:
    number, slow = opened(world, "Takes long wait=yes")
    [job] = world.jobs(number)
    world.until(lambda: job.id in world.runners.at_work)
    assert [check.conclusion for check in world.checks.of(slow)] == [None]

    new = world.fork.open(number, "Shorter")
    world.news(pull_payload(number, action="synchronize", head=new, before=slow, at=when(60)))
    older, newer = world.until_over(number)

    assert job.id in world.runners.stopped
    assert (older.state, newer.state) == (PullJobState.SUPERSEDED, PullJobState.JUDGED)
    [check] = world.checks.of(slow)
    assert check.conclusion is Conclusion.NEUTRAL
    assert f"{new[:8]} took its place" in check.title
    assert world.runners.starts_of(job.id) == 1


def test_a_closed_pull_request_costs_no_more_time_and_may_come_back(world: PullWorld) -> None:
    number, head = opened(world, "Takes long wait=yes")
    [job] = world.jobs(number)
    world.until(lambda: job.id in world.runners.at_work)
    closing = pull_payload(number, action="closed", state="closed", head=head, at=when(60))
    world.news(closing)
    [closed] = world.until_over(number)
    assert (closed.state, "closed" in closed.said) == (PullJobState.SUPERSEDED, True)

    world.news(pull_payload(number, action="reopened", head=head, at=when(90)))
    world.until(lambda: bool(world.runners.at_work))
    again = world.jobs(number)[-1]
    world.runners.release(again.id)
    world.until_over(number)

    assert [one.state for one in world.jobs(number)] == [
        PullJobState.SUPERSEDED,
        PullJobState.JUDGED,
    ]


def test_pairs_wait_for_each_other_on_one_machine(world: PullWorld) -> None:
    first, _ = opened(world, "Takes long wait=yes")
    world.until(lambda: bool(world.runners.at_work))
    second, head = opened(world, "Tidy up")
    orders = len(world.runners.orders)

    assert [check.conclusion for check in world.checks.of(head)] == [None]
    assert len(world.runners.orders) == orders
    world.runners.release(world.jobs(first)[0].id)
    world.until_over(first)
    assert [check.conclusion for check in world.checks.of(head)] == [Conclusion.SUCCESS]
    assert world.jobs(second)[0].state is PullJobState.JUDGED


def test_the_plan_is_that_of_the_default_branch(world: PullWorld) -> None:
    number, _ = opened(world, "Loosens its own gate")
    order = JobOrder.model_validate_json(world.jobs(number)[0].order)
    level = level_of_each(2, parse_plan(PLAN).gates)

    assert order.plan == world.fork.plan == PLAN
    assert order.alphas == {"scan": level, "point-query": level}
    assert level == 0.001 / 2


@pytest.mark.parametrize(
    ("subject", "conclusion", "words"),
    [
        ("Breaks it outcome=build-failed", Conclusion.FAILURE, "does not build"),
        ("Documentation outcome=unchanged", Conclusion.SUCCESS, "installs the same files"),
        ("Unlucky outcome=unstable", Conclusion.NEUTRAL, "unstable host"),
        ("Crashes outcome=failed", Conclusion.NEUTRAL, "could not be measured"),
        ("Its runner is always lost loseconfirm=99", Conclusion.NEUTRAL, "was not measured"),
    ],
)
def test_what_was_not_measured_says_so_in_its_check_alone(
    world: PullWorld, subject: str, conclusion: Conclusion, words: str
) -> None:
    number, head = opened(world, subject)
    world.until_over(number)

    [check] = world.checks.of(head)
    assert check.conclusion is conclusion
    assert words in check.title
    assert (number, "commit") not in world.talk.stuck


def test_a_lost_runner_is_started_again(world: PullWorld) -> None:
    number, head = opened(world, "Its runner is lost loseconfirm=2")
    [job] = world.until_over(number)

    assert (job.state, job.attempts) == (PullJobState.JUDGED, 3)
    assert [check.conclusion for check in world.checks.of(head)] == [Conclusion.SUCCESS]


def test_a_head_that_has_moved_before_its_turn_is_left(world: PullWorld) -> None:
    number = next(world.numbers)
    told = world.fork.open(number, "One")
    moved = world.fork.open(number, "Two")
    world.news(pull_payload(number, head=told))
    [job] = world.until_over(number)

    assert job.state is PullJobState.FAILED
    assert f"the head is {moved[:8]} by now" in job.said
    assert world.runners.starts_of(job.id) == 0


def test_a_head_that_is_merged_already_is_left(world: PullWorld) -> None:
    number = next(world.numbers)
    head = world.fork.open(number, "One")
    world.fork.merged(number)
    world.news(pull_payload(number, head=head))
    [job] = world.until_over(number)

    assert "in its base branch already" in job.said
    assert [check.conclusion for check in world.checks.of(head)] == [Conclusion.NEUTRAL]


def test_a_limit_of_githubs_is_slept_through(world: PullWorld) -> None:
    world.mood.limits = [0.1, 0.1]
    number, head = opened(world, "Slower speed=0.8")
    world.until_over(number)

    assert world.mood.limits == []
    assert [check.conclusion for check in world.checks.of(head)] == [Conclusion.FAILURE]
    assert (number, "commit") in world.talk.stuck


def test_news_under_a_plan_that_cannot_be_used_may_come_again(world: PullWorld) -> None:
    number = next(world.numbers)
    head = world.fork.open(number, "Tidy up")
    world.fork.plan, good = "nonsense", world.fork.plan
    try:
        with pytest.raises(CodeHostError, match="plan cannot be used"):
            world.news(pull_payload(number, head=head))
    finally:
        world.fork.plan = good
    world.news(pull_payload(number, head=head))

    [job] = world.until_over(number)
    assert job.state is PullJobState.JUDGED


def test_an_older_head_never_speaks_over_a_newer_one(world: PullWorld) -> None:
    """Such as when GitHub made it wait for an hour."""
    number, slow = opened(world, "Slower speed=0.8")
    fixed = world.fork.open(number, "Fast again")
    world.news(pull_payload(number, action="synchronize", head=fixed, before=slow, at=when(60)))
    older, _ = world.until_over(number)
    said = world.talk.stuck[number, "commit"]

    world.steps.show(older.id)

    assert world.talk.stuck[number, "commit"] == said


def test_a_document_of_another_job_is_not_taken(world: PullWorld) -> None:
    number, head = opened(world, "Takes long wait=yes")
    [job] = world.jobs(number)
    story = a_run().of("demo").called(job.run, job=job.id).on("f" * 40)
    stray = story.with_samples("scan", [[2.0, 2.1]]).build()
    world.runners._documents[job.id] = stray.model_dump_json().encode()
    world.runners.at_work.discard(job.id)
    [over] = world.until_over(number)

    assert over.state is PullJobState.FAILED
    assert "CredentialRefusedError" in over.said
    assert [check.conclusion for check in world.checks.of(head)] == [Conclusion.NEUTRAL]


def test_a_limit_survives_being_written_down() -> None:
    """DBOS keeps the errors of steps pickled."""

    error = pickle.loads(pickle.dumps(RateLimitedError("slowly", retry_after_s=7.5)))

    assert (str(error), error.retry_after_s) == ("slowly", 7.5)


def test_verdicts_are_read_back_as_they_were_kept() -> None:
    """Also those without an interval, which JSON by the letter has no word for."""
    verdicts = {
        "scan": a_verdict(-9.1, low=-10.0, high=-8.2),
        "point-query": a_verdict(0.1, low=-1.0, high=1.2, p_value=0.4),
    }
    story = a_run().against("a" * 40)
    for workload in ("scan", "one-start"):
        for side in SideName:
            starts = [[2.0, 2.1]] if workload == "one-start" else [[2.0], [2.1], [2.05]]
            story = story.with_samples(workload, starts, side=side)
    gates = parse_plan(PLAN).gates
    judged = judge_pull(story.build(), gates, level=0.0005, starts_max=10)

    assert read_verdicts(keep_verdicts(verdicts)) == verdicts
    assert read_verdicts(keep_verdicts(judged)) == judged
    assert judged["one-start"].decision is Decision.INCONCLUSIVE
    assert read_verdicts("") == {}
