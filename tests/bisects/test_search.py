from __future__ import annotations

import pytest

from bisects.commits import RANGE_COMMITS_MAX, refuse_range
from bisects.document import BisectDocument, BisectEnd, CommitState, Observation
from bisects.errors import BisectError
from bisects.search import Search
from tests.bisects.ranges import Bench, a_question, a_range, a_search, observed, searched, sha_of


def test_a_planted_step_is_found_with_its_size() -> None:
    bench = Bench(20)

    found = searched(a_search(32), bench)

    assert found.end is BisectEnd.CULPRIT
    assert found.culprits == (20,)
    assert found.commits[20].sha == sha_of(20)
    assert found.probability == pytest.approx(found.commits[20].posterior)
    assert found.probability >= 0.95
    assert found.effect_low < -0.1 < found.effect_high
    assert found.effect_low < found.effect < found.effect_high
    assert len(found.observations) == len(bench.asked)
    assert 0 not in bench.asked, "the good end is one side of every job"
    assert found.minutes_left is None


@pytest.mark.parametrize("culprit", [1, 7, 15])
def test_steps_at_either_end_and_upwards_are_found_as_well(culprit: int) -> None:
    found = searched(a_search(16), Bench(culprit, step=0.06))

    assert found.culprits == (culprit,)
    assert found.effect == pytest.approx(0.06, abs=0.02)


def test_a_range_of_one_commit_is_measured_all_the_same() -> None:
    found = searched(a_search(2), Bench(1))

    assert found.end is BisectEnd.CULPRIT
    assert found.culprits == (1,)
    assert found.commits[1].starts >= 12


def test_a_range_without_a_step_is_not_reproduced() -> None:
    found = searched(a_search(16), Bench(0))

    assert found.end is BisectEnd.NOT_REPRODUCED
    assert found.culprits == ()
    assert found.probability == found.nothing >= 0.95
    assert found.effect is None


def test_a_step_among_broken_builds_ends_with_the_honest_set() -> None:
    bench = Bench(9, broken={8, 9, 10})

    found = searched(a_search(24), bench)

    assert found.end is BisectEnd.INDISTINGUISHABLE
    assert found.culprits == (8, 9, 10, 11)
    assert found.probability >= 0.95
    tried = {place for place, one in enumerate(found.commits) if one.state is CommitState.BROKEN}
    assert tried <= {8, 9, 10}
    assert found.commits[min(tried)].failure == "build: make failed with status 2"


def test_a_broken_commit_is_tried_once() -> None:
    bench = Bench(9, broken={8, 15, 23})

    searched(a_search(24), bench)

    assert all(bench.asked.count(place) <= 1 for place in (8, 15, 23))


def test_nothing_to_measure_says_so() -> None:
    found = searched(a_search(3), Bench(1, broken={1, 2}))

    assert found.end is BisectEnd.NOTHING_TO_MEASURE
    assert found.effect is None


def test_the_budget_ends_a_search_with_the_smallest_set() -> None:
    search = a_search(64, question=a_question(64, budget_minutes=3.0))

    found = searched(search, Bench(40))

    assert found.end is BisectEnd.BUDGET
    assert found.minutes_spent == pytest.approx(3.0)
    assert len(found.observations) == 3
    assert found.probability >= 0.95
    assert sum(found.commits[place].posterior for place in found.culprits) >= 0.95
    assert 40 in found.culprits


def test_the_same_observations_make_the_same_search_again() -> None:
    bench = Bench(20, broken={16, 17})
    first = a_search(32)
    orders = []
    while (order := first.next()) is not None:
        orders.append(order)
        first.take(bench.observe(order))
    done = first.document()

    again = a_search(32)
    for order, observation in zip(orders, done.observations, strict=True):
        assert again.next() == order
        again.take(observation)
    assert again.next() is None
    assert again.document() == done


def test_a_document_survives_json() -> None:
    found = searched(a_search(8), Bench(3, broken={2}))

    assert BisectDocument.model_validate_json(found.model_dump_json()) == found


def test_a_search_under_way_says_how_far_it_is() -> None:
    search = a_search(64, question=a_question(64, budget_minutes=90.0))
    before = search.document()
    bench = Bench(40)
    for _ in range(6):
        order = search.next()
        assert order is not None
        search.take(bench.observe(order))

    now = search.document()

    assert now.end is None
    assert now.culprits == ()
    assert now.entropy_bits < before.entropy_bits
    assert now.minutes_spent == pytest.approx(6.0)
    assert now.minutes_left is not None
    assert 0 < now.minutes_left <= 84
    assert search.document(cancelled=True).end is BisectEnd.CANCELLED
    assert search.document(cancelled=True).minutes_left is None


def test_an_artifact_equal_to_the_good_end_rules_out_what_lies_before() -> None:
    search = a_search(20)

    search.take(observed(10, state=CommitState.SAME, failure=""))

    now = search.document()
    assert [one.posterior for one in now.commits[1:11]] == [0.0] * 10
    assert now.commits[10].state is CommitState.SAME
    found = searched(search, Bench(13, same=range(1, 13)))
    assert found.culprits == (13,)


