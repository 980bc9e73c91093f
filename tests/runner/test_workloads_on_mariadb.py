from __future__ import annotations

import re

import pytest
from scipy.stats import chisquare

from tests.runner.sql_servers import ROCKSDB, Mariadb, attempt, load, run, sysbench
from workloads.catalog import SUITES, find_workload
from workloads.microbenchmarks import LIST_MAX

#: The most that a workload asks for.
ROWS = 100_000
EVENTS = 20
#: Each of them once: what comes before the writes runs the same statements.
NAMES = SUITES["full-32"]
#: Those that leave every row where it is first, so that what is counted is exact.
ORDER = tuple(sorted(NAMES, key=lambda name: (find_workload(name).writes, name == "delete")))
#: Enough to tell a draw that is accepted too easily.
DRAWS = 2_000_000
DRAWN = re.compile(r"drawn (\d+): (\d+)")
COUNTERS = ("Rows_sent", "Handler_update", "Handler_delete", "Handler_write")

LOADS = {
    "innodb": (ROWS, ("--storage-engine=innodb",)),
    "rocksdb": (ROWS, ("--storage-engine=rocksdb",)),
    "three-tables": (2000, ("--storage-engine=innodb", "--tables=3")),
    "no-primary-key": (2000, ("--storage-engine=innodb", "--primary-key=off")),
}


@pytest.fixture(scope="module")
def server():
    with Mariadb() as one:
        yield one


@pytest.fixture(scope="module")
def dataset(server, request):
    """The rows of the server's tables, freshly loaded."""
    if request.param == "rocksdb" and not ROCKSDB.exists():
        pytest.skip("apt-get install mariadb-plugin-rocksdb")
    rows, words = LOADS[request.param]
    server.rows("DROP DATABASE IF EXISTS sbtest")
    load(server.client(), rows=rows, more=words)
    ((engine,),) = server.rows(
        "SELECT engine FROM information_schema.tables WHERE table_name = 'sbtest1'"
    )
    assert f"--storage-engine={engine.lower()}" in words
    return rows


on_innodb = pytest.mark.parametrize("dataset", ["innodb"], indirect=True)
on_both = pytest.mark.parametrize("dataset", ["innodb", "rocksdb"], indirect=True)


def shape(statement: str) -> str:
    """Return a statement as the catalog writes it: tables, values and lists by their signs."""
    text = re.sub(r"\bsbtest\.sbtest\d+\b", "t", statement)
    text = re.sub(r"'[^']*'|(?<= )-?\d+(?![\w.])|(?<=\()\d+(?![\w.])", "?", text)
    text = text.replace("k + ?", "k + 1")
    return re.sub(r"\((\?(?:, \?)+)\)", lambda found: f"(?*{found[1].count('?')})", text)


def said(server, workload, rows: int) -> list[tuple[str, str]]:
    """Return how each statement of a few events came to the server, and its shape."""
    return [(kind, shape(text)) for kind, text in log_of(server, workload, rows=rows)]


def log_of(server, workload, *words: str, rows: int) -> list[tuple[str, str]]:
    """Return what the server wrote down of a few events."""
    server.rows("TRUNCATE mysql.general_log; SET GLOBAL general_log = ON")
    run(server.client(), workload, rows=rows, words=(f"--events={EVENTS}", "--time=0", *words))
    server.rows("SET GLOBAL general_log = OFF")
    log = server.rows("SELECT thread_id, command_type, argument FROM mysql.general_log")
    clients = {thread for thread, kind, text in log if kind == "Connect" and " on mysql" in text}
    kept = [(kind, text) for thread, kind, text in log if thread in clients]
    return [(kind, text) for kind, text in kept if kind in {"Query", "Execute"}]


def counted(server, workload, rows: int) -> dict[str, float]:
    """Return what the server counted for each of a few events."""
    # Asking counts as well.
    looks = [server.status(*COUNTERS) for _ in range(2)]
    run(server.client(), workload, rows=rows, words=(f"--events={EVENTS}", "--time=0"))
    looks.append(server.status(*COUNTERS))
    return {
        name: (looks[2][name] - 2 * looks[1][name] + looks[0][name]) / EVENTS for name in looks[0]
    }


def distinct(picked: int) -> float:
    """Return how many rows so many random ids name, on average."""
    return ROWS * (1 - (1 - 1 / ROWS) ** picked)


