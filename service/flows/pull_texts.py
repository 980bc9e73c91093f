"""What people read about a job of a pull request: its check, its comment, and whether to be loud.

A job with its run document comes in, texts made by `reports` go out. Nothing is asked or posted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reports.check import (
    CheckText,
    Conclusion,
    is_whole_title,
    judged_check,
    title_of,
    unjudged_check,
    waiting_check,
)
from reports.comment import comment_markdown, is_loud, unjudged_comment_markdown
from reports.markup import markdown
from reports.rows import rows_of_pair
from results.document import Outcome
from service.core.pull_requests import UNDER_WAY, PullJobKind, PullJobState
from service.flows.pull_judge import read_verdicts

if TYPE_CHECKING:
    from reports.rows import Row
    from results.document import RunDocument
    from service.core.pull_requests import PullJob

_SAID_LENGTH_MAX: Final = 2000
_REASON_LENGTH_MAX: Final = 500
_NOTHING_SAID: Final = "Nothing is said about its speed, and it blocks nobody."
#: Digits of a commit in the topic of a compare's comment.
_TOPIC_SHA: Final = 12


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What there is to show about a job now."""

    #: None where no commit is to wear a check, as for two commits that somebody named.
    check: CheckText | None
    #: None where the comment that may be there stays as it is.
    comment: str | None
    #: Whether the comment is worth making where there is none.
    loud: bool


def shown(job: PullJob, document: RunDocument | None) -> Shown:
    """Return what there is to show about a job as it is now."""
    check = _check(job, document) if job.kind is PullJobKind.RUN else None
    if job.state in UNDER_WAY or job.state is PullJobState.SUPERSEDED:
        return Shown(check=check, comment=None, loud=False)
    rows = rows_of(job, document)
    # What somebody asked for is said, whatever it is.
    return Shown(
        check=check,
        comment=_comment(job, document, rows),
        loud=bool(job.asked_by) or is_loud(rows),
    )


def rows_of(job: PullJob, document: RunDocument | None) -> tuple[Row, ...]:
    """Return the rows of a judged job; none where it was not measured."""
    if document is None or document.outcome is not Outcome.MEASURED:
        return ()
    return rows_of_pair(document, read_verdicts(job.verdicts))


def comment_topic(job: PullJob) -> str:
    """Return what the comment of a job is about: its suite, or the two commits in it."""
    if job.kind is PullJobKind.RUN:
        return job.suite
    base = (job.baseline_sha or "")[:_TOPIC_SHA]
    return f"{job.suite}:{base}..{job.candidate_sha[:_TOPIC_SHA]}"


def _check(job: PullJob, document: RunDocument | None) -> CheckText:
    if job.state in UNDER_WAY:
        return waiting_check(job.suite)
    if document is None or job.state is not PullJobState.JUDGED:
        # It blocks nobody: nothing is known of this head.
        said = markdown(job.said, length_max=_SAID_LENGTH_MAX)
        whole = is_whole_title(job.said)
        return CheckText(
            conclusion=Conclusion.NEUTRAL,
            title=title_of(job.said),
            summary=_NOTHING_SAID if whole else f"{said}\n\n{_NOTHING_SAID}",
        )
    if document.outcome is not Outcome.MEASURED:
        return unjudged_check(document)
    check = judged_check(rows_of(job, document), document=document, said=job.said, pull=job.pull)
    if not job.accepted_by:
        return check
    # Who accepts a loss is named where it would have blocked; the numbers stay as they are.
    told = f"accepted by {_login(job)}; {job.said}"
    # The name may take the room of what the summary below counted on.
    cut = is_whole_title(job.said) and not is_whole_title(told)
    again = [f"**{markdown(job.said, length_max=_SAID_LENGTH_MAX)}**"] if cut else []
    summary = "\n\n".join([_acceptance(job), *again, check.summary])
    return replace(check, conclusion=Conclusion.NEUTRAL, title=title_of(told), summary=summary)


def _comment(job: PullJob, document: RunDocument | None, rows: tuple[Row, ...]) -> str:
    pull = job.pull if job.kind is PullJobKind.RUN else None
    if document is None or job.state is not PullJobState.JUDGED:
        said = markdown(job.said, length_max=_SAID_LENGTH_MAX)
        again = "\n\n`/forkwatch run` measures it again." if pull is not None else ""
        return f"**{said}**{again}"
    if document.outcome is not Outcome.MEASURED:
        return unjudged_comment_markdown(document, pull=pull)
    said = comment_markdown(rows, document=document, said=job.said, pull=pull)
    return f"{_acceptance(job)}\n\n{said}" if job.accepted_by else said


def _acceptance(job: PullJob) -> str:
    reason = markdown(job.accepted_reason, length_max=_REASON_LENGTH_MAX)
    return f"Accepted as intended by {markdown(_login(job))}: {reason}"


def _login(job: PullJob) -> str:
    return job.accepted_by.removeprefix("github:")
