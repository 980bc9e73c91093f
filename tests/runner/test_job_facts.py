"""What a job writes down besides its slices, and what it refuses before it loads."""

from __future__ import annotations

import pytest

from results.atomic import write_atomically
from results.document import Outcome
from results.metric import SUPPORTING_METRICS
from results.slice import SideName
from results.supporting import supporting_samples
from runner.job import run_job
from runner.settings import RunnerSettings
from tests.runner.tiny_fork import PLAN

EXACT = PLAN.replace("confirm_starts = 2", 'confirm_starts = 2\nexact = ["order-by-index"]')
TPCC = (
    PLAN.replace("rows = 2000", 'kind = "tpcc"\nscale = 100_000')
    .replace('"scan", "point-query", "update-index"', '"tpcc"')
)  # fmt: skip


@pytest.fixture
def do(home, progress):
    def do(order, *, where=home):
        folder = where.folder("jobs", order.job)
        write_atomically(folder / "job.json", order.model_dump_json())
        settings = RunnerSettings(home=where.root, watch_host=False)
        return run_job(order, folder, home=where, settings=settings, progress=progress)

    return do


def test_a_pair_compares_exact_counters_after_its_last_start(do, tiny_fork, progress):
    other = tiny_fork.commit("code", tiny_fork.launcher("2"))
    order = tiny_fork.order(other, baseline=tiny_fork.first, workloads=["point-query"], plan=EXACT)

    document = do(order)

    assert document.outcome is Outcome.MEASURED
    (case,) = document.exact.cases
    assert (case.name, case.differences, document.exact.gaps) == ("order-by-index", (), ())
    assert case.counters["handler_read_next"] == 9
    assert document.stage_seconds["exact"] >= document.exact.seconds > 0
    stages = [name for name, _ in progress.stages]
    assert stages.index("exact") > max(at for at, name in enumerate(stages) if name == "measure")
    # Every start has both servers, and the sides share a snapshot, which one of them loaded.
    assert {len(start.servers) for start in document.starts} == {2}
    assert document.candidate.load.rows == 2000
    assert document.candidate.load.own is False
    assert supporting_samples(document) == ()


def test_a_job_of_one_commit_has_its_own_load_and_no_exact_counters(do, tiny_fork, own_home):
    order = tiny_fork.order(tiny_fork.first, workloads=["point-query"], plan=EXACT)

    document = do(order, where=own_home)

    assert document.outcome is Outcome.MEASURED
    assert document.exact is None
    assert document.candidate.load.own
    assert {life.side for start in document.starts for life in start.servers} == {
        SideName.CANDIDATE
    }
    metrics = {one.series.metric for one in supporting_samples(document)}
    assert metrics == set(SUPPORTING_METRICS)


@pytest.mark.parametrize(
    ("cached", "said"),
    [
        ("", "100000 warehouses (55 MB + 100000 x 90 MB), takes 9900.1 GB on the sides"),
        ("\ncached = false", "no room for the dataset: it takes about 9900."),
    ],
)
def test_too_many_warehouses_are_refused_before_loading_with_the_sum(do, tiny_fork, cached, said):
    plan = TPCC.replace("scale = 100_000", f"scale = 100_000{cached}")

    document = do(tiny_fork.order(tiny_fork.first, plan=plan))

    assert document.outcome is Outcome.FAILED
    assert document.failure.stage == "dataset"
    assert said in document.failure.message
    assert "(55 MB + 100000 x 90 MB)" in document.failure.message
    assert document.candidate.load is None
