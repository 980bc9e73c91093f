from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from results.atomic import write_atomically
from results.document import Outcome, RunDocument
from results.metric import INSTRUCTIONS, METRICS
from results.slice import SideName, SliceState
from runner import shell
from runner.errors import OperatorError
from runner.job import locked, read_order, run_job
from runner.measure import REPEATS_MAX
from runner.settings import RunnerSettings
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import PLAN


@pytest.fixture
def do(home, settings, progress):
    def do(order):
        folder = home.folder("jobs", order.job)
        write_atomically(folder / "job.json", order.model_dump_json())
        return run_job(order, folder, home=home, settings=settings, progress=progress)

    return do


def test_one_commit_is_built_measured_and_written_down(do, tiny_fork, home, progress):
    document = do(tiny_fork.order(tiny_fork.first, seed=7))

    assert document.outcome is Outcome.MEASURED
    assert document.candidate.commit.sha == tiny_fork.first
    assert [len(start.slices) for start in document.starts] == [3, 3]
    assert document.workloads() == ["scan", "point-query", "update-index"]
    for workload in document.workloads():
        # Counters of the processor are not taken where no plan asks for them.
        for metric in METRICS.keys() - {INSTRUCTIONS.name}:
            samples = document.samples(workload, metric)
            assert [len(row) for row in samples] == [1, 1]
            assert all(value > 0 for row in samples for value in row), (workload, metric)
    folder = home.root / "jobs" / document.job
    assert RunDocument.model_validate_json((folder / "run.json").read_text()) == document
    assert progress.starts == [0, 1]
    until(lambda: servers(home.root) == [])
    assert not (folder / "data").exists()


def test_a_pair_alternates_and_both_sides_have_every_slice(do, tiny_fork):
    other = tiny_fork.commit("code", tiny_fork.launcher("2"))
    order = tiny_fork.order(other, baseline=tiny_fork.first, workloads=["point-query"])

    document = do(order)

    assert document.outcome is Outcome.MEASURED
    for start in document.starts:
        assert sorted(piece.side for piece in start.slices) == ["baseline", "candidate"]
    for side in SideName:
        assert [len(row) for row in document.samples("point-query", "throughput_ops_s", side)] == [
            1,
            1,
        ]


def test_a_commit_that_does_not_build_is_an_outcome(do, tiny_fork):
    broken = tiny_fork.commit("broken", {"launcher.c": "int main(void) { return undeclared; }\n"})

    document = do(tiny_fork.order(broken))

    assert document.outcome is Outcome.BUILD_FAILED
    assert document.failure.stage == "build"
    assert "undeclared" in document.failure.log_tail
    assert document.starts == ()


def test_jobs_of_one_process_are_placed_alike(do, tiny_fork):
    """Each keeps its process off the processors it measures on, and gives them back."""
    usable = os.sched_getaffinity(0)
    docs = tiny_fork.commit("words", {"README.md": "other words\n"})

    do(tiny_fork.order(docs, unchanged_from=tiny_fork.first))

    assert os.sched_getaffinity(0) == usable


def test_a_commit_with_the_same_content_is_not_measured(do, tiny_fork):
    docs = tiny_fork.commit("words", {"README.md": "other words\n"})

    document = do(tiny_fork.order(docs, unchanged_from=tiny_fork.first))

    assert document.outcome is Outcome.UNCHANGED
    assert document.starts == ()


def test_a_pair_of_the_same_content_is_not_measured(do, tiny_fork):
    docs = tiny_fork.commit("words", {"README.md": "other words\n"})

    document = do(tiny_fork.order(docs, baseline=tiny_fork.first))

    assert document.outcome is Outcome.UNCHANGED


def test_an_equal_commit_that_does_not_build_any_more_is_no_reason_to_skip(do, tiny_fork):
    broken = tiny_fork.commit("broken", {"launcher.c": "int main(void) { return undeclared; }\n"})
    repaired = tiny_fork.commit("repaired", tiny_fork.launcher("3"))

    document = do(tiny_fork.order(repaired, unchanged_from=broken, workloads=["scan"]))

    assert document.outcome is Outcome.MEASURED


def test_a_server_that_cannot_start_is_an_outcome(do, tiny_fork):
    plan = PLAN.replace("innodb_flush_log_at_trx_commit", "no_such_option")

    document = do(tiny_fork.order(tiny_fork.first, plan=plan))

    assert document.outcome is Outcome.FAILED
    assert document.failure.stage in {"start", "dataset"}
    assert "no_such_option" in document.failure.log_tail


def test_complete_starts_are_not_measured_again(do, tiny_fork, home, progress):
    order = tiny_fork.order(tiny_fork.first, workloads=["scan"], starts=3)
    complete = do(order)
    folder = home.root / "jobs" / order.job
    # As a runner leaves it that was killed in its third start.
    (folder / "run.json").unlink()
    (folder / "starts" / "0002.json").unlink()
    (folder / "data" / "candidate").mkdir(parents=True)
    progress.pieces = 0

    resumed = do(order)

    assert progress.pieces == len(resumed.starts[2].slices)
    assert resumed.starts[:2] == complete.starts[:2]
    assert resumed.id == complete.id


