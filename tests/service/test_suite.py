"""Many workloads of one commit: levels that share a promise, and the suite as a whole."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from detectors.verdict import Decision
from results.job import JobOrder
from results.slice import SideName
from service.core.model import CommitOutcome, JobState
from service.flows.baseline import PairInputs, SingleInputs
from service.flows.judge import conclude, judge_pair
from service.flows.levels import (
    CHANGE_POINT_CHANCE,
    SUITE_SUSPICION_ALPHA,
    SUSPICION_ALPHA,
    SUSPICION_BUDGET,
    confirm_alpha,
    suspicion_level,
)
from service.flows.suite import SUITE, read_finding, suite_confirm_level
from service.flows.verdict_steps import judge_own_run, judge_paired_run
from service.store import events, jobs
from tests.fakes.run_documents import a_run, sha
from tests.fakes.scripted_measurement import PLAN
from tests.fakes.stored_fork import a_fork, a_stored_run, git_commit
from tests.fakes.workload_inputs import AT, CANDIDATE, GATES, STARTS, a_set, inputs, judged, key
from workloads.plan import Gates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.core.model import VerdictRecord
    from service.store.database import Database


def suite_inputs(
    shift: float = 1.0, *, workloads: int = 12, runs: int = 12, seed: int = 0, common: float = 0.001
) -> list[SingleInputs]:
    """A candidate whose workloads are all at `shift`, after runs that share a little noise."""
    rng = random.Random(seed)
    shared = [rng.lognormvariate(0, common) for _ in range(runs + 1)]
    items = []
    for number in range(workloads):
        sets = [
            a_set(100.0 * shared[n], seed=rng.randrange(10**9), run=f"run-{n}", sha=sha(f"{n:x}"))
            for n in range(runs)
        ]
        new = a_set(100.0 * shift * shared[-1], seed=rng.randrange(10**9), run="new")
        items.append(
            SingleInputs(series=key(f"workload-{number}"), history=tuple(sets), candidate=new)
        )
    return items


def suite_pairs(
    singles: Sequence[VerdictRecord], shifts: Sequence[float], *, seed: int = 0
) -> list[PairInputs]:
    rng = random.Random(seed)
    return [
        PairInputs(
            series=single.series,
            baseline=a_set(100.0, seed=rng.randrange(10**9), side=SideName.BASELINE),
            candidate=a_set(100.0 * shift, seed=rng.randrange(10**9)),
        )
        for single, shift in zip(singles, shifts, strict=True)
    ]


def confirmed(
    own: Sequence[SingleInputs], shifts: Sequence[float], *, gates: Gates = GATES
) -> tuple[list[VerdictRecord], list[VerdictRecord]]:
    singles = judged(*own, gates=gates)
    names = {single.series.workload: single for single in singles}
    pairs = suite_pairs(singles, shifts)
    found = judge_pair(
        pairs, names, gates, starts_max=STARTS, run="pair", sha=CANDIDATE, at=AT, own=own
    )
    return singles, found


def test_many_workloads_share_a_budget_of_suspicions() -> None:
    """Up to five workloads have 0.02 each; 42 have 0.1 / 42 each, and a confirm at 0.008."""
    assert suspicion_level(5) == SUSPICION_ALPHA
    assert suspicion_level(42) == pytest.approx(SUSPICION_BUDGET / 42)

    own = suite_inputs(workloads=42)
    own[7] = inputs(85.0, workload="workload-7")
    singles = judged(*own)

    assert [single.series.workload for single in singles if single.suspicious] == ["workload-7"]
    assert confirm_alpha(singles[7], GATES) == pytest.approx(
        0.001 / (SUSPICION_BUDGET + 42 * CHANGE_POINT_CHANCE)
    )
    assert confirm_alpha(singles[8], GATES) == pytest.approx(0.001 / 42)
    assert singles[7].parameters["adjusted_p_value"] == pytest.approx(42 * singles[7].p_value)


def test_a_shift_of_the_whole_suite_is_suspicious_though_no_workload_is() -> None:
    singles = judged(*suite_inputs(0.988))
    finding = read_finding(singles)

    assert not any(single.suspicious for single in singles)
    assert finding is not None
    assert finding.suspicious
    assert finding.verdict.change.effect == pytest.approx(-0.012, abs=0.003)
    assert finding.verdict.change.p_value <= SUITE_SUSPICION_ALPHA
    calm = read_finding(judged(*suite_inputs(1.0)))
    assert calm is not None
    assert not calm.suspicious
    small = read_finding(judged(*suite_inputs(0.9975, seed=3, common=1e-6)))
    assert small is not None
    assert not small.suspicious


def test_a_confirmed_shift_of_the_suite_is_said_and_opens_no_alert() -> None:
    """Each workload is unchanged within its gate; together they are 1.2 % slower."""
    singles, found = confirmed(suite_inputs(0.988), [0.988] * 12)

    assert {record.decision for record in found} == {Decision.NO_CHANGE}
    said = conclude(singles, found, seeded=[], unusable=[], sha=CANDIDATE)
    assert said.outcome is CommitOutcome.NO_CHANGE
    assert said.reason.startswith(f"{SUITE} is 1.")
    assert "% slower (95 %: " in said.reason
    assert "12 of 12 workloads fell, 0 rose" in said.reason
    finding = read_finding(singles)
    assert finding is not None
    assert suite_confirm_level(finding, GATES) == pytest.approx(0.001 / 2 / SUITE_SUSPICION_ALPHA)


def test_a_shift_that_the_pair_does_not_show_is_not_said() -> None:
    singles, found = confirmed(suite_inputs(0.988), [1.0] * 12)

    said = conclude(singles, found, seeded=[], unusable=[], sha=CANDIDATE)
    assert SUITE not in said.reason
    lost = conclude(singles, [], seeded=[], unusable=[], sha=CANDIDATE, trouble="no pair")
    assert lost.outcome is CommitOutcome.INCONCLUSIVE


def test_a_pair_that_shows_the_opposite_shift_of_the_suite_is_believed_and_both_are_told() -> None:
    singles, found = confirmed(suite_inputs(0.988), [1.012] * 12)

    said = conclude(singles, found, seeded=[], unusable=[], sha=CANDIDATE)
    assert said.outcome is CommitOutcome.NO_CHANGE
    assert said.reason.startswith(f"{SUITE} is 1.")
    assert "% faster (95 %: " in said.reason
    assert f"; {SUITE}: its own run was 1." in said.reason
    assert "% below the baseline, and side by side with its baseline it is 1." in said.reason


def test_a_suite_is_not_spoken_of_with_few_workloads_or_runs() -> None:
    assert read_finding(judged(*suite_inputs(0.9, workloads=4))) is None
    assert read_finding(judged(*suite_inputs(0.98, runs=2))) is None
    # One workload that a short baseline made suspicious has spent the promise.
    own = [*suite_inputs(0.988, workloads=5), inputs(94.2, runs=1, workload="young")]
    assert read_finding(judged(*own)) is None


def test_once_a_commit_has_changed_the_others_are_named_at_a_rate_of_false_finds() -> None:
    """One clear suspicion proves the commit; its calm neighbours need no share of the promise."""
    gates = Gates(false_alarm_rate=1e-4)
    own = suite_inputs(runs=12)
    own[0] = inputs(88.0, runs=12, workload="workload-0")
    alone, found_alone = confirmed(own, [1.0, *[0.92] * 5, *[1.0] * 6], gates=gates)
    singles, found = confirmed(own, [0.88, *[0.92] * 5, *[1.0] * 6], gates=gates)

    assert [single.suspicious for single in singles] == [True, *[False] * 11]
    assert found[0].alpha >= found[0].parameters["own_alpha"]
    assert all(record.p_value > record.parameters["own_alpha"] for record in found[2:4])
    assert {record.decision for record in found[:6]} == {Decision.REGRESSION}
    assert {record.decision for record in found[6:]} == {Decision.NO_CHANGE}
    said = conclude(singles, found, seeded=[], unusable=[], sha=CANDIDATE)
    assert "at most 0.0001 of unchanged commits alarm, over 12 workloads" in said.reason
    assert [single.suspicious for single in alone] == [True, *[False] * 11]
    assert found_alone[0].decision is Decision.NO_CHANGE


def test_findings_on_a_suite_can_be_kept_as_json() -> None:
    singles = judged(*suite_inputs(0.988))
    finding = read_finding(singles)
    kept = json.loads(json.dumps(singles[0].parameters))

    assert read_finding([replace(singles[0], parameters=kept)]) == finding


@pytest.mark.parametrize("common", [0.0, 0.005])
def test_null_commits_cost_a_pair_no_more_often_than_the_budget(common: float) -> None:
    """40 commits of 20 workloads that share noise: the budget plus three standard errors."""
    total, suspected = 40, 0
    for seed in range(total):
        singles = judged(*suite_inputs(workloads=20, seed=seed, common=common, runs=6))
        suite = read_finding(singles)
        suspected += any(single.suspicious for single in singles) or (
            suite is not None and suite.suspicious
        )

    budget = SUSPICION_BUDGET + SUITE_SUSPICION_ALPHA
    assert suspected <= total * budget + 3 * math.sqrt(total * budget * (1 - budget))


WORKLOADS = ("scan", "point-query", "update-index", "insert", "delete", "range")


def measured(commit: int, level: float, *, sides: Sequence[SideName] = (SideName.CANDIDATE,)):
    """A run of six workloads; the baseline's side of a pair is at 100."""
    rng = random.Random(commit + 100 * len(sides))
    story = a_run().called(f"run-{commit}-{len(sides)}").on(f"{commit:040x}")
    if len(sides) > 1:
        story = story.against(f"{commit - 1:040x}")
    for workload in WORKLOADS:
        for side in sides:
            at = level if side is SideName.CANDIDATE else 100.0
            rows = [[at * rng.lognormvariate(0, 0.002) for _ in range(2)] for _ in range(4)]
            story = story.with_samples(workload, rows, side=side)
    return story


