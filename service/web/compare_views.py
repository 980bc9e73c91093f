"""A comparison as the API tells it: what the flow found comes in, plain values go out.

Numbers that are not finite, such as the interval of a single start, are null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  the schema is made from these classes
from typing import TYPE_CHECKING

from reports.comparison import counters_between, group_summaries, percentiles_of
from reports.numbers import ratio_of

if TYPE_CHECKING:
    from reports.comparison import Percentiles
    from reports.matrix import Summary
    from reports.rows import Level, Row
    from service.flows.comparisons import Comparison
    from service.flows.named_runs import NamedSide


@dataclass(frozen=True, kw_only=True)
class SideView:
    """One version: which stored run, and which of its sides."""

    run: str
    side: str
    commit: str
    subject: str
    fork: str
    branch: str
    host_class: str
    measured_at: datetime


@dataclass(frozen=True, kw_only=True)
class DifferenceView:
    """Something besides the commits in which two sides differ."""

    what: str
    baseline: str
    candidate: str
    #: There is no verdict because of it.
    hinders: bool


@dataclass(frozen=True, kw_only=True)
class LevelView:
    """Where one side stands on one workload."""

    throughput_ops_s: float
    lowest_ops_s: float
    highest_ops_s: float
    starts: int
    latency_ms_p50: float | None
    latency_ms_p95: float | None
    latency_ms_p99: float | None


@dataclass(frozen=True, kw_only=True)
class VerdictView:
    """What was decided about a workload; ratios are candidate over baseline."""

    decision: str
    reason: str
    ratio_low: float | None
    ratio_high: float | None
    confidence: float
    p_value: float
    #: The smallest loss that these data would have shown, as a ratio.
    detectable_ratio: float | None
    gate: float
    alpha: float
    method: str
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class CounterView:
    """What one operation counted on both sides."""

    name: str
    baseline: float
    candidate: float


@dataclass(frozen=True, kw_only=True)
class WorkloadView:
    """One workload of two sides; a side without a usable sample is null."""

    workload: str
    group: str
    baseline: LevelView | None
    candidate: LevelView | None
    ratio: float | None
    #: Null where nothing could be judged.
    verdict: VerdictView | None
    #: The largest differences first.
    counters: list[CounterView]


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """One group of workloads, over the relative throughput of its workloads."""

    group: str
    workloads: int
    lowest: float
    highest: float
    average: float
    median: float


@dataclass(frozen=True, kw_only=True)
class ComparisonView:
    """Two versions with what was found."""

    baseline: SideView
    candidate: SideView
    #: Measured in alternation, in one run.
    paired: bool
    sentence: str
    notes: list[str]
    differences: list[DifferenceView]
    workloads: list[WorkloadView]
    groups: list[GroupView]


def comparison_view(found: Comparison) -> ComparisonView:
    """Return a comparison."""
    return ComparisonView(
        baseline=side_view(found.baseline),
        candidate=side_view(found.candidate),
        paired=found.is_paired,
        sentence=found.sentence,
        notes=list(found.notes),
        differences=[
            DifferenceView(
                what=one.what,
                baseline=one.baseline,
                candidate=one.candidate,
                hinders=one.hinders,
            )
            for one in found.differences
        ],
        workloads=[_workload_view(found, row) for row in found.rows],
        groups=[group_view(one) for one in group_summaries(found.rows)],
    )


def side_view(side: NamedSide) -> SideView:
    """Return which stored run a side is of."""
    run = side.run
    return SideView(
        run=run.id,
        side=side.side.value,
        commit=side.sha,
        subject=side.commit.subject if side.commit else "",
        fork=run.fork,
        branch=run.branch,
        host_class=run.host_class,
        measured_at=run.created_at,
    )


def group_view(summary: Summary) -> GroupView:
    """Return the summary of a group."""
    return GroupView(
        group=summary.group,
        workloads=summary.workloads,
        lowest=summary.lowest,
        highest=summary.highest,
        average=summary.average,
        median=summary.median,
    )


def finite(value: float | None) -> float | None:
    """Return a number that JSON can say."""
    return value if value is not None and math.isfinite(value) else None


def _workload_view(found: Comparison, row: Row) -> WorkloadView:
    baseline, candidate = found.sides
    return WorkloadView(
        workload=row.workload,
        group=row.group,
        baseline=_level_view(row.baseline, percentiles_of(baseline, row.workload)),
        candidate=_level_view(row.candidate, percentiles_of(candidate, row.workload)),
        ratio=finite(row.ratio),
        verdict=_verdict_view(row),
        counters=[
            CounterView(name=one.name, baseline=one.baseline, candidate=one.candidate)
            for one in counters_between(baseline, candidate, row.workload)
        ],
    )


def _level_view(level: Level | None, latency: Percentiles | None) -> LevelView | None:
    if level is None:
        return None
    return LevelView(
        throughput_ops_s=level.throughput_ops_s,
        lowest_ops_s=level.lowest_ops_s,
        highest_ops_s=level.highest_ops_s,
        starts=level.starts,
        latency_ms_p50=latency.p50 if latency else None,
        latency_ms_p95=latency.p95 if latency else None,
        latency_ms_p99=latency.p99 if latency else None,
    )


def _verdict_view(row: Row) -> VerdictView | None:
    if row.verdict is None:
        return None
    verdict, change = row.verdict, row.verdict.change
    return VerdictView(
        decision=verdict.decision.value,
        reason=verdict.reason,
        ratio_low=_bound(change.interval.low),
        ratio_high=_bound(change.interval.high),
        confidence=change.interval.confidence,
        p_value=change.p_value,
        detectable_ratio=_bound(-abs(change.detectable_effect)),
        gate=verdict.gate,
        alpha=verdict.alpha,
        method=change.method,
        warnings=list(change.warnings),
    )


def _bound(log_ratio: float) -> float | None:
    """Return a bound as a ratio; null where there is none."""
    return finite(ratio_of(log_ratio)) if math.isfinite(log_ratio) else None
