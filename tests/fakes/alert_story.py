"""What came after the week of `stored_fork`: more commits, paired runs, and alerts about them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from results.slice import SideName
from service.core.model import Alert, AlertState, AlertWorkload
from service.store import commits
from tests.fakes.run_documents import AT, sha
from tests.fakes.stored_fork import SAME, SHAS, a_stored_run, a_week, git_commit, measured

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from results.document import RunDocument

#: The alert of the week, and the commit that it is about.
ALERT = "alert-1"
SLOW = SHAS[4]
#: Commits after the week, oldest first.
B, C, D, E = LATER = [sha(digit) for digit in "bcde"]


def a_longer_week(session: Session) -> None:
    """Store the week, and four commits after it that nobody measured yet."""
    a_week(session)
    parents = [SHAS[-1], *LATER]
    more = [git_commit(commit, parent=parents[place]) for place, commit in enumerate(LATER)]
    commits.register(session, "demo", more, at=AT)


def a_paired_run(
    session: Session, run: str, commit: str, baseline: str, **judged: Verdict
) -> RunDocument:
    """Store a paired run with verdicts by workload; `point_query` is the workload point-query."""
    story = (
        measured(run, commit, scan=2.0, point=63000.0)
        .against(baseline)
        .with_samples("scan", [[2.0], [2.0], [2.0]], side=SideName.BASELINE)
        .with_samples("point-query", [[63000.0]] * 3, side=SideName.BASELINE)
    )
    verdicts = {name.replace("_", "-"): verdict for name, verdict in judged.items()}
    return a_stored_run(session, story, {"point-query": SAME} | verdicts)


def an_alert_about(commit: str, baseline: str, run: str, **losses: float) -> Alert:
    """Return an alert with a loss of so many percent for each workload, sure to half a percent."""
    return Alert(
        id=f"alert-{commit[:4]}",
        fork="demo",
        sha=commit,
        subject="",
        author="",
        baseline_sha=baseline,
        state=AlertState.CONFIRMED,
        workloads=tuple(
            AlertWorkload(
                workload=name.replace("_", "-"),
                effect=math.log1p(-percent / 100),
                low=math.log1p(-(percent + 0.5) / 100),
                high=math.log1p(-(percent - 0.5) / 100),
                p_value=1e-6,
                gate=0.05,
            )
            for name, percent in losses.items()
        ),
        run=run,
        opened_at=AT,
    )
