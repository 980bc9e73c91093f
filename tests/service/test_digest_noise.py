"""Noisy workloads, advice and sick hosts, from facts made here; no store."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from results.document import Outcome
from results.series import SeriesKey
from service.core.digests import (
    Disturbance,
    FinishedRun,
    HistoryPoint,
    HostWeek,
    Sensitivity,
    SeriesHistory,
    Window,
)
from service.core.model import JobKind
from service.core.weeks import zone_of
from service.flows.digest_noise import host_health, noisy_workloads
from tests.fakes.memory_fork import sha_of
from tests.fakes.stored_weeks import DAY, HOUR, MONDAY, WEEK

CALM = Disturbance(slices=100, disturbed=1, steal_percent_max=0.5)
WINDOW = Window(fork="demo", begins=MONDAY, until=MONDAY + WEEK)


def history(
    workload: str = "scan", *, run_sd: float, start_sd: float, starts: int = 4
) -> SeriesHistory:
    """Return twenty runs that scatter so."""
    rng = np.random.default_rng(11)
    key = SeriesKey(
        fork="demo",
        branch="main",
        host_class="small",
        variant="rel",
        config="default",
        workload=workload,
        metric="throughput_ops_s",
        dataset="small:dddd",
        placement="shared-core",
    )
    points = []
    for number in range(20):
        level = rng.normal(0, run_sd)
        rows = [
            tuple(100 * np.exp(level + start + rng.normal(0, 0.001, 2)))
            for start in rng.normal(0, start_sd, starts)
        ]
        points.append(
            HistoryPoint(sha=sha_of(number), stored_at=MONDAY + number * HOUR, starts=tuple(rows))
        )
    return SeriesHistory(series=key, points=tuple(points), accepted=frozenset())


def seen(
    of: SeriesHistory, loss: float, *, gate: float = 0.05, runs: int = 20, verdicts: int = 5
) -> list[Sensitivity]:
    """Return verdicts that would have shown a loss as large as this."""
    one = Sensitivity(
        series=of.series.id, detectable_effect=-math.log(1 - loss), gate=gate, n_baseline=runs
    )
    return [one] * verdicts


def advice(of: SeriesHistory, loss: float, disturbance: Disturbance = CALM) -> str:
    (found,) = noisy_workloads(
        seen(of, loss),
        [of],
        disturbances={of.series.workload: disturbance},
        settings={of.series.id: ""},
    )
    return "; ".join(found.advice)


QUIET_RUNS = history(run_sd=0.002, start_sd=0.03)
RESTLESS_RUNS = history(run_sd=0.03, start_sd=0.003)


@pytest.mark.parametrize(
    ("loss", "runs", "verdicts", "noisy"),
    [
        (0.08, 20, 5, True),
        # What matters can just be shown.
        (0.049, 20, 5, False),
        # The series is young: its verdicts are unsure for that.
        (0.08, 4, 5, False),
        # One or two commits may have had bad luck.
        (0.08, 20, 2, False),
    ],
)
def test_a_workload_is_noisy_when_losses_at_its_gate_are_missed(
    loss: float, runs: int, verdicts: int, *, noisy: bool
) -> None:
    found = noisy_workloads(
        seen(QUIET_RUNS, loss, runs=runs, verdicts=verdicts),
        [QUIET_RUNS],
        disturbances={},
        settings={QUIET_RUNS.series.id: ""},
    )

    assert bool(found) == noisy


def test_what_could_show_nothing_at_all_has_no_size_to_tell() -> None:
    endless = [replace(seen(QUIET_RUNS, 0.1)[0], detectable_effect=math.inf)] * 5

    assert (
        noisy_workloads(endless, [QUIET_RUNS], disturbances={}, settings={QUIET_RUNS.series.id: ""})
        == ()
    )


def test_starts_that_scatter_need_more_starts() -> None:
    said = advice(QUIET_RUNS, 0.07)

    assert "starts a run instead of 4" in said
    assert 4 < int(said.split("about ")[1].split(" ")[0]) <= 20


def test_runs_that_scatter_need_something_else() -> None:
    said = advice(RESTLESS_RUNS, 0.09)

    assert "more starts alone will not do" in said
    assert "of the variance lies between runs" in said


def test_writers_may_hold_the_purge() -> None:
    assert "innodb_purge_batch_size = 1" in advice(
        history("update-index", run_sd=0.002, start_sd=0.03), 0.07
    )
    assert "purge" not in advice(QUIET_RUNS, 0.07)
    assert "purge" not in advice(history("insert", run_sd=0.002, start_sd=0.03), 0.07)
    assert "purge" not in advice(history("nobody-knows", run_sd=0.002, start_sd=0.03), 0.07)


def test_a_disturbed_workload_wants_another_placement() -> None:
    disturbed = Disturbance(slices=100, disturbed=9, steal_percent_max=0.0)

    assert "quieter placement" in advice(QUIET_RUNS, 0.07, disturbed)
    assert "quieter placement" not in advice(QUIET_RUNS, 0.07)


HOST = HostWeek(
    host_class="small",
    name="bench-1",
    last_run_at=MONDAY + 3 * DAY,
    fingerprint_since=MONDAY - 10 * WEEK,
    first_seen_at=MONDAY - 10 * WEEK,
    disturbance=CALM,
    canary_readings=20,
    canary_suspicious=1,
)


def run(outcome: Outcome = Outcome.MEASURED, host: str = "bench-1") -> FinishedRun:
    return FinishedRun(
        id="run-1",
        sha=sha_of(1),
        kind=JobKind.SINGLE,
        outcome=outcome,
        host_class="small",
        host_name=host,
        duration=timedelta(minutes=4),
    )


def troubles(host: HostWeek, *runs: FinishedRun) -> tuple[str, ...]:
    found = host_health([host], runs, window=WINDOW, zone=zone_of("UTC"))
    return found[0].troubles if found else ()


def test_a_host_that_is_well_is_not_mentioned() -> None:
    assert troubles(HOST, run(), run()) == ()


def test_a_host_is_told_by_what_it_did() -> None:
    sick = replace(
        HOST,
        fingerprint_since=MONDAY + DAY,
        canary_suspicious=4,
        disturbance=Disturbance(slices=100, disturbed=7, steal_percent_max=12.0),
    )

    assert troubles(sick, run(), run(Outcome.UNSTABLE), run(Outcome.UNSTABLE, "bench-2")) == (
        "1 of 2 runs unstable",
        "canary off its level in 4 of 20 readings",
        "7 % of its slices disturbed",
        "other guests took up to 12 % of the machine",
        "processor, kernel or settings changed on 2026-11-03",
    )


def test_a_host_that_is_silent_while_others_work_is_told() -> None:
    silent = replace(HOST, last_run_at=MONDAY - 3 * DAY)

    assert troubles(silent, run(host="bench-2")) == ("no run since 2026-10-30",)
    assert troubles(silent) == ()


def test_a_new_host_has_not_changed() -> None:
    new = replace(HOST, fingerprint_since=MONDAY + DAY, first_seen_at=MONDAY + DAY)

    assert troubles(new, run()) == ()
