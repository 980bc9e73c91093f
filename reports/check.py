"""The check on a commit: a conclusion, a title, a summary, and where in the files to look.

The rows of a judged run come in, or the document of one that was not judged; the texts of a check
go out. Which forge shows them, and under which name, is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision
from reports.build_log import ANNOTATIONS_MAX, Annotation, build_errors
from reports.comment import comment_markdown, unjudged_comment_markdown
from reports.markup import one_line
from reports.numbers import loss_percent, percent
from reports.sentence import outcome_sentence, sentence
from results.document import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row
    from results.document import RunDocument

#: Also what a commit status shows: GitHub takes 140 characters there.
TITLE_LENGTH_MAX: Final = 140


class Conclusion(StrEnum):
    """What a check says in one colour."""

    #: Nothing became slower.
    SUCCESS = "success"
    #: Something did, or it does not build.
    FAILURE = "failure"
    #: Nothing can be said; this blocks nobody.
    NEUTRAL = "neutral"


@dataclass(frozen=True, kw_only=True)
class CheckText:
    """What a check shows; all of it Markdown but the title, which is plain text."""

    #: None while it is being measured.
    conclusion: Conclusion | None
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    #: Without a conclusion: nothing of it has begun.
    queued: bool = False


def waiting_check(suite: str) -> CheckText:
    """Return the check of a commit that waits for a machine or is on one."""
    said = f"suite {one_line(suite)} is being measured, or waits for a quiet machine"
    return CheckText(conclusion=None, title=said, summary="What comes of it is said here.")


def judged_check(
    rows: Sequence[Row],
    *,
    document: RunDocument,
    said: str | None = None,
    plan_path: str = "",
    plan_text: str = "",
    pull: int | None = None,
    page: str | None = None,
) -> CheckText:
    """Return the check of a judged run.

    Args:
        rows: Of the run.
        document: The run itself.
        said: The sentence about it where the service has a better one than its verdicts alone.
        plan_path: The plan in the repository, whose lines name the workloads.
        plan_text: The plan as the judged commit has it; without it no line is pointed at.
        pull: Number of the pull request, whose commits an ordinary clone does not have.
        page: Address of the commit's page.
    """
    verdicts = {row.workload: row.verdict for row in rows if row.verdict is not None}
    told = said or sentence(verdicts, at=document.candidate.commit.sha)
    return CheckText(
        conclusion=_conclusion(rows),
        title=title_of(told),
        summary=comment_markdown(
            rows, document=document, said=told, pull=pull, page=page, titled=is_whole_title(told)
        ),
        annotations=_slower_lines(rows, path=plan_path, text=plan_text),
    )


def unjudged_check(document: RunDocument, *, page: str | None = None) -> CheckText:
    """Return the check of a run without verdicts; compilers' errors become annotations."""
    at = document.candidate.commit.sha
    conclusion = {
        Outcome.MEASURED: None,
        Outcome.BUILD_FAILED: Conclusion.FAILURE,
        Outcome.UNCHANGED: Conclusion.SUCCESS,
        # A server that fails may be the commit's fault or the host's; nobody is blocked on a guess.
        Outcome.FAILED: Conclusion.NEUTRAL,
        Outcome.UNSTABLE: Conclusion.NEUTRAL,
        Outcome.BUILT: Conclusion.NEUTRAL,
    }[document.outcome]
    failed = document.failure if document.outcome is Outcome.BUILD_FAILED else None
    told = outcome_sentence(document.outcome, at=at, failure=document.failure)
    return CheckText(
        conclusion=conclusion,
        title=title_of(told),
        summary=unjudged_comment_markdown(document, page=page, titled=is_whole_title(told)),
        annotations=build_errors(failed.log_tail) if failed else (),
    )


def title_of(said: str) -> str:
    """Return as many whole clauses of a sentence as fit a title, at least part of the first."""
    clauses = one_line(said, length_max=10 * TITLE_LENGTH_MAX).split("; ")
    title = clauses[0]
    for clause in clauses[1:]:
        if len(f"{title}; {clause}") > TITLE_LENGTH_MAX:
            break
        title = f"{title}; {clause}"
    return one_line(title, length_max=TITLE_LENGTH_MAX)


def is_whole_title(said: str) -> bool:
    """Whether a title has all of a sentence: the summary below it need not say it again."""
    return title_of(said) == one_line(said, length_max=len(said) + 1)


def _conclusion(rows: Sequence[Row]) -> Conclusion:
    decisions = {row.verdict.decision for row in rows if row.verdict is not None}
    if Decision.REGRESSION in decisions:
        return Conclusion.FAILURE
    if not decisions or Decision.INCONCLUSIVE in decisions:
        return Conclusion.NEUTRAL
    return Conclusion.SUCCESS


def _slower_lines(rows: Sequence[Row], *, path: str, text: str) -> tuple[Annotation, ...]:
    """Return an annotation for each regression, at the plan's first line that names the workload.

    A slow commit has no slow line that a benchmark could point at; the plan's line says who asked.
    """
    if not path:
        return ()
    found = []
    for row in rows:
        if row.verdict is None or row.verdict.decision is not Decision.REGRESSION:
            continue
        line = _first_line_with(f'"{row.workload}"', text)
        if line is not None:
            loss = percent(loss_percent(-abs(row.verdict.change.effect)))
            title = f"{one_line(row.workload)} is {loss} slower"
            message = one_line(row.verdict.reason, length_max=1000)
            found.append(Annotation(path=path, line=line, title=title, message=message))
    return tuple(found[:ANNOTATIONS_MAX])


def _first_line_with(words: str, text: str) -> int | None:
    for number, line in enumerate(text.splitlines(), start=1):
        if words in line and not line.lstrip().startswith("#"):
            return number
    return None
