from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from detectors.verdict import Decision
from results.slice import SideName
from service.core.model import CommitOutcome, JobKind
from service.flows.baseline import (
    BASELINE_RUNS_MAX,
    PairInputs,
    SingleInputs,
    gather_pair,
    gather_single,
    newest_measured,
)
from service.flows.judge import conclude, final_verdicts, judge_pair, judge_single
from service.flows.levels import CONFIRM_ALPHA_MAX, SUSPICION_ALPHA, confirm_alpha
from service.store import samples, verdicts
from tests.fakes.run_documents import a_run
from tests.fakes.stored_fork import a_fork, a_stored_run, git_commit
from tests.fakes.verdicts import a_verdict
from tests.fakes.workload_inputs import AT, CANDIDATE, GATES, STARTS, a_set, inputs, judged, key
from workloads.plan import Gates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.core.model import VerdictRecord
    from service.store.database import Database


def paired(
    suspicion: VerdictRecord, level: float, *, gates: Gates = GATES, seed: int = 7
) -> VerdictRecord:
    """The verdict of a paired run whose candidate is at `level` of a baseline at 100."""
    item = PairInputs(
        series=suspicion.series,
        baseline=a_set(100.0, seed=seed, side=SideName.BASELINE),
        candidate=a_set(level, seed=seed),
    )
    names = {suspicion.series.workload: suspicion}
    [found] = judge_pair([item], names, gates, starts_max=STARTS, run="pair", sha=CANDIDATE, at=AT)
    return found


def test_a_first_run_seeds_the_baseline_and_has_no_verdict() -> None:
    first = inputs(100.0, runs=0)

    assert judged(first) == []
    said = conclude([], [], seeded=["scan"], unusable=[], sha=CANDIDATE)
    assert said.outcome is CommitOutcome.BASELINE
    assert "first run of scan" in said.reason


def test_a_calm_commit_is_shown_unchanged_without_a_suspicion() -> None:
    [found] = judged(inputs(100.2))

    assert found.decision is Decision.NO_CHANGE
    assert not found.suspicious
    assert (found.stage, found.sha, found.direction) == (JobKind.SINGLE, CANDIDATE, 1)
    assert found.baseline_inputs == tuple((f"run-{n}", "candidate") for n in range(6))


@pytest.mark.parametrize("level", [90.0, 110.0])
def test_a_large_step_either_way_is_suspicious(level: float) -> None:
    [found] = judged(inputs(level))

    assert found.suspicious
    assert found.p_value <= SUSPICION_ALPHA


def test_a_significant_step_below_half_the_gate_is_not_worth_machine_time() -> None:
    gates = Gates(default=0.4)
    [small] = judged(inputs(90.0), gates=gates)
    [large] = judged(inputs(75.0), gates=gates)

    assert small.p_value <= SUSPICION_ALPHA
    assert not small.suspicious
    assert large.suspicious


def test_a_short_baseline_is_suspicious_of_any_effect_that_reaches_the_gate() -> None:
    """One run says little about noise; the confirm then carries the whole promise alone."""
    short = inputs(94.2, runs=1)
    [found] = judged(short)
    [calm] = judged(inputs(97.0, runs=1))

    assert found.suspicious
    assert found.p_value > SUSPICION_ALPHA
    assert found.parameters["suspicion_chance"] == 1.0
    assert confirm_alpha(found, GATES) == GATES.false_alarm_rate
    assert not calm.suspicious


def test_the_levels_of_both_stages_multiply_to_the_promise_per_commit() -> None:
    """0.0205 x three workloads x level = 0.001, so the level is about one sixtieth."""
    three = judged(*(inputs(90.0, workload=name) for name in ("scan", "point-query", "update")))
    [alone] = judged(inputs(90.0))

    assert confirm_alpha(three[0], GATES) == pytest.approx(0.001 / (0.0205 * 3))
    assert confirm_alpha(three[0], GATES, effect=three[0].effect / 9) == pytest.approx(
        0.001 / (0.0205 * 3)
    )
    # Against the suspicion, however rare suspicions are.
    assert confirm_alpha(three[0], GATES, effect=-three[0].effect / 9) == pytest.approx(0.001 / 3)
    assert confirm_alpha(alone, Gates(false_alarm_rate=0.01)) == CONFIRM_ALPHA_MAX
    assert confirm_alpha(alone, Gates(false_alarm_rate=1e-6)) == pytest.approx(1e-6 / 0.0205)


def test_a_workload_that_was_not_suspicious_is_judged_at_its_share_of_the_promise() -> None:
    [calm] = judged(inputs(100.0))

    assert not calm.suspicious
    assert confirm_alpha(calm, GATES) == GATES.false_alarm_rate
    assert paired(calm, 100.0).decision is Decision.NO_CHANGE
    # A loss that the commit's own run did not show is still one when the pair proves it.
    assert paired(calm, 90.0).decision is Decision.REGRESSION


