"""A long history of one workload, written in bulk: what charts and their times are looked at with.

Rows go in without run documents, which a chart never reads; a story of one morning is told by
`stored_fork`, weeks by `stored_weeks`.
"""

from __future__ import annotations

import hashlib
import math
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from detectors.verdict import Decision
from results.document import Outcome
from results.metric import THROUGHPUT
from results.series import SeriesKey
from results.slice import SideName
from service.core.model import CommitOutcome, CommitState, JobKind, JobState
from service.store import forks, series
from service.store.host_tables import HostNoiseRow
from service.store.tables import CommitRow, JobRow, RunRow, SampleRow, VerdictRow
from tests.fakes.run_documents import AT, TREE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy.orm import Session

STARTS = 3
SLICES = 2
#: Rows of one statement.
BATCH = 5_000
SD = 0.01


def sha_at(place: int) -> str:
    """Return the hash of the commit at a place, which looks like one."""
    return hashlib.sha1(f"history {place}".encode()).hexdigest()


def a_history(
    session: Session,
    *,
    commits: int,
    fork: str = "demo",
    workload: str = "scan",
    levels: Mapping[int, float] | None = None,
) -> SeriesKey:
    """Store commits around 2 operations per second, each judged; return their series.

    Args:
        session: To write with.
        commits: How many.
        fork: Whose.
        workload: Which.
        levels: Where single commits stand instead, by place.
    """
    key = SeriesKey(
        fork=fork,
        branch="main",
        host_class="small",
        variant="rel",
        config="default",
        workload=workload,
        metric=THROUGHPUT.name,
        dataset="small:dddddddddddd",
        placement="shared-core",
    )
    forks.ensure(session, fork, branch="main", at=AT)
    series.ensure(session, [key])
    luck = random.Random(commits)
    for begin in range(0, commits, BATCH):
        places = range(begin, min(begin + BATCH, commits))
        session.execute(insert(CommitRow), [_commit(fork, place) for place in places])
        session.execute(insert(JobRow), [_job(fork, place) for place in places])
        session.execute(insert(RunRow), [_run(fork, place) for place in places])
        session.execute(insert(VerdictRow), [_verdict(key, place) for place in places])
        session.execute(insert(HostNoiseRow), [_noise(key, place) for place in places])
        samples = [
            row
            for place in places
            for row in _samples(key, place, (levels or {}).get(place, 2.0), luck)
        ]
        session.execute(insert(SampleRow), samples)
    return key


def _commit(fork: str, place: int) -> dict[str, Any]:
    return {
        "fork": fork,
        "sha": sha_at(place),
        "tree": TREE,
        "parent": sha_at(place - 1) if place else None,
        "author": "Ada Lovelace",
        "subject": f"Change number {place} of the record format in row_search_mvcc",
        "committed_at": AT + timedelta(hours=place),
        "position": place,
        "state": CommitState.FINISHED,
        "outcome": CommitOutcome.NO_CHANGE,
        "reason": "unchanged within 1.2 %",
        "seen_at": AT,
        "finished_at": AT,
    }


def _job(fork: str, place: int) -> dict[str, Any]:
    return {
        "id": f"{fork}-job-{place}",
        "fork": fork,
        "sha": sha_at(place),
        "kind": JobKind.SINGLE,
        "state": JobState.STORED,
        "host_class": "small",
        "run": f"{fork}-run-{place}",
        "baseline_sha": None,
        "order": "{}",
        "attempts": 1,
        "credential_hash": None,
        "credential_expires_at": None,
        "created_at": AT,
        "finished_at": AT,
    }


def _run(fork: str, place: int) -> dict[str, Any]:
    return {
        "id": f"{fork}-run-{place}",
        "job": f"{fork}-job-{place}",
        "fork": fork,
        "sha": sha_at(place),
        "kind": JobKind.SINGLE,
        "branch": "main",
        "suite": "commit",
        "config": "default",
        "variant": "rel",
        "host_class": "small",
        "host_name": "bench-1",
        "outcome": Outcome.MEASURED,
        "baseline_sha": None,
        "content_hash": f"content-{place}",
        "starts": STARTS,
        "created_at": AT,
        "finished_at": AT,
        "stored_at": AT,
        "digest": "0" * 64,
        "document_gzip": b"",
    }


def _verdict(key: SeriesKey, place: int) -> dict[str, Any]:
    return {
        "run": f"{key.fork}-run-{place}",
        "series": key.id,
        "stage": JobKind.SINGLE,
        "fork": key.fork,
        "sha": sha_at(place),
        "decision": Decision.NO_CHANGE,
        "effect": 0.001,
        "low": -0.01,
        "high": 0.012,
        "confidence": 0.95,
        "p_value": 0.6,
        "detectable_effect": 0.02,
        "n_baseline": 30,
        "n_candidate": STARTS,
        "method": "test 1",
        "warnings": [],
        "direction": 1,
        "gate": 0.05,
        "alpha": 0.001,
        "significant": False,
        "relevant": False,
        "suspicious": False,
        "reason": "equivalent",
        "baseline_inputs": [],
        "parameters": {},
        "created_at": AT,
    }


def _noise(key: SeriesKey, place: int) -> dict[str, Any]:
    return {
        "run": f"{key.fork}-run-{place}",
        "host_class": "small",
        "host_name": "bench-1",
        "fingerprint": "f" * 16,
        "at": AT,
        "workload": key.workload,
        "starts": STARTS,
        "slices": STARTS * SLICES,
        "disturbed": 0,
        "steal_percent_max": 0.0,
        "starts_sd": SD,
        "starts_df": STARTS - 1,
        "slices_sd": SD / 2,
        "slices_df": STARTS,
        "pairs_sd": None,
        "pairs_df": 0,
    }


def _samples(
    key: SeriesKey, place: int, level: float, luck: random.Random
) -> Iterator[dict[str, Any]]:
    for start in range(STARTS):
        of_start = level * math.exp(luck.gauss(0, SD))
        for sequence in range(SLICES):
            yield {
                "run": f"{key.fork}-run-{place}",
                "series": key.id,
                "side": SideName.CANDIDATE,
                "start_index": start,
                "sequence": sequence,
                "value": of_start * math.exp(luck.gauss(0, SD / 2)),
            }
