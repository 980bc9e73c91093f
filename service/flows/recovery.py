"""Whether an alert's loss is gone with a commit: gathered verdicts and samples in, a finding out.

Two things show it for a workload: later changes, each confirmed by a paired job, that together
make up for the loss; or own runs that are at the level from before it. Nothing is written here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision, decide, log_loss
from reports.sentence import sentence
from service.core.alert_records import MarkKind
from service.flows.alert_actions import losses_of
from service.flows.baseline import SingleInputs, level_at, newest_own
from service.flows.changes import changes_of_run
from service.store import alerts, baseline_marks, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.orm import Session

    from detectors.change import Change
    from detectors.verdict import Verdict
    from service.core.model import Alert, VerdictRecord

#: Own runs in a row that have to be at the old level. One run at it may be luck: what is shown
#: equivalent by a 95 % interval lies outside the gate once in forty times.
RUNS_AT_OLD_LEVEL: Final = 2
_AS_BEFORE: Final = (Decision.NO_CHANGE, Decision.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Why the loss of an alert is gone, by workload."""

    #: The last confirmed improvement, where confirmed changes made up for the loss.
    gained: Mapping[str, Verdict] = field(default_factory=dict)
    #: The newest own run against the level before the loss, where that is what shows it.
    level: Mapping[str, Verdict] = field(default_factory=dict)
    #: How much faster than while the alert was open, as log ratios.
    gains: Mapping[str, float] = field(default_factory=dict)

    def words(self, sha: str) -> str:
        """Return the finding as one sentence about the commit that showed it."""
        said = [sentence(self.gained, at=sha)] if self.gained else []
        if self.level:
            said.append(f"compared with before the loss, {sentence(self.level, at=sha)}")
        return "; ".join(said)


def find_recovery(session: Session, alert: Alert, chain: Sequence[str]) -> Recovery | None:
    """Return why an alert's loss is gone with a commit, None where it is not, or not surely.

    Args:
        session: To read with.
        alert: An open alert about an ancestor of the commit.
        chain: The commit and its first-parent ancestors, nearest first.
    """
    losses = _losses(session, alert)
    if not losses or len(losses) < len({item.workload for item in alert.workloads}):
        return None
    # What was seen at these is the loss itself, or a fix that somebody did not believe.
    known = {commit.sha for commit in alerts.commits_of(session, alert.id)}
    gained: dict[str, tuple[VerdictRecord, float]] = {}
    rest = []
    for loss in losses:
        later = [sha for sha in _later(chain, loss.sha) if sha not in known]
        found = _confirmed(session, loss, later)
        if makes_up(loss, found):
            gained[loss.series.workload] = (_last_gain(found), sum(one.effect for one in found))
        else:
            rest.append(loss)
    level = _at_old_level(session, alert, rest, chain)
    if level is None:
        return None
    back = {loss.series.workload: -loss.effect for loss in rest}
    return Recovery(
        gained={name: record.verdict for name, (record, _) in gained.items()},
        level=level,
        gains={name: gain for name, (_, gain) in gained.items()}
        | {name: back[name] + verdict.change.effect for name, verdict in level.items()},
    )


def makes_up(loss: VerdictRecord, changes: Sequence[VerdictRecord]) -> bool:
    """Return whether later confirmed changes make up for a loss.

    What remains has to be too small to matter, and no more than the noise: with the uncertainty of
    all of them together, nothing at all may remain.
    """
    if not any(change.decision is Decision.IMPROVEMENT for change in changes):
        return False
    every = (loss, *changes)
    remains = sum(record.effect for record in every)
    half = math.hypot(*((record.high - record.low) / 2 for record in every))
    return remains > -log_loss(loss.gate) and remains + half >= 0


def _last_gain(changes: Sequence[VerdictRecord]) -> VerdictRecord:
    """Return the last improvement among changes that have one."""
    return [change for change in changes if change.decision is Decision.IMPROVEMENT][-1]


def _losses(session: Session, alert: Alert) -> list[VerdictRecord]:
    """Return the verdict on each workload with which its loss was first seen."""
    first: dict[str, VerdictRecord] = {}
    for loss in losses_of(session, alert):
        first.setdefault(loss.series.workload, loss)
    return list(first.values())


def _confirmed(session: Session, loss: VerdictRecord, shas: Sequence[str]) -> list[VerdictRecord]:
    """Return the confirmed changes of a series at these commits, false alarms left out."""
    marks = baseline_marks.kinds(session, loss.series.id, shas)
    changes = verdicts.changes_at(session, loss.series.id, shas)
    return [change for change in changes if marks.get(change.sha) is not MarkKind.VOID]


def _at_old_level(
    session: Session, alert: Alert, losses: Sequence[VerdictRecord], chain: Sequence[str]
) -> dict[str, Verdict] | None:
    """Return the newest own run's verdict on each of these losses; None if one is not gone."""
    runs = [
        newest_own(session, loss.series, _later(chain, loss.sha), count=RUNS_AT_OLD_LEVEL)
        for loss in losses
    ]
    if any(len(own) < RUNS_AT_OLD_LEVEL for own in runs) or any(
        _began_anew(session, loss, chain) for loss in losses
    ):
        return None
    histories = [level_at(session, loss.series, alert.baseline_sha) for loss in losses]
    if not all(histories):
        return None
    newest: dict[str, Verdict] = {}
    # The newest run is looked at last, so that its verdict is the one that is kept.
    for place in reversed(range(RUNS_AT_OLD_LEVEL if losses else 0)):
        inputs = [
            SingleInputs(series=loss.series, history=history, candidate=own[place])
            for loss, history, own in zip(losses, histories, runs, strict=True)
        ]
        judged = map(_verdict, changes_of_run(inputs), losses)
        newest = {loss.series.workload: v for loss, v in zip(losses, judged, strict=True)}
        if any(verdict.decision not in _AS_BEFORE for verdict in newest.values()):
            return None
    return newest


def _began_anew(session: Session, loss: VerdictRecord, chain: Sequence[str]) -> bool:
    """Return whether a baseline began anew since a loss: a level from before says nothing now."""
    marks = baseline_marks.kinds(session, loss.series.id, _later(chain, loss.sha))
    return MarkKind.RESET in marks.values()


def _later(chain: Sequence[str], sha: str) -> Sequence[str]:
    """Return the commits of a chain, nearest first, that came after one of it."""
    return chain[: chain.index(sha)] if sha in chain else ()


def _verdict(change: Change, loss: VerdictRecord) -> Verdict:
    return decide(change, direction=loss.direction, gate=loss.gate, alpha=loss.alpha)
