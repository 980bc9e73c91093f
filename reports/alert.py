"""The full text of an alert: its title, and below it the text of its issue.

A confirmed regression's run comes in, Markdown goes out for an issue, a file or a page. Whether
there is an alert at all was decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detectors.verdict import Decision
from reports.issue import issue_markdown
from reports.markup import markdown
from reports.numbers import loss_percent, percent, short
from reports.sentence import NAMED_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row
    from results.document import RunDocument


def alert_title(rows: Sequence[Row], *, fork: str, branch: str, bad: str) -> str:
    """Return the title of an alert as plain text: "demo/main: scan 9.1 % slower at 3f2c1ab0"."""
    slower = sorted(
        (
            (row.workload, row.verdict.change.effect)
            for row in rows
            if row.verdict and row.verdict.decision is Decision.REGRESSION
        ),
        key=lambda item: -abs(item[1]),
    )
    named = [f"{name} {percent(loss_percent(-abs(effect)))}" for name, effect in slower[:NAMED_MAX]]
    more = f" and {len(slower) - NAMED_MAX} more" if len(slower) > NAMED_MAX else ""
    return f"{fork}/{branch}: {', '.join(named)}{more} slower at {short(bad)}"


def alert_markdown(
    rows: Sequence[Row], *, document: RunDocument, good: str, page: str | None = None
) -> str:
    """Return the whole alert as Markdown.

    Args:
        rows: Of the paired run that confirmed the regression.
        document: That run.
        good: Last commit known to be as fast as before; the culprit lies in `(good, bad]`.
        page: Address of the alert's page, where the service has one.
    """
    bad = document.candidate.commit.sha
    title = alert_title(rows, fork=document.fork, branch=document.branch, bad=bad)
    text = issue_markdown(rows, document=document, good=good, page=page)
    return f"# {markdown(title)}\n\n{text}"
