"""The A/A check: equals through the ordinary paired job, and what they say of the host."""

from __future__ import annotations

import math
import tomllib
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from detectors.verdict import Decision
from results.document import Outcome
from results.slice import SideName
from runner import checkout
from runner.aa import AaQuestion, check, order_of
from runner.aa_results import AaResult, history, past_of, results_of
from tests.fakes.run_documents import a_run, sha
from tests.runner.tiny_fork import PLAN
from workloads.errors import PlanError
from workloads.plan import Gates, parse_plan
from workloads.twin_plan import toml, twin_plan

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def a_pair(starts: int, *, sd: float, ratio: float = 1.0, seed: int | None = None):
    """A pair whose starts share most of their noise, and differ by a sd and a ratio.

    Without a seed the sd is exactly that; with one it is drawn.
    """
    rng = np.random.default_rng(seed or 1)
    story = a_run().on(sha("a")).against(sha("a"))
    for workload in ("scan", "point-query"):
        shared, own = rng.normal(0, 0.03, starts), rng.normal(0, sd, starts)
        if seed is None and starts > 1:
            own = sd * (own - np.mean(own)) / np.std(own, ddof=1)
        baseline = [[100 * math.exp(x)] for x in shared]
        candidate = [[100 * ratio * math.exp(x + y)] for x, y in zip(shared, own, strict=True)]
        story = story.with_samples(workload, baseline, side=SideName.BASELINE)
        story = story.with_samples(workload, candidate)
    return story.build()


def results(document, gate: float = 0.05) -> dict[str, AaResult]:
    found = results_of(document, Gates(default=gate), at=AT)
    return {one.workload: one for one in found}


def test_a_quiet_host_is_fit_and_sees_more_with_less_noise():
    quiet, noisy = results(a_pair(10, sd=0.01)), results(a_pair(10, sd=0.06))

    for workload in ("scan", "point-query"):
        one, other = quiet[workload], noisy[workload]
        assert one.fits
        assert not other.fits
        assert one.sees_percent < 5 < other.sees_percent
        assert one.starts == 10
        assert one.sd_percent == pytest.approx(1.0)
        assert other.sd_percent == pytest.approx(6.0)
        assert one.low_percent < 0 < one.high_percent
        assert one.verdict is Decision.NO_CHANGE
        assert not one.alarms


def test_what_it_takes_is_about_what_it_takes():
    """With so many starts as it says, a host of that noise sees the gate."""
    one = results(a_pair(10, sd=0.06))["scan"]

    assert 10 < one.starts_needed < 30
    enough = results(a_pair(one.starts_needed, sd=0.06))["scan"]
    assert enough.fits
    assert results(a_pair(4, sd=0.6))["scan"].starts_needed is None


def test_equals_that_are_called_different_are_an_alarm():
    slower, faster = (
        results(a_pair(10, sd=0.01, ratio=0.8)),
        results(a_pair(10, sd=0.01, ratio=1.3)),
    )

    assert {one.verdict for one in slower.values()} == {Decision.REGRESSION}
    assert {one.verdict for one in faster.values()} == {Decision.IMPROVEMENT}
    assert all(one.alarms for one in (*slower.values(), *faster.values()))


def test_one_start_says_nothing_and_promises_nothing():
    one = results(a_pair(1, sd=0.01))["scan"]

    assert (one.sd_percent, one.low_percent, one.sees_percent) == (None, None, None)
    assert not one.fits
    assert one.verdict is Decision.INCONCLUSIVE


def test_good_hosts_seldom_alarm():
    """At most one check in a hundred; 150 checks of two workloads: 5 is the 99 % point of 1.5."""
    alarms = sum(
        any(one.alarms for one in results(a_pair(4, sd=0.04, seed=seed)).values())
        for seed in range(1, 151)
    )

    assert alarms <= 5


