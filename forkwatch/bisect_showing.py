"""What `forkwatch bisect` prints, draws and exits with.

A bisect document comes in; stdout gets the sentence with tables, Markdown or JSON, a file gets the
chart, and stderr what becomes of the jobs. It starts no work.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

import vl_convert
from rich.text import Text

from bisects.document import BisectEnd, CommitState
from bisects.prior import BESIDE, ELSEWHERE, weights
from forkwatch.errors import DoorError
from forkwatch.streams import EXIT_FOUND, err, out
from reports.bisect import (
    again_command,
    bisect_chart,
    bisect_markdown,
    bisect_sentence,
    explain_command,
    notes,
    sure,
)
from reports.bisect_evidence import evidence_renderables
from reports.bisect_tables import belief, commits_table, jobs_table
from reports.charts import PNG_WIDTH, png
from reports.markup import one_line
from reports.numbers import ratio, ratio_of, short
from reports.terminal import table_renderable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from bisects.document import BisectDocument
    from detectors.sequential import Look
    from forkwatch.bisect_question import Asked
    from reports.bisect_evidence import Evidence
    from results.document import Start
    from results.slice import Slice

_log = logging.getLogger("forkwatch.job")

#: The ends that are answers to what was asked.
_ANSWERS: Final = {BisectEnd.CULPRIT, BisectEnd.NOT_REPRODUCED, BisectEnd.INDISTINGUISHABLE}
_CHARTS: Final = (".png", ".svg", ".json")
#: Stages of every job that take seconds.
_USUAL: Final = ("dataset", "measure", "exact")


class BriefProgress:
    """Few log lines: a search has many jobs, and says itself what came of each."""

    def __init__(self) -> None:
        self._built: set[str] = set()

    def stage(self, name: str, detail: str) -> None:
        """Log what takes long: a commit is built in its first job, and others may measure here."""
        if name in _USUAL or detail.startswith("canary") or detail in self._built:
            return
        if name == "build":
            self._built.add(detail)
        _log.info("%s: %s", name, detail)

    def piece(self, start: int, piece: Slice) -> None:
        """Leave a slice to the line that comes after the job."""

    def start(self, start: Start, *, of: int) -> None:
        """Leave a start to it, too."""

    def look(self, workload: str, look: Look) -> None:
        """Leave a pair's own evidence out: it is that of the range which counts."""


def dry_run_lines(
    asked: Asked, document: BisectDocument, *, built: int, outside: Collection[str] = ()
) -> list[str]:
    """Return the range, how much of it can matter, and what a search will roughly take."""
    question, commits = asked.question, document.commits
    believed = weights(
        asked.range.commits,
        engine=document.engine,
        storage_engine=asked.storage_engine,
        outside=outside,
    )
    elsewhere, beside = believed.count(ELSEWHERE), believed.count(BESIDE)
    counted = "1 commit" if len(commits) == 2 else f"{len(commits) - 1} commits"  # noqa: PLR2004  the ends alone
    return [
        (
            f"{question.workload} of suite {question.suite}: {counted} after "
            f"{short(question.good)} up to {short(question.bad)}, along first parents"
        ),
        (
            f"by their paths {elsewhere} change nothing that runs ({_elsewhere(outside)}), "
            f"{beside} hardly anything"
        ),
        f"{built} of {len(commits)} are built already, {document.measured_starts} starts measured",
        (
            f"about {document.minutes_left or 0:.0f} minutes, at most {question.budget_minutes:g}; "
            f"{asked.starts_each} starts a side in each job, and an answer at {sure(question.stop)}"
        ),
    ]


def _elsewhere(outside: Collection[str]) -> str:
    told = ", sources that the server is not made of" if outside else ""
    return f"documentation, tests, packaging{told}"


