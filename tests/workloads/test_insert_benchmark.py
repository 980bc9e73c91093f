from __future__ import annotations

import pytest

from workloads.catalog import SCRIPTS
from workloads.insert_benchmark import (
    LOADER_FILES,
    SUITES,
    WORKLOADS,
    chain_fault,
    ends_by_itself,
    target_rows_s,
    threads_of,
)
from workloads.insert_benchmark_output import BUCKETS, StepOutputError, read_step
from workloads.workload import DatasetKind

BY_NAME = {workload.name: workload for workload in WORKLOADS}


def line(role="query", **chosen) -> str:
    """One thread's line: 10 s, 300 statements of about a millisecond, half in the first second."""
    facts = {
        "client": 1,
        "seconds": "10.000312",
        "statements": 300,
        "rows": 300,
        "retries": 0,
        "total_us": 330_000,
        "max_us": 5_000,
        "rates": "150,50,10,10,10,10,20,20,10,10",
        "buckets": "0,200,99,1,0,0,0,0,0,0",
        # Slots of 2 ** (1 / 8): 79 ends at 1024 us, 95 at 4096, 98 at 5312.
        "latency": "79:200,95:99,98:1",
        **chosen,
    }
    return f"insert-benchmark role={role} " + " ".join(f"{key}={facts[key]}" for key in facts)


def query_step(insert="1000", **chosen) -> str:
    lines = (line(**chosen), line("insert", rows=insert), line("delete", rows=insert))
    return "sysbench 1.0.20\n\n" + "\n".join(lines) + "\n\nSQL statistics:\n"


def test_the_steps_are_the_fields_in_its_order():
    chain = SUITES["insert-benchmark-10"]

    assert chain[:4] == ("l.i0", "l.x", "l.i1", "l.i2")
    assert chain[4:] == ("qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000")
    assert {workload.chain for workload in WORKLOADS} == {"insert-benchmark"}
    assert {workload.dataset for workload in WORKLOADS} == {DatasetKind.INSERT_BENCHMARK}
    assert all((SCRIPTS / name).exists() for name in (*LOADER_FILES, WORKLOADS[0].script))


def test_connections_commit_sizes_and_rates():
    connections = {name: threads_of(workload, 2) for name, workload in BY_NAME.items()}
    batches = {name: workload.options["batch"] for name, workload in BY_NAME.items()}

    assert [connections[name] for name in ("l.i0", "l.x", "l.i1", "qp500")] == [2, 2, 4, 6]
    assert [batches[name] for name in ("l.i0", "l.i1", "l.i2", "qr100")] == [100, 50, 5, 50]
    assert target_rows_s(BY_NAME["qr100"], 4) == 400
    assert target_rows_s(BY_NAME["l.i1"], 4) is None
    assert [name for name in BY_NAME if ends_by_itself(BY_NAME[name])] == list(BY_NAME)[:4]


def test_all_loaded_rows_are_deleted_once_before_the_queries():
    shares = [BY_NAME[name].options["share"] for name in ("l.i1", "l.i2")]

    assert shares == [0.8, 0.2]


@pytest.mark.parametrize(
    "names",
    [
        SUITES["insert-benchmark-10"],
        ("scan",),
        ("l.i0",),
        ("l.i0", "l.x", "l.i1"),
        ("l.i0", "l.x", "l.i1", "l.i2", "qp100", "qr1000"),
    ],
)
def test_a_chain_is_taken_from_its_beginning(names):
    assert chain_fault(names) == ""


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("qr100",), "without l.i0, l.x, l.i1, l.i2; write l.i0, l.x, l.i1, l.i2, qr100"),
        (("l.i0", "l.i1"), "without l.x; write l.i0, l.x, l.i1"),
        (("l.x", "l.i0"), "in another order; write l.i0, l.x"),
        ((*SUITES["insert-benchmark-10"][:4], "qp500", "qr100"), "in another order; write l.i0"),
    ],
)
def test_what_is_no_chain_is_said(names, why):
    assert why in chain_fault(names)


