from __future__ import annotations

import contextlib
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from results.document import Placement
from results.slice import SideName, SliceState
from runner import datasets, measure, paired_slices, shell, turns
from runner.counters import Account, process
from runner.errors import ClientError
from runner.servers import mysql_family
from tests.runner.conftest import ROWS
from tests.runner.processes import until
from workloads import insert_benchmark
from workloads.catalog import find_workload
from workloads.plan import Suite

#: A client that counts for a second of its own time or so, and starts no process of its own.
CLIENT = ("sh", "-c", "echo go; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo end")


@pytest.fixture
def servers():
    """Two processes that stand for servers, which are there and stopped like them."""
    with Path("/dev/null").open("wb") as nowhere:
        found = [shell.start(["sleep", "600"], output=nowhere) for _ in range(2)]
    yield found
    for server in found:
        server.kill()


def parties(servers, *commands):
    return [
        turns.Party(name="w", pids=[server.pid], command=command)
        for server, command in zip(servers, commands, strict=True)
    ]


def clients_that_run() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        # One may end between two questions.
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE and child.cmdline()[:1] == ["sh"]:
                found.append(child)
    return found


def is_stopped(process) -> bool:
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED


def test_one_side_works_at_a_time_and_all_stand_still_between_turns(servers):
    seen = []

    def look(whose):
        seen.append(whose)
        if len(seen) > 2:
            # Told to stop, a process that waits for a processor stops when it gets one.
            until(lambda: all(is_stopped(one) for one in [*servers, *clients_that_run()]))

    done = turns.take_turns(
        parties(servers, CLIENT, CLIENT), turn_s=0.05, timeout_s=120, mark="go", on_switch=look
    )

    assert all(one.text.split() == ["go", "end"] and one.returncode == 0 for one in done)
    assert len(seen) > 10
    assert set(seen) == {0, 1, None}
    spans = sorted(span for one in done for span in one.spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), "two worked at once"
    assert not any(is_stopped(server) for server in servers), "servers go on afterwards"


def test_only_its_own_turns_count_as_time_of_a_side():
    turned = turns.Turned(
        text="", returncode=0, began_s=10.0, spans=((9.5, 10.5), (11.0, 11.25), (12.0, 13.0))
    )

    assert turned.active_s(2.5) == pytest.approx(0.5 + 0.25 + 0.5)
    assert turned.active_s(100.0) == pytest.approx(0.5 + 0.25 + 1.0)


def test_a_client_that_fails_ends_the_turns_and_leaves_no_one_stopped(servers):
    failing = ("sh", "-c", "echo go; sleep 0.1; echo FATAL: broken; exit 3")
    endless = ("sh", "-c", "echo go; exec sleep 600")

    done = turns.take_turns(
        parties(servers, failing, endless), turn_s=0.05, timeout_s=120, mark="go"
    )

    assert done[0].returncode == 3
    assert "FATAL: broken" in done[0].text
    assert not any(is_stopped(server) for server in servers)


def test_a_client_that_hangs_is_killed_and_named(servers):
    # Its number comes first: on a busy machine its seconds may be over once it has begun.
    endless = ("sh", "-c", "echo $$; echo go; exec sleep 600")

    with pytest.raises(ClientError, match="w: the client hung") as caught:
        turns.take_turns(parties(servers, endless, endless), turn_s=0.05, timeout_s=4, mark="go")

    assert not psutil.pid_exists(int(caught.value.log_tail.split()[0]))
    assert not any(is_stopped(server) for server in servers)


def test_a_client_that_never_begins_is_named_with_what_it_said(servers):
    refused = ("sh", "-c", "echo FATAL: cannot connect; exit 1")

    with pytest.raises(ClientError, match="w: the client did not begin") as caught:
        turns.take_turns(parties(servers, refused, CLIENT), turn_s=0.05, timeout_s=120, mark="go")

    assert "cannot connect" in caught.value.log_tail
    assert not any(is_stopped(server) for server in servers)