def test_a_finished_job_is_read_not_done_again(do, tiny_fork, progress):
    order = tiny_fork.order(tiny_fork.first, workloads=["scan"])
    first = do(order)
    progress.stages.clear()

    assert do(order) == first
    assert progress.stages == []


def test_a_wrong_order_says_what_is_wrong(do, tiny_fork, tmp_path):
    with pytest.raises(OperatorError, match="did you mean 'commit'"):
        do(tiny_fork.order(tiny_fork.first, suite="comit"))
    with pytest.raises(OperatorError, match="did you mean 'scan'"):
        do(tiny_fork.order(tiny_fork.first, workloads=["scna"]))
    with pytest.raises(OperatorError, match=r"has no job\.json"):
        read_order(tmp_path)
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(OperatorError, match="not a job order"):
        read_order(tmp_path)


def test_two_runners_do_not_share_a_job(tmp_path):
    with locked(tmp_path), pytest.raises(OperatorError, match="another runner"), locked(tmp_path):
        pass


def test_a_killed_runner_loses_at_most_a_start_and_leaves_no_server(tiny_fork, home):
    order = tiny_fork.order(tiny_fork.first, workloads=["scan"], starts=4)
    folder = home.folder("jobs", order.job)
    write_atomically(folder / "job.json", order.model_dump_json())
    command = [sys.executable, "-m", "forkwatch", "run", "--job", str(folder)]
    kills = 0
    with (folder / "log").open("ab") as log:
        # Killed once while it builds or loads, and once in each of the first starts.
        for wanted in (0, 1, 2):
            runner = shell.start(command, output=log)
            until(
                lambda wanted=wanted: (
                    (_starts(folder) >= wanted and servers(home.root)) or _done(folder)
                )
            )
            os.kill(runner.pid, signal.SIGKILL)
            runner.wait(60)
            kills += 1
            until(lambda: not servers(home.root))
        before = [json.loads(path.read_text()) for path in sorted((folder / "starts").iterdir())]
        runner = shell.start(command, output=log)
        assert runner.wait(120) == 0, shell.tail(folder / "log")

    document = RunDocument.model_validate_json((folder / "run.json").read_text())
    assert kills == 3
    assert len(document.starts) == 4
    assert [json.loads(start.model_dump_json()) for start in document.starts][
        : len(before)
    ] == before
    until(lambda: servers(home.root) == [])


def _starts(folder) -> int:
    return len(list((folder / "starts").glob("*.json")))


def _done(folder) -> bool:
    return (folder / "run.json").exists()


SLOW_LAUNCHER = """\
#include <unistd.h>
int main(int argc, char **argv) {
  (void)argc;
  if (fork() == 0) for (;;) {}
  execv("/usr/sbin/mariadbd", argv);
  return 1;
}
"""


@pytest.mark.alone
def test_a_pair_ends_when_it_is_decided_and_leaves_decided_workloads_alone(do, tiny_fork, progress):
    # A process that spins on the server's only processor takes about half of it.
    slow = tiny_fork.commit("spin", {"launcher.c": SLOW_LAUNCHER})
    order = tiny_fork.order(
        slow, baseline=tiny_fork.first, workloads=["scan", "point-query"], starts=12
    )

    document = do(order)

    assert document.outcome is Outcome.MEASURED
    stops = {one.workload: one for one in document.stopping}
    assert {one.reason for one in stops.values()} == {"different"}
    assert len(document.starts) == max(one.starts for one in stops.values()) < 12
    for workload, stop in stops.items():
        rows = document.samples(workload, "throughput_ops_s")
        assert len(rows) == stop.starts
    assert progress.looks[-1][1] == "different"


def test_a_job_on_a_busy_processor_is_unstable_and_keeps_its_numbers(home, tiny_fork, progress):
    watching = RunnerSettings(home=home.root, watch_host=True)
    order = tiny_fork.order(tiny_fork.first, workloads=["point-query"])
    folder = home.folder("jobs", "busy")
    last = max(os.sched_getaffinity(0))
    # One client and its server share the last processor; here somebody else takes half of it.
    words = ["taskset", "--cpu-list", str(last), sys.executable, "-c", "while True: pass"]
    with (folder / "hog.log").open("ab") as output:
        hog = shell.start(words, output=output)
    try:
        document = run_job(order, folder, home=home, settings=watching, progress=progress)
    finally:
        hog.kill()

    assert document.outcome is Outcome.UNSTABLE
    assert document.failure.stage == "host"
    assert "other processes had" in document.failure.message
    pieces = [piece for start in document.starts for piece in start.slices]
    assert {piece.state for piece in pieces} == {SliceState.DISTURBED}
    # Each was tried again before it was given up.
    assert len(pieces) == len(document.starts) * (1 + REPEATS_MAX)
    assert document.host.fingerprint
    assert {reading.moment for reading in document.host.canary} == {"before", "after"}