def test_the_twin_plan_reads_back_and_changes_only_names():
    twins = twin_plan(PLAN, "commit")
    plan, twin = parse_plan(PLAN), parse_plan(twins.text)

    assert twins.plan == plan
    assert twin.builds["rel"] == plan.builds["rel"]
    changed = twin.builds["rel-aa"].model_dump()
    assert changed.pop("build_minutes_max") == 119
    assert changed.items() <= plan.builds["rel"].model_dump().items()
    assert twin.configs["default-aa"] == twin.configs["default"] == plan.configs["default"]
    assert twin.datasets == plan.datasets
    assert twin.suites["commit"].workloads == plan.suites["commit"].workloads
    assert twin.suites["commit"].budget_minutes == 24 * 60


def test_a_plan_without_configs_has_a_twin_too():
    text = PLAN.replace("[configs.default.options]", "[notify]").partition("[notify]")
    bare = text[0] + "[datasets" + text[2].partition("[datasets")[2]

    assert parse_plan(twin_plan(bare, "commit").text).configs.keys() == {"default", "default-aa"}
    with pytest.raises(PlanError, match="did you mean 'commit'"):
        twin_plan(bare, "comit")


def test_any_value_of_a_plan_is_written_as_it_was():
    tables = {
        "a b": {'quote"d': 'back\\slash "quoted" \t\n\x7f\u2028 ü', "empty": {}},
        "list": [1, -2.5, 1e300, True, False, "x", ["y"], {"k": "v"}],
    }

    assert tomllib.loads(toml(tables)) == tables


@pytest.fixture
def question(tiny_fork):
    return AaQuestion(
        repository=tiny_fork.folder,
        revision="HEAD",
        plan_text=PLAN,
        suite="commit",
        workloads=("point-query",),
        starts=2,
        host_class="default",
    )


def test_two_copies_are_measured_and_kept(question, own_home, settings, progress):
    found = check(question, home=own_home, settings=settings, progress=progress)

    document = found.document
    assert document.outcome is Outcome.MEASURED, document.failure
    sides = [document.baseline.artifact, document.candidate.artifact]
    assert sides[0].content_hash == sides[1].content_hash
    folders = [own_home.root / "artifacts" / side.id / "sbin" / "mariadbd" for side in sides]
    assert folders[0].stat().st_ino != folders[1].stat().st_ino
    assert found.warnings == []
    assert len(document.starts) == 2
    [result] = found.results
    assert (result.workload, result.starts, result.gate_percent) == ("point-query", 2, 5.0)
    assert history(own_home.folder("host")).read() == [result]
    assert found.past["point-query"].checks == 1


def test_each_check_is_another_job_and_an_interrupted_one_the_same(question, tiny_fork):
    twins = twin_plan(PLAN, "commit")
    commit = checkout.resolve(tiny_fork.folder, "HEAD")
    one, again, next_one = (order_of(question, twins, commit, number=n) for n in (0, 0, 1))

    assert one == again
    assert one.job != next_one.job
    assert one.seed != next_one.seed
    assert one.candidate == one.baseline == commit.sha


def test_the_past_is_that_of_the_same_host_and_workload():
    def kept(days: int, sd: float | None, *, fingerprint: str = "f", alarm: bool = False):
        return AaResult(
            taken_at=AT + timedelta(days=days),
            job=f"job-{days}",
            fingerprint=fingerprint,
            placement="disjoint",
            fork="demo",
            suite="commit",
            workload="scan",
            starts=5,
            sd_percent=sd,
            effect_percent=0.0,
            low_percent=-1.0,
            high_percent=1.0,
            sees_percent=2.0,
            gate_percent=5.0,
            verdict=Decision.REGRESSION if alarm else Decision.NO_CHANGE,
        )

    before = [
        kept(0, 9.0, fingerprint="old"),
        kept(1, 1.0, alarm=True),
        kept(2, None),
        kept(3, 3.0),
    ]
    past = past_of(before, before[-1:])["scan"]

    assert (past.checks, past.alarms, past.since) == (3, 1, AT + timedelta(days=1))
    assert past.sd_percent == pytest.approx(math.sqrt((1 + 9) / 2))
