from __future__ import annotations

import os
from dataclasses import replace

import pytest

from results.slice import SideName
from runner import datasets, instructions
from runner.callgrind import Costs
from runner.errors import ClientError, ServerError
from runner.instructions import Counted, PerOperation
from tests.runner.conftest import ROWS
from workloads.catalog import find_workload

BASELINE, CANDIDATE = SideName.BASELINE, SideName.CANDIDATE


@pytest.fixture
def small_snapshot(spec, home):
    with datasets.ready(datasets.describe("small", ROWS, spec), ROWS, spec, home) as snapshot:
        yield snapshot


def counted(operations: int, client: int, *, others: int = 50) -> Counted:
    return Counted(
        operations=operations,
        threads={
            1: Costs(own={"main": 1000}),
            2: Costs(own={"tick": others}),
            14: Costs(
                own={"work": client - 5, "connect": 5},
                with_callees={"serve": client, "work": client - 5, "connect": 5},
            ),
        },
    )


def test_what_start_and_stop_need_cancels():
    found = instructions.per_operation(counted(10, 3005), counted(30, 9005, others=70))

    assert found == PerOperation(
        client=300.0,
        background=1.0,
        own={"work": 300.0},
        with_callees={"serve": 300.0, "work": 300.0},
    )


def test_the_client_s_thread_is_found_by_what_it_ran_and_not_by_its_number():
    small, large = counted(10, 3005), counted(30, 9005)
    renumbered = Counted(
        operations=10,
        threads={1: small.threads[1], 14: small.threads[2], 15: small.threads[14]},
    )

    found = instructions.per_operation(renumbered, large)

    assert found == instructions.per_operation(small, large)
    assert found.client == 300.0


def test_counts_that_do_not_grow_are_an_error():
    with pytest.raises(ServerError, match="no more instructions"):
        instructions.per_operation(counted(10, 3005), counted(30, 3005))
    with pytest.raises(ServerError, match="no more instructions"):
        instructions.per_operation(counted(30, 3005), counted(30, 9005))


def test_counts_leave_something_to_subtract():
    assert instructions.counts(30_000) == (2000, 6000)
    assert instructions.counts(0.5) == (1, 3)
    assert instructions.counts_up_to(1) == (1, 3)
    assert instructions.counts_up_to(1000) == (333, 1000)


def side(**own: float) -> PerOperation:
    """Functions below `serve`, with one that has no name."""
    total = float(sum(own.values()))
    return PerOperation(
        client=total,
        background=0,
        own={**own, "(no symbol) in x": 1.0},
        with_callees={**own, "serve": total},
        commands_only=True,
    )


def explained(baseline: PerOperation, candidate: PerOperation, **chosen):
    facts = {"operations": (10, 30), "repeatable": True}
    return instructions.explain({BASELINE: baseline, CANDIDATE: candidate}, **{**facts, **chosen})


def test_the_functions_that_explain_a_difference_come_first_and_callers_above_callees():
    found = explained(side(a=10, b=20, same=30), side(b=18, new=27, same=30))

    assert (found.baseline, found.candidate, found.operations) == (60, 75, 20)
    assert found.ratio == 1.25
    assert found.differs is True
    own = [(each.function, each.change) for each in found.own]
    assert own == [("new", 27), ("a", -10), ("b", -2)]
    deep = [(each.function, each.change_with_callees) for each in found.with_callees]
    assert deep == [("serve", 15), ("new", 27), ("b", -2), ("a", -10)]
    assert len(explained(side(a=1, b=2), side(a=2, b=4), most=1).own) == 1


def test_equal_counts_have_no_functions_and_writing_ones_say_nothing():
    equal = explained(side(a=10_000.0), side(a=10_004.0))
    assert equal.differs is False
    nameless = replace(side(a=10_000.0), commands_only=False)
    assert explained(nameless, side(a=10_150.0)).differs is False
    assert explained(side(a=10_000.0), side(a=10_150.0)).differs is True
    writes = explained(side(a=1000.0), side(a=1400.0), repeatable=False)
    assert writes.differs is None
    assert [each.change for each in writes.own] == [400.0]
    assert explained(side(a=1000.0), side(a=1000.0)).own == ()


def test_what_works_by_the_clock_does_not_repeat(spec):
    scan, update = find_workload("scan"), find_workload("update-index")
    mysql = replace(spec, engine="mysql")
    rocks = replace(spec, storage_engine="rocksdb")

    assert instructions.repeats([mysql, rocks], scan)
    assert instructions.repeats([spec, spec], update)
    assert not instructions.repeats([spec, mysql], update)
    assert not instructions.repeats([rocks, spec], update)


def test_a_function_without_a_name_has_no_callees():
    one, other = side(a=1.0), side(a=1.0)
    found = explained(one, PerOperation(**{**vars(other), "own": {"(no symbol) in x": 5.0}}))

    [nameless] = [each for each in found.own if each.function == "(no symbol) in x"]
    assert nameless.baseline_with_callees is None
    assert nameless.change_with_callees == nameless.change == 4.0
    assert "(no symbol) in x" not in [each.function for each in found.with_callees]


def test_a_machine_without_valgrind_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert instructions.missing() == ("valgrind is not installed; try: apt-get install valgrind")


def test_a_real_server_needs_a_whole_number_of_instructions_for_a_row(
    spec, small_snapshot, tmp_path
):
    if instructions.missing():
        pytest.skip(instructions.missing())

    def scans(operations: int, timeout_s: float = 600, **chosen: bool) -> Counted:
        return instructions.count(
            spec,
            small_snapshot,
            find_workload("scan"),
            ROWS,
            operations=operations,
            seed=1,
            scratch=tmp_path,
            cpu=min(os.sched_getaffinity(0)),
            timeout_s=timeout_s,
            **chosen,
        )

    found = instructions.per_operation(scans(1), scans(3))

    # No row is free, and what is done once for every row divides by the rows exactly.
    assert found.client > 100 * ROWS.rows
    exact = [value for value in found.own.values() if value and value % ROWS.rows == 0]
    assert sum(exact) > 5 * ROWS.rows, found.own
    # Nothing but the client's commands: no start, no connection, no other thread, no waiting.
    assert found.background == 0
    everything = scans(1, commands_only=False)
    assert len([thread for thread in everything.threads.values() if thread.total]) > 5
    assert not everything.commands_only
    assert max(found.with_callees.values()) == pytest.approx(found.client, rel=0.0001)
    assert not (tmp_path / "callgrind").exists()
    with pytest.raises(ClientError, match="1000000 x scan were not done within 1 s"):
        scans(1_000_000, timeout_s=1)
    assert not (tmp_path / "callgrind").exists()