@pytest.fixture
def pair(spec, home, tmp_path):
    """A bench with two real servers of one build, and the servers."""
    dataset = datasets.describe("small", ROWS, spec)
    sides = (SideName.BASELINE, SideName.CANDIDATE)
    with datasets.ready(dataset, ROWS, spec, home) as snapshot:
        bench = measure.Bench(
            servers=dict.fromkeys(sides, spec),
            suite=Suite(workloads=("point-query",), seconds=2, turn_ms=100),
            dataset=ROWS,
            snapshots=dict.fromkeys(sides, snapshot),
            scratch=tmp_path / "scratch",
            placement=Placement(mode="unpinned"),
            seed=1,
        )
        measure.restore(bench.snapshots, bench.scratch)
        with (
            mysql_family.running(spec, bench.scratch / sides[0], cpus=()) as one,
            mysql_family.running(spec, bench.scratch / sides[1], cpus=()) as other,
        ):
            yield bench, {sides[1]: other, sides[0]: one}


@pytest.mark.alone
def test_a_pair_of_slices_has_the_operations_and_the_cost_of_each_sides_own_turns(pair):
    bench, both = pair

    pieces = paired_slices.measure_pair(
        bench, find_workload("point-query"), both, sequence=4, seed=7
    )

    assert [(piece.side, piece.sequence) for piece in pieces] == [
        (SideName.CANDIDATE, 4),
        (SideName.BASELINE, 5),
    ]
    for piece in pieces:
        assert piece.state is SliceState.OK
        assert 1.5 < piece.seconds < 2.5, "half of the time is its own"
        assert piece.turns > 10
        assert piece.throughput_ops_s == pytest.approx(piece.operations / piece.seconds)
        assert piece.latency_ms is None or piece.latency_ms.maximum is None
        cost = piece.counters
        # A server of one client cannot have used more than its turns and the start around them.
        assert 0 < cost.server_cpu_us < 1.5e6 * piece.seconds
        assert cost.machine_cpu_us > 0
        assert cost.engine["handler_read_key"] == pytest.approx(piece.operations, rel=0.05)


@pytest.mark.alone
def test_a_slow_operation_is_not_told_a_latency_that_holds_a_pause(pair):
    bench, both = pair

    pieces = paired_slices.measure_pair(bench, find_workload("scan"), both, sequence=0, seed=7)

    for piece in pieces:
        cut_share = piece.turns / piece.operations
        assert (piece.latency_ms is None) == (cut_share > 0.001)


@pytest.mark.alone
def test_a_server_is_charged_with_its_own_turns_whatever_it_does_while_the_other_one_is_asked():
    busy = ("sh", "-c", "while :; do :; done")
    with Path("/dev/null").open("wb") as nowhere:
        servers = [shell.start(busy, output=nowhere) for _ in range(2)]
    accounts = [Account(), Account()]
    clerk = paired_slices.Clerk(
        device=None, accounts=accounts, pids=[[server.pid] for server in servers]
    )
    moments: list[tuple[int | None, float]] = []

    def switch(whose: int | None) -> None:
        moments.append((whose, time.monotonic()))
        clerk.switch(whose)

    try:
        turns.take_turns(
            parties(servers, CLIENT, CLIENT),
            turn_s=0.05,
            timeout_s=60,
            mark="go",
            on_switch=switch,
        )
        in_the_end = [process.read([server.pid]).cpu_ns for server in servers]
        until(
            lambda: all(
                process.read([server.pid]).cpu_ns > then + 50_000_000
                for server, then in zip(servers, in_the_end, strict=True)
            )
        )
    finally:
        for server in servers:
            server.kill()
    for index, account in enumerate(accounts):
        own_s = sum(
            after - before for (whose, before), (_, after) in pairwise(moments) if whose == index
        )
        before, after = account.server
        # One thread, in its own turns alone; reading the accounts takes some milliseconds too.
        assert 0 < after.cpu_ns - before.cpu_ns <= (own_s + 0.03) * 1e9


def test_what_ends_by_itself_or_leads_to_a_next_step_is_not_measured_in_turns():
    assert paired_slices.takes_turns(find_workload("scan"))
    assert not any(paired_slices.takes_turns(one) for one in insert_benchmark.WORKLOADS)