#: Rows that one operation sends; a range by k has as many rows as it has values, on average.
SENT = {
    "point-query": 1,
    "random-points(10)": distinct(10),
    "random-points(100)": distinct(100),
    "random-points(1000)": distinct(1000),
    "hot-points(100)": 100,
    "points-covered-pk(100)": distinct(100),
    "points-notcovered-pk(100)": distinct(100),
    "points-covered-si(100)": distinct(100),
    "points-notcovered-si(100)": distinct(100),
    "range-covered-pk(100)": 101,
    "range-notcovered-pk(100)": 101,
    "range-covered-si(100)": 101,
    "range-notcovered-si(100)": 101,
    "scan": 0,
    # Ten points, three ranges of rows and a sum.
    "read-only(10)": 10 + 3 * 10 + 1,
    "read-only(100)": 10 + 3 * 100 + 1,
    "read-only(10000)": 10 + 3 * 10_000 + 1,
    "read-only-simple(1000)": 10 + 1000,
    "read-only-sum(1000)": 10 + 1,
    "read-only-order(1000)": 10 + 1000,
    "read-only-distinct(1000)": 10 + 1000,
    "read-only-count(1000)": 1,
    "read-write(10)": 10 + 3 * 10 + 1,
    "read-write(100)": 10 + 3 * 100 + 1,
}
#: Rows that one operation updates, deletes and writes.
CHANGED = {
    "update-inlist": (10, 0, 0),
    "update-index": (1, 0, 0),
    "update-nonindex": (1, 0, 0),
    "update-one": (1, 0, 0),
    "update-zipf": (1, 0, 0),
    "write-only": (2, 1, 1),
    "read-write(10)": (2, 1, 1),
    "read-write(100)": (2, 1, 1),
    "delete": (0, 1, 0),
    "insert": (0, 0, 1),
}


@pytest.mark.parametrize("name", ORDER)
@on_innodb
def test_the_server_gets_what_the_catalog_says(server, dataset, name):
    workload = find_workload(name)

    # Counted first: writing the log counts as well.
    found = counted(server, workload, dataset)
    log = said(server, workload, dataset)

    kind = "Execute" if workload.prepared else "Query"
    assert log == [(kind, text) for text in workload.statements] * EVENTS
    # Lists of random keys, and ranges by k, have as many rows as chance gives them.
    by_chance = "points" in name or name.endswith("-si(100)")
    tolerance = 0.1 if by_chance and name != "hot-points(100)" else 1e-9
    assert found["rows_sent"] == pytest.approx(SENT.get(name, 0), rel=tolerance)
    changed = [found[name] for name in ("handler_update", "handler_delete", "handler_write")]
    # Two of ten random ids, or two deletes, are seldom the same one.
    assert changed == pytest.approx(CHANGED.get(name, (0, 0, 0)), rel=0.02)


@on_innodb
def test_equal_seeds_pick_equal_keys(server, dataset):
    workload = find_workload("random-points(10)")

    one, again = (log_of(server, workload, rows=dataset) for _ in range(2))
    other = log_of(server, workload, "--rand-seed=8", rows=dataset)

    assert len(one) == EVENTS
    assert one == again
    assert one != other


@on_innodb
def test_hot_points_are_the_same_rows_from_the_middle(server, dataset):
    log = log_of(server, find_workload("hot-points(3)"), rows=dataset)

    middle = ROWS // 2
    ids = f"{middle + 1}, {middle + 2}, {middle + 3}"
    assert log == [("Execute", f"SELECT c FROM sbtest.sbtest1 WHERE id IN ({ids})")] * EVENTS


@on_innodb
def test_the_longest_list_is_one_that_the_client_can_send(server, dataset):
    words = ("--events=2", "--time=0")
    for name in (f"random-points({LIST_MAX})", f"points-covered-si({LIST_MAX})"):
        assert run(server.client(), find_workload(name), rows=dataset, words=words).events == 2


def ids_of(server, name: str, *words: str, rows: int) -> list[int]:
    """Return the ids that a workload of one statement picked."""
    log = log_of(server, find_workload(name), *words, rows=rows)
    return [int(re.search(r"id = (\d+)$", text)[1]) for _, text in log]


@on_innodb
def test_update_one_is_always_the_first_row(server, dataset):
    assert ids_of(server, "update-one", rows=dataset) == [1] * EVENTS