def test_a_confirm_regresses_clears_or_improves_by_its_own_fresh_starts() -> None:
    [slower] = judged(inputs(90.0))
    [faster] = judged(inputs(110.0))

    assert paired(slower, 90.0).decision is Decision.REGRESSION
    assert paired(slower, 100.0).decision is Decision.NO_CHANGE
    assert paired(faster, 110.0).decision is Decision.IMPROVEMENT
    assert paired(slower, 90.0).stage is JobKind.CONFIRM
    assert paired(slower, 90.0).parameters["single_run"] == "new"


def test_the_pair_decides_whatever_way_the_own_run_went_and_both_are_told() -> None:
    """A guest's processor was fast while the commit was measured alone; the pair shares it."""
    [faster] = judged(inputs(139.0))
    found = paired(faster, 77.4)

    assert faster.suspicious
    assert faster.effect > 0
    assert found.decision is Decision.REGRESSION
    words = found.parameters["at_odds"]
    own, pair = math.expm1(faster.effect), -math.expm1(found.effect)
    assert words == (
        f"its own run was {own:.1%} above the baseline, and side by side with cccccccc "
        f"it is {pair:.1%} slower"
    ).replace("%", " %")
    assert found.reason.startswith(f"{words}: -")
    said = conclude([faster], [found], seeded=[], unusable=[], sha=CANDIDATE)
    assert said.outcome is CommitOutcome.REGRESSION
    assert f"; scan: {words}; at most 0.001 of unchanged commits alarm" in said.reason

    [slower] = judged(inputs(90.0))
    up = paired(slower, 110.0)
    assert up.decision is Decision.IMPROVEMENT
    assert "below the baseline, and side by side" in up.reason
    assert up.reason.count("faster") == 1


def test_where_run_and_pair_agree_or_nothing_was_suspected_nothing_is_said_of_both() -> None:
    [slower], [calm] = judged(inputs(90.0)), judged(inputs(100.5))

    assert paired(slower, 90.0).parameters["at_odds"] == ""
    # A pair that shows no change clears the commit; there are no two directions to tell of.
    assert paired(slower, 100.3).parameters["at_odds"] == ""
    assert paired(calm, 90.0).parameters["at_odds"] == ""


def test_a_suspicion_is_never_the_last_word() -> None:
    """Not confirmed by a pair, even a clear single run is inconclusive."""
    singles = judged(inputs(80.0), inputs(100.0, workload="point-query"))
    assert singles[0].decision is Decision.REGRESSION

    final = final_verdicts(singles, [])
    assert final["scan"].decision is Decision.INCONCLUSIVE
    assert final["point-query"].decision is Decision.NO_CHANGE
    said = conclude(singles, [], seeded=[], unusable=[], sha=CANDIDATE, trouble="the pair was lost")
    assert said.outcome is CommitOutcome.INCONCLUSIVE
    assert "the pair was lost" in said.reason


def test_the_loudest_workload_names_the_outcome() -> None:
    singles = judged(inputs(90.0), inputs(110.0, workload="update"))
    confirms = [paired(singles[0], 90.0), paired(singles[1], 110.0)]

    def outcome(found: Sequence[VerdictRecord], unusable: Sequence[str] = ()) -> CommitOutcome:
        return conclude(singles, found, seeded=[], unusable=unusable, sha=CANDIDATE).outcome

    cleared = [paired(record, 100.0) for record in singles]
    assert outcome(confirms) is CommitOutcome.REGRESSION
    assert outcome([cleared[0], confirms[1]]) is CommitOutcome.IMPROVEMENT
    assert outcome(cleared) is CommitOutcome.NO_CHANGE
    assert outcome(cleared, ["point-query"]) is CommitOutcome.INCONCLUSIVE


def test_null_commits_are_seldom_suspected() -> None:
    """300 commits without a change: at most the level plus three standard errors."""
    total, suspected = 300, 0
    for seed in range(total):
        rng = random.Random(seed)
        sets = [a_set(100.0, seed=rng.randrange(10**9), run=f"r{n}") for n in range(9)]
        item = SingleInputs(series=key(), history=tuple(sets[:8]), candidate=sets[8])
        suspected += judged(item)[0].suspicious

    assert suspected <= total * SUSPICION_ALPHA + 3 * math.sqrt(total * SUSPICION_ALPHA)


def chain(count: int) -> list[str]:
    return [f"{number:040x}" for number in range(1, count + 1)]


def store_chain(database: Database, shas: Sequence[str]) -> None:
    """Measured commits in a row, run-0 the oldest."""
    with database.writing() as session:
        a_fork(
            session,
            *(
                git_commit(commit, parent=shas[index - 1] if index else None)
                for index, commit in enumerate(shas)
            ),
        )
        for index, commit in enumerate(shas):
            a_stored_run(
                session,
                a_run()
                .called(f"run-{index}")
                .on(commit)
                .with_samples("scan", [[100.0 + index, 101.0]]),
            )


