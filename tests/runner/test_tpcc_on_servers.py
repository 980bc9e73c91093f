from __future__ import annotations

import re

import pytest

from runner.sysbench import parse
from tests.runner.sql_servers import ROCKSDB, Mariadb
from tests.runner.two_servers import forget, play, server_of
from workloads.tpcc import LOADER, WORKLOADS, faults

(TPCC,) = WORKLOADS
#: Small enough to load in a second; everything else is as the specification says.
SIZE = ("--scale=2", "--items=300", "--customers=60")


@pytest.fixture(scope="module", params=["mariadb", "postgres"])
def server(request):
    with server_of(request.param) as one:
        yield one


@pytest.fixture
def loaded(server):
    forget(server)
    play(server, LOADER, "--load-seed=7", *SIZE, "prepare")
    return server


def mix(server, *words: str) -> str:
    told = ("--rand-seed=7", "--report-interval=1", "--histogram=on", *words)
    return play(server, TPCC.script, *told, "run")


def number(server, statement: str) -> int:
    return int(server.rows(statement)[0][0])


def test_the_load_has_every_row_and_is_consistent(loaded):
    text = play(loaded, LOADER, "count")
    counted = dict(re.findall(r"^rows of (\w+): (\d+)$", text, re.MULTILINE))

    lines = int(counted.pop("order_line"))
    assert counted == {
        "item": "300",
        "warehouse": "2",
        "stock": "600",
        "district": "20",
        "customer": "1200",
        "history": "1200",
        "orders": "1200",
        "new_orders": "360",
    }
    assert 5 * 1200 < lines < 15 * 1200
    assert faults(loaded.rows) == ()


def test_two_loads_hold_the_same_rows(loaded):
    def sums() -> list[list[str]]:
        return [
            loaded.rows(f"SELECT COUNT(*), SUM({column}) FROM sbtest.{table}")
            for table, column in (
                ("stock", "s_quantity"),
                ("customer", "c_discount"),
                ("order_line", "ol_amount"),
                ("item", "i_price"),
            )
        ] + loaded.rows("SELECT c_last, c_data FROM sbtest.customer ORDER BY c_data LIMIT 5")

    before = sums()
    forget(loaded)
    play(loaded, LOADER, "--load-seed=7", *SIZE, "prepare")
    again = sums()
    forget(loaded)
    play(loaded, LOADER, "--load-seed=8", *SIZE, "prepare")

    assert again == before
    assert sums() != before


def test_the_mix_has_its_shares_and_leaves_consistent_data(loaded):
    orders = "SELECT SUM(d_next_o_id) FROM sbtest.district"
    payments = "SELECT COUNT(*) FROM sbtest.history"
    delivered = "SELECT SUM(c_delivery_cnt) FROM sbtest.customer"
    before = number(loaded, orders), number(loaded, payments)

    ran = parse(mix(loaded, "--threads=1", "--events=2300", "--time=0"))

    assert ran.operations == 2300
    # 1000 of each, less the new orders that are rolled back; four standard deviations.
    assert number(loaded, orders) - before[0] == pytest.approx(990, abs=98)
    assert number(loaded, payments) - before[1] == pytest.approx(1000, abs=96)
    # 100 deliveries of ten orders.
    assert number(loaded, delivered) == pytest.approx(1000, abs=400)
    assert faults(loaded.rows) == ()


def test_several_clients_leave_consistent_data(loaded):
    ran = parse(mix(loaded, "--threads=8", "--time=2"))

    assert ran.operations > 20
    assert len(ran.per_second_ops_s) in {1, 2}
    assert faults(loaded.rows) == ()


def test_each_condition_finds_what_it_is_for(loaded):
    breaking = (
        "UPDATE sbtest.warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1",
        "UPDATE sbtest.district SET d_next_o_id = 99 WHERE d_w_id = 2 AND d_id = 3",
        "DELETE FROM sbtest.new_orders WHERE no_o_id = 50 AND no_w_id = 1 AND no_d_id = 1",
        "DELETE FROM sbtest.order_line WHERE ol_w_id = 1 AND ol_o_id = 7 AND ol_d_id = 1",
    )
    for number, statement in enumerate(breaking, start=1):
        loaded.rows(statement)
        found = faults(loaded.rows)

        assert len(found) == number
        assert found[-1].startswith(f"condition {number}: ")
        assert found[-1].endswith(": broken 1 times")


def test_several_sets_of_tables_are_refused(server):
    forget(server)
    with pytest.raises(AssertionError, match="choose warehouses with --scale"):
        play(server, LOADER, "--tables=2", "prepare")


@pytest.mark.skipif(not ROCKSDB.exists(), reason="apt-get install mariadb-plugin-rocksdb")
def test_myrocks_has_no_foreign_keys_and_is_as_consistent(server):
    if not isinstance(server, Mariadb):
        pytest.skip("PostgreSQL has no storage engines")
    keys = "SELECT COUNT(*) FROM information_schema.referential_constraints"
    forget(server)
    play(server, LOADER, "--load-seed=7", *SIZE, "prepare")
    assert number(server, keys) == 10

    forget(server)
    play(server, LOADER, "--load-seed=7", *SIZE, "--storage-engine=rocksdb", "prepare")
    assert number(server, keys) == 0
    assert faults(server.rows) == ()
    parse(mix(server, "--threads=4", "--events=400", "--time=0"))

    engines = "SELECT COUNT(*) FROM information_schema.tables WHERE engine = 'ROCKSDB'"
    assert number(server, f"{engines} AND table_schema = 'sbtest'") == 9
    assert faults(server.rows) == ()
