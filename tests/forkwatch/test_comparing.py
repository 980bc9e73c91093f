"""What `compare` says of a measured pair."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from detectors.verdict import Decision
from forkwatch.comparing import ALPHA, conclude
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.scripted_measurement import PLAN

if TYPE_CHECKING:
    from results.document import RunDocument

WORKLOADS = ("scan", "point-query", "update-index", "insert", "delete", "range-covered-pk")


def a_pair(*ratios: float, seed: int = 1) -> RunDocument:
    """Four starts of two slices of each workload, its candidate at that ratio."""
    rng = random.Random(seed)
    story = a_run().on(sha("c")).against(sha("b"))
    for workload, ratio in zip(WORKLOADS, ratios, strict=False):
        for side, level in ((SideName.BASELINE, 100.0), (SideName.CANDIDATE, 100.0 * ratio)):
            starts = [level * rng.lognormvariate(0, 0.006) for _ in range(4)]
            rows = [[start * rng.lognormvariate(0, 0.002) for _ in range(2)] for start in starts]
            story = story.with_samples(workload, rows, side=side)
    return story.build()


def test_a_shift_of_all_workloads_is_said_though_each_is_unchanged_within_its_gate() -> None:
    found = conclude(a_pair(*[0.982] * 6), PLAN)

    assert found.suite is not None
    assert found.suite.change.p_value <= ALPHA
    assert {verdict.decision for verdict in found.verdicts.values()} == {Decision.NO_CHANGE}
    assert found.sentence.startswith("the suite as a whole is 1.")
    assert "% slower (95 %: " in found.sentence
    assert "6 workloads unchanged within" in found.sentence


def test_a_suite_that_did_not_move_is_not_spoken_of() -> None:
    found = conclude(a_pair(*[1.0] * 6), PLAN)

    assert found.suite is not None
    assert "suite" not in found.sentence
    assert conclude(a_pair(*[0.982] * 4), PLAN).suite is None


def test_a_changed_workload_comes_with_the_level_that_all_were_judged_at() -> None:
    found = conclude(a_pair(0.85, *[1.0] * 5), PLAN)

    assert found.sentence.startswith("scan is 1")
    assert found.sentence.endswith("each of 6 workloads judged at p <= 0.01")
    assert "suite" not in found.sentence
    alone = conclude(a_pair(0.85), PLAN)
    assert "judged at" not in alone.sentence
