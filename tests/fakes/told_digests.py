"""Digests of made-up weeks, told in percent: `a_loud_week()` has something in every section."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

from detectors.change import Interval
from reports.digest import (
    AlertItem,
    Digest,
    Drifted,
    EndedBisect,
    HostHealth,
    MachineTime,
    MovedCommit,
    NoisyWorkload,
    Precision,
    Reference,
    Standing,
)

SLOW, FAST, FIRST = "5" * 40, "6" * 40, "1" * 40


def a_standing(workload: str, percent: float, *, low: float, high: float) -> Standing:
    """Return a change of so many percent with its interval."""
    return Standing(
        workload=workload,
        effect=_log(percent),
        interval=Interval(low=_log(low), high=_log(high), confidence=0.95),
    )


def a_quiet_week() -> Digest:
    """Return a week in which nothing happened."""
    return Digest(
        fork="demo",
        branch="main",
        week="2026-W47",
        first_day=date(2026, 11, 16),
        last_day=date(2026, 11, 22),
        zone="UTC",
        commits_seen=12,
        machine_time=MachineTime(single_seconds=11_160, outcomes={"no-change": 12}),
    )


def a_loud_week() -> Digest:
    """Return a week with something in every section."""
    scan = a_standing("scan", -9.1, low=-10.0, high=-8.2)
    return replace(
        a_quiet_week(),
        slower=(
            MovedCommit(
                sha=SLOW,
                subject="Check the record format in row_search_mvcc",
                author="Ada",
                sentence="scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555",
                moves=(scan,),
            ),
        ),
        faster=(
            MovedCommit(
                sha=FAST,
                subject="Read rows in batches",
                author="Grace",
                sentence="insert is 4.0 % faster (95 %: 3.0 to 5.0) at 66666666",
                moves=(a_standing("insert", 4.0, low=3.0, high=5.0),),
            ),
        ),
        reference=Reference(
            sha=FIRST, subject="Import 10.11.19", chosen=True, standings=(scan,), same=6, absent=0
        ),
        drifted=(
            Drifted(
                workload="point-query",
                effect=_log(-5.4),
                interval=Interval(low=_log(-6.6), high=_log(-4.3), confidence=0.95),
                commits=44,
                since=FIRST,
            ),
        ),
        began_anew=("scan: begins anew at 55555555, the host class is another one.",),
        open_alerts=(_an_alert("alert-1"), _an_alert("alert-2", owner="github:ada", overdue=True)),
        bisects=(
            EndedBisect(
                id="bisect-1",
                workload="scan",
                good=FIRST,
                bad=SLOW,
                commits=16,
                said='scan is 9.1 % slower (95 %: 8.2 to 10.0) since 55555555 "Check" (97 %).',
                state="over",
                alert="alert-1",
            ),
        ),
        fixed=(_an_alert("alert-0"),),
        precision=Precision(true=7, false=1),
        noisy=(
            NoisyWorkload(
                workload="update-index", detectable_effect=-_log(-8.1), gate=0.05, advice=("wait",)
            ),
        ),
        hosts=(HostHealth(name="bench-1", host_class="small", troubles=("2 runs unstable",)),),
        machine_time=_machine_time(),
    )


def _machine_time() -> MachineTime:
    return MachineTime(
        single_seconds=7_200,
        confirm_seconds=3_600,
        pull_seconds=5_400,
        bisect_seconds=2_700,
        outcomes={"no-change": 10, "regression": 1, "improvement": 1},
        confirms=2,
        pulls=3,
        pulls_slower=1,
        culprits=1,
    )


def _an_alert(name: str, *, owner: str = "", overdue: bool = False) -> AlertItem:
    return AlertItem(
        id=name,
        sha=SLOW,
        subject="Check the record format in row_search_mvcc",
        author="Ada",
        sentence="scan is 9.1 % slower (95 %: 8.2 to 10.0) at 55555555",
        state="acknowledged" if owner else "confirmed",
        owner=owner,
        days=3,
        due="2026-11-20" if overdue else "",
        overdue=overdue,
    )


def _log(percent: float) -> float:
    return math.log1p(percent / 100)
