"""Queries about hosts: the machines that measured, how much they scatter, and their canaries."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError

from service.core.hosts import UNKNOWN, CanaryRecord, Host, NoiseRecord, Spread, WorkloadNoise
from service.store.host_tables import CanaryRow, HostNoiseRow, HostRow
from service.store.tables import RunRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from results.document import Host as DocumentHost
    from results.document import Outcome, RunDocument

#: Records of one history: a run of 42 workloads has as many, so a page is some tens of runs.
RECORDS_MAX: Final = 5_000
#: A document is a stranger's word; these are the most that the columns hold on both databases.
_INTEGER_MAX: Final = 2**31 - 1
_BIG_INTEGER_MAX: Final = 2**63 - 1
#: A page reads thousands of records, so they come as plain rows and not as objects of a session.
_NOISE: Final = (
    HostNoiseRow.run,
    HostNoiseRow.at,
    HostNoiseRow.fingerprint,
    HostNoiseRow.workload,
    HostNoiseRow.starts,
    HostNoiseRow.slices,
    HostNoiseRow.disturbed,
    HostNoiseRow.steal_percent_max,
    HostNoiseRow.starts_sd,
    HostNoiseRow.starts_df,
    HostNoiseRow.slices_sd,
    HostNoiseRow.slices_df,
    HostNoiseRow.pairs_sd,
    HostNoiseRow.pairs_df,
)
_CANARY: Final = (
    CanaryRow.run,
    CanaryRow.at,
    CanaryRow.fingerprint,
    CanaryRow.moment,
    CanaryRow.name,
    CanaryRow.unit,
    CanaryRow.value,
    CanaryRow.change_percent,
    CanaryRow.suspicious,
)


def see(session: Session, document: RunDocument, *, at: datetime) -> None:
    """Write a machine down as the run that is stored at this time describes it.

    The times are the service's own: a runner's clock may be wrong.
    """
    told = document.host
    row = _ensured(session, told, at=at)
    fingerprint = plain(told.fingerprint)
    if row.fingerprint != fingerprint:
        row.fingerprint, row.fingerprint_since = fingerprint, at
    for name, value in _facts(told).items():
        setattr(row, name, value)
    row.last_seen_at, row.last_run = at, document.id
    session.flush()


def append_once(
    session: Session, document: RunDocument, noise: Sequence[WorkloadNoise], *, at: datetime
) -> None:
    """Write down the noise and the canary of a run, unless that was done already."""
    where = {
        "run": document.id,
        "host_class": document.host.host_class,
        "host_name": document.host.name,
        "fingerprint": plain(document.host.fingerprint),
        "at": at,
    }
    if not _has(session, HostNoiseRow, document.id):
        # As plain rows, all at once: a run has as many as workloads.
        rows = [{**where, **_columns(one)} for one in noise]
        if rows:
            session.execute(insert(HostNoiseRow), rows)
    if not _has(session, CanaryRow, document.id):
        session.add_all(
            CanaryRow(
                **where,
                position=position,
                moment=plain(reading.moment),
                name=plain(reading.name),
                unit=plain(reading.unit),
                value=reading.value,
                change_percent=reading.change_percent,
                suspicious=reading.suspicious,
            )
            for position, reading in enumerate(document.host.canary)
        )
    session.flush()


def everything(session: Session) -> list[Host]:
    """Return all hosts by class and name; an operator adds them one by one, so there are few."""
    return _values(session, None, None)


def named(session: Session, name: str, *, host_class: str | None = None) -> list[Host]:
    """Return the host of that name, once for each class that it ran in."""
    return _values(session, name, host_class)


def noise(
    session: Session, host: Host, *, workload: str | None = None, limit: int = RECORDS_MAX
) -> list[NoiseRecord]:
    """Return the newest records of a host's noise, oldest first."""
    query = select(*_NOISE).where(
        HostNoiseRow.host_class == host.host_class, HostNoiseRow.host_name == host.name
    )
    if workload is not None:
        query = query.where(HostNoiseRow.workload == workload)
    query = query.order_by(HostNoiseRow.at.desc(), HostNoiseRow.id.desc())
    rows = session.execute(query.limit(min(limit, RECORDS_MAX))).all()
    return [_noise_record(row) for row in reversed(rows)]


