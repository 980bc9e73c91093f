"""Each fault of a server or of its client ends the job with a named outcome, and nothing else."""

from __future__ import annotations

import pytest

from results.document import Outcome
from runner import sysbench, watchdog
from runner.servers import serving
from tests.runner.faulty_fork import Bed
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import PLAN


@pytest.fixture
def bed(tiny_fork, home, settings, progress):
    return Bed(tiny_fork, home, settings, progress)


@pytest.fixture
def failed(bed):
    """Do the job of a faulty commit and return its failure, having seen that nothing is left."""

    def do(name: str, **chosen):
        document = bed.do(bed.order(bed.faulty(name), **chosen))
        assert document.outcome is Outcome.FAILED
        assert document.failure is not None
        until(lambda: servers(bed.home.root) == [])
        until(lambda: watchdog.marked(watchdog.MARK) == [])
        folder = bed.home.root / "jobs" / document.job
        assert not (folder / "data").exists()
        assert (folder / "run.json").exists()
        return document.failure

    return do


def test_a_server_that_never_gets_ready(failed, monkeypatch):
    monkeypatch.setattr(serving, "READY_TIMEOUT_S", 1.5)

    failure = failed("never-ready")

    assert failure.stage == "start"
    assert "the server did not answer within" in failure.message


def test_a_server_that_ends_at_once_leaves_its_last_words(failed):
    failure = failed("ends-at-once")

    assert failure.stage == "start"
    assert "the server ended with 3" in failure.message
    assert "cannot find my own configuration" in failure.log_tail


def test_a_server_that_crashes_in_a_slice_leaves_its_error_log(failed):
    failure = failed("crashes")

    assert failure.stage == "measure"
    assert "the server died" in failure.message
    # What the server wrote when it got the signal, and not what its client said about that.
    assert "got signal 11" in failure.log_tail


def test_a_server_that_is_killed_in_a_slice_is_said_to_have_died(failed):
    failure = failed("is-killed")

    assert failure.stage == "measure"
    assert "the server died" in failure.message
    assert "ready for connections" in failure.log_tail


def test_a_server_that_hangs_in_a_slice_has_no_throughput(failed, monkeypatch):
    monkeypatch.setattr(sysbench, "GRACE_S", 1)

    failure = failed("hangs")

    assert failure.stage == "measure"
    assert "point-query: the client hung" in failure.message


def test_a_server_that_does_not_stop(failed, monkeypatch):
    monkeypatch.setattr(serving, "STOP_TIMEOUT_S", 1.5)

    failure = failed("does-not-stop", plan=PLAN)

    assert failure.stage == "stop"
    assert "the server did not stop within" in failure.message


def test_a_server_that_ends_badly_is_no_success(failed):
    failure = failed("stops-badly", plan=PLAN)

    assert failure.stage == "stop"
    assert "the server died with status" in failure.message


def test_what_the_client_is_refused_is_quoted(failed):
    failure = failed("lost-its-table")

    assert failure.stage == "measure"
    assert "point-query: the client failed" in failure.message
    assert "doesn't exist" in failure.log_tail


def test_a_client_that_gets_nothing_but_errors_has_no_throughput(failed, monkeypatch):
    monkeypatch.setattr(sysbench, "GRACE_S", 5)

    failure = failed("serves-nobody", workloads=["update-index"])

    assert failure.stage == "measure"
    assert "update-index: the client hung" in failure.message
    assert "qps: 0.00" in failure.log_tail
    assert "err/s: 1.00" in failure.log_tail


def test_the_side_that_failed_is_named_in_a_pair(bed):
    crashing = bed.faulty("crashes")

    found = {
        side: bed.do(bed.order(candidate, baseline=baseline, job=f"pair-{side}", starts=2))
        for side, candidate, baseline in (
            ("candidate", crashing, bed.fork.first),
            ("baseline", bed.fork.first, crashing),
        )
    }

    for side, document in found.items():
        assert document.outcome is Outcome.FAILED
        assert document.failure.message.startswith(f"{side}: the server died")
    until(lambda: servers(bed.home.root) == [])


def test_what_the_client_of_a_pair_is_refused_is_quoted(bed):
    lost = bed.faulty("lost-its-table")

    document = bed.do(bed.order(lost, baseline=bed.fork.first, plan=PLAN, starts=2))

    # Taking turns, a client that is refused its first statement has not even begun.
    assert document.outcome is Outcome.FAILED
    assert "the client" in document.failure.message
    assert "SQL API error" in document.failure.log_tail
    until(lambda: servers(bed.home.root) == [])
