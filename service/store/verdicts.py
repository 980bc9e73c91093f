"""Queries about verdicts: one per run and series, kept with all they were made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Select, insert, select

from detectors.verdict import Decision
from service.core.model import JobKind, VerdictRecord
from service.store.names import one_of
from service.store.series import key_of
from service.store.tables import RunRow, SeriesRow, VerdictRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sqlalchemy.orm import Session

#: Decisions that, once confirmed, begin a new baseline.
CHANGES: Final = (Decision.REGRESSION, Decision.IMPROVEMENT)


class ConfirmedCommit(NamedTuple):
    """What the paired run of a commit was judged in one series."""

    series: str
    sha: str
    run: str
    decision: Decision


def store_once(session: Session, verdicts: Iterable[VerdictRecord]) -> None:
    """Store verdicts; those of a run and series that has one stay as they are."""
    new = list(verdicts)
    query = select(VerdictRow.run, VerdictRow.series).where(
        VerdictRow.run.in_({verdict.run for verdict in new})
    )
    known = {(run, series) for run, series in session.execute(query)}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for verdict in new:
        place = (verdict.run, verdict.series.id)
        if place not in known:
            rows.setdefault(place, _new_row(verdict))
    if rows:
        session.execute(insert(VerdictRow), list(rows.values()))


def of_run(session: Session, run_id: str) -> list[VerdictRecord]:
    """Return the verdicts of a run, by workload."""
    return _read(session, _query().where(VerdictRow.run == run_id))


def of_commit(session: Session, fork: str, sha: str) -> list[VerdictRecord]:
    """Return the verdicts on a commit, of both stages, by workload."""
    return _read(session, _query().where(VerdictRow.fork == fork, VerdictRow.sha == sha))


def of_series(session: Session, series_id: str, *, limit: int = 500) -> list[VerdictRecord]:
    """Return the newest verdicts of a series, of both stages, oldest first."""
    query = _query().where(VerdictRow.series == series_id).order_by(None)
    found = _read(session, query.order_by(VerdictRow.id.desc()).limit(limit))
    return found[::-1]


def confirmed(
    session: Session, fork: str, series_ids: Collection[str], shas: Collection[str]
) -> list[ConfirmedCommit]:
    """Return what the paired runs of these commits were judged in these series, all at once.

    Few commits have a pair, so the way there is by their runs: by series it would be as many looks
    as there are series times commits.
    """
    pairs = select(RunRow.id).where(
        RunRow.fork == fork, RunRow.kind == JobKind.CONFIRM, one_of(RunRow.sha, shas)
    )
    query = select(VerdictRow.series, VerdictRow.sha, VerdictRow.run, VerdictRow.decision).where(
        VerdictRow.run.in_(pairs),
        VerdictRow.stage == JobKind.CONFIRM,
        one_of(VerdictRow.series, series_ids),
    )
    return [ConfirmedCommit(*row) for row in session.execute(query)]


def accepted_changes(session: Session, series_id: str, shas: Sequence[str]) -> dict[str, str]:
    """Return the paired run by commit, for those of `shas` that a change was confirmed at."""
    query = select(VerdictRow.sha, VerdictRow.run).where(
        VerdictRow.series == series_id,
        VerdictRow.stage == JobKind.CONFIRM,
        VerdictRow.sha.in_(shas),
        VerdictRow.decision.in_(CHANGES),
    )
    return dict(session.execute(query).all())


def changes_at(session: Session, series_id: str, shas: Sequence[str]) -> list[VerdictRecord]:
    """Return the confirmed changes of a series at these commits, in the order of judging."""
    query = _query().where(
        VerdictRow.series == series_id,
        VerdictRow.stage == JobKind.CONFIRM,
        VerdictRow.sha.in_(shas),
        VerdictRow.decision.in_(CHANGES),
    )
    return _read(session, query)


def _query() -> Select[VerdictRow, SeriesRow]:
    return (
        select(VerdictRow, SeriesRow)
        .join(SeriesRow, SeriesRow.id == VerdictRow.series)
        .order_by(SeriesRow.workload, SeriesRow.metric, VerdictRow.id)
    )


def _read(session: Session, query: Select[VerdictRow, SeriesRow]) -> list[VerdictRecord]:
    return [_value(row, series) for row, series in session.execute(query)]


def _new_row(verdict: VerdictRecord) -> dict[str, Any]:
    return {
        "run": verdict.run,
        "series": verdict.series.id,
        "stage": verdict.stage,
        "fork": verdict.series.fork,
        "sha": verdict.sha,
        "decision": verdict.decision,
        "effect": verdict.effect,
        "low": verdict.low,
        "high": verdict.high,
        "confidence": verdict.confidence,
        "p_value": verdict.p_value,
        "detectable_effect": verdict.detectable_effect,
        "n_baseline": verdict.n_baseline,
        "n_candidate": verdict.n_candidate,
        "method": verdict.method,
        "warnings": list(verdict.warnings),
        "direction": verdict.direction,
        "gate": verdict.gate,
        "alpha": verdict.alpha,
        "significant": verdict.significant,
        "relevant": verdict.relevant,
        "suspicious": verdict.suspicious,
        "reason": verdict.reason,
        "baseline_inputs": [list(item) for item in verdict.baseline_inputs],
        "parameters": dict(verdict.parameters),
        "created_at": verdict.created_at,
    }


def _value(row: VerdictRow, series: SeriesRow) -> VerdictRecord:
    return VerdictRecord(
        run=row.run,
        series=key_of(series),
        stage=row.stage,
        sha=row.sha,
        decision=row.decision,
        effect=row.effect,
        low=row.low,
        high=row.high,
        confidence=row.confidence,
        p_value=row.p_value,
        detectable_effect=row.detectable_effect,
        n_baseline=row.n_baseline,
        n_candidate=row.n_candidate,
        method=row.method,
        warnings=tuple(row.warnings),
        direction=row.direction,
        gate=row.gate,
        alpha=row.alpha,
        significant=row.significant,
        relevant=row.relevant,
        suspicious=row.suspicious,
        reason=row.reason,
        baseline_inputs=tuple((run, side) for run, side in row.baseline_inputs),
        parameters=dict(row.parameters),
        created_at=row.created_at,
    )
