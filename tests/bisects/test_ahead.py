"""Which commits a search will probably want after the job under way."""

from __future__ import annotations

from bisects.ahead import following
from tests.bisects.ranges import Bench, a_search, sha_of


def test_each_way_in_which_a_job_may_end_wants_one_commit() -> None:
    search, bench = a_search(32), Bench(11)
    for _ in range(3):
        order = search.next()
        assert order is not None
        before = search.document()
        wanted = following(search, order)

        assert search.document() == before, "only copies are tried"
        assert len(wanted) <= 2
        assert order.commit not in wanted
        search.take(bench.observe(order))


def test_what_is_wanted_next_was_foreseen() -> None:
    """A measurement that shows one of the two levels leads to one of the two commits."""
    search, bench = a_search(64, build_seconds=60.0), Bench(40, sd=0.001)
    foreseen: list[bool] = []
    # The first job shows how large the step is, which nobody knows before.
    order = search.next()
    assert order is not None
    search.take(bench.observe(order))
    while (order := search.next()) is not None:
        wanted = following(search, order)
        search.take(bench.observe(order))
        then = search.next()
        if then is not None:
            foreseen.append(then.commit in wanted or then.commit in bench.asked)

    assert len(foreseen) >= 3
    assert sum(foreseen) >= len(foreseen) / 2


def test_a_job_of_a_commit_that_is_built_is_expected_to_take_no_build() -> None:
    minutes = {"build_seconds": 600.0, "measure_seconds": 60.0}
    built, unbuilt = a_search(8, built=[sha_of(7)], **minutes), a_search(8, **minutes)
    order = unbuilt.next()
    assert order is not None
    assert order.commit == 7
    cheap, dear = built.expected(order, -0.1), unbuilt.expected(order, -0.1)

    assert (built.is_built(7), unbuilt.is_built(7)) == (True, False)
    assert cheap.log_ratios == (-0.1,) * order.starts
    assert (cheap.seconds, cheap.build_seconds) == (60.0, 0.0)
    assert (dear.seconds, dear.build_seconds) == (660.0, 600.0)


def test_a_search_that_will_be_over_wants_nothing() -> None:
    search = a_search(2)
    order = search.next()
    assert order is not None

    assert following(search, order) == []
