from __future__ import annotations

import os
import shutil

import pytest

from runner import datasets, instructions
from runner.errors import ServerError
from runner.instructions import Counted, PerOperation
from tests.runner.conftest import ROWS
from workloads.catalog import find_workload

#: In the format of the valgrind manual: a call's cost belongs to the callee.
DUMP = """\
# callgrind format
version: 1
positions: line
events: Ir
summary: 1000

ob=(1) /forkwatch/artifact/sbin/mariadbd
fl=(1) ???
fn=(10) do_command
0 100
+3 20
cfn=(11) row_search_mvcc
calls=5 0
* 800
-2 5

fn=(11)
0 800
fn=(12) 0x0000000000232330
0 7
fn=(13) dispatch'2
0 3
cob=(2) /usr/lib/libc.so.6
cfi=(3) ???
cfn=(14) memcpy
calls=1 0
0 60

ob=(2)
fn=(14)
0 60
totals: 995
"""


@pytest.fixture
def small_snapshot(spec, home):
    with datasets.ready(datasets.describe("small", ROWS, spec), ROWS, spec, home) as snapshot:
        yield snapshot


def test_own_costs_leave_out_what_a_function_called():
    assert instructions.own_costs(DUMP.splitlines()) == {
        "do_command": 125,
        "row_search_mvcc": 800,
        "(no symbol) in mariadbd": 7,
        "dispatch": 3,
        "memcpy": 60,
    }


def counted(operations: int, client: int, *, others: int = 50) -> Counted:
    return Counted(
        operations=operations,
        threads={1: 1000, 2: others, 14: client},
        functions={1: {"main": 1000}, 2: {"tick": others}, 14: {"work": client - 5, "connect": 5}},
    )


def test_what_start_and_stop_need_cancels():
    found = instructions.per_operation(counted(10, 3005), counted(30, 9005, others=70))

    assert found == PerOperation(client=300.0, background=1.0, functions={"work": 300.0})


def test_the_client_s_thread_is_found_by_what_it_ran_and_not_by_its_number():
    small, large = counted(10, 3005), counted(30, 9005)
    renumbered = Counted(
        operations=10,
        threads={1: 1000, 14: 50, 15: 3005},
        functions={1: {"main": 1000}, 14: {"tick": 50}, 15: small.functions[14]},
    )

    found = instructions.per_operation(renumbered, large)

    assert found == instructions.per_operation(small, large)
    assert found.client == 300.0


def test_counts_that_do_not_grow_are_an_error():
    with pytest.raises(ServerError, match="no more instructions"):
        instructions.per_operation(counted(10, 3005), counted(30, 3005))
    with pytest.raises(ServerError, match="no more instructions"):
        instructions.per_operation(counted(30, 3005), counted(30, 9005))


def test_the_functions_that_explain_a_difference_come_first():
    baseline = PerOperation(client=60, background=0, functions={"a": 10, "b": 20, "same": 30})
    candidate = PerOperation(client=75, background=0, functions={"b": 18, "new": 27, "same": 30})

    found = instructions.explain(baseline, candidate)

    assert [(each.function, each.change) for each in found] == [("new", 27), ("a", -10), ("b", -2)]
    assert len(instructions.explain(baseline, candidate, most=1)) == 1


def test_a_dump_is_not_followed_waited_for_or_believed(tmp_path):
    dump = tmp_path / "callgrind.out-01"
    with pytest.raises(ServerError, match="left no counts"):
        instructions.read_dumps(tmp_path, operations=1)

    (tmp_path / "secret").write_text("0 5\n")
    dump.symlink_to(tmp_path / "secret")
    with pytest.raises(ServerError, match="cannot be read"):
        instructions.read_dumps(tmp_path, operations=1)

    dump.unlink()
    os.mkfifo(dump)
    with pytest.raises(ServerError, match="is no file"):
        instructions.read_dumps(tmp_path, operations=1)

    dump.unlink()
    dump.write_bytes(b"\0\xff not a dump\nfn=(1) x\n0 " + b"9" * 5000)
    with pytest.raises(ServerError, match="left no counts"):
        instructions.read_dumps(tmp_path, operations=1)


def test_a_real_server_needs_a_whole_number_of_instructions_for_a_row(
    spec, small_snapshot, tmp_path
):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed; try: apt-get install valgrind")

    def scans(operations: int) -> Counted:
        return instructions.count(
            spec,
            small_snapshot,
            find_workload("scan"),
            ROWS,
            operations=operations,
            seed=1,
            scratch=tmp_path,
            cpu=min(os.sched_getaffinity(0)),
        )

    found = instructions.per_operation(scans(1), scans(3))

    # No row is free, and what is done once for every row divides by the rows exactly.
    assert found.client > 100 * ROWS.rows
    exact = [value for value in found.functions.values() if value and value % ROWS.rows == 0]
    assert sum(exact) > 5 * ROWS.rows, found.functions
    assert abs(found.background) < found.client / 4
    assert not (tmp_path / "callgrind").exists()
