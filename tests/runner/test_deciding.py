from __future__ import annotations

import numpy as np
import pytest

from detectors.verdict import Decision, decide
from results.slice import SideName
from runner.deciding import ALPHA, Question, look_at, standing
from tests.fakes.run_documents import a_run, sha
from tests.runner.conftest import SilentProgress
from workloads.catalog import find_workload
from workloads.plan import Gates

SCAN, POINT = find_workload("scan"), find_workload("point-query")


def question(*, starts_max: int = 8, budget_s: float = 3600, **alphas: float) -> Question:
    return Question(gates=Gates(), alphas=alphas, starts_max=starts_max, budget_s=budget_s)


def starts(n: int, *, scan: float = 1.0, point: float = 1.0, noise: float = 0.003):
    """Return starts of a pair whose candidate has these relative throughputs; 30 s each."""
    rng = np.random.default_rng(5)
    story = a_run().against(sha("a"))
    for workload, ratio in (("scan", scan), ("point-query", point)):
        for side, level in ((SideName.BASELINE, 1000.0), (SideName.CANDIDATE, 1000.0 * ratio)):
            rows = level * np.exp(noise * rng.normal(size=(n, 2)))
            story = story.with_samples(workload, rows.tolist(), side=side)
    return story.build().starts


def undecided(found) -> list[str]:
    return [workload.name for workload in found.undecided]


def test_a_workload_is_decided_as_soon_as_its_numbers_are_clear():
    progress = SilentProgress()

    found = standing(starts(4, scan=0.80), [SCAN, POINT], question(), progress)

    assert undecided(found) == []
    assert {one.workload: one.reason for one in found.stopping} == {
        "scan": "different",
        "point-query": "equivalent",
    }
    assert progress.looks == [("scan", "different"), ("point-query", "equivalent")]


def test_an_undecided_workload_is_measured_on_without_the_decided_one():
    found = standing(starts(3, scan=0.955, noise=0.02), [SCAN, POINT], question(), SilentProgress())

    assert "scan" in undecided(found)


def test_the_decided_workload_keeps_the_starts_it_had():
    # Two more starts with the scan alone, as a job measures them.
    mixed = list(starts(4, point=0.80))
    later = [
        start.model_copy(
            update={"slices": tuple(s for s in start.slices if s.workload == "scan"), "index": 9}
        )
        for start in starts(2)
    ]

    found = standing([*mixed, *later], [SCAN, POINT], question(), SilentProgress())

    (point,) = [one for one in found.stopping if one.workload == "point-query"]
    assert (point.starts, point.reason) == (4, "different")


@pytest.mark.parametrize(
    ("starts_max", "budget_s", "reason"), [(3, 3600, "exhausted"), (100, 90, "budget")]
)
def test_the_most_starts_and_the_budget_end_what_is_not_decided(starts_max, budget_s, reason):
    noisy = starts(3, scan=0.95, point=0.95, noise=0.05)

    found = standing(
        noisy, [SCAN], question(starts_max=starts_max, budget_s=budget_s), SilentProgress()
    )

    assert [one.reason for one in found.stopping] == [reason]


def test_the_verdict_agrees_with_what_ended_the_measuring():
    measured = starts(5, scan=0.85)
    seen = look_at(measured, "scan", question())

    verdict = decide(seen.change, direction=1, gate=0.05, alpha=ALPHA)

    assert seen.stop == "different"
    assert verdict.decision is Decision.REGRESSION


def test_a_stricter_level_takes_more_starts():
    measured = starts(3, scan=0.90, noise=0.01)

    assert look_at(measured, "scan", question(scan=0.2)).stop == "different"
    assert look_at(measured, "scan", question(scan=1e-6)).stop == "continue"


def test_a_step_that_only_prepares_is_never_waited_for():
    some = find_workload("leveled.overwritesome")

    found = standing(starts(2), [some, SCAN], question(), SilentProgress())

    assert "leveled.overwritesome" not in undecided(found)
    assert "leveled.overwritesome" not in {one.workload for one in found.stopping}
    silent = standing(starts(2), [some], question(), SilentProgress())
    assert (undecided(silent), silent.stopping) == ([], ())
