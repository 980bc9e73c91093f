"""The issue of an alert: its title, its text, and what is said when the alert closes or reopens.

What a confirmed regression is made of comes in, plain titles and Markdown go out. When an issue is
opened or closed, and by whom, was decided elsewhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from reports.facts import (
    compared,
    host_state,
    loudest_first,
    reasons,
    reproduction,
    setting,
    table_lines,
    visible_loss,
)
from reports.fitting import BODY_BYTES_MAX, Fold, fitted, most_lines
from reports.markdown import efficiency_markdown
from reports.markup import markdown, one_line
from reports.numbers import loss_percent, percent, short
from reports.sentence import NAMED_MAX, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reports.rows import Row
    from results.document import Commit, RunDocument

#: GitHub takes 256 characters.
TITLE_LENGTH_MAX: Final = 256
#: Of a workload in a title: three of them, the fork and the commit fit.
_NAME_LENGTH_MAX: Final = 48
_TABLE_SHARE: Final = 0.6


def issue_title(effects: Mapping[str, float], *, fork: str, bad: str) -> str:
    """Return the title as plain text, such as "demo: scan 9.1 % slower at 3f2c1ab0".

    Args:
        effects: Log ratio of each workload that became slower.
        fork: Name of the fork.
        bad: The first commit seen to be slower.
    """
    largest = sorted(effects.items(), key=lambda item: -abs(item[1]))
    named = [
        f"{one_line(name, length_max=_NAME_LENGTH_MAX)} {percent(loss_percent(-abs(size)))}"
        for name, size in largest[:NAMED_MAX]
    ]
    more = f" and {len(largest) - NAMED_MAX} more" if len(largest) > NAMED_MAX else ""
    what = ", ".join(named) or "something"
    title = f"{fork}: {what}{more} slower at {short(bad)}"
    return one_line(title, length_max=TITLE_LENGTH_MAX)


def issue_markdown(
    rows: Sequence[Row],
    *,
    document: RunDocument,
    good: str,
    page: str | None = None,
    bytes_max: int = BODY_BYTES_MAX,
) -> str:
    """Return the text of an alert's issue.

    Args:
        rows: Of the paired run that confirmed the regression.
        document: That run.
        good: Last commit known to be as fast as before; the culprit lies in `(good, bad]`.
        page: Address of the alert's page.
        bytes_max: Size of the text at most.
    """
    bad = document.candidate.commit
    ordered = loudest_first(rows)
    verdicts = {row.workload: row.verdict for row in ordered if row.verdict is not None}
    table = most_lines(
        lambda n: table_lines(ordered, n), len(ordered), bytes_max=int(bytes_max * _TABLE_SHARE)
    )
    head = "\n\n".join(
        [
            f"**{markdown(sentence(verdicts, at=bad.sha), length_max=2000)}**",
            table,
            visible_loss(rows),
            "\n".join(
                [
                    f"- Culprit: {_range(good=good, bad=bad)}",
                    compared(document),
                    host_state(document.host, document.placement),
                ]
            ),
            reproduction(document),
            _next(page),
        ]
    )
    folds = [
        Fold(title="Why each verdict", body=reasons(ordered) or "No workload was judged."),
        Fold(title="Cost per operation", body=efficiency_markdown(ordered)),
        Fold(title="What it was measured with", body=setting(document)),
    ]
    return fitted(head, folds, page=page, bytes_max=bytes_max)


def fast_again_markdown(
    effects: Mapping[str, float], *, at: Commit, page: str | None = None
) -> str:
    """Return what is said when the loss is gone; `effects` are log ratios to the slow level."""
    gains = ", ".join(
        f"{markdown(name)} {percent(_gain_percent(size))}"
        for name, size in sorted(effects.items(), key=lambda item: -abs(item[1]))[:NAMED_MAX]
    )
    faster = f" ({gains} faster than while this was open)" if gains else ""
    commit = f"`{short(at.sha)}` {markdown(at.subject)}"
    closed = "This alert is closed; it opens again if the loss comes back."
    return f"As fast as before again since {commit}{faster}. {closed}{_link(page)}"


def accepted_markdown(*, by: str, reason: str, page: str | None = None) -> str:
    """Return what is said when somebody takes the loss as intended."""
    why = f": {markdown(reason, length_max=500)}" if reason.strip() else ""
    return (
        f"Accepted as intended by {markdown(by)}{why}. "
        f"Later commits are compared with the new level. This alert is closed.{_link(page)}"
    )


def settled_markdown(
    *, how: str, by: str, reason: str, closed: bool = True, page: str | None = None
) -> str:
    """Return what is said when somebody closes the alert, or opens it again, by their word alone.

    Args:
        how: What they did, up to their name, such as "Called a false alarm by".
        by: Who.
        reason: Why, in their words; may be empty.
        closed: Whether it is closed now; else it is open again.
        page: Address of the alert's page.
    """
    why = f": {markdown(reason, length_max=500)}" if reason.strip() else ""
    state = "closed" if closed else "open again"
    return f"{how} {markdown(by)}{why}. This alert is {state}.{_link(page)}"


def slower_again_markdown(
    effects: Mapping[str, float], *, at: Commit, page: str | None = None
) -> str:
    """Return what is said when the same loss comes back; `effects` are log ratios."""
    named = ", ".join(
        f"{markdown(name)} {percent(loss_percent(-abs(size)))}"
        for name, size in sorted(effects.items(), key=lambda item: -abs(item[1]))[:NAMED_MAX]
    )
    commit = f"`{short(at.sha)}` {markdown(at.subject)}"
    what = f"Slower again since {commit}: {named or 'as before'}."
    return f"{what} This alert is open again.{_link(page)}"


def _range(*, good: str, bad: Commit) -> str:
    author = f" by {markdown(bad.author)}" if bad.author else ""
    if bad.parents[:1] == (good,):
        return f"`{bad.sha}` {markdown(bad.subject)}{author}"
    between = f"(`{short(good)}`, `{short(bad.sha)}`]"
    return f"one of {between}, without the first and with the last commit"


def _next(page: str | None) -> str:
    return (
        "This alert closes by itself when a later commit is as fast as before again. "
        "Intended? Say so on its page, or in its issue with `/forkwatch accept REASON`."
        f"{_link(page)}"
    )


def _link(page: str | None) -> str:
    return f" [Page of this alert]({page})" if page else ""


def _gain_percent(log_ratio: float) -> float:
    """Return by how many percent the new level is above the old one."""
    return math.expm1(min(abs(log_ratio), 50.0)) * 100