@on_innodb
def test_low_ids_are_hot_for_zipf_and_for_nobody_else(server, dataset):
    zipf = ids_of(server, "update-zipf", "--events=400", rows=dataset)
    uniform = ids_of(server, "update-nonindex", "--events=400", rows=dataset)

    # With exponent 0.8 and so many ids, 45 % of the draws fall among the first in 32.
    low = ROWS / 32
    assert 140 < sum(number < low for number in zipf) < 220
    assert max(zipf) > ROWS / 2
    assert sum(number < low for number in uniform) < 40


ZIPF = """
local zipf = require("zipf")
local draw
local counts = {}

function thread_init()
  draw = zipf.sampler(%(count)d, %(exponent)s)
end

function event()
  for _ = 1, 1000 do
    local number = draw()
    counts[number] = (counts[number] or 0) + 1
  end
end

function thread_done()
  for number, count in pairs(counts) do
    print(string.format("drawn %%d: %%d", number, count))
  end
end
"""


@pytest.mark.parametrize(("count", "exponent"), [(1, 0.8), (10, 0.8), (1000, 0.8), (50, 1.5)])
def test_zipf_draws_by_its_law(tmp_path, count, exponent):
    script = tmp_path / "draw.lua"
    script.write_text(ZIPF % {"count": count, "exponent": exponent})

    done = sysbench([], script, "--rand-seed=3", "--events=2000", "--time=0", "run")

    assert done.ok, done.stdout + done.stderr
    drawn = {int(number): int(times) for number, times in DRAWN.findall(done.stdout)}
    assert set(drawn) <= set(range(1, count + 1))
    observed = [drawn.get(number, 0) for number in range(1, count + 1)]
    weights = [number**-exponent for number in range(1, count + 1)]
    assert sum(observed) == DRAWS
    if count > 1:
        expected = [DRAWS * weight / sum(weights) for weight in weights]
        assert chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("name", ORDER)
@on_both
def test_it_runs(server, dataset, request, name):
    # A second on InnoDB; on MyRocks until it has shown that it takes the statements.
    innodb = request.node.callspec.params["dataset"] == "innodb"
    words = ("--time=1", "--events=0" if innodb else "--events=100")
    workload = find_workload(name)

    ran = run(server.client(), workload, rows=dataset, words=words)

    assert ran.events > 0
    assert ran.queries == ran.events * len(workload.statements)
    assert ran.ignored == 0


@pytest.mark.parametrize("dataset", ["three-tables"], indirect=True)
def test_several_clients_use_every_table(server, dataset):
    words = ("--time=1", "--events=300", "--threads=4", "--tables=3")
    for name in ("read-write(10)", "update-zipf", "points-notcovered-si(10)", "scan", "insert"):
        assert run(server.client(), find_workload(name), rows=dataset, words=words).events > 0
        log = log_of(server, find_workload(name), "--tables=3", rows=dataset)
        tables = {found for _, text in log for found in re.findall(r"sbtest\.sbtest\d", text)}
        assert tables == {"sbtest.sbtest1", "sbtest.sbtest2", "sbtest.sbtest3"}, name


@pytest.mark.parametrize("dataset", ["no-primary-key"], indirect=True)
def test_without_a_primary_key_the_index_takes_its_place(server, dataset):
    ((_, text),) = server.rows("SHOW CREATE TABLE sbtest.sbtest1")

    assert "KEY `id_1` (`id`)" in text
    assert "PRIMARY" not in text
    for name in ("point-query", "read-write(10)", "insert", "delete"):
        words = ("--events=50", "--time=0")
        assert run(server.client(), find_workload(name), rows=dataset, words=words).events == 50


@pytest.mark.parametrize("dataset", ["no-primary-key"], indirect=True)
def test_a_statement_that_fails_stops_the_workload_with_what_the_server_said(server, dataset):
    server.rows(
        "CREATE TRIGGER sbtest.refuse BEFORE UPDATE ON sbtest.sbtest1 FOR EACH ROW "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'"
    )
    failing = [find_workload(name) for name in ("update-index", "update-inlist", "read-write(10)")]

    for workload in failing:
        done = attempt(server.client(), workload, rows=dataset, words=("--time=5",))
        assert not done.ok
        assert "not today" in done.stdout + done.stderr
    server.rows("DROP TABLE sbtest.sbtest1")
    for name in NAMES:
        done = attempt(server.client(), find_workload(name), rows=dataset, words=("--time=5",))
        assert not done.ok, name
        assert "Table 'sbtest.sbtest1' doesn't exist" in done.stdout + done.stderr, name