def test_a_bad_end_equal_to_the_good_one_needs_no_measurement() -> None:
    search = a_search(20)

    search.take(observed(19, state=CommitState.SAME, failure=""))

    assert search.next() is None
    assert search.document().end is BisectEnd.NOT_REPRODUCED
    assert search.document().probability == 1.0


def test_between_equal_artifacts_nothing_changed() -> None:
    search = a_search(20)

    search.take(observed(12, -0.1, -0.1, artifact="a" * 64))
    search.take(observed(5, -0.1, -0.1, artifact="a" * 64))

    now = search.document()
    assert [one.posterior for one in now.commits[6:13]] == [0.0] * 7
    assert all(one.posterior > 0 for one in (*now.commits[1:6], *now.commits[13:]))


def test_what_is_known_counts_as_evidence_and_costs_nothing() -> None:
    known = [observed(31, *[-0.1 + 0.004 * turn for turn in range(-3, 3)])]

    found = searched(a_search(32, known=known), Bench(20))
    alone = searched(a_search(32), Bench(20))

    assert found.culprits == (20,)
    assert len(found.observations) - 1 < len(alone.observations)
    assert found.minutes_spent == pytest.approx(len(found.observations) - 1)
    assert found.observations[0] == known[0]


def test_known_noise_ends_a_search_sooner() -> None:
    told = searched(a_search(4, noise_sd=0.01, noise_df=20.0), Bench(2))
    alone = searched(a_search(4), Bench(2))

    assert told.culprits == alone.culprits == (2,)
    assert told.measured_starts < alone.measured_starts == 12


def test_a_commit_that_was_given_up_is_not_measured_any_more() -> None:
    search = a_search(8)
    search.take(observed(4))

    search.take(observed(4, -0.1))

    assert search.document().commits[4].starts == 1
    assert search.document().effect is None


@pytest.mark.parametrize("commit", [0, 8])
def test_an_observation_of_no_commit_after_the_good_end_is_refused(commit: int) -> None:
    search = a_search(8)

    with pytest.raises(BisectError, match="the range has 1 to 7"):
        search.take(observed(commit, -0.1))


def test_a_range_has_to_be_the_one_that_was_asked_for() -> None:
    with pytest.raises(BisectError, match="not those asked for"):
        Search(a_question(9), a_range(8), engine="mariadb", tool_version="0.1.0")
    with pytest.raises(BisectError, match="give two commits"):
        refuse_range(1)
    refuse_range(RANGE_COMMITS_MAX)
    with pytest.raises(BisectError, match="compare releases"):
        refuse_range(RANGE_COMMITS_MAX + 1)


def test_the_longest_range_can_be_searched() -> None:
    search = a_search(RANGE_COMMITS_MAX, noise_sd=0.005, noise_df=30.0)

    found = searched(search, Bench(1234, step=-0.02, sd=0.005))

    assert found.culprits == (1234,)
    assert len(found.commits) == RANGE_COMMITS_MAX


def test_equal_questions_have_equal_names() -> None:
    assert a_question(8).id == a_question(8).id
    assert a_question(8).id.startswith("bisect-")
    assert len(a_question(8).id) == len("bisect-") + 24
    assert a_question(8).id != a_question(9).id
    assert a_question(8).id != a_question(8, stop=0.9).id


def test_an_observation_says_something() -> None:
    facts = {"commit": 3, "job": "job-3", "seconds": 1.0, "build_seconds": 0.0}
    with pytest.raises(ValueError, match="a measured commit has log ratios"):
        Observation(state=CommitState.MEASURED, **facts)
    with pytest.raises(ValueError, match="a measured commit has log ratios"):
        Observation(state=CommitState.SAME, log_ratios=(0.1,), **facts)
    with pytest.raises(ValueError, match="says something"):
        Observation(state=CommitState.UNTRIED, **facts)


def test_long_words_of_commits_are_cut() -> None:
    long = observed(3, failure="x" * 5_000)

    assert len(long.failure) == 2_000
    assert long.failure.endswith("…")


def test_what_the_builds_tell_later_counts_as_if_it_had_been_known() -> None:
    commits = a_range(32, lambda place: (f"sql/{place}.cc",))
    outside = {f"sql/{place}.cc" for place in range(32) if place % 4}
    known, told = (
        a_search(32, commits=commits, outside=outside),
        a_search(32, commits=commits),
    )
    blind = a_search(32, commits=commits)
    first = [observed(31, -0.1, -0.11), observed(20, state=CommitState.BROKEN)]
    for observation in first:
        known.take(observation)
        told.take(observation)
        blind.take(observation)

    told.inform(outside)

    assert told.document() == known.document()
    assert told.next() == known.next()
    assert told.document().entropy_bits < blind.document().entropy_bits - 1
    assert searched(told, Bench(12)).culprits == (12,)
    assert told.document().minutes_spent > 2.0, "what was spent before counts"


def test_a_search_within_a_merge_names_the_deepest_commit() -> None:
    inner = searched(a_search(8), Bench(5))
    outer = searched(a_search(16), Bench(9)).model_copy(update={"merged": inner})

    assert outer.culprit == (inner, 5)
    assert inner.culprit == (inner, 5)
    assert BisectDocument.model_validate_json(outer.model_dump_json()) == outer
    nothing = searched(a_search(8), Bench(0))
    assert nothing.culprit is None
    assert outer.model_copy(update={"merged": nothing}).culprit[1] == 9
