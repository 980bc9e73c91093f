"""Bisects walked by the real flow on real DBOS; each test has a range of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bisects.document import BisectEnd, CommitState
from service.core.bisections import BisectJobState, BisectRefusedError, BisectState
from service.flows import bisect_asks
from service.flows.bisect_steps import TRIES_MAX
from tests.fakes.bisect_world import BisectWorld, a_bisect_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.postgres_server import PostgresServer

QUIET = ("Import", "Tidy the parser", "Fix a typo", "Refactor the handler")
SLOW = ("Check the record format speed=0.9", "After it speed=0.9", "Later speed=0.9")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BisectWorld]:
    url = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database()
    with a_bisect_world(tmp_path_factory.mktemp("home"), url) as opened:
        yield opened


def test_the_commit_that_changed_the_level_is_named(world: BisectWorld) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    bisect = world.ended(world.ask(good, bad))
    found = world.document(bisect.id)

    assert (bisect.state, found.end, found.culprits) == (
        BisectState.OVER,
        BisectEnd.CULPRIT,
        (len(QUIET),),
    )
    assert re.match(r"scan is (9|10)\.\d % slower", bisect.said)
    assert "Check the record format" in bisect.said
    assert found.probability >= 0.95
    assert found.minutes_spent == 4 * len(found.observations)


def test_every_measurement_is_a_pair_with_the_good_end_on_the_one_workload(
    world: BisectWorld,
) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    bisect = world.ended(world.ask(good, bad))
    orders = world.orders(bisect.id)

    assert {order.baseline for order in orders} == {good}
    assert {order.workloads for order in orders} == {("scan",)}
    # The flow takes documents from the folders of jobs, so no runner holds a credential.
    assert {(order.submit_to, order.credential) for order in orders} == {(None, None)}
    # None of these commits was seen on the branch: whose they are, nobody knows.
    assert {order.trusted for order in orders} == {False}
    assert len({order.job for order in orders}) == len(orders)
    assert {job.state for job in world.jobs(bisect.id)} == {BisectJobState.OBSERVED}
    assert world.orders(bisect.id)[0].candidate == bad


def test_commits_of_the_branch_are_trusted(world: BisectWorld) -> None:
    good, bad = world.branch("Import", "Same outcome=unchanged", seen=True)
    bisect = world.ended(world.ask(good, bad))

    assert [order.trusted for order in world.orders(bisect.id)] == [True]
    assert world.document(bisect.id).end is BisectEnd.NOT_REPRODUCED
    assert bisect.said.startswith("not reproduced")


def test_the_same_question_is_asked_once(world: BisectWorld) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    first = world.ended(world.ask(good, bad))
    orders = len(world.runners.orders)

    assert world.ask(good, bad, actor="token:bob") == first.id
    assert world.ended(first.id) == first
    assert len(world.runners.orders) == orders


def test_a_broken_build_is_skipped_and_named(world: BisectWorld) -> None:
    good, bad = world.branch(
        "Import", "Quiet", "Breaks it outcome=build-failed", "Slower speed=0.9", "Later speed=0.9"
    )
    bisect = world.ended(world.ask(good, bad))
    found = world.document(bisect.id)

    # The step may be in the commit that does not build, or in the one that repaired it.
    assert found.end is BisectEnd.INDISTINGUISHABLE
    assert found.culprits == (2, 3)
    assert found.commits[2].state is CommitState.BROKEN
    assert "it was planned to" in found.commits[2].failure


def test_a_job_without_numbers_is_tried_again_and_then_its_commit_is_broken(
    world: BisectWorld,
) -> None:
    good, bad = world.branch("Import", "Unlucky outcome=unstable", "Slower speed=0.9")
    bisect = world.ended(world.ask(good, bad))
    found = world.document(bisect.id)
    tried = [job for job in world.jobs(bisect.id) if job.commit == 1]

    assert [job.state for job in tried] == [
        *[BisectJobState.FAILED] * (TRIES_MAX - 1),
        BisectJobState.OBSERVED,
    ]
    assert found.commits[1].state is CommitState.BROKEN
    assert "it was planned to" in tried[0].said
    assert found.culprits == (1, 2)


def test_a_runner_that_is_always_lost_does_not_end_the_search(world: BisectWorld) -> None:
    good, bad = world.branch("Import", "Lost loseconfirm=99", "Slower speed=0.9")
    bisect = world.ended(world.ask(good, bad))
    [lost] = [job for job in world.jobs(bisect.id) if job.commit == 1]

    assert bisect.state is BisectState.OVER
    assert (lost.attempts, lost.observation and lost.observation.state) == (3, CommitState.BROKEN)
    assert "lost too often" in lost.said
    assert lost.observation is not None
    assert lost.observation.by_host
    assert "the host, not the commit, ended it 3 times" in lost.observation.failure


def test_a_build_that_the_host_ended_is_tried_again_and_never_called_broken(
    world: BisectWorld,
) -> None:
    good, bad = world.branch("Import", "Killed outcome=failed cause=host", "Slower speed=0.9")
    bisect = world.ended(world.ask(good, bad))
    found = world.document(bisect.id)
    tried = [job for job in world.jobs(bisect.id) if job.commit == 1]
    seen = [one for one in found.observations if one.commit == 1]

    assert bisect.state is BisectState.OVER
    assert [job.state for job in tried] == [
        *[BisectJobState.FAILED] * (TRIES_MAX - 1),
        BisectJobState.OBSERVED,
    ]
    assert [one.by_host for one in seen] == [True]
    assert found.commits[1].failure.startswith(
        f"the host, not the commit, ended it {TRIES_MAX} times: build: it was planned to"
    )


def test_a_host_that_ends_the_builds_of_two_commits_in_a_row_ends_the_search(
    world: BisectWorld,
) -> None:
    killed = [f"Killed {number} outcome=failed cause=host" for number in range(4)]
    good, bad = world.branch("Import", *killed, "Slower speed=0.9")
    bisect = world.ended(world.ask(good, bad))

    assert bisect.state is BisectState.FAILED
    assert bisect.said.startswith("the host kept two commits in a row from being measured")
    assert "it was planned to" in bisect.said
    tries = [job.commit for job in world.jobs(bisect.id) if job.commit != len(killed) + 1]
    assert len(set(tries)) == 2
    assert len(tries) == 2 * TRIES_MAX
    # It can be asked again, and what was measured counts.
    again = world.ask(good, bad)
    assert again != bisect.id
    world.ended(again)
    assert len(world.orders(again)) < len(world.orders(bisect.id))


def test_a_good_end_whose_build_the_host_ended_is_tried_again_too(world: BisectWorld) -> None:
    good, bad = world.branch("Import goodfails=host", "Quiet", "Slower speed=0.9")
    bisect = world.ended(world.ask(good, bad))

    assert bisect.state is BisectState.FAILED
    assert f"the good end {good[:8]}" in bisect.said
    assert len(world.orders(bisect.id)) == TRIES_MAX


def test_a_good_end_that_does_not_build_ends_the_search(world: BisectWorld) -> None:
    good, bad = world.branch("Import goodfails=commit", "Quiet", "Slower speed=0.9")
    bisect = world.ended(world.ask(good, bad))

    assert bisect.state is BisectState.FAILED
    assert f"the good end {good[:8]}" in bisect.said
    assert "no rule to make target" in bisect.said
    assert len(world.orders(bisect.id)) == 1


def test_a_bisect_can_be_ended_and_asked_for_again(world: BisectWorld) -> None:
    good, bad = world.branch("Import", "Quiet", "Takes long speed=0.9 wait=yes")
    bisect = world.ask(good, bad)
    world.until(lambda: world.runners.at_work)
    [job] = world.jobs(bisect)
    cancelled = world.asks.cancel(bisect, "token:eve")

    assert cancelled.state is BisectState.CANCELLED
    assert world.asks.cancel(bisect, "token:eve") == cancelled
    assert job.id in world.runners.stopped
    ended = world.ended(bisect)
    assert ended.said.startswith("ended by token:eve: ")
    assert world.document(bisect).end is BisectEnd.CANCELLED

    again = world.ask(good, bad)
    assert again != bisect
    world.until(lambda: world.runners.at_work)
    world.asks.cancel(again, "token:eve")
    world.ended(again)


def test_bisects_wait_for_each_other_in_their_order(world: BisectWorld) -> None:
    slow_good, slow_bad = world.branch("Import", "Takes long wait=yes")
    good, bad = world.branch("Import", "Same outcome=unchanged")
    first, second = world.ask(slow_good, slow_bad), world.ask(good, bad)
    world.until(lambda: world.runners.at_work)

    assert world.bisect(first).state is BisectState.MEASURING
    assert world.bisect(second).state is BisectState.WAITING
    assert world.jobs(second) == []
    world.asks.cancel(first, "token:eve")
    assert world.ended(second).state is BisectState.OVER
    with pytest.raises(BisectRefusedError, match="over already"):
        world.asks.cancel(second, "token:eve")


def test_one_that_waits_is_ended_without_having_begun(world: BisectWorld) -> None:
    slow_good, slow_bad = world.branch("Import", "Takes long wait=yes")
    good, bad = world.branch("Import", "Quiet")
    first, second = world.ask(slow_good, slow_bad), world.ask(good, bad)
    world.until(lambda: world.runners.at_work)
    world.asks.cancel(second, "token:eve")
    world.asks.cancel(first, "token:eve")

    ended = world.ended(second)
    assert (ended.state, ended.started_at) == (BisectState.CANCELLED, None)
    assert world.jobs(second) == []


def test_what_was_measured_counts_for_an_overlapping_range(world: BisectWorld) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    first = world.ended(world.ask(good, bad))
    again = world.ended(world.ask(good, bad, budget_minutes=60.0))
    found = world.document(again.id)

    assert again.id != first.id
    assert found.culprits == (len(QUIET),)
    assert len(world.orders(again.id)) < len(world.orders(first.id))
    taken_over = {observation.job for observation in found.observations}
    assert {job.id for job in world.jobs(first.id)} <= taken_over
    assert found.minutes_spent == 4 * len(world.orders(again.id))


def test_a_range_that_ends_earlier_takes_over_what_lies_in_it(world: BisectWorld) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    shas = [commit.sha for commit in world.fork.commits]
    first = world.ended(world.ask(good, bad))
    earlier = shas[shas.index(bad) - 1]
    again = world.ended(world.ask(good, earlier))
    found = world.document(again.id)

    last = len(QUIET) + len(SLOW) - 2
    taken = [job for job in world.jobs(first.id) if job.commit <= last]
    assert found.culprits == (len(QUIET),)
    assert found.commits[-1].sha == earlier
    assert {job.id for job in taken} <= {one.job for one in found.observations}
    assert len(world.orders(again.id)) < len(world.orders(first.id))


def test_the_budget_ends_it_with_what_is_known(world: BisectWorld) -> None:
    good, bad = world.branch(*QUIET, *SLOW)
    bisect = world.ended(world.ask(good, bad, budget_minutes=4.0))
    found = world.document(bisect.id)

    assert (found.end, found.minutes_spent) == (BisectEnd.BUDGET, 4.0)
    assert "the budget of 4 minutes is used up" in bisect.said


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"good": "nowhere"}, "the good end names no commit"),
        ({"bad": "nowhere"}, "the bad end names no commit"),
        ({"swap": True}, "no ancestor of the bad end"),
        ({"same": True}, "both ends are the same commit"),
        ({"workload": None}, "name the workload; the suite has: scan, point-query"),
        ({"workload": "nonsense"}, "cannot run this workload; it has: scan, point-query"),
        ({"workload": "core-8"}, "is a list; name one"),
        ({"suite": "nightly"}, "no such suite; it has: commit"),
        ({"host_class": "huge"}, "on the host class small alone"),
        ({"stop": 1.0}, "between 0.5 and 0.999"),
        ({"budget_minutes": 1441.0}, "between 1 and 1440"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_what_would_be_right(
    world: BisectWorld, named: dict[str, object], words: str
) -> None:
    good, bad = world.branch("Import", "Quiet")
    if "swap" in named:
        good, bad = bad, good
    if "same" in named:
        bad = good
    asked = {"good": good, "bad": bad} | named
    asked = {name: value for name, value in asked.items() if name not in {"swap", "same"}}

    with pytest.raises(BisectRefusedError, match=words):
        world.ask(**asked)  # type: ignore[arg-type]


def test_a_long_range_is_refused(world: BisectWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = world.branch("Import", "One", "Two", "Three")
    monkeypatch.setattr(bisect_asks, "RANGE_COMMITS_MAX", 3)

    with pytest.raises(BisectRefusedError, match="more than 2 commits before it"):
        world.ask(good, bad)
