"""The comment on a pull request: one sentence, the table, and how to see it for oneself.

The rows of a judged pair and its run document come in, Markdown that fits a comment goes out, and
whether it is worth anybody's attention. Where it is posted, and whether, was decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision
from reports.build_log import build_errors
from reports.facts import (
    compared,
    host_state,
    loudest_first,
    machine_line,
    reasons,
    reproduction,
    rows_that,
    setting,
    table_lines,
    visible_loss,
)
from reports.fitting import BODY_BYTES_MAX, Fold, fitted, most_lines
from reports.markdown import efficiency_markdown
from reports.markup import markdown, markdown_block
from reports.sentence import outcome_sentence, sentence
from results.document import Cause, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row
    from results.document import RunDocument

#: With more workloads than this, those shown unchanged are folded away: a table is read in a glance
#: or not at all, and the field's own suites have ten to forty.
OPEN_LINES_MAX: Final = 12
#: Errors of a build in sight; the rest is in the log and in the check's annotations.
ERRORS_MAX: Final = 3
#: The table's share of a text; folds and facts get the rest.
_TABLE_SHARE: Final = 0.6
_AGAIN: Final = "`/forkwatch run` measures again, `/forkwatch explain` says why"
_ACCEPT: Final = "`/forkwatch accept REASON` takes the loss as intended"
_FOR_WHOM: Final = "for people who may write to this repository"


def is_loud(rows: Sequence[Row]) -> bool:
    """Whether a comment is worth a person's attention unasked: only if something became slower."""
    return bool(rows_that(rows, Decision.REGRESSION))


def comment_markdown(
    rows: Sequence[Row],
    *,
    document: RunDocument,
    said: str | None = None,
    pull: int | None = None,
    page: str | None = None,
    titled: bool = False,
    bytes_max: int = BODY_BYTES_MAX,
) -> str:
    """Return the comment about a judged run.

    Args:
        rows: Of the run.
        document: The run itself.
        said: The sentence about it where the service has a better one than its verdicts alone.
        pull: Number of the pull request.
        page: Address of the commit's page.
        titled: The sentence stands above the text already, and is left out.
        bytes_max: Size of the text at most.
    """
    head = "\n\n".join(
        [
            *_headline(said or _sentence(rows, document), titled=titled),
            _table(rows, bytes_max=int(bytes_max * _TABLE_SHARE)),
            visible_loss(rows),
            f"{compared(document)}\n{host_state(document.host, document.placement)}",
            reproduction(document, pull=pull),
        ]
    )
    foot = " ".join([_commands(rows)] * (pull is not None) + _link(page))
    return fitted(head, _folds(rows, document), foot=foot, page=page, bytes_max=bytes_max)


def unjudged_comment_markdown(
    document: RunDocument,
    *,
    pull: int | None = None,
    page: str | None = None,
    titled: bool = False,
    bytes_max: int = BODY_BYTES_MAX,
) -> str:
    """Return the comment about a run that has no verdict: not built, failed, or a bad host.

    Arguments are those of `comment_markdown`.
    """
    at = document.candidate.commit.sha
    said = outcome_sentence(document.outcome, at=at, failure=document.failure)
    # What the host was like is said by the outcome itself, or was not looked at.
    machine = machine_line(document.host, document.placement)
    parts = [
        *_headline(said, titled=titled),
        *_first_errors(document),
        _what_to_do(document, commands=pull is not None),
        f"{compared(document)}\n{machine}",
    ]
    log = _failure_log(document)
    folds = [Fold(title="End of the log", body=log)] if log else []
    foot = " ".join(_link(page))
    return fitted("\n\n".join(parts), folds, foot=foot, page=page, bytes_max=bytes_max)


def _headline(said: str, *, titled: bool) -> list[str]:
    return [] if titled else [f"**{markdown(said, length_max=2000)}**"]


def _commands(rows: Sequence[Row]) -> str:
    """Return what may be ordered in a comment; without a loss there is nothing to accept."""
    orders = [_AGAIN, *([_ACCEPT] if is_loud(rows) else [])]
    return f"{', '.join(orders)}; {_FOR_WHOM}."


def _what_to_do(document: RunDocument, *, commands: bool) -> str:
    """Return what a run without verdicts means, and what a reader may do about it."""
    again = " `/forkwatch run` measures it again." if commands else ""
    if document.failure is not None and document.failure.cause is Cause.HOST:
        return f"That is the machine's fault and not the change's.{again}"
    return {
        Outcome.MEASURED: "Its numbers are stored; the verdict follows.",
        Outcome.BUILD_FAILED: "Nothing was measured, so nothing is said about its speed. "
        "It is measured once it builds with the options of the plan.",
        Outcome.UNCHANGED: "The same software is as fast as before.",
        Outcome.FAILED: "Nothing is said about its speed. If the server or the client fails "
        f"because of this change, the log says how.{again}",
        Outcome.UNSTABLE: f"That is the machine's fault and not the change's.{again}",
        Outcome.BUILT: "Nothing was to be measured.",
    }[document.outcome]


def _first_errors(document: RunDocument) -> list[str]:
    """Return the first errors of a build that name a line, so that nobody needs to open a log."""
    if document.outcome is not Outcome.BUILD_FAILED or document.failure is None:
        return []
    found = build_errors(document.failure.log_tail)
    lines = [
        f"- {markdown(error.path)}, line {error.line}: {markdown(error.message)}"
        for error in found[:ERRORS_MAX]
    ]
    if len(found) > ERRORS_MAX:
        lines.append(f"- and {len(found) - ERRORS_MAX} more")
    return ["\n".join(lines)] if lines else []


def _failure_log(document: RunDocument) -> str:
    """Return the end of the log of a failed run as a block, empty where there is none."""
    if document.failure is None or not document.failure.log_tail.strip():
        return ""
    return markdown_block(document.failure.log_tail)


def _sentence(rows: Sequence[Row], document: RunDocument) -> str:
    verdicts = {row.workload: row.verdict for row in rows if row.verdict is not None}
    return sentence(verdicts, at=document.candidate.commit.sha)


def _open_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the table in sight."""
    ordered = loudest_first(rows)
    if len(ordered) <= OPEN_LINES_MAX:
        return ordered
    calm = rows_that(ordered, Decision.NO_CHANGE)
    return [row for row in ordered if row not in calm] or ordered[:OPEN_LINES_MAX]


def _table(rows: Sequence[Row], *, bytes_max: int) -> str:
    shown = _open_rows(rows)
    table = most_lines(lambda n: table_lines(shown, n), len(shown), bytes_max=bytes_max)
    hidden = len(rows) - len(shown)
    return f"{table}\n\n{hidden} unchanged workloads are folded away below." if hidden else table


def _folds(rows: Sequence[Row], document: RunDocument) -> list[Fold]:
    ordered = loudest_first(rows)
    hidden = len(ordered) > len(_open_rows(rows))
    everything = [
        Fold(title=f"All {len(ordered)} workloads", body=table_lines(ordered, len(ordered)))
    ]
    return [
        *(everything if hidden else []),
        Fold(title="Why each verdict", body=reasons(ordered) or "No workload was judged."),
        Fold(title="Cost per operation", body=efficiency_markdown(ordered)),
        Fold(title="What it was measured with", body=setting(document)),
    ]


def _link(page: str | None) -> list[str]:
    return [f"[Page of this commit]({page})"] if page else []
