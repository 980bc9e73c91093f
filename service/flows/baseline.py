"""Gathering: which stored samples a run is judged against.

A session and a run come in, samples go out. The baseline of a series is the stretch of first-parent
ancestors since its last accepted change, and people may move where it begins. Nothing is decided
here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from results.document import Outcome
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.model import JobKind
from service.store import baseline_marks, commits, runs, samples, verdicts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy.orm import Session

    from results.document import RunDocument
    from results.series import SeriesKey
    from service.core.model import SampleSet

#: Newest runs of a stretch that are read. Thirty give the noise between runs 29 degrees of freedom,
#: where Student's t is within 4 % of its limit; older ones only bring slow drift in.
BASELINE_RUNS_MAX: Final = 30
#: Newest runs of a stretch among which a change point is looked for: the scan finds a step of two
#: standard deviations within 5 commits after 60 runs, and within 27 after 20.
HISTORY_RUNS_MAX: Final = 100


@dataclass(frozen=True, kw_only=True)
class SingleInputs:
    """One workload of a commit's own job, with its baseline."""

    series: SeriesKey
    #: Since the last accepted change, oldest first; empty for the first run of a series.
    history: tuple[SampleSet, ...]
    candidate: SampleSet

    @property
    def baseline(self) -> tuple[SampleSet, ...]:
        """The newest part of the history: what the candidate is compared with."""
        return self.history[-BASELINE_RUNS_MAX:]


@dataclass(frozen=True, kw_only=True)
class PairInputs:
    """One workload of a paired job."""

    series: SeriesKey
    baseline: SampleSet
    candidate: SampleSet


def gather_single(
    session: Session, document: RunDocument, *, fork: str, sha: str
) -> list[SingleInputs]:
    """Return the inputs of every workload that has a usable start, in the order of measuring."""
    shas = [commit.sha for commit in commits.first_parents(session, fork, sha)]
    keys = _throughputs(document)
    chosen = _stretches(session, fork, list(keys), shas)
    sets = samples.of_series(session, {one: [*chosen[one], document.id] for one in keys})
    inputs = []
    for one, key in keys.items():
        candidate = sets[one].get((document.id, SideName.CANDIDATE))
        if candidate is not None:
            history = _candidates(sets[one], reversed(chosen[one]))
            inputs.append(SingleInputs(series=key, history=history, candidate=candidate))
    return inputs


def gather_pair(session: Session, document: RunDocument) -> list[PairInputs]:
    """Return the inputs of every workload of a paired run that has samples on both sides."""
    keys = _throughputs(document)
    found = samples.of_series(session, dict.fromkeys(keys, (document.id,)))
    inputs = []
    for one, key in keys.items():
        sets = found[one]
        baseline = sets.get((document.id, SideName.BASELINE))
        candidate = sets.get((document.id, SideName.CANDIDATE))
        if baseline is not None and candidate is not None:
            inputs.append(PairInputs(series=key, baseline=baseline, candidate=candidate))
    return inputs


def level_at(session: Session, key: SeriesKey, sha: str) -> tuple[SampleSet, ...]:
    """Return the stretch of a series that ends with a commit, oldest first.

    It is what a commit right after it would have been compared with.
    """
    last = commits.find(session, key.fork, sha)
    if last is None:
        return ()
    shas = [last.sha, *(one.sha for one in commits.first_parents(session, key.fork, sha))]
    chosen = _stretches(session, key.fork, [key.id], shas)[key.id]
    return _candidates(samples.of_runs(session, key.id, chosen), reversed(chosen))


def newest_own(
    session: Session, key: SeriesKey, shas: Sequence[str], *, count: int
) -> list[SampleSet]:
    """Return what the first `count` own runs of these commits measured of a series."""
    measured = _measured(session, key.fork, shas)
    chosen = [measured[sha] for sha in shas if sha in measured][:count]
    return list(_candidates(samples.of_runs(session, key.id, chosen), chosen))


def newest_measured(session: Session, fork: str, sha: str) -> str | None:
    """Return the nearest first-parent ancestor that was measured, if there is one."""
    ancestors = [commit.sha for commit in commits.first_parents(session, fork, sha)]
    measured = _measured(session, fork, ancestors)
    return next((ancestor for ancestor in ancestors if ancestor in measured), None)


def _throughputs(document: RunDocument) -> dict[str, SeriesKey]:
    """Return the series of each workload's throughput by id, in the order of measuring."""
    keys = (document.series(workload, THROUGHPUT.name) for workload in document.workloads())
    return {key.id: key for key in keys}


def _measured(session: Session, fork: str, shas: Sequence[str]) -> dict[str, str]:
    """Return the id of the own, measured run of each commit that has one."""
    return {
        run.sha: run.id
        for run in runs.of_commits(session, fork, shas)
        if run.kind is JobKind.SINGLE and run.outcome is Outcome.MEASURED
    }


def _stretches(
    session: Session, fork: str, series_ids: Sequence[str], shas: Sequence[str]
) -> dict[str, list[str]]:
    """Return the runs of each series since its last change, newest first, one for each commit.

    All series are asked for at once: a suite has some forty, and each commit is judged so.

    Args:
        session: To read with.
        fork: Of the series.
        series_ids: Which.
        shas: Ancestors, nearest first.
    """
    measured = _measured(session, fork, shas)
    paired: dict[str, dict[str, str]] = defaultdict(dict)
    for one in verdicts.confirmed(session, fork, series_ids, shas):
        paired[one.series][one.sha] = one.run
    begins = baseline_marks.beginnings_by_series(session, fork, series_ids, shas)
    return {
        one: _stretch(shas, measured, paired=paired[one], begins=begins[one]) for one in series_ids
    }


def _stretch(
    shas: Sequence[str],
    measured: Mapping[str, str],
    *,
    paired: Mapping[str, str],
    begins: Collection[str],
) -> list[str]:
    """Return the runs of one series since its last change.

    A commit that had a paired run is represented by it: its own run was picked for being extreme,
    and would blind the next verdicts where it was a spike, or begin a new level too far off. A
    commit at which a change was confirmed begins the stretch, unless people call that a false
    alarm, and so does one at which they want it to begin.
    """
    chosen: list[str] = []
    for sha in shas:
        run = paired.get(sha) or measured.get(sha)
        if run is not None:
            chosen.append(run)
        if sha in begins or len(chosen) == HISTORY_RUNS_MAX:
            break
    return chosen


def _candidates(
    sets: Mapping[tuple[str, SideName], SampleSet], run_ids: Iterable[str]
) -> tuple[SampleSet, ...]:
    """Return the candidates of these runs, in their order, those without samples left out."""
    found = (sets.get((run, SideName.CANDIDATE)) for run in run_ids)
    return tuple(samples_ for samples_ in found if samples_ is not None)
