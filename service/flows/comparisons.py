"""Comparing two stored versions: names come in, rows with verdicts and what differs go out.

Sides of one paired run are compared as the pair they are; runs that were measured apart, with the
noise between runs in the interval. Numbers from another host class, dataset, placement or number
of clients are shown side by side and not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from detectors.change import Interval
from detectors.sequential import SequentialPlan, look
from detectors.verdict import Decision, decide
from reports.comparison import rows_between
from reports.numbers import short
from reports.sentence import outcome_sentence, sentence
from results.document import Outcome
from results.job import JobOrder
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.model import JobKind
from service.flows.named_runs import two_sides
from service.flows.run_changes import (
    CONFIDENCE,
    NAMING_RATE,
    change_between,
    named,
    noise_before,
)
from service.store import jobs, runs, verdicts
from workloads.errors import CatalogError
from workloads.plan import Gates, parse_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session

    from detectors.change import Change
    from detectors.verdict import Verdict
    from reports.rows import Row, RunSide
    from results.document import RunDocument, Side
    from service.core.model import StoredRun
    from service.flows.named_runs import NamedSide

#: Numbers of two runs that differ in one of these were made under other conditions. Builds, configs
#: and branches are what people compare.
HINDERING: Final = ("host class", "dataset", "placement", "client threads")
_MIRRORED: Final = {
    Decision.REGRESSION: Decision.IMPROVEMENT,
    Decision.IMPROVEMENT: Decision.REGRESSION,
}
#: A pair without a plan of its looks: the detectors' own default needs two.
_STARTS_MIN: Final = 2
#: More names than this are counted.
_NAMED_MAX: Final = 5


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Something besides the commits in which two sides differ."""

    what: str
    baseline: str
    candidate: str
    #: Their numbers were made under other conditions, and cannot be judged.
    hinders: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two sides with what was found."""

    baseline: NamedSide
    candidate: NamedSide
    baseline_document: RunDocument
    candidate_document: RunDocument
    differences: tuple[Difference, ...]
    #: Of the candidate's workloads, then of those that the baseline alone has.
    rows: tuple[Row, ...]
    sentence: str
    notes: tuple[str, ...]

    @property
    def is_paired(self) -> bool:
        """Whether both were measured in alternation, in one run."""
        return self.baseline.run.id == self.candidate.run.id

    @property
    def sides(self) -> tuple[RunSide, RunSide]:
        """Baseline and candidate as the reports know them."""
        return (
            (self.baseline_document, self.baseline.side),
            (self.candidate_document, self.candidate.side),
        )


def compare(
    session: Session, *, baseline: str, candidate: str, fork: str | None = None
) -> Comparison:
    """Return how two versions compare.

    Args:
        session: An open transaction.
        baseline: The id of a run, or the first digits of a commit's hash.
        candidate: The same.
        fork: Of commits, where more than one fork could be meant.

    Raises:
        NotFoundError: Nothing is called so, or a commit has no usable run.
        ComparisonError: A name can mean several commits, or both mean the same.
    """
    old, new = two_sides(session, baseline=baseline, candidate=candidate, fork=fork)
    old_document = runs.document(session, old.run.id)
    is_paired = old.run.id == new.run.id
    new_document = old_document if is_paired else runs.document(session, new.run.id)
    sides = (old_document, old.side), (new_document, new.side)
    differences = _differences(*sides, is_paired=is_paired)
    obstacle = _obstacle(*sides, differences)
    found: dict[str, Verdict] = {}
    if not obstacle:
        gates = _gates(session, new.run)
        if is_paired:
            found = _verdicts_of_pair(session, new_document, sides, gates)
        else:
            found = _verdicts_of_runs(session, old, new, sides, gates)
    rows = rows_between(*sides, found)
    return Comparison(
        baseline=old,
        candidate=new,
        baseline_document=old_document,
        candidate_document=new_document,
        differences=differences,
        rows=rows,
        sentence=_sentence(found, obstacle, old=old, new=new, is_paired=is_paired),
        notes=tuple(_notes(rows, old, new, judged=bool(found))),
    )


def _differences(old: RunSide, new: RunSide, *, is_paired: bool) -> tuple[Difference, ...]:
    before, after = _circumstances(*old), _circumstances(*new)
    return tuple(
        Difference(
            what=what,
            baseline=before[what],
            candidate=after[what],
            # In a pair the other side had the same host, placement and clients by construction.
            hinders=what in HINDERING and not is_paired,
        )
        for what in before
        if before[what] != after[what]
    )


def _circumstances(document: RunDocument, side: SideName) -> dict[str, str]:
    """Return under what a side was measured, what hinders a verdict first."""
    own = _side(document, side)
    # The workload is the one part of a series that is no circumstance.
    key = document.series("", THROUGHPUT.name, side)
    built = own.artifact
    return {
        "host class": key.host_class,
        "dataset": key.dataset,
        "placement": key.placement,
        "client threads": str(document.threads),
        "fork": key.fork,
        "branch": key.branch,
        "build": key.variant,
        "config": key.config,
        "compiler": built.toolchain.cxx_compiler if built else "not known",
        "server": built.server_version if built else "not known",
        "suite": document.suite,
        "host": document.host.name,
        "kernel": document.host.kernel,
        "fingerprint of the host": document.host.fingerprint[:12] or "not taken",
    }


def _side(document: RunDocument, side: SideName) -> Side:
    if side is SideName.CANDIDATE:
        return document.candidate
    assert document.baseline is not None, "a run with a baseline side is a pair"
    return document.baseline


def _obstacle(old: RunSide, new: RunSide, differences: Sequence[Difference]) -> str:
    """Return why there can be no verdict; empty where there can."""
    unusable = {
        document.id: document
        for document, _ in (old, new)
        if document.outcome is not Outcome.MEASURED
    }
    if unusable:
        return "; ".join(
            outcome_sentence(
                document.outcome, at=document.candidate.commit.sha, failure=document.failure
            )
            for document in unusable.values()
        )
    hindering = [one for one in differences if one.hinders]
    if hindering:
        told = ", ".join(f"{one.what} ({one.baseline} and {one.candidate})" for one in hindering)
        return f"they were measured under other conditions: {told}"
    if not set(old[0].workloads()) & set(new[0].workloads()):
        return "they have no workload in common"
    return ""


def _gates(session: Session, run: StoredRun) -> Gates:
    """Return the gates that a run was ordered with; the usual ones where it has no plan.

    What was imported was not ordered here.
    """
    job = jobs.find(session, run.job)
    try:
        return parse_plan(JobOrder.model_validate_json(job.order if job else "").plan).gates
    except (ValidationError, CatalogError):
        return Gates()


def _verdicts_of_pair(
    session: Session, document: RunDocument, sides: tuple[RunSide, RunSide], gates: Gates
) -> dict[str, Verdict]:
    """Return the verdicts of a pair: those that people were told, others by the same rule."""
    told = {
        record.series.workload: record.verdict
        for record in verdicts.of_run(session, document.id)
        if record.stage is JobKind.CONFIRM and record.series.metric == THROUGHPUT.name
    }
    if sides[0][1] is SideName.CANDIDATE:
        told = {workload: _mirrored(verdict) for workload, verdict in told.items()}
    changes = {
        workload: _change_of_pair(document, starts, gates.gate(workload))
        for workload, starts in _usable(*sides).items()
        if workload not in told
    }
    return {**named(changes, gates), **told}


def _change_of_pair(
    document: RunDocument, starts: tuple[list[list[float]], list[list[float]]], gate: float
) -> Change:
    starts_max = max(document.starts_max or len(document.starts), _STARTS_MIN)
    plan = SequentialPlan(
        gate=gate, alpha=NAMING_RATE, starts_max=starts_max, confidence=CONFIDENCE
    )
    return look(*starts, plan=plan).change


def _verdicts_of_runs(
    session: Session,
    old: NamedSide,
    new: NamedSide,
    sides: tuple[RunSide, RunSide],
    gates: Gates,
) -> dict[str, Verdict]:
    document, side = sides[0]
    common = _usable(*sides)
    keys = {workload: document.series(workload, THROUGHPUT.name, side) for workload in common}
    priors = noise_before(session, old, list(keys.values()), without={old.run.id, new.run.id})
    return named(
        {
            workload: change_between(_measured(before), _measured(after), priors[keys[workload]])
            for workload, (before, after) in common.items()
        },
        gates,
    )


def _usable(old: RunSide, new: RunSide) -> dict[str, tuple[list[list[float]], list[list[float]]]]:
    """Return the starts of both sides, for workloads of which both have a sample."""
    found = {}
    for workload in new[0].workloads():
        before, after = (
            # A throughput of zero has no logarithm; a stranger's runner may send one.
            [[value for value in start if value > 0] for start in starts]
            for starts in (
                document.samples(workload, THROUGHPUT.name, side) for document, side in (old, new)
            )
        )
        if any(before) and any(after):
            found[workload] = (before, after)
    return found


def _measured(starts: list[list[float]]) -> list[list[float]]:
    return [start for start in starts if start]


def _mirrored(verdict: Verdict) -> Verdict:
    """Return what a verdict says when the sides change places."""
    change = verdict.change
    turned = replace(
        change,
        effect=-change.effect,
        interval=Interval(
            low=-change.interval.high,
            high=-change.interval.low,
            confidence=change.interval.confidence,
        ),
        n_baseline=change.n_candidate,
        n_candidate=change.n_baseline,
    )
    again = decide(turned, direction=verdict.direction, gate=verdict.gate, alpha=verdict.alpha)
    decision = _MIRRORED.get(verdict.decision, verdict.decision)
    if again.decision is decision:
        return again
    # It was held back for a reason that is not in its numbers.
    return replace(again, decision=decision, reason=verdict.reason)


def _sentence(
    found: Mapping[str, Verdict],
    obstacle: str,
    *,
    old: NamedSide,
    new: NamedSide,
    is_paired: bool,
) -> str:
    if not found:
        return f"No verdict: {obstacle or 'no workload has usable samples on both sides'}"
    said = sentence(found, at=new.sha, confirmed=is_paired)
    return f"{said}; compared with {short(old.sha)}"


def _notes(rows: Sequence[Row], old: NamedSide, new: NamedSide, *, judged: bool) -> list[str]:
    """Return what a reader should know about the numbers."""
    is_paired = old.run.id == new.run.id
    notes = []
    if judged and not is_paired:
        notes.append(
            "Measured apart, so that what differs from run to run is in the intervals. Measured "
            f"side by side they tell more: forkwatch compare {old.sha[:12]} {new.sha[:12]}"
        )
    paired = [one for one in (old, new) if one.run.baseline_sha is not None]
    if len(paired) == 1:
        notes.append(
            f"{paired[0].run.id} is a pair, whose sides take turns of a quarter second; its "
            "numbers may differ from those of a run alone."
        )
    for side, lacking in (
        ("baseline", [row.workload for row in rows if row.baseline and not row.candidate]),
        ("candidate", [row.workload for row in rows if row.candidate and not row.baseline]),
    ):
        if lacking:
            more = len(lacking) - _NAMED_MAX
            names = ", ".join(lacking[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
            notes.append(f"Only the {side} has usable samples of {names}.")
    return notes
