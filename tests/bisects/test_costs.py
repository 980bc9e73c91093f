from __future__ import annotations

import pytest

from bisects.costs import SECONDS_MIN, Costs
from bisects.document import CommitState
from tests.bisects.ranges import Bench, a_search, observed, sha_of


def some_costs(**chosen: object) -> Costs:
    facts = {"build_seconds": 600.0, "measure_seconds": 60.0, "built": ()}
    return Costs(10, **{**facts, **chosen})


def test_first_guesses_count_until_something_was_measured() -> None:
    costs = some_costs(built=[4])

    assert costs.of(4) == 60.0
    assert costs.of(5) == 60.0 + 120.0
    assert costs.to_come(4) == pytest.approx(4 * 60 + 0.5 * 4 * 0.8 * 600)


def test_what_jobs_take_is_learnt_by_medians() -> None:
    costs = some_costs()

    for commit, seconds in ((1, 130.0), (2, 140.0), (3, 2_000.0)):
        costs.learn(observed(commit, -0.1, seconds=seconds, build_seconds=seconds - 40.0))

    assert costs.measure_seconds == 40.0
    assert costs.build_seconds == 100.0
    assert costs.of(3) == 40.0
    assert costs.of(9) == 40.0 + 20.0


def test_a_build_that_failed_or_was_there_teaches_nothing_of_builds() -> None:
    costs = some_costs(built=[2])

    costs.learn(observed(1, seconds=5.0, build_seconds=5.0))
    costs.learn(observed(2, -0.1, seconds=61.0, build_seconds=1.0))

    assert costs.build_seconds == 600.0
    assert costs.of(1) == 60.0 + 120.0


def test_a_commit_with_the_good_ends_files_costs_a_build_only() -> None:
    costs = some_costs()

    costs.learn(observed(1, state=CommitState.SAME, failure="", seconds=31.0, build_seconds=30.0))

    assert costs.build_seconds == 30.0
    assert costs.measure_seconds == 60.0


def test_nothing_is_free() -> None:
    costs = some_costs()

    costs.learn(observed(1, -0.1, seconds=0.0))

    assert costs.measure_seconds == SECONDS_MIN


def test_what_is_built_is_measured_rather_than_what_is_not() -> None:
    """Of neighbours that tell as much as each other, the one with an artifact is asked."""
    built = {place for place in range(64) if place % 4 == 3}
    dear = {"build_seconds": 6_000.0, "measure_seconds": 60.0}
    bench = Bench(40)
    search = a_search(64, built=[sha_of(place) for place in built], **dear)
    for _ in range(5):
        order = search.next()
        assert order is not None
        search.take(bench.observe(order))

    assert set(bench.asked) <= built