def test_the_baseline_is_the_runs_of_first_parents_oldest_first(database: Database) -> None:
    shas = chain(4)
    store_chain(database, shas)
    document = a_run().called("run-3").on(shas[3]).with_samples("scan", [[1.0]]).build()

    with database.reading() as session:
        [found] = gather_single(session, document, fork="demo", sha=shas[3])
        assert newest_measured(session, "demo", shas[3]) == shas[2]
        assert newest_measured(session, "demo", shas[0]) is None
    assert [past.run for past in found.baseline] == ["run-0", "run-1", "run-2"]
    assert found.candidate.run == "run-3"


def test_an_accepted_change_restarts_the_stretch_with_its_confirm_samples(
    database: Database,
) -> None:
    """The single run of a change was picked for being extreme, so it is left out."""
    shas = chain(5)
    store_chain(database, shas)
    pair = (
        a_run()
        .called("pair-2")
        .on(shas[2])
        .against(shas[1])
        .with_samples("scan", [[90.0]])
        .with_samples("scan", [[100.0]], side=SideName.BASELINE)
    )
    slower = a_verdict(-9.1, low=-10.0, high=-8.2)
    document = a_run().called("run-4").on(shas[4]).with_samples("scan", [[1.0]]).build()
    with database.writing() as session:
        paired_document = a_stored_run(session, pair, {"scan": slower})

    with database.reading() as session:
        [found] = gather_single(session, document, fork="demo", sha=shas[4])
        [sides] = gather_pair(session, paired_document)
    assert [(past.run, past.starts) for past in found.baseline] == [
        ("pair-2", ((90.0,),)),
        ("run-3", ((103.0, 101.0),)),
    ]
    assert (sides.baseline.sha, sides.candidate.sha) == (shas[1], shas[2])


def test_a_cleared_commit_is_represented_by_its_paired_run(database: Database) -> None:
    """Its own run was a spike: left in, it would make the next verdicts inconclusive."""
    shas = chain(4)
    store_chain(database, shas)
    pair = (
        a_run()
        .called("pair-2")
        .on(shas[2])
        .against(shas[1])
        .with_samples("scan", [[100.0]])
        .with_samples("scan", [[100.0]], side=SideName.BASELINE)
    )
    same = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
    document = a_run().called("run-3").on(shas[3]).with_samples("scan", [[1.0]]).build()
    with database.writing() as session:
        a_stored_run(session, pair, {"scan": same})

    with database.reading() as session:
        [found] = gather_single(session, document, fork="demo", sha=shas[3])
    assert [past.run for past in found.baseline] == ["run-0", "run-1", "pair-2"]


def test_the_newest_runs_of_a_long_stretch_are_read(database: Database) -> None:
    shas = chain(BASELINE_RUNS_MAX + 5)
    store_chain(database, shas)
    last = len(shas) - 1
    document = a_run().called(f"run-{last}").on(shas[-1]).with_samples("scan", [[1.0]]).build()

    with database.reading() as session:
        [found] = gather_single(session, document, fork="demo", sha=shas[-1])
    assert len(found.baseline) == BASELINE_RUNS_MAX
    assert found.baseline[-1].run == f"run-{last - 1}"


def test_a_stored_verdict_can_be_replayed_from_what_it_names(database: Database) -> None:
    shas = chain(6)
    store_chain(database, shas)
    document = a_run().called("run-5").on(shas[5]).with_samples("scan", [[1.0]]).build()
    with database.writing() as session:
        found = gather_single(session, document, fork="demo", sha=shas[5])
        verdicts.store_once(session, judge_single(found, GATES, run="run-5", sha=shas[5], at=AT))

    with database.reading() as session:
        [stored] = verdicts.of_run(session, "run-5")
        named = [*stored.baseline_inputs, ("run-5", SideName.CANDIDATE.value)]
        sets = samples.of_runs(session, stored.series.id, [run for run, _ in named])
    *baseline, candidate = (sets[run, SideName(side)] for run, side in named)
    item = SingleInputs(series=stored.series, history=tuple(baseline), candidate=candidate)
    gates = Gates(default=stored.gate, false_alarm_rate=stored.alpha)
    [again] = judge_single([item], gates, run="run-5", sha=shas[5], at=stored.created_at)
    assert again == stored
    assert replace(again, run="other") != stored


def test_a_slow_accumulation_is_suspected_and_paired_with_the_commit_before_it() -> None:
    """Runs 4 % down, none of them odd beside a baseline of that noise."""
    rng = random.Random(3)
    noise = [rng.lognormvariate(0, 0.02) for _ in range(75)]
    levels = [100.0 * (luck if n < 60 else luck * 0.96) for n, luck in enumerate(noise)]
    found: list[tuple[int, str]] = []
    for newest in range(55, 75):
        runs = [
            a_set(level, seed=n, run=f"r{n}", sha=f"{n:040x}")
            for n, level in enumerate(levels[: newest + 1])
        ]
        item = SingleInputs(series=key("scan"), history=tuple(runs[:-1]), candidate=runs[-1])
        [record] = judged(item)
        if record.parameters["change_before"]:
            found.append((newest, record.parameters["change_before"]))

    assert len(found) == 1, "said once, and not again with every commit"
    newest, before = found[0]
    assert newest > 60
    assert abs(int(before, 16) - 59) <= 2
