"""Judging a run against a history that lies in files, without the service.

A run document, what the history says and the order of the commits come in; verdicts and suspicions
go out. The detectors are the service's, and so are the rules, which docs/without-a-service.md
tells: a run by itself arouses a suspicion and no more, since only a pair is evidence enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from detectors.changepoints import find_changes
from detectors.noise import estimate_noise
from detectors.predictive import predict
from detectors.samples import read_starts
from detectors.shrinkage import prior_from
from detectors.verdict import decide, log_loss
from forkwatch.errors import DoorError
from forkwatch.history_text import entries_of
from reports.rows import Level, Row, level_of
from results.document import Outcome
from results.metric import METRICS
from runner import checkout
from workloads.catalog import find_workload
from workloads.errors import UnknownWorkloadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from detectors.change import Change
    from detectors.verdict import Verdict
    from forkwatch.history_text import Entry
    from results.document import RunDocument
    from results.series import SeriesKey
    from workloads.plan import Gates

# The service's own figures, with their reasons in service/flows/levels.py and baseline.py. The
# door must not need the service to judge, so they are written twice; a test keeps them equal.
SUSPICION_ALPHA: Final = 0.02
SUSPICION_BUDGET: Final = 0.1
SUSPICION_GATE_SHARE: Final = 0.5
BASELINE_RUNS_MIN: Final = 3
BASELINE_RUNS_MAX: Final = 30
HISTORY_RUNS_MAX: Final = 100
#: Commits that are looked through for those hundred runs: a branch that measures one in a hundred.
ANCESTORS_MAX: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One workload of a run, with what it was compared with."""

    workload: str
    #: Since the last confirmed change, oldest first; empty for the first run of a series.
    history: tuple[Entry, ...]
    candidate: Entry
    #: None where there is no history.
    verdict: Verdict | None
    #: The last commit before the change that is suspected; None where nothing is.
    before: str | None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the history says of a run."""

    sha: str
    judged: tuple[Judged, ...]
    #: What a paired run has to compare the commit with; None where nothing is suspicious.
    baseline: str | None

    @property
    def suspicious(self) -> list[str]:
        """The workloads that a paired run has to look at."""
        return [one.workload for one in self.judged if one.before]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of each workload that has a history."""
        return {one.workload: one.verdict for one in self.judged if one.verdict}