def canary(session: Session, host: Host, *, limit: int = RECORDS_MAX) -> list[CanaryRecord]:
    """Return the newest readings of a host's canary, oldest first."""
    query = (
        select(*_CANARY)
        .where(CanaryRow.host_class == host.host_class, CanaryRow.host_name == host.name)
        .order_by(CanaryRow.at.desc(), CanaryRow.run.desc(), CanaryRow.position.desc())
        .limit(min(limit, RECORDS_MAX))
    )
    return [
        CanaryRecord(
            run=row.run,
            at=row.at,
            fingerprint=row.fingerprint,
            moment=row.moment,
            name=row.name,
            unit=row.unit,
            value=row.value,
            change_percent=row.change_percent,
            suspicious=row.suspicious,
        )
        for row in reversed(session.execute(query).all())
    ]


def plain(text: str) -> str:
    """Return a text that PostgreSQL takes: it has no zero byte."""
    return text.replace("\0", "")


def _ensured(session: Session, told: DocumentHost, *, at: datetime) -> HostRow:
    """Return the machine's row, made now if there is none."""
    key = (told.host_class, told.name)
    row = session.get(HostRow, key)
    if row is not None:
        return row
    row = HostRow(
        host_class=told.host_class,
        name=told.name,
        fingerprint=plain(told.fingerprint),
        fingerprint_since=at,
        first_seen_at=at,
        last_seen_at=at,
        **_facts(told),
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        # Another run of this machine came in beside us.
        return session.get_one(HostRow, key)
    return row


def _facts(told: DocumentHost) -> dict[str, Any]:
    return {
        "cpu_model": plain(told.cpu_model),
        "logical_cpus": min(told.logical_cpus, _INTEGER_MAX),
        "memory_bytes": min(told.memory_bytes, _BIG_INTEGER_MAX),
        "kernel": plain(told.kernel),
        "os": plain(told.os),
        "virtualised": told.virtualised,
    }


def _has(session: Session, table: type[HostNoiseRow | CanaryRow], run: str) -> bool:
    return session.scalar(select(table.id).where(table.run == run).limit(1)) is not None


def _values(session: Session, name: str | None, host_class: str | None) -> list[Host]:
    rows = select(HostRow).order_by(HostRow.host_class, HostRow.name)
    counts = select(RunRow.host_class, RunRow.host_name, RunRow.outcome, func.count()).group_by(
        RunRow.host_class, RunRow.host_name, RunRow.outcome
    )
    if name is not None:
        rows, counts = rows.where(HostRow.name == name), counts.where(RunRow.host_name == name)
    if host_class is not None:
        rows = rows.where(HostRow.host_class == host_class)
    runs: dict[tuple[str, str], dict[Outcome, int]] = defaultdict(dict)
    for of_class, of_name, outcome, count in session.execute(counts):
        runs[of_class, of_name][outcome] = count
    return [_value(row, runs[row.host_class, row.name]) for row in session.scalars(rows)]


def _value(row: HostRow, runs: dict[Outcome, int]) -> Host:
    return Host(
        host_class=row.host_class,
        name=row.name,
        cpu_model=row.cpu_model,
        logical_cpus=row.logical_cpus,
        memory_bytes=row.memory_bytes,
        kernel=row.kernel,
        os=row.os,
        virtualised=row.virtualised,
        fingerprint=row.fingerprint,
        fingerprint_since=row.fingerprint_since,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        last_run=row.last_run,
        runs=runs,
    )


def _columns(noise: WorkloadNoise) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "workload": plain(noise.workload),
        "starts": noise.starts,
        "slices": noise.slices,
        "disturbed": noise.disturbed,
        "steal_percent_max": noise.steal_percent_max,
    }
    for name in ("starts", "slices", "pairs"):
        spread: Spread = getattr(noise, f"between_{name}")
        columns[f"{name}_sd"] = spread.sd if spread.known else None
        columns[f"{name}_df"] = spread.df
    return columns


def _noise_record(row: Any) -> NoiseRecord:
    return NoiseRecord(
        run=row.run,
        at=row.at,
        fingerprint=row.fingerprint,
        noise=WorkloadNoise(
            workload=row.workload,
            starts=row.starts,
            slices=row.slices,
            disturbed=row.disturbed,
            steal_percent_max=row.steal_percent_max,
            between_starts=_spread(row.starts_sd, row.starts_df),
            between_slices=_spread(row.slices_sd, row.slices_df),
            between_pairs=_spread(row.pairs_sd, row.pairs_df),
        ),
    )


def _spread(sd: float | None, df: int) -> Spread:
    return UNKNOWN if sd is None or not math.isfinite(sd) else Spread(sd=sd, df=df)
