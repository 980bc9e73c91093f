"""Noise for the weekly digest: which workloads cannot be gated, what would help, and sick hosts.

What verdicts could have shown, how series scatter and what hosts were like comes in; findings with
advice in words go out. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from detectors.noise import RUNS_ADVISED, estimate_noise
from detectors.verdict import log_loss
from reports.digest import HostHealth, NoisyWorkload
from results.document import Outcome
from service.flows.digest_trends import stretch_of
from workloads.catalog import find_workload
from workloads.errors import UnknownWorkloadError
from workloads.workload import MYSQL_FAMILY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from zoneinfo import ZoneInfo

    from service.core.digests import (
        Disturbance,
        FinishedRun,
        HostWeek,
        Sensitivity,
        SeriesHistory,
        Window,
    )

#: One noisy commit is no noisy workload.
VERDICTS_MIN: Final = 3
#: Runs whose scatter is looked at; as many as a verdict's baseline has at most.
NOISE_RUNS_MAX: Final = 30
#: More starts than this many times those of today are no advice: the suite would take as much
#: longer, and a paired job is the better question.
STARTS_FACTOR_MAX: Final = 5
#: Disturbed slices, or another guest's share of the machine, from which on the host is the matter.
#: A fifth makes a calibration worthless (docs/runner-host.md); a quarter of that is worth a word.
DISTURBED_MIN: Final = 0.05
STEAL_PERCENT_MIN: Final = 5.0
#: Suspicious readings of the canary beside the good ones, and at least two.
CANARY_SHARE_MIN: Final = 0.1


def noisy_workloads(
    sensitivities: Sequence[Sensitivity],
    histories: Sequence[SeriesHistory],
    *,
    disturbances: Mapping[str, Disturbance],
    settings: Mapping[str, str],
) -> tuple[NoisyWorkload, ...]:
    """Return the workloads whose losses at the gate are missed too often, the worst first.

    A smallest detectable effect is found four times out of five; where the median of a week's is
    beyond the gate, a loss as large as the gate is missed more often than that. Verdicts with a
    short baseline are left out: they are unsure because the series is young.
    """
    by_series: dict[str, list[Sensitivity]] = defaultdict(list)
    for one in sensitivities:
        if one.n_baseline >= RUNS_ADVISED:
            by_series[one.series].append(one)
    found = []
    for history in histories:
        key, seen = history.series, by_series[history.series.id]
        if len(seen) < VERDICTS_MIN:
            continue
        # The newest comes first: its gate is today's.
        detectable, gate = median(one.detectable_effect for one in seen), seen[0].gate
        if not math.isfinite(detectable) or detectable <= log_loss(gate):
            continue
        noisy = NoisyWorkload(
            workload=key.workload,
            setting=settings[key.id],
            detectable_effect=detectable,
            gate=gate,
            advice=tuple(
                _advice(
                    history,
                    excess=detectable / log_loss(gate),
                    disturbance=disturbances.get(key.workload),
                )
            ),
        )
        found.append(noisy)
    return tuple(sorted(found, key=lambda one: -one.detectable_effect / log_loss(one.gate)))


def host_health(
    hosts: Sequence[HostWeek], runs: Sequence[FinishedRun], *, window: Window, zone: ZoneInfo
) -> tuple[HostHealth, ...]:
    """Return the hosts that there is something to say about."""
    found = (
        HostHealth(
            name=host.name,
            host_class=host.host_class,
            troubles=tuple(_troubles(host, runs, window=window, zone=zone)),
        )
        for host in hosts
    )
    return tuple(one for one in found if one.troubles)


def _advice(
    history: SeriesHistory, *, excess: float, disturbance: Disturbance | None
) -> Iterator[str]:
    """Give what would help, the cheapest first.

    Args:
        history: The series.
        excess: How many times too large the detectable effect is, in logs.
        disturbance: What got in the way of this workload in the week.
    """
    if disturbance is not None and _disturbed(disturbance):
        yield "its slices are disturbed, so look for a quieter placement (forkwatch host calibrate)"
    if _leaves_purge(history.series.workload):
        yield "on InnoDB, hold the purge back (innodb_purge_batch_size = 1) if it is not yet"
    yield from _starts_advice(history, excess=excess)


def _starts_advice(history: SeriesHistory, *, excess: float) -> Iterator[str]:
    """Give whether more starts would do, and how many; nothing where the history cannot tell.

    The mean squares are the history's own, without the prior that verdicts lean on: what is asked
    here is where this workload's scatter comes from, not how large it may be at worst.
    """
    runs = [point.starts for point in stretch_of(history)[-NOISE_RUNS_MAX:]]
    squares = estimate_noise(runs).squares
    if squares.starts.df < 1 or squares.runs.df < 1:
        return
    starts = fmean(len(run) for run in runs)
    of_a_start = squares.starts.sum / squares.starts.df
    of_a_run = max(squares.runs.sum / squares.runs.df - of_a_start / starts, 0.0)
    variance = of_a_run + of_a_start / starts
    # The effect that shows goes with the root of the variance.
    room = variance / excess**2 - of_a_run
    needed = math.ceil(of_a_start / room) if room > 0 else math.inf
    if needed <= STARTS_FACTOR_MAX * starts:
        yield f"about {needed} starts a run instead of {starts:.0f}"
    elif variance > 0:
        yield (
            f"more starts alone will not do, {100 * of_a_run / variance:.0f} % of the variance "
            f"lies between runs: a quieter host, or a wider gate"
        )


def _leaves_purge(workload: str) -> bool:
    """Whether a workload leaves old row versions behind that InnoDB removes when it likes to."""
    try:
        found = find_workload(workload)
    except UnknownWorkloadError:
        # Stored under a name that this version no longer knows.
        return False
    changes = any(
        statement.startswith(("UPDATE", "DELETE", "REPLACE")) for statement in found.statements
    )
    return changes and bool(found.engines & MYSQL_FAMILY)


def _troubles(
    host: HostWeek, runs: Sequence[FinishedRun], *, window: Window, zone: ZoneInfo
) -> Iterator[str]:
    """Give what is wrong with a host, the worst first."""
    own = [run for run in runs if (run.host_class, run.host_name) == (host.host_class, host.name)]
    if runs and host.last_run_at < window.begins:
        yield f"no run since {host.last_run_at.astimezone(zone).date().isoformat()}"
    unstable = sum(run.outcome is Outcome.UNSTABLE for run in own)
    if unstable:
        yield f"{unstable} of {len(own)} runs unstable"
    if host.canary_suspicious >= max(2.0, CANARY_SHARE_MIN * host.canary_readings):
        yield f"canary off its level in {host.canary_suspicious} of {host.canary_readings} readings"
    seen = host.disturbance
    if seen.share >= DISTURBED_MIN:
        yield f"{100 * seen.share:.0f} % of its slices disturbed"
    if seen.steal_percent_max >= STEAL_PERCENT_MIN:
        yield f"other guests took up to {seen.steal_percent_max:.0f} % of the machine"
    changed = window.begins <= host.fingerprint_since < window.until
    if changed and host.fingerprint_since > host.first_seen_at:
        day = host.fingerprint_since.astimezone(zone).date().isoformat()
        yield f"processor, kernel or settings changed on {day}"


def _disturbed(seen: Disturbance) -> bool:
    return seen.share >= DISTURBED_MIN or seen.steal_percent_max >= STEAL_PERCENT_MIN