def progress_line(document: BisectDocument) -> str:
    """Return what the newest job says, and where the search is with it."""
    newest = document.observations[-1]
    commit = document.commits[newest.commit]
    said = {
        CommitState.BROKEN: f"cannot be measured ({one_line(newest.failure, length_max=120)})",
        CommitState.SAME: "installs the same files as the good end",
    }.get(newest.state, " ".join(ratio(ratio_of(value)) for value in newest.log_ratios))
    likeliest = document.likeliest
    best = short(document.commits[likeliest].sha) if likeliest else "nothing changed"
    held = belief(document.commits[likeliest].posterior)
    # One that is over says so in its own sentence.
    left = "" if document.minutes_left is None else f", about {document.minutes_left:.0f} min left"
    return (
        f"{len(document.observations)}. {short(commit.sha)} {said}; most probable: {best} "
        f"({held}), {document.entropy_bits:.1f} bits unknown{left}"
    )


def show(
    document: BisectDocument,
    *,
    as_json: bool,
    as_markdown: bool,
    commands: Sequence[str],
    evidence: Evidence | None = None,
    commit_url: str | None = None,
) -> int:
    """Print a bisect and return the exit status it means: 1 where it ended without an answer.

    Args:
        document: The bisect.
        as_json: Print the document alone.
        as_markdown: Print a report.
        commands: Search what the culprit merged, where that was not done.
        evidence: What was counted at the culprit.
        commit_url: Address of commits, for links.
    """
    if as_json:
        print(document.model_dump_json(indent=2))  # noqa: T201  the product
    elif as_markdown:
        text = bisect_markdown(document, commit_url=commit_url, evidence=evidence)
        print(text)  # noqa: T201  the product
    else:
        _show_answer(document, evidence, commit_url)
    for command in commands:
        err.print(
            f"the culprit is a merge; what it merged is searched by: {command}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if document.end is BisectEnd.BUDGET:
        err.print("the same command goes on from here: what was measured is kept", markup=False)
    return 0 if document.end in _ANSWERS else EXIT_FOUND


def _show_answer(
    document: BisectDocument, evidence: Evidence | None, commit_url: str | None
) -> None:
    out.print(Text(one_line(bisect_sentence(document), length_max=4000), style="bold"))
    if document.culprit is not None and commit_url:
        found, place = document.culprit
        out.print(Text(f"{commit_url}/{found.commits[place].sha}"))
    _show_tables(document)
    if evidence is not None:
        for part in evidence_renderables(evidence):
            out.print(part)
    out.print(Text(f"again: {again_command(document)}"))
    explain = explain_command(document)
    if explain and (evidence is None or evidence.explanation is None):
        out.print(Text(f"why: {explain}"))


def _show_tables(document: BisectDocument) -> None:
    """Print the tables of a search, and of those within merges."""
    for note in notes(document):
        out.print(Text(note))
    out.print(table_renderable(commits_table(document)))
    out.print(Text(f"nothing changed at all: {belief(document.nothing)}"))
    out.print(table_renderable(jobs_table(document)))
    for commit in document.commits:
        if commit.state is CommitState.BROKEN:
            out.print(Text(f"{short(commit.sha)}: {one_line(commit.failure, length_max=300)}"))
    if document.merged is not None:
        out.print(Text("\nWhat the merge brought, beside its first parent:"))
        _show_tables(document.merged)


def refuse_chart_path(path: Path | None) -> None:
    """Refuse a place for the chart before hours have gone into what it shows.

    Raises:
        DoorError: It is no place, or no kind of file that is drawn.
    """
    if path is None:
        return
    if path.suffix not in _CHARTS:
        raise DoorError(f"{path} is no chart: name a file that ends in {', '.join(_CHARTS)}")
    if not path.parent.is_dir():
        raise DoorError(f"{path.parent} is no folder; make it first")


def write_chart(document: BisectDocument, path: Path) -> None:
    """Draw the chart of a bisect into a file.

    Raises:
        DoorError: It cannot be written.
    """
    spec = bisect_chart(document)
    try:
        path.write_bytes(_drawn(spec, path.suffix))
    except OSError as error:
        raise DoorError(f"{path} cannot be written: {error.strerror}") from error


def _drawn(spec: dict[str, Any], suffix: str) -> bytes:
    if suffix == ".png":
        return png(spec)
    if suffix == ".svg":
        # A container's width means nothing outside a page.
        return str(vl_convert.vegalite_to_svg({**spec, "width": PNG_WIDTH})).encode()
    return json.dumps(spec, indent=2).encode()