def ancestors(repository: Path, sha: str) -> list[str]:
    """Return the first parents of a commit, the nearest first.

    Raises:
        DoorError: The checkout is shallow, so that they are not known.
        OperatorError: There is no such commit.
    """
    commit = checkout.resolve(repository, sha).sha
    if checkout.git(repository, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        raise DoorError(
            f"{repository} is a shallow checkout, so the commits before {sha[:8]} are not known; "
            "check out the whole history (fetch-depth: 0, or git fetch --unshallow)"
        )
    listed = checkout.git(
        repository, "rev-list", "--first-parent", f"--max-count={ANCESTORS_MAX}", commit
    )
    if not listed.ok:
        raise DoorError(f"git cannot list the commits before {sha[:8]}: {listed.stderr.strip()}")
    return listed.stdout.split()[1:]


def stretch(entries: Sequence[Entry], before: Sequence[str]) -> tuple[Entry, ...]:
    """Return the runs of a series since its last confirmed change, oldest first, one a commit.

    Args:
        entries: As they are in the file.
        before: The commits that count, the nearest first.
    """
    by_commit: dict[str, Entry] = {}
    for entry in entries:
        known = by_commit.get(entry.sha)
        # A commit's own run that aroused a suspicion was picked for being extreme; a pair was not.
        if known is None or entry.kind == "paired" or known.kind == "single":
            by_commit[entry.sha] = entry
    chosen: list[Entry] = []
    for sha in before:
        if sha not in by_commit:
            continue
        chosen.append(by_commit[sha])
        if by_commit[sha].begins or len(chosen) == HISTORY_RUNS_MAX:
            break
    return tuple(reversed(chosen))


def judge(
    document: RunDocument,
    histories: Mapping[SeriesKey, Sequence[Entry]],
    gates: Gates,
    *,
    before: Sequence[str],
) -> Finding:
    """Return what the history says of a commit's own run.

    Args:
        document: The run.
        histories: By series; none for a series that is new.
        gates: Of the plan.
        before: The commit's ancestors, the nearest first.

    Raises:
        DoorError: It is no run of a single commit, or one without numbers.
    """
    found = entries_of(document)
    if document.paired or not found:
        raise DoorError(f"run {document.id} cannot be judged by a history: {_why_not(document)}")
    stretches = {key: stretch(histories.get(key, ()), before) for key in found}
    compared = [key for key in found if stretches[key]]
    pairs = [(stretches[key], found[key]) for key in compared]
    changes = dict(zip(compared, _changes(pairs), strict=True))
    level = _level(len(compared))
    judged = tuple(
        _judged(key, stretches[key], entry, changes.get(key), gates, level=level)
        for key, entry in found.items()
    )
    suspected = {one.before for one in judged if one.before}
    # The farthest: a pair that begins there holds every change that is suspected.
    baseline = next((sha for sha in reversed(before) if sha in suspected), None)
    return Finding(sha=document.candidate.commit.sha, judged=judged, baseline=baseline)


def rows_of(finding: Finding, document: RunDocument) -> tuple[Row, ...]:
    """Return the rows of the tables: the run beside the level of its history."""
    return tuple(
        Row(
            workload=one.workload,
            group=_group(one.workload),
            baseline=_level_of(one.history[-BASELINE_RUNS_MAX:]) if one.history else None,
            candidate=level_of(document, one.workload),
            verdict=one.verdict,
        )
        for one in finding.judged
    )


def _why_not(document: RunDocument) -> str:
    if document.outcome is not Outcome.MEASURED:
        return f"it is {document.outcome.value}"
    return "it is a pair, with verdicts of its own" if document.paired else "no sample is usable"


def _level(workloads: int) -> float:
    """Return the level at which each of so many workloads is suspected."""
    return min(SUSPICION_ALPHA, SUSPICION_BUDGET / max(1, workloads))


def _changes(pairs: Sequence[tuple[tuple[Entry, ...], Entry]]) -> list[Change]:
    """Return the change of each workload; the others say how noisy this host's workloads are."""
    histories = [
        [_samples(entry) for entry in history[-BASELINE_RUNS_MAX:]] for history, _ in pairs
    ]
    models = [estimate_noise(history) for history in histories]
    return [
        predict(history, _samples(entry), prior=prior_from([*models[:place], *models[place + 1 :]]))
        for place, (history, (_, entry)) in enumerate(zip(histories, pairs, strict=True))
    ]


def _samples(entry: Entry) -> list[list[float]]:
    """Return a run as the detectors take it: starts of one slice, their median."""
    return [[start] for start in entry.starts]


def _judged(
    key: SeriesKey,
    history: tuple[Entry, ...],
    candidate: Entry,
    change: Change | None,
    gates: Gates,
    *,
    level: float,
) -> Judged:
    gate = gates.gate(key.workload)
    verdict = before = None
    if change is not None:
        verdict = decide(
            change,
            direction=METRICS[key.metric].direction,
            gate=gate,
            # Never laxer than a suspicion: what looks changed here has to be confirmed.
            alpha=min(gates.false_alarm_rate, level),
        )
        odd = _odd_run(change, gate, level=level)
        before = history[-1].sha if odd else _before_new_level(history, candidate, gate)
    return Judged(
        workload=key.workload,
        history=history,
        candidate=candidate,
        verdict=verdict,
        before=before,
    )


def _odd_run(change: Change, gate: float, *, level: float) -> bool:
    """Whether one run is unlike its baseline."""
    effect = abs(change.effect)
    if change.p_value <= level and effect >= log_loss(SUSPICION_GATE_SHARE * gate):
        return True
    return change.n_baseline < BASELINE_RUNS_MIN and effect >= log_loss(gate)


def _before_new_level(history: Sequence[Entry], candidate: Entry, gate: float) -> str | None:
    """Return the last commit before a change point that shows with this run and did not before."""
    levels = np.exp(
        [read_starts(_samples(one), what=one.run).level for one in (*history, candidate)]
    )
    found = find_changes(levels)
    if not found or find_changes(levels[:-1]):
        return None
    change = found[-1]
    assert change.index, "a change point has a commit before it"
    if abs(change.effect) < log_loss(SUSPICION_GATE_SHARE * gate):
        return None
    return history[change.index - 1].sha


def _level_of(history: Sequence[Entry]) -> Level:
    middles = [median(entry.starts) for entry in history]
    return Level(
        throughput_ops_s=median(middles),
        lowest_ops_s=min(middles),
        highest_ops_s=max(middles),
        starts=sum(len(entry.starts) for entry in history),
        efficiency=None,
    )


def _group(workload: str) -> str:
    """Return the group of the field's tables; `other` for a workload from another version."""
    try:
        return find_workload(workload).group.value
    except UnknownWorkloadError:
        return "other"
