"""The change between two runs that were not measured together.

Stored starts of two runs come in, changes and verdicts go out. Two runs differ by more than their
commits: the day, the layout of the build, the host. Two runs alone say nothing of that, so it is
learned from the runs before the baseline on its level, and from the other workloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from detectors.multiplicity import adjust
from detectors.noise import DEFAULT_PRIOR, NoisePrior, model_noise
from detectors.predictive import Baseline, predict_from
from detectors.samples import read_history
from detectors.shrinkage import DF_MAX, prior_from
from detectors.verdict import decide
from results.document import Outcome
from results.metric import THROUGHPUT
from service.core.model import JobKind
from service.store import baseline_marks, commits, comparisons, runs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy.orm import Session

    from detectors.change import Change
    from detectors.samples import Samples, Starts
    from detectors.verdict import Verdict
    from results.series import SeriesKey
    from service.flows.named_runs import NamedSide
    from workloads.plan import Gates

    Measured = tuple[tuple[float, ...], ...]

CONFIDENCE: Final = 0.95
#: Of the workloads that are called slower or faster, at most this share may be false; as of the
#: standings in the weekly digest.
NAMING_RATE: Final = 0.05
#: Runs that the noise is learned from: with eleven degrees of freedom Student's t is within 8 % of
#: what thirty runs would give, and a page can be waited for.
NEIGHBOURS_MAX: Final = 12
#: Commits among which they are looked for; broken builds and documentation lie between.
WALKED_MAX: Final = 100


def noise_before(
    session: Session, baseline: NamedSide, keys: Sequence[SeriesKey], *, without: Collection[str]
) -> dict[SeriesKey, NoisePrior]:
    """Return what is known of the noise of each series at the level of the baseline.

    Args:
        session: An open transaction.
        baseline: Where the level ends.
        keys: Series of the baseline.
        without: Ids of the runs that are compared; what they show is not to be counted twice.
    """
    found = _histories(session, baseline, keys, without=without)
    # Read once: each is looked at twice, alone and with what the others say.
    histories = {key: read_history(history) for key, history in found.items() if history}
    models = {key: model_noise(history, prior=DEFAULT_PRIOR) for key, history in histories.items()}
    priors = {}
    for key in keys:
        usual = prior_from([model for other, model in models.items() if other != key])
        priors[key] = _learned(histories[key], usual) if key in histories else usual
    return priors


def change_between(baseline: Samples, candidate: Samples, prior: NoisePrior) -> Change:
    """Return the change from one run to another; the noise between runs is in its interval."""
    return change_from(baseline_of(baseline, prior), candidate)


def baseline_of(run: Samples, prior: NoisePrior) -> Baseline:
    """Return a run as what others are compared with."""
    return Baseline.of([run], prior=prior)


def change_from(baseline: Baseline, candidate: Samples) -> Change:
    """Return the change from a run to another; the noise between runs is in its interval."""
    return predict_from(baseline, candidate, confidence=CONFIDENCE)


def named(changes: Mapping[str, Change], gates: Gates) -> dict[str, Verdict]:
    """Return the verdict on each workload's throughput.

    All are judged at Benjamini and Hochberg's threshold: a test is found if it is at or below it.
    """
    if not changes:
        return {}
    found = adjust([change.p_value for change in changes.values()]).found(NAMING_RATE)
    level = max(len(found), 1) * NAMING_RATE / len(changes)
    return {
        workload: decide(
            change, direction=THROUGHPUT.direction, gate=gates.gate(workload), alpha=level
        )
        for workload, change in changes.items()
    }


def _learned(history: Mapping[int, Starts], usual: NoisePrior) -> NoisePrior:
    """Return what a series' own runs say, as what is believed of two more of them."""
    model = model_noise(history, prior=usual)
    return NoisePrior(
        slice_sd=model.slice_sd,
        start_sd=model.start_sd,
        run_sd=model.run_sd,
        df=min(model.run_df, DF_MAX),
    )


def _histories(
    session: Session, baseline: NamedSide, keys: Sequence[SeriesKey], *, without: Collection[str]
) -> dict[SeriesKey, list[Measured]]:
    """Return the nearest runs before the baseline on its level, for each series, oldest first."""
    fork = baseline.run.fork
    ancestors = commits.first_parents(session, fork, baseline.sha, limit=WALKED_MAX - 1)
    shas = [baseline.sha, *(commit.sha for commit in ancestors)]
    own = {
        run.sha: run.id
        for run in runs.of_commits(session, fork, shas)
        if run.kind is JobKind.SINGLE and run.outcome is Outcome.MEASURED and run.id not in without
    }
    nearest = [own[sha] for sha in shas if sha in own][:NEIGHBOURS_MAX]
    measured = comparisons.throughputs(session, nearest)
    begins = baseline_marks.beginnings_by_series(session, fork, [key.id for key in keys], shas)
    histories: dict[SeriesKey, list[Measured]] = {}
    for key in keys:
        stretch: list[Measured] = []
        begun = begins[key.id]
        for sha in shas:
            starts = measured.get(own.get(sha, ""), {}).get(key)
            if starts is not None:
                stretch.append(starts)
            # The commit that begins a level is its first; what lies before is another level.
            if sha in begun:
                break
        histories[key] = stretch[::-1]
    return histories
