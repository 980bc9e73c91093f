"""What a pair of equals says of its host, in numbers and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from detectors.verdict import Decision
from results.slice import SideName
from service.flows.aa_judging import alpha_of, result_words, results_of
from tests.fakes.run_documents import a_run, sha
from workloads.plan import Gates

if TYPE_CHECKING:
    from results.document import RunDocument
    from service.core.aa_checks import AaResult


def a_pair(starts: int, *, sd: float, ratio: float = 1.0) -> RunDocument:
    """A pair whose starts share most of their noise, and differ by exactly that sd and ratio."""
    rng = np.random.default_rng(1)
    story = a_run().on(sha("a")).against(sha("a"))
    for workload in ("scan", "point-query"):
        shared, own = rng.normal(0, 0.03, starts), rng.normal(0, sd, starts)
        if starts > 1:
            own = sd * (own - np.mean(own)) / np.std(own, ddof=1)
        baseline = [[100 * math.exp(x)] for x in shared]
        candidate = [[100 * ratio * math.exp(x + y)] for x, y in zip(shared, own, strict=True)]
        story = story.with_samples(workload, baseline, side=SideName.BASELINE)
        story = story.with_samples(workload, candidate)
    return story.build()


def results(document: RunDocument, **gates: float) -> dict[str, AaResult]:
    found = results_of(document, Gates(workloads=gates))
    return {one.workload: one for one in found}


def test_a_quiet_host_sees_its_gates_and_a_noisy_one_does_not() -> None:
    quiet, noisy = results(a_pair(10, sd=0.01)), results(a_pair(10, sd=0.06))

    for workload in ("scan", "point-query"):
        one, other = quiet[workload], noisy[workload]
        assert one.fits
        assert not other.fits
        assert (one.starts, one.sd, other.sd) == (
            10,
            pytest.approx(0.01),
            pytest.approx(0.06),
        )
        assert one.decision is Decision.NO_CHANGE
        assert not one.alarms


def test_each_workload_has_the_gate_of_the_plan() -> None:
    found = results(a_pair(10, sd=0.01), scan=0.001)

    assert (found["scan"].gate, found["point-query"].gate) == (0.001, 0.05)
    assert (found["scan"].fits, found["point-query"].fits) == (False, True)
    assert result_words(list(found.values()), "bench-1").endswith("gates of 1 of 2 workloads")


def test_equals_that_are_called_different_are_named_with_their_bounds() -> None:
    slower = results(a_pair(10, sd=0.01, ratio=0.8))
    faster = results(a_pair(10, sd=0.01, ratio=1.3))

    assert {one.decision for one in slower.values()} == {Decision.REGRESSION}
    assert {one.decision for one in faster.values()} == {Decision.IMPROVEMENT}
    said = result_words(list(slower.values()), "bench-1")
    assert said.startswith(
        "bench-1 called two copies of one artifact different: scan -20.0 % (95 %: -2"
    )
    assert "scan +30.0 % (95 %: +2" in result_words(list(faster.values()), "bench-1")


def test_one_start_promises_nothing() -> None:
    [one, _] = results(a_pair(1, sd=0.01)).values()

    assert (one.sd, one.low, one.high, one.sees_percent) == (None, None, None, None)
    assert not one.fits
    assert one.decision is Decision.INCONCLUSIVE
    assert result_words([one], "bench-1") == (
        "bench-1 sees no loss; fit for the gates of 0 of 1 workloads"
    )


def test_a_workload_of_one_side_alone_has_no_result() -> None:
    document = a_run().on(sha("a")).against(sha("a")).with_samples("scan", [[2.0]]).build()

    assert results_of(document, Gates()) == ()
    assert result_words([], "bench-1") == "bench-1 measured no workload on both sides"


def test_the_level_is_shared_among_the_workloads() -> None:
    assert alpha_of(["scan"]) == 0.01
    assert alpha_of(["scan", "point-query"]) == 0.005
    assert alpha_of([]) == 0.01
