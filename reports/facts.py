"""The facts around a judged run, for comments, checks and issues: what, where, and how to redo it.

A run document and its rows come in, short pieces of Markdown go out; each is complete in itself and
safe to put together in any order.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from detectors.verdict import Decision
from reports.markdown import LEGEND, table_markdown
from reports.markup import markdown
from reports.numbers import detectable_percent, percent, short
from reports.tables import throughput_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row
    from results.document import Host, Placement, RunDocument

#: Digits of a commit in a command: git takes them for any repository of today's size.
_COMMAND_SHA: Final = 12
#: A host that complains more often than this is of no use, whatever else it says.
_WARNINGS_MAX: Final = 10
#: What a shell reads as one word; the name comes from a run document.
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LOUDEST_FIRST: Final = (
    Decision.REGRESSION,
    Decision.IMPROVEMENT,
    Decision.INCONCLUSIVE,
    Decision.NO_CHANGE,
)


def loudest_first(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with what matters first: losses by size, then gains, then what is open."""

    def loudness(row: Row) -> tuple[int, float]:
        if row.verdict is None:
            return len(_LOUDEST_FIRST), 0.0
        return _LOUDEST_FIRST.index(row.verdict.decision), -abs(row.verdict.change.effect)

    return sorted(rows, key=loudness)


def rows_that(rows: Sequence[Row], *decisions: Decision) -> list[Row]:
    """Return the rows that were decided so."""
    return [row for row in rows if row.verdict and row.verdict.decision in decisions]


def table_lines(rows: Sequence[Row], count: int) -> str:
    """Return the verdict table of the first `count` rows, with its legend and what it lacks.

    A forge's column is narrow: the group, by which only summaries add up, is left out.
    """
    whole = throughput_table(rows[:count])
    lines = tuple(replace(line, cells=line.cells[:-1]) for line in whole.lines)
    table = replace(whole, columns=whole.columns[:-1], lines=lines)
    lacking = len(rows) - count
    more = f"\n\n{lacking} more workloads do not fit here." if lacking > 0 else ""
    return f"{table_markdown(table)}\n\n{LEGEND}{more}"


def visible_loss(rows: Sequence[Row]) -> str:
    """Return the sentence about the smallest loss that this run would have shown."""
    seen = sorted(
        (detectable_percent(row.verdict.change.detectable_effect), row.workload)
        for row in rows
        if row.verdict is not None
    )
    if not seen:
        return "What this run could have shown is not known: no workload was judged."
    begin = "Smallest loss that this run would have shown, four times out of five:"
    (least, at_least), (most, at_most) = seen[0], seen[-1]
    if percent(least) == percent(most):
        every = "" if len(seen) == 1 else " on every workload"
        return f"{begin} {percent(least)}{every}."
    return (
        f"{begin} {percent(least)} ({markdown(at_least)}) to {percent(most)} ({markdown(at_most)})."
    )


def compared(document: RunDocument) -> str:
    """Return what was compared, or should have been, as items of a list."""
    candidate = document.candidate.commit
    author = f" by {markdown(candidate.author)}" if candidate.author else ""
    commit = f"`{short(candidate.sha)}` {markdown(candidate.subject)}{author}"
    how = (
        f"suite {markdown(document.suite)}, build {markdown(document.variant)}, "
        f"config {markdown(document.config)}"
    )
    starts = f", {len(document.starts)} server starts" if document.starts else ""
    if document.baseline is None:
        return f"- Commit: {commit}\n- With {how}{starts}"
    if starts:
        starts += " per side, in alternation on one host"
    base = f"`{short(document.baseline.commit.sha)}`"
    return f"- Base {base}, candidate {commit}\n- With {how}{starts}"


def host_state(host: Host, placement: Placement) -> str:
    """Return the machine and whether it could be trusted, as items of a list."""
    machine = machine_line(host, placement)
    troubles = [markdown(warning) for warning in host.warnings]
    troubles += [
        f"canary {markdown(reading.name)} {markdown(reading.moment)} the job was "
        f"{reading.change_percent:+.1f} % off this host's usual level"
        for reading in host.canary
        if reading.suspicious and reading.change_percent is not None
    ]
    if not troubles:
        return f"{machine}\n- Host state: nothing unusual"
    lines = [machine]
    lines += [f"- Host warning: {trouble}" for trouble in troubles[:_WARNINGS_MAX]]
    if len(troubles) > _WARNINGS_MAX:
        lines.append(f"- and {len(troubles) - _WARNINGS_MAX} more warnings of the host")
    return "\n".join(lines)


def machine_line(host: Host, placement: Placement) -> str:
    """Return the machine alone, as an item of a list."""
    machine = f"{markdown(host.name)} (class {markdown(host.host_class)})"
    processor = f"{markdown(host.cpu_model)}, {host.logical_cpus} CPUs"
    return f"- Host: {machine}, {processor}; {placed(placement)}"


def placed(placement: Placement) -> str:
    """Return where server and client ran, in words."""
    mode = f"placement {markdown(placement.mode)}"
    if not placement.server_cpus:
        return mode
    server = ",".join(map(str, placement.server_cpus))
    client = ",".join(map(str, placement.client_cpus))
    return f"{mode}, server on CPU {server}, client on CPU {client}"


def reproduction(document: RunDocument, *, pull: int | None = None) -> str:
    """Return the commands that measure the same on somebody's own machine.

    Args:
        document: The run.
        pull: Number of the pull request, whose commits an ordinary clone does not have.
    """
    candidate = document.candidate.commit.sha[:_COMMAND_SHA]
    fetch = f"git fetch origin pull/{pull}/head\n" if pull is not None else ""
    suite = f" --suite {document.suite}" if _PLAIN.fullmatch(document.suite) else ""
    if document.baseline is None:
        command = f"forkwatch run {candidate}{suite}"
    else:
        base = document.baseline.commit.sha[:_COMMAND_SHA]
        command = f"forkwatch compare {base} {candidate}{suite}"
    return (
        "To see it yourself, in a checkout of the fork on a quiet machine:\n\n"
        f"```\n{fetch}{command}\n```"
    )


def reasons(rows: Sequence[Row]) -> str:
    """Return why each workload was judged as it was, as a list."""
    return "\n".join(
        f"- {markdown(row.workload)}: {row.verdict.decision.value}; "
        f"{markdown(row.verdict.reason, length_max=400)}"
        for row in rows
        if row.verdict is not None
    )


def setting(document: RunDocument) -> str:
    """Return what was built, loaded and run on, as a list: what another machine has to match."""
    host = document.host
    lines = [
        f"Operating system: {markdown(host.os)}, kernel {markdown(host.kernel)}",
        f"Client threads: {document.threads}; seed {document.seed}",
    ]
    if document.dataset is not None:
        data = document.dataset
        lines.append(
            f"Dataset: {markdown(data.name)}, tables: {data.tables}, "
            f"rows in each: {data.rows_per_table:,}"
        )
    for name, side in (("Base", document.baseline), ("Candidate", document.candidate)):
        if side is not None and side.artifact is not None:
            built = side.artifact
            lines.append(
                f"{name}: {markdown(built.server_version)}, "
                f"{markdown(built.toolchain.cxx_compiler)}, content {markdown(built.content_hash)}"
            )
    lines += [f"{markdown(name)}: {markdown(value)}" for name, value in host.settings.items()]
    lines += [f"Warning: {markdown(warning)}" for warning in document.warnings]
    return "\n".join(f"- {line}" for line in lines)
