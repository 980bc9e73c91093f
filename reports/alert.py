"""The full text of an alert: what got slower, since which commit, how sure, and how to see it.

A confirmed regression's facts come in, Markdown goes out for an issue, a file or a page. Whether
there is an alert at all was decided elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from detectors.verdict import Decision
from reports.facts import placed
from reports.markdown import efficiency_markdown, throughput_markdown
from reports.markup import markdown
from reports.numbers import detectable_percent, loss_percent, percent, short
from reports.sentence import NAMED_MAX, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row
    from results.document import Commit, Host, Placement


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
    rows: Sequence[Row],
    *,
    fork: str,
    branch: str,
    good: str,
    bad: Commit,
    host: Host,
    placement: Placement,
    page: str | None = None,
) -> str:
    """Return the whole alert as Markdown.

    Args:
        rows: Of the paired job that confirmed the regression.
        fork: Name of the fork.
        branch: Branch that was followed.
        good: Last commit known to be as fast as before; the range is `(good, bad]`.
        bad: The first commit seen to be slower.
        host: The machine that measured.
        placement: Which processors server and client ran on.
        page: Address of the alert's page, where the service has one.
    """
    verdicts = {row.workload: row.verdict for row in rows if row.verdict is not None}
    parts = [
        f"# {markdown(alert_title(rows, fork=fork, branch=branch, bad=bad.sha))}",
        f"**{markdown(sentence(verdicts, at=bad.sha), length_max=2000)}**",
        throughput_markdown(rows),
        _facts(rows, good=good, bad=bad, host=host, placement=placement),
        "## Reproduce",
        "In a checkout of the fork, on a quiet machine:",
        f"```\nforkwatch compare {good[:12]} {bad.sha[:12]}\n```",
        "## Cost per operation",
        efficiency_markdown(rows),
    ]
    if page:
        parts.append(f"Page of this alert: <{page}>")
    return "\n\n".join(parts) + "\n"


def _facts(rows: Sequence[Row], *, good: str, bad: Commit, host: Host, placement: Placement) -> str:
    """Return the list of facts: commit, range, machine and what the run could have shown."""
    author = f" by {markdown(bad.author)}" if bad.author else ""
    machine = f"{markdown(host.name)} (class {markdown(host.host_class)})"
    processor = f"{markdown(host.cpu_model)}, {host.logical_cpus} CPUs"
    starts = max((level.starts for row in rows if (level := row.candidate)), default=0)
    facts = [
        f"Commit: `{bad.sha}` {markdown(bad.subject)}{author}",
        f"Range: `({short(good)}, {short(bad.sha)}]`, without the first and with the last commit",
        f"Host: {machine}, {processor}; {placed(placement)}",
        f"Server starts per side: {starts}",
        f"Smallest loss this run would have shown: {_detectable(rows)}",
        *(f"Host warning: {markdown(warning)}" for warning in host.warnings),
    ]
    return "\n".join(f"- {fact}" for fact in facts)


def _detectable(rows: Sequence[Row]) -> str:
    """Return the smallest detectable effect of each workload, in words."""
    seen = [
        f"{markdown(row.workload)} "
        f"{percent(detectable_percent(row.verdict.change.detectable_effect))}"
        for row in rows
        if row.verdict is not None
    ]
    return ", ".join(seen) or "not known"
