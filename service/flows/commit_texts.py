"""What people read about a commit where the forge lists it: the texts of its check.

A commit with all that is stored about it comes in, texts made by `reports` go out. Nothing is
published here, and nothing is said of a suspicion before a paired job has confirmed it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reports.check import (
    CheckText,
    Conclusion,
    is_whole_title,
    judged_check,
    title_of,
    unjudged_check,
)
from reports.markup import markdown
from reports.rows import rows_against, rows_of_pair
from results.document import Outcome
from results.metric import THROUGHPUT
from service.core.errors import NotFoundError
from service.core.model import CommitOutcome, CommitState, JobKind, JobState
from service.flows.judge import final_verdicts
from service.store import commits, jobs, runs, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from results.document import RunDocument
    from service.core.model import CommitRecord, Job

_SAID_LENGTH_MAX: Final = 2000
_NOTHING_SAID: Final = "Nothing is said about its speed, and it blocks nobody."
#: A second look is under way more often than anything is slower: who reads of it would worry.
_UNDER_WAY: Final = {
    CommitState.WAITING: "waits for the commits before it",
    CommitState.MEASURING: "is being built and measured",
    CommitState.CONFIRMING: "is being measured again, beside an earlier commit",
}
#: What cannot be decided blocks nobody, and neither does what was not looked at.
_CONCLUSIONS: Final = {
    CommitOutcome.BASELINE: Conclusion.NEUTRAL,
    CommitOutcome.NO_CHANGE: Conclusion.SUCCESS,
    CommitOutcome.REGRESSION: Conclusion.FAILURE,
    CommitOutcome.IMPROVEMENT: Conclusion.SUCCESS,
    CommitOutcome.INCONCLUSIVE: Conclusion.NEUTRAL,
    CommitOutcome.BUILD_FAILED: Conclusion.FAILURE,
    CommitOutcome.UNCHANGED: Conclusion.SUCCESS,
    CommitOutcome.FAILED: Conclusion.NEUTRAL,
    CommitOutcome.UNSTABLE: Conclusion.NEUTRAL,
    CommitOutcome.SKIPPED: Conclusion.NEUTRAL,
}


def commit_check(session: Session, fork: str, sha: str, *, page: str) -> CheckText:
    """Return what the check of a commit says now.

    Args:
        session: To read with.
        fork: Whose.
        sha: Which.
        page: Address of its page.

    Raises:
        NotFoundError: The fork has no such commit.
    """
    record = commits.find(session, fork, sha)
    if record is None:
        raise NotFoundError(f"fork {fork} has no commit {sha}")
    if record.outcome is None:
        return _under_way(record, page=page)
    check = _measured(session, record, page=page) or _unmeasured(record, page=page)
    conclusion = _CONCLUSIONS[record.outcome]
    return replace(check, conclusion=conclusion, title=title_of(record.reason))


def _under_way(record: CommitRecord, *, page: str) -> CheckText:
    return CheckText(
        conclusion=None,
        title=_UNDER_WAY[record.state],
        summary=f"What comes of it is said here. [Page of this commit]({page})",
        queued=record.state is CommitState.WAITING,
    )


def _unmeasured(record: CommitRecord, *, page: str) -> CheckText:
    """Return the check of a commit that no run tells of: it was skipped, or its runners lost."""
    said = f"**{markdown(record.reason, length_max=_SAID_LENGTH_MAX)}**"
    parts = [] if is_whole_title(record.reason) else [said]
    parts += [f"{_NOTHING_SAID} [Page of this commit]({page})"]
    return CheckText(conclusion=Conclusion.NEUTRAL, title="", summary="\n\n".join(parts))


def _measured(session: Session, record: CommitRecord, *, page: str) -> CheckText | None:
    """Return what the run says that a commit is judged by; None where there is none."""
    document = _judged_by(session, record)
    if document is None:
        return None
    if document.outcome is not Outcome.MEASURED:
        return unjudged_check(document, page=page)
    last_words = _last_words(session, record)
    if document.paired:
        rows = rows_of_pair(document, last_words)
    else:
        # The baseline is several runs, each a large document; the ratios are in the verdicts.
        rows = rows_against(document, {}, last_words)
    return judged_check(rows, document=document, said=record.reason, page=page)


def _judged_by(session: Session, record: CommitRecord) -> RunDocument | None:
    """Return the run of the paired job where that one was measured, else that of the own job."""
    own: dict[JobKind, Job] = {}
    for job in jobs.of_commit(session, record.fork, record.sha):
        # The first of its kind is that of the flow.
        own.setdefault(job.kind, job)
    for kind in (JobKind.CONFIRM, JobKind.SINGLE):
        if kind in own and own[kind].state is JobState.STORED:
            document = runs.document(session, own[kind].run)
            if kind is JobKind.SINGLE or document.outcome is Outcome.MEASURED:
                return document
    return None


def _last_words(session: Session, record: CommitRecord) -> Mapping[str, Verdict]:
    """Return the last verdict on the throughput of each workload."""
    found = [
        verdict
        for verdict in verdicts.of_commit(session, record.fork, record.sha)
        if verdict.series.metric == THROUGHPUT.name
    ]
    return final_verdicts(
        [verdict for verdict in found if verdict.stage is JobKind.SINGLE],
        [verdict for verdict in found if verdict.stage is JobKind.CONFIRM],
    )