def test_a_query_step_is_read():
    step = read_step(query_step(), BY_NAME["qr100"], clients=1)

    assert step.operations == 300
    assert step.measured.rows_s == pytest.approx(300 / 10.000312)
    assert step.measured.per_second == (150, 50, 10, 10, 10, 10, 20, 20, 10, 10)
    assert step.measured.average_ms == 1.1
    assert step.inserted_rows_s == pytest.approx(100, rel=1e-3)
    assert step.is_comparable
    assert [one.name for one in step.others] == ["insert", "delete"]


def test_percentiles_are_upper_ends_of_slots_and_never_above_the_longest():
    measured = read_step(query_step(), BY_NAME["qr100"], clients=1).measured

    assert measured.percentile_ms(0.5) == pytest.approx(1.024)
    assert measured.percentile_ms(0.99) == pytest.approx(4.096)
    assert measured.percentile_ms(1.0) == 5.0


@pytest.mark.parametrize(("inserted", "comparable"), [(951, True), (949, False), (0, False)])
def test_a_step_that_inserts_too_little_may_not_be_compared(inserted, comparable):
    step = read_step(query_step(insert=inserted), BY_NAME["qr100"], clients=1)

    assert step.held_share == pytest.approx(inserted / 1000, rel=1e-3)
    assert step.is_comparable is comparable


def test_clients_are_added_up():
    lines = [
        line(role, client=client, rates="10,20,7")
        for role in ("query", "insert", "delete")
        for client in (1, 2)
    ]
    step = read_step("\n".join(lines), BY_NAME["qr100"], clients=2)

    assert step.measured.clients == 2
    assert step.operations == 600
    # Added, and not averaged: it is what the server did in that second.
    assert step.measured.per_second[:3] == (20, 40, 14)
    assert step.measured.buckets == (0, 400, 198, 2, 0, 0, 0, 0, 0, 0)
    assert step.target_rows_s == 200


def test_a_second_that_was_not_whole_is_left_out():
    cut = query_step(seconds="2.400000", rates="100,90,30")
    whole = query_step(seconds="2.995000", rates="100,90,80")

    assert read_step(cut, BY_NAME["qr100"], clients=1).measured.per_second == (100, 90)
    assert read_step(whole, BY_NAME["qr100"], clients=1).measured.per_second == (100, 90, 80)


def test_a_statement_that_makes_indexes_has_no_rate_in_each_second():
    text = line("index", statements=1, rows=4100, rates="0,4100", seconds="1.900000")

    step = read_step(text, BY_NAME["l.x"], clients=1)

    assert step.measured.per_second == ()
    assert step.measured.rows_s == pytest.approx(4100 / 1.9)
    assert (step.held_share, step.inserted_rows_s, step.role("delete")) == (1.0, None, None)


def test_what_a_slice_keeps_has_units_in_its_names():
    extra = read_step(query_step(), BY_NAME["qr100"], clients=1).extra()

    assert extra["insert_rows_s"] == pytest.approx(100, rel=1e-3)
    assert extra["query_within_1ms"] == 200
    assert extra["delete_max_ms"] == 5
    assert len(extra) == 1 + 3 * (3 + len(BUCKETS))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "reported none"),
        (line() + "\n" + line("insert"), "asked for"),
        (query_step().replace("0 latency=79:200,95:99,98:1\n\nSQL", "0 lat\n\nSQL"), "asked"),
        (query_step() + line(client=2), "asked for"),
        (query_step(statements=0), "not one query"),
        (query_step().replace("role=", "rule="), "reported none"),
    ],
)
def test_a_client_that_did_not_finish_has_no_numbers(text, why):
    with pytest.raises(StepOutputError, match=why):
        read_step(text, BY_NAME["qr100"], clients=1)


def test_a_line_of_another_step_is_not_taken_for_this_one():
    with pytest.raises(StepOutputError, match=r"insert, delete were asked for"):
        read_step(query_step(), BY_NAME["l.i1"], clients=1)
