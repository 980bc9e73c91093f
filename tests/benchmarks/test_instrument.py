"""The instrument's benchmark counts as it says: spreads, budget, ledger, knob, where time went."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pygit2
import pytest

from benchmarks.instrument.__main__ import FAILURES_MAX, _work
from benchmarks.instrument.against_bare import AgainstBare
from benchmarks.instrument.alternation import LONG, OURS, Alternation
from benchmarks.instrument.budget import Budget
from benchmarks.instrument.job_facts import facts, shares
from benchmarks.instrument.knob import NEAR, WANTED, Knob, next_rounds
from benchmarks.instrument.knob_fork import KnobFork, knob_fork
from benchmarks.instrument.ledger import Ledger
from benchmarks.instrument.pairs import EQUAL, PLANTED, Pairs
from benchmarks.instrument.rig import FIVE, Done, Rig, Sizes
from benchmarks.instrument.spread import median_of, pooled, pooled_effect, sd_ratio, spread
from benchmarks.instrument.unit import Unit
from benchmarks.instrument.warm_suite import WarmSuite
from results.document import Outcome
from results.slice import SideName
from runner.errors import StageError
from runner.settings import Home
from tests.fakes.run_documents import a_run, sha
from workloads.catalog import WORKLOADS
from workloads.plan import parse_plan

EACH = Sizes(workloads=("scan",), starts=10, slices=2, seconds=2)


@dataclass
class CountedPart:
    """A part whose units each take ten seconds of a clock that is turned by hand."""

    ledger: Ledger
    clock: list[float]
    name: str = "aa"
    number: int = 5
    sizes: dict[str, object] = field(default_factory=dict)
    failing: bool = False
    measured: int = 0

    def units(self):
        for number in range(self.number):
            yield Unit(key=f"unit {number}", measure=self._one)

    def _one(self):
        self.measured += 1
        self.clock[0] += 10.0
        if self.failing:
            raise StageError("measure", "the server died")
        return {"value": self.measured}

    def line(self, record):
        return str(record["value"])

    def report(self):
        return ""


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def part(tmp_path, clock) -> CountedPart:
    return CountedPart(ledger=Ledger(tmp_path / "results.jsonl"), clock=clock)


@pytest.fixture
def rig(tmp_path) -> Rig:
    return Rig(
        folder=tmp_path,
        home=Home(tmp_path / "home"),
        fork=KnobFork(repository=tmp_path / "fork"),
        rows=1000,
        mode="shared-core",
        cpus=(0, 1),
    )


def work(part: CountedPart, *, seconds: float, said: list[str] | None = None) -> list[str]:
    budget = Budget(seconds=seconds, parts=[part.name], now=lambda: part.clock[0])
    return _work(part, budget, say=([] if said is None else said).append)


def test_the_ratio_of_two_sds_has_the_interval_of_the_f_distribution() -> None:
    # The 97.5 % point of F(10, 10) is 3.717 in every table.
    ours, theirs = spread(list(range(11))), spread([3.0 * value for value in range(11)])

    found = sd_ratio(ours, theirs)

    assert found.value == pytest.approx(1 / 3)
    assert found.low == pytest.approx(1 / 3 / math.sqrt(3.717), rel=1e-3)
    assert found.high == pytest.approx(1 / 3 * math.sqrt(3.717), rel=1e-3)


def test_the_interval_of_a_ratio_of_sds_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        found = sd_ratio(spread(rng.normal(0, 1, 6)), spread(rng.normal(0, 3, 6)))
        hits += found.low <= 1 / 3 <= found.high

    # Four binomial sds of 400 tries at 95 %.
    assert abs(hits / 400 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 400)


def test_one_repetition_has_no_spread_and_says_so() -> None:
    assert math.isnan(spread([1.0]).sd)
    assert math.isnan(sd_ratio(spread([1.0]), spread([1.0, 2.0])).value)
    assert pooled([spread([1.0])]).df == 0


def test_pooling_forgets_the_levels_of_the_groups() -> None:
    found = pooled([spread([1.0, 3.0]), spread([101.0, 103.0])])

    assert (found.sd, found.df) == (pytest.approx(math.sqrt(2.0)), 2)


def test_the_interval_of_a_median_is_the_textbook_one() -> None:
    # n = 10: the second and the ninth value, 97.9 % (Conover 1999, table of quantiles).
    found = median_of([float(value) for value in range(1, 11)])

    assert (found.value, found.low, found.high) == (5.5, 2.0, 9.0)
    few = median_of([1.0, 2.0, 3.0])
    assert (few.low, few.high) == (1.0, 3.0)


def test_pairs_that_stop_early_do_not_exaggerate_the_true_effect() -> None:
    rng = np.random.default_rng(6)
    effects, starts = [], []
    for _ in range(300):
        steps: list[float] = []
        while len(steps) < 10 and (len(steps) < 2 or np.mean(steps) > -0.06):
            steps.append(rng.normal(-0.05, 0.02))
        effects.append(float(np.mean(steps)))
        starts.append(len(steps))

    found = pooled_effect(effects, starts)

    assert found.low <= -0.05 <= found.high
    assert found.high - found.low < 0.004
    # What the rule is for: the plain mean of the pairs is too large.
    assert np.mean(effects) < found.low


def test_a_stopped_run_goes_on_after_the_last_unit(part) -> None:
    assert work(part, seconds=25) == ["unit 2", "unit 3", "unit 4"]
    assert work(part, seconds=100) == []
    assert part.measured == 5
    assert [record["value"] for record in part.ledger.of(part)] == [1, 2, 3, 4, 5]


def test_units_of_other_sizes_and_torn_lines_do_not_count(part, tmp_path) -> None:
    part.ledger.add(part, "unit 0", {"value": 1})
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"part": "aa", "ke')
    part.ledger.add(part, "unit 1", {"value": 2})
    other = CountedPart(ledger=part.ledger, clock=[0.0], sizes={"seconds": 5})

    assert [record["key"] for record in part.ledger.of(part)] == ["unit 0", "unit 1"]
    assert part.ledger.of(other) == []


def test_a_part_whose_units_keep_failing_ends_and_says_why(part) -> None:
    part.failing, said = True, []

    assert len(work(part, seconds=1000, said=said)) == 5
    assert part.measured == FAILURES_MAX
    assert all("the server died" in line for line in said)


def test_what_a_part_leaves_over_goes_to_the_next() -> None:
    now = [0.0]
    budget = Budget(seconds=100, parts=["pairs", "aa"], now=lambda: now[0])

    budget.begin("pairs")
    now[0] = 10.0
    assert budget.fits()
    now[0] = 55.0
    assert not budget.fits(), "pairs have 36 of 66 parts of 100 s"
    now[0] = 10.0
    budget.begin("aa")
    now[0] = 99.0
    assert budget.fits()
    budget.spent(2.0)
    assert not budget.fits(), "a unit as long as the last would end too late"


def test_the_knob_is_turned_in_proportion() -> None:
    # 40 rounds make a row take a tenth longer; 5 % less throughput is 1/19 longer.
    first = _tried(rounds=40, effect=-math.log(1.1), width=0.01)

    assert next_rounds([first]) == round(40 * 10 / 19)
    assert next_rounds([_tried(rounds=40, effect=0.001, width=0.01)]) == 320
    # A try that knows nothing changes nothing.
    assert next_rounds([first, _tried(rounds=21, effect=0.5, width=20.0)]) == 21


def test_the_knob_stays_where_it_was_near(rig) -> None:
    knob = Knob(rig=rig, ledger=Ledger(rig.folder / "results.jsonl"), each=EACH)
    with pytest.raises(StageError, match="not tried"):
        _ = knob.planted
    knob.ledger.add(knob, "try 1", _tried(rounds=32, effect=WANTED + NEAR / 2, width=0.01))

    assert knob.rounds == 32
    assert list(knob.units()) == []


def test_twins_differ_only_in_what_no_server_reads(tmp_path) -> None:
    fork = knob_fork(tmp_path / "fork")
    plain, twin, slow = (
        fork.commit(rounds=rounds, label=label)
        for rounds, label in ((0, "plain"), (0, "twin"), (9, "plain"))
    )
    repository = pygit2.Repository(tmp_path / "fork")

    def changed(one: str, other: str) -> list[str]:
        trees = [repository[commit].peel(pygit2.Tree) for commit in (one, other)]
        deltas = repository.diff(*trees).deltas
        return [delta.new_file.path for delta in deltas]

    assert changed(plain, twin) == ["config/label.txt"]
    assert changed(plain, slow) == ["copy/demo_copy.c"]
    assert knob_fork(tmp_path / "fork").commit(rounds=9, label="plain") == slow


def test_the_plan_of_the_rig_is_one(rig) -> None:
    sizes = Sizes(workloads=("scan",), starts=7, slices=2, seconds=3, gates={"scan": 0.03})

    plan = parse_plan(rig.plan_text(sizes))

    assert plan.gates.gate("scan") == 0.03
    assert plan.suite("commit").confirm_starts == 7
    assert plan.hosts["default"].placement == "shared-core"
    open_plan = parse_plan(replace(rig, mode="auto").plan_text(sizes))
    assert "placement" not in open_plan.hosts["default"].model_fields_set


def test_workloads_come_from_points_ranges_and_writes() -> None:
    assert len(set(FIVE)) == 5
    # Points, ranges and writes: the first word of each group's name.
    groups = {WORKLOADS[name].group.value.partition("-")[0] for name in FIVE}
    assert groups == {"point", "range", "write"}


def test_the_wall_time_of_a_job_is_all_accounted_for(rig) -> None:
    done = _done(rig, ours=[[100.0, 101.0], [99.0, 100.0], [100.0, 99.0]], wall_s=200.0)

    found = shares(done)

    # Three starts of 30 s, 20 s of each inside slices; the build took 61.5 s.
    assert sum(found.values()) == pytest.approx(200.0)
    assert found["measuring"] == 60.0
    assert found["data, servers, clients"] == 30.0
    assert found["the rest"] == pytest.approx(200.0 - 90.0 - 61.5)


def test_a_job_is_known_with_its_last_start(rig) -> None:
    done = _done(rig, ours=[[80.0, 80.1], [80.2, 80.0], [80.1, 80.3]], wall_s=200.0)

    seen = facts(done)["workloads"]["scan"]

    assert seen["verdict"] == "regression"
    assert (seen["starts"], seen["decided_s"]) == (3, 200.0)


def test_a_job_that_was_not_measured_is_no_pair(rig) -> None:
    story = a_run().that(Outcome.FAILED, stage="start", message="the server ended with 1")

    with pytest.raises(StageError, match="the server ended with 1"):
        facts(Done(document=story.build(), plan=rig.plan_text(EACH), wall_s=3.0))


def test_pairs_are_counted_right(rig) -> None:
    pairs = _pairs(rig)
    for key, kind, verdict in (
        ("a", EQUAL, "no-change"),
        ("b", EQUAL, "regression"),
        ("c", PLANTED, "regression"),
        ("d", PLANTED, "inconclusive"),
    ):
        seen = {"verdict": verdict, "starts": 2, "effect": -0.05, "low": -0.06, "high": -0.04}
        record = {"kind": kind, "workloads": {"scan": seen}, "outcome": "measured"}
        pairs.ledger.add(pairs, key, {**record, "wall_s": 60.0, "starts_s": [25.0, 50.0]})

    equal, planted = pairs.report().splitlines()[3:5]

    assert "| 1: 50.0 % [1.3, 98.7] " in equal
    assert "| 0: 0.0 % [0.0, 84.2] " in planted
    # 10 s around the starts and ten starts of 25 s, twice.
    assert equal.split("|")[-4:-1] == [" 2.0             ", " 8.7        ", " 23%   "]
    assert "-4.88 %" in pairs.report()


def test_an_unstable_pair_is_no_verdict(rig) -> None:
    pairs = _pairs(rig)
    record = {"kind": EQUAL, "workloads": {}, "outcome": "unstable"}
    pairs.ledger.add(pairs, "a", {**record, "wall_s": 60.0, "starts_s": [25.0]})

    assert "1 unstable" in pairs.report()
    assert pairs.line(pairs.ledger.of(pairs)[0]) == "unstable, 60 s"


def test_alternation_is_told_beside_the_long_run(rig) -> None:
    part = Alternation(
        rig=rig, ledger=Ledger(rig.folder / "results.jsonl"), each=EACH, repetitions=3
    )
    for number, ours, theirs in ((1, 0.01, 0.03), (2, 0.0, 0.0), (3, -0.01, -0.03)):
        way = {"wall_s": 50.0, "measured_s": 40.0}
        record = {
            OURS: {"effects": {"scan": ours}, **way},
            LONG: {"effects": {"scan": theirs}, **way},
        }
        part.ledger.add(part, f"repetition {number}", record)

    scan = part.report().splitlines()[3]

    assert "sd 1.000 %" in scan
    assert "sd 3.000 %" in scan
    assert "| 0.33 [" in scan
    assert part.seconds == 40, "ten starts x two slices x two seconds"


def test_nothing_measured_is_reported_as_nothing(rig) -> None:
    ledger = Ledger(rig.folder / "results.jsonl")
    knob = Knob(rig=rig, ledger=ledger, each=EACH)
    suite = WarmSuite(rig=rig, ledger=ledger, each=EACH, knob=knob, planted_gate=0.03)
    alone = Alternation(rig=rig, ledger=ledger, each=EACH, repetitions=3)

    assert "0 starts x 2 slices" in AgainstBare(rig=rig, ledger=ledger, each=EACH).report()
    assert "| A/A     | 0 " in _pairs(rig).report()
    assert "not measuring" in suite.report()
    assert "nan [nan, nan]" in alone.report()


def _tried(*, rounds: int, effect: float, width: float) -> dict[str, float]:
    return {
        "rounds": rounds,
        "effect": effect,
        "low": effect - width / 2,
        "high": effect + width / 2,
    }


def _pairs(rig: Rig) -> Pairs:
    ledger = Ledger(rig.folder / "results.jsonl")
    knob = Knob(rig=rig, ledger=ledger, each=EACH)
    return Pairs(rig=rig, ledger=ledger, each=EACH, knob=knob, number=2, planted_gate=0.03)


def _done(rig: Rig, *, ours: list[list[float]], wall_s: float) -> Done:
    baseline = [[100.0, 100.5], [100.2, 99.8], [100.1, 100.0]]
    story = a_run().against(sha("a")).with_samples("scan", baseline, side=SideName.BASELINE)
    return Done(
        document=story.with_samples("scan", ours).build(),
        plan=rig.plan_text(EACH),
        wall_s=wall_s,
    )
