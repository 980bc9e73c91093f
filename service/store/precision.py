"""Queries about precision: what people said about alarms, by workload, host class and detector.

An alert counts once for each workload it names, by the last word about it: a false alarm, or a true
one, which an accept is too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from detectors.verdict import Decision
from service.core.alert_records import RAISED
from service.core.model import JobKind
from service.core.precision import PrecisionFigure, share_interval
from service.store.alert_tables import AlertCommitRow
from service.store.tables import AlertRow, SeriesRow, VerdictRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

#: Verdicts that are read, the newest alerts first: some years of a busy fork. A figure over all
#: time would say little about a detector that has changed since.
VERDICTS_MAX: Final = 10_000

#: Fork, workload, host class, method, rules.
_Group = tuple[str, str, str, str, str]


def figures(session: Session, fork: str | None = None) -> list[PrecisionFigure]:
    """Return the figures of all groups in a fixed order, of one fork where given."""
    said: dict[tuple[str, _Group], bool | None] = {}
    query = (
        select(
            AlertRow.id,
            AlertRow.fork,
            AlertRow.true_alarm,
            SeriesRow.workload,
            SeriesRow.host_class,
            VerdictRow.method,
            VerdictRow.parameters,
        )
        .join(AlertCommitRow, AlertCommitRow.alert == AlertRow.id)
        .join(VerdictRow, VerdictRow.run == AlertCommitRow.run)
        .join(SeriesRow, SeriesRow.id == VerdictRow.series)
        .where(
            AlertCommitRow.part.in_(RAISED),
            VerdictRow.stage == JobKind.CONFIRM,
            VerdictRow.decision == Decision.REGRESSION,
        )
        .order_by(AlertRow.opened_at.desc(), AlertRow.id, VerdictRow.id)
        .limit(VERDICTS_MAX)
    )
    if fork is not None:
        query = query.where(AlertRow.fork == fork)
    for alert, of_fork, word, workload, host_class, method, parameters in session.execute(query):
        rules = str(parameters.get("rules", ""))
        said[alert, (of_fork, workload, host_class, method, rules)] = word
    counts: dict[_Group, Counter[bool | None]] = {}
    for (_, group), word in said.items():
        counts.setdefault(group, Counter())[word] += 1
    return [_figure(group, counts[group]) for group in sorted(counts)]


def _figure(group: _Group, counts: Counter[bool | None]) -> PrecisionFigure:
    fork, workload, host_class, method, rules = group
    true, false = counts[True], counts[False]
    judged = true + false
    low, high = share_interval(true, judged)
    return PrecisionFigure(
        fork=fork,
        workload=workload,
        host_class=host_class,
        method=method,
        rules=rules,
        true_alarms=true,
        false_alarms=false,
        not_judged=counts[None],
        precision=true / judged if judged else None,
        low=low,
        high=high,
    )
