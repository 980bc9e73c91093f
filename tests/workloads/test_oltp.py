from __future__ import annotations

import math
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.oltp import SUITES, THREADS, WORKLOADS
from workloads.per_second import STALL_SHARE, evenness
from workloads.workload import Group

RATES = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=300)


def test_a_name_with_threads_brings_its_own_and_a_plain_one_takes_the_suites():
    by_name = {workload.name: workload for workload in WORKLOADS}

    assert len(by_name) == len(WORKLOADS) == 3 * (1 + len(THREADS))
    assert "threads" not in by_name["oltp-read-write"].options
    assert by_name["oltp-read-write(t16)"].options["threads"] == 16
    assert {workload.group for workload in WORKLOADS} == {Group.OLTP}


def test_the_transactions_are_sysbenchs_own():
    by_name = {workload.name: workload for workload in WORKLOADS}

    sizes = {name: len(by_name[name].statements) for name in SUITES["oltp-3"]}
    assert sizes == {"oltp-read-write": 20, "oltp-read-only": 16, "oltp-write-only": 6}
    assert [by_name[name].writes for name in SUITES["oltp-3"]] == [True, False, True]
    assert by_name["oltp-read-only"].options["range"] == 100


def test_every_list_names_workloads_that_exist():
    known = {workload.name for workload in WORKLOADS}

    assert {name for names in SUITES.values() for name in names} == known
    assert len(SUITES["oltp-threads-12"]) == 12


def test_a_steady_stretch_has_neither_spread_nor_stalls():
    even = evenness([500.0] * 60)

    assert (even.mean_ops_s, even.sd_ops_s, even.spread) == (500, 0, 0)
    assert (even.p50_ops_s, even.p99_worst_ops_s, even.worst_ops_s) == (500, 500, 500)
    assert (even.stalls, even.longest_stall_s) == (0, 0)


def test_the_worst_second_of_a_hundred_and_the_worst_of_all():
    # 99 of 200 ... 201 and one second that stood still.
    rates = [200.0 + index / 99 for index in range(99)] + [3.0]
    even = evenness(rates)

    assert even.p99_worst_ops_s == 200.0
    assert even.worst_ops_s == 3.0
    assert evenness([*rates, 2.0]).p99_worst_ops_s == 3.0
    # Fewer than a hundred cannot show the worst of a hundred.
    assert evenness([10.0, 20.0, 30.0]).p99_worst_ops_s == 10.0


def test_stalls_are_counted_and_the_longest_is_known():
    rates = [100, 100, 49, 100, 20, 0, 30, 100, 100, 100, 50]
    even = evenness([float(rate) for rate in rates])

    assert (even.stalls, even.longest_stall_s) == (4, 3)
    assert even.sd_ops_s == pytest.approx(stdev(rates))
    assert evenness([float(rate) for rate in rates], stall_share=0.1).stalls == 1


@pytest.mark.parametrize("wrong", [[], [1.0, -1.0], [1.0, math.nan], [math.inf]])
def test_what_is_no_series_of_rates_is_refused(wrong):
    with pytest.raises(ValueError, match=r"no second|finite"):
        evenness(wrong)


@given(RATES, st.floats(min_value=0.5, max_value=1000))
def test_a_unit_changes_no_stall(rates, factor):
    even, scaled = evenness(rates), evenness([rate * factor for rate in rates])

    assert scaled.mean_ops_s == pytest.approx(even.mean_ops_s * factor, rel=1e-6, abs=1e-300)
    assert scaled.p99_worst_ops_s == even.p99_worst_ops_s * factor
    assert even.worst_ops_s <= even.p99_worst_ops_s <= even.p50_ops_s * (1 + 1e-9)
    if all(abs(rate - STALL_SHARE * even.p50_ops_s) > 1e-6 * (1 + rate) for rate in rates):
        assert (scaled.stalls, scaled.longest_stall_s) == (even.stalls, even.longest_stall_s)


@given(RATES)
def test_read_backwards_it_is_the_same(rates):
    even, turned = evenness(rates), evenness(rates[::-1])

    assert turned == even
    assert even.longest_stall_s <= even.stalls <= len(rates) // 2