def test_a_push_that_is_slower_everywhere_by_little_is_paired_and_told(database: Database) -> None:
    """From the stored run to the reason of the commit: 1.5 % on six workloads with a gate of 5."""
    numbers = range(1, 10)
    order = JobOrder(
        job="single",
        run="run-9-1",
        repository=Path("/nowhere"),
        plan=PLAN,
        branch="main",
        suite="commit",
        host_class="small",
        candidate=f"{9:040x}",
    )
    with database.writing() as session:
        chain = [
            git_commit(f"{n:040x}", parent=f"{n - 1:040x}" if n > 1 else None) for n in numbers
        ]
        a_fork(session, *chain)
        for number in numbers:
            document = a_stored_run(session, measured(number, 98.5 if number == 9 else 100.0))
        [stored] = jobs.of_commit(session, "demo", f"{9:040x}")
        own = replace(stored, order=order.model_dump_json())
        confirm_id, conclusion = judge_own_run(session, own, document, at=AT)

        assert conclusion is None
        confirm = jobs.find(session, confirm_id)
        assert confirm.baseline_sha == f"{8:040x}"
        said = [event.message for event in events.of_commit(session, "demo", f"{9:040x}")]
        assert any(f"suspicious, {SUITE} looks 1." in message for message in said)

        sides = (SideName.BASELINE, SideName.CANDIDATE)
        a_stored_run(session, measured(9, 98.5, sides=sides).called(confirm.run, job=confirm.id))
        done = replace(confirm, state=JobState.STORED)
        told = judge_paired_run(session, done, at=AT)

    assert told.alert is None
    assert told.conclusion.outcome is CommitOutcome.NO_CHANGE
    assert told.conclusion.reason.startswith(f"{SUITE} is 1.")
    assert "6 of 6 workloads fell, 0 rose" in told.conclusion.reason
