from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from results.document import Placement
from results.slice import Counters, SideName, SliceState
from runner import clock, datasets, measure, slices, sysbench
from runner.client_run import ClientRun
from runner.errors import ClientError, ServerError
from workloads import insert_benchmark
from workloads.catalog import WORKLOADS
from workloads.plan import DatasetPlan, Suite

PLAN = DatasetPlan(kind="insert-benchmark", rows=2000)
STEPS = ("l.i0", "l.x", "l.i1")
KNOWN = {**WORKLOADS, **{workload.name: workload for workload in insert_benchmark.WORKLOADS}}


def found(*names: str):
    return [KNOWN[name] for name in names]


def names(workloads) -> list[str]:
    return [workload.name for workload in workloads]


@pytest.fixture
def bench(spec, home, tmp_path):
    dataset = datasets.describe("inserts", PLAN, spec)
    # Each side has loaded its own, as two formats would.
    other = replace(spec, options={**spec.options, "innodb_log_file_size": "17M"})
    described = datasets.describe("inserts", PLAN, other)
    assert described.digest != dataset.digest
    with (
        datasets.ready(dataset, PLAN, spec, home) as baseline,
        datasets.ready(described, PLAN, other, home) as candidate,
    ):
        yield measure.Bench(
            servers={SideName.BASELINE: spec, SideName.CANDIDATE: other},
            suite=Suite(workloads=STEPS, slices=3, seconds=1, warmup_seconds=1),
            dataset=PLAN,
            snapshots={SideName.BASELINE: baseline, SideName.CANDIDATE: candidate},
            scratch=tmp_path / "scratch",
            placement=Placement(mode="unpinned"),
            seed=1,
        )


def test_the_steps_of_a_chain_stay_together_and_in_order():
    loose = found("update-index", "point-query")
    steps = found(*STEPS)

    legs = measure.legs([steps[0], *loose, *steps[1:]])

    assert [names(leg) for leg in legs] == [["point-query", "update-index"], list(STEPS)]
    assert [names(leg) for leg in measure.legs(steps)] == [list(STEPS)]


def test_a_step_that_is_wanted_takes_its_chain_along():
    every = found(*STEPS, "scan", "point-query")

    assert names(measure.whole_chains(found("scan"), every)) == ["scan"]
    assert names(measure.whole_chains(found("l.i1", "scan"), every)) == [*STEPS, "scan"]


def test_every_step_runs_once_on_each_side_on_what_the_one_before_has_left(bench, progress):
    start = measure.measure_start(bench, 0, found(*STEPS), progress)

    measured = [(piece.workload, piece.side) for piece in start.slices]
    assert [name for name, _ in measured] == [step for step in STEPS for _ in range(2)]
    assert len(set(measured)) == 6
    assert {one.warm_up_seconds for one in start.preparations} == {0}
    by_step = {(piece.workload, piece.side): piece for piece in start.slices}
    for side in SideName:
        # All rows, then a first step that finds them all, then four fifths of them again.
        assert by_step["l.i0", side].operations == 2000
        assert by_step["l.x", side].operations == pytest.approx(2000, abs=200)
        assert by_step["l.i1", side].operations == pytest.approx(1600, abs=100)
    churn = by_step["l.i1", SideName.CANDIDATE]
    assert churn.counters.engine["delete_rows_s"] > 0
    assert churn.latency_ms.p99 >= churn.latency_ms.p50 > 0
    assert not (bench.scratch).exists()


def told(**facts) -> ClientRun:
    return ClientRun(
        **{
            "seconds": 1.0,
            "operations": 1,
            "per_second_ops_s": (),
            "latency_ms": None,
            **facts,
        }
    )


def counted(**engine) -> Counters:
    zeros = dict.fromkeys(
        (name for name, field in Counters.model_fields.items() if field.is_required()), 0
    )
    return Counters(**zeros, engine=engine)


def test_what_a_client_tells_stands_beside_the_counters_and_makes_sense():
    run = told(extra={"write_amplification": 7.5, "lost": float("nan"), "endless": float("inf")})

    found = slices.with_told(counted(handler_write=3), run, is_library=False)

    assert found.engine == {"handler_write": 3, "write_amplification": 7.5}
    assert found.server_cpu_us == 0


def test_a_library_has_no_process_but_its_client():
    found = slices.with_told(counted(), told(cpu_s=0.25), is_library=True)

    assert found.server_cpu_us == 250_000


def test_a_step_that_did_not_hold_its_rate_is_kept_and_never_compared():
    line = (
        "insert-benchmark role={role} client=1 seconds=10.000 statements={rows} rows={rows} "
        "retries=0 total_us=5000000 max_us=9000 rates=100,100 buckets=0,0,{rows},0,0,0,0,0,0,0 "
        "latency=90:{rows}"
    )
    (step,) = found("qr100")
    held, late = (
        "\n".join(line.format(role=role, rows=rows) for role in ("query", "insert", "delete"))
        for rows in (1000, 870)
    )

    assert sysbench.parse_step(held, step, clients=1).unfit == ""
    assert "87%" in sysbench.parse_step(late, step, clients=1).unfit
    assert slices.state_of(disturbed=False, unfit=True) is SliceState.FAILED
    with pytest.raises(ClientError, match="reported none") as caught:
        sysbench.parse_step("FATAL: no tables", step, clients=1)
    assert "FATAL: no tables" in caught.value.log_tail


class ForgetfulEngine:
    """Answers every question of consistency with the same count of broken rows."""

    def __init__(self, broken: int) -> None:
        self.broken = broken

    def rows(self, server, statement):
        return [(str(self.broken),)]


@pytest.mark.parametrize("broken", [0, 3])
def test_a_server_that_loses_writes_of_tpcc_is_not_measured(broken):
    server = SimpleNamespace(engine=ForgetfulEngine(broken))
    leg = found("tpcc")

    if broken:
        with pytest.raises(ServerError, match="candidate: inconsistent after TPC-C") as caught:
            measure.check_data(leg, {SideName.CANDIDATE: server})
        assert "broken 3 times" in caught.value.log_tail
    else:
        measure.check_data(leg, {SideName.CANDIDATE: server})
    # Other workloads have no such conditions.
    measure.check_data(found("update-index"), {SideName.CANDIDATE: server})


@pytest.mark.parametrize(
    ("name", "reported"), [("leveled.overwritesome", False), ("leveled.overwriteandwait", True)]
)
def test_the_slice_of_a_step_that_only_prepares_says_so(name, reported):
    piece = slices.slice_of(
        WORKLOADS[name],
        SideName.CANDIDATE,
        told(),
        SimpleNamespace(counters=counted()),
        started_at=clock.now(),
        sequence=0,
        disturbed="",
        is_library=True,
    )

    assert piece.reported is reported
