from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.instrument.knob_fork import knob_fork
from results.document import Placement
from results.explanation import Explanation
from results.slice import SideName
from runner import checkout, datasets, explaining, instructions, profile
from runner.bench import Bench
from runner.build import Builder
from runner.counters import hardware
from runner.deciding import Question
from runner.errors import DatasetError
from runner.explaining import Wanted
from runner.servers.engine import ServerSpec
from tests.fakes.run_documents import a_run, sha
from tests.runner.conftest import ROWS
from workloads.catalog import find_workload
from workloads.plan import Gates, parse_plan

BASELINE, CANDIDATE = SideName.BASELINE, SideName.CANDIDATE
SCAN = find_workload("scan")
PLAN = """\
[fork]
name = "knob"
engine = "mariadb"

[builds.rel]
server = "sbin/mariadbd"
cmake_options = { CMAKE_BUILD_TYPE = "Release" }

[configs.default.options]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
performance_schema = false

[datasets.small]
rows = 2000

[suites.commit]
workloads = ["scan"]
warmup_seconds = 0
"""


class NoRoom:
    """A snapshot that cannot be copied."""

    def restore(self, targets):
        raise DatasetError("dataset", "there is no room for it")


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    """Let the machine have neither valgrind nor perf."""
    found = (profile.missing, hardware.missing)
    for each in found:
        each.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    for each in found:
        each.cache_clear()


def a_bench(tmp_path, **chosen) -> Bench:
    facts = {
        "servers": dict.fromkeys((BASELINE, CANDIDATE), SimpleNamespace(engine="mariadb")),
        "snapshots": dict.fromkeys((BASELINE, CANDIDATE), NoRoom()),
        "suite": parse_plan(PLAN).suites["commit"],
        "dataset": ROWS,
        "scratch": tmp_path / "data",
        "placement": Placement(mode="unpinned"),
        "seed": 0,
    }
    return Bench(**{**facts, **chosen})


def a_pair(**ratios: float):
    """Four starts of two slices a side with 0.3 % of noise."""
    rng = random.Random(1)
    story = a_run().on(sha("c")).against(sha("b"))
    for key, ratio in ratios.items():
        for side, level in ((BASELINE, 100.0), (CANDIDATE, 100.0 * ratio)):
            rows = [[level * rng.lognormvariate(0, 0.003) for _ in range(2)] for _ in range(4)]
            story = story.with_samples(key.replace("_", "-"), rows, side=side)
    return story.build().starts


def test_regressions_are_explained_the_largest_first():
    starts = a_pair(scan=0.9, point_query=1.0, update_index=0.7)
    workloads = [find_workload(name) for name in ("scan", "point-query", "update-index")]
    question = Question(gates=Gates(), alphas={}, starts_max=4, budget_s=60)

    found = explaining.slower(starts, workloads, question)

    assert [workload.name for workload in found] == ["update-index", "scan"]
    assert explaining.throughputs(starts, found) == {
        "update-index": pytest.approx(100, rel=0.01),
        "scan": pytest.approx(100, rel=0.01),
    }
    faster = a_pair(scan=1.2)
    assert explaining.slower(faster, workloads, question) == []
    assert explaining.throughputs(faster, workloads).keys() == {"scan"}


def test_what_a_machine_lacks_is_said_with_each_reason_once(no_programs, tmp_path, progress):
    said = (
        "no instructions per operation: valgrind is not installed; try: apt-get install valgrind",
        (
            "no profiles and no counters of the processor: perf is not installed; "
            "try: apt-get install linux-perf"
        ),
    )
    assert explaining.missing(Wanted()) == said
    assert explaining.can_nothing(Wanted())

    found = explaining.explain(
        a_bench(tmp_path), [SCAN], Wanted(), folder=tmp_path, progress=progress
    )

    assert found.missing == said
    [scan] = found.workloads
    assert (scan.instructions, scan.profile, scan.gaps) == (None, None, ())


