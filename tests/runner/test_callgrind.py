from __future__ import annotations

import os

import pytest

from runner import callgrind
from runner.callgrind import Costs
from runner.errors import ServerError

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
0 790
cfn=(12)
calls=1 0
0 10
fn=(12) 0x0000000000232330
0 7
cfn=(13)
calls=1 0
0 3
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
totals: 985
"""


def test_own_costs_leave_out_what_a_function_called():
    assert callgrind.costs(DUMP.splitlines()).own == {
        "do_command": 125,
        "row_search_mvcc": 790,
        "(no symbol) in mariadbd": 7,
        "dispatch": 3,
        "memcpy": 60,
    }


def test_costs_with_callees_have_them_and_code_without_a_name_has_none():
    assert callgrind.costs(DUMP.splitlines()).with_callees == {
        "do_command": 925,
        "row_search_mvcc": 800,
        "dispatch": 63,
        "memcpy": 60,
    }


def test_the_object_of_a_callee_is_the_caller_s_again_at_the_next_call():
    dump = """\
ob=(1) /a/server
fn=(1) main
cob=(2) /a/library
cfn=(2) 0x10
calls=1 0
0 5
cfn=(3) 0x20
calls=1 0
0 6
fn=(3)
0 6
ob=(2)
fn=(2)
0 5
"""
    found = callgrind.costs(dump.splitlines())

    assert found.own == {"(no symbol) in server": 6, "(no symbol) in library": 5}
    assert found.with_callees == {"main": 11}


def test_recursion_is_not_counted_twice():
    # walk calls itself and, through visit, itself again; leaf is outside of the circle.
    dump = """\
ob=(1) /a/server
fn=(1) main
0 1
cfn=(2) walk
calls=1 0
0 110
fn=(2)
0 60
cfn=(2)
calls=9 0
0 90
cfn=(3) visit
calls=5 0
0 70
cfn=(4) leaf
calls=1 0
0 10
fn=(3)
0 40
cfn=(2)
calls=5 0
0 55
fn=(4)
0 10
"""
    found = callgrind.costs(dump.splitlines())

    assert found.own == {"main": 1, "walk": 60, "visit": 40, "leaf": 10}
    # All that the circle spent: its own 100 and the leaf's 10, where sums of calls say 140.
    assert found.with_callees == {"main": 111, "walk": 110, "visit": 95, "leaf": 10}


def test_equal_names_in_two_objects_are_one_line():
    dump = "ob=(1) /a/server\nfn=(1) init\n0 5\nob=(2) /a/library\nfn=(2) init\n0 7\n"

    assert callgrind.costs(dump.splitlines()) == Costs(own={"init": 12}, with_callees={"init": 12})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("JOIN::exec()", "JOIN::exec"),
        ("Item::fix(THD*, Item** (*)(int)) const [clone .isra.0]", "Item::fix"),
        ("(anonymous namespace)::work(int)", "(anonymous namespace)::work"),
        ("Less::operator()(int, int) const", "Less::operator()"),
        ("Less::operator()", "Less::operator()"),
        ("void each<void (*)(int)>(int)", "void each<void (*)(int)>"),
        ("(below main)", "(below main)"),
        ("memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"),
        ("a)))", "a)))"),
    ],
)
def test_a_function_is_the_same_whatever_its_arguments(name, shown):
    assert callgrind.costs([f"fn=(1) {name}", "0 5"]).own == {shown: 5}


def test_names_and_numbers_of_a_hostile_dump_stay_names_and_numbers():
    long = "n" * 5000
    dump = [
        "fn=(1) \x1b[31m<script>\n",
        "0 " + "9" * 18,
        "0 " + "9" * 19,
        "cfn=(2) " + long,
        "calls=1 0",
        "0 " + "9" * 18,
        "fn=(3) '",
        "0 4",
        "ob=(7) /" + "p" * 5000,
        "fn=(4) 0xff",
        "0 2",
    ]

    found = callgrind.costs(dump)

    assert found.own["<script>"] == 10**18 - 1
    assert found.with_callees["<script>"] == 2 * (10**18 - 1)
    assert max(len(name) for name in (*found.own, *found.with_callees)) <= 200
    assert found.own["(no symbol) in an unknown object"] == 4


def test_a_dump_is_not_followed_waited_for_or_believed(tmp_path):
    dump = tmp_path / "callgrind.out-01"
    with pytest.raises(ServerError, match="left no counts"):
        callgrind.read_dumps(tmp_path)

    (tmp_path / "secret").write_text("0 5\n")
    dump.symlink_to(tmp_path / "secret")
    with pytest.raises(ServerError, match="cannot be read"):
        callgrind.read_dumps(tmp_path)

    dump.unlink()
    os.mkfifo(dump)
    with pytest.raises(ServerError, match="is no file"):
        callgrind.read_dumps(tmp_path)

    dump.unlink()
    dump.write_bytes(b"\0\xff not a dump\nfn=(1) x\n0 " + b"9" * 5000)
    with pytest.raises(ServerError, match="left no counts"):
        callgrind.read_dumps(tmp_path)

    dump.write_text("fn=(1) x\n0 5\n")
    assert callgrind.read_dumps(tmp_path) == {1: Costs(own={"x": 5}, with_callees={"x": 5})}