def test_what_is_not_wanted_is_not_missed():
    wanted = Wanted(instructions=False, profile=False)

    assert explaining.can_nothing(wanted)
    assert [line for line in explaining.missing(wanted) if "counters" not in line] == []


def test_what_cannot_be_explained_is_a_gap_that_says_why(tmp_path, progress):
    step = replace(SCAN, name="load-step", chain="insert-benchmark")
    postgres = dict.fromkeys((BASELINE, CANDIDATE), SimpleNamespace(engine="postgres"))

    def gaps(bench, workload, **chosen):
        found = explaining.explain(
            bench, [workload], Wanted(**chosen), folder=tmp_path, progress=progress
        )
        return found.workloads[0].gaps

    [gap] = gaps(a_bench(tmp_path), step)
    assert gap == "load-step begins from what the steps before it leave, and cannot run alone"
    [gap] = gaps(a_bench(tmp_path, servers=postgres), SCAN)
    assert gap == "only MariaDB and MySQL can be explained yet, not postgres"
    [gap] = gaps(a_bench(tmp_path), SCAN, minutes=0)
    assert gap == "left out: the 0 minutes for explaining were over"
    assert progress.stages == []


def test_a_failure_is_a_gap_and_no_failure_of_the_job(tmp_path, progress):
    if instructions.missing() or profile.missing():
        pytest.skip(instructions.missing() or profile.missing())

    found = explaining.explain(
        a_bench(tmp_path), [SCAN], Wanted(), folder=tmp_path, progress=progress
    )

    assert found.workloads[0].gaps == (
        "no profile: there is no room for it",
        "no instructions per operation: there is no room for it",
    )
    assert progress.stages == [("explain", "scan")]


def test_only_regressions_of_a_measured_pair_are_explained(no_programs, tmp_path, progress):
    question = Question(gates=Gates(), alphas={}, starts_max=4, budget_s=60)
    workloads = [find_workload(name) for name in ("scan", "point-query", "update-index")]

    def explained(**ratios: float):
        return explaining.explain_regressions(
            a_bench(tmp_path),
            workloads,
            a_pair(**ratios),
            question,
            minutes=1,
            folder=tmp_path,
            progress=progress,
        )

    found = explained(scan=0.9, point_query=1.0, update_index=0.7)
    assert [one.workload for one in found.workloads] == ["update-index", "scan"]
    assert len(found.missing) == 2
    assert explained(scan=1.0, point_query=1.3) == Explanation()


def test_equal_software_needs_equally_many_instructions(home, settings, tmp_path, progress):
    if instructions.missing():
        pytest.skip(instructions.missing())
    fork = knob_fork(tmp_path / "fork")
    plan = parse_plan(PLAN)
    builder = Builder(home=home, settings=settings, repository=fork.repository)

    def server(label: str) -> ServerSpec:
        commit = checkout.resolve(fork.repository, fork.commit(rounds=0, label=label))
        build = plan.builds["rel"]
        return ServerSpec(
            engine="mariadb",
            installed=builder.build(commit, "rel", build),
            program=build.server,
            install_db=None,
            options=plan.configs["default"].options,
        )

    servers = {BASELINE: server("plain"), CANDIDATE: server("twin")}
    hashes = {spec.installed.facts.content_hash for spec in servers.values()}
    described = datasets.describe("small", ROWS, servers[BASELINE])
    with datasets.ready(described, ROWS, servers[BASELINE], home) as snapshot:
        found = explaining.explain(
            a_bench(tmp_path, servers=servers, snapshots=dict.fromkeys(servers, snapshot)),
            [find_workload("point-query")],
            Wanted(profile=False, operations=900),
            folder=tmp_path,
            progress=progress,
        )

    assert len(hashes) == 2, "two artifacts"
    [one] = found.workloads
    assert one.gaps == ()
    assert one.instructions.operations == 600
    assert one.instructions.baseline > 10_000
    assert one.instructions.differs is False, one.instructions
    assert not (tmp_path / "data").exists()
