"""What the page of a commit shows, gathered from the store in one reading transaction.

A session comes in, frozen values go out; the templates only lay them out. Numbers and words are
made by `reports`, so that a page says the same as an alert or the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from detectors.verdict import Decision
from reports.charts import starts_chart
from reports.comparison import counters_table, latency_table
from reports.exact_text import difference_lines, exact_sentence
from reports.load_and_start import LEGEND, load_and_start_table
from reports.rows import rows_against, rows_of_pair
from reports.sentence import outcome_sentence, sentence
from reports.tables import absolute_table, relative_table, throughput_table
from results.metric import THROUGHPUT
from results.slice import SideName
from service.core.errors import NotFoundError
from service.core.model import JobKind
from service.store import alerts, commits, events, runs, verdicts
from service.web.addresses import commit_path, workload_path
from service.web.commit_lines import commit_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from detectors.verdict import Verdict
    from reports.rows import Row, RunSide
    from reports.tables import Table
    from results.document import Artifact, Failure, Host, Placement, RunDocument
    from results.exact import ExactCounters
    from service.core.model import Alert, Event, StoredRun, VerdictRecord
    from service.web.commit_lines import CommitLine

__all__ = [
    "SUSPICIONS",
    "CommitPage",
    "RunPart",
    "commit_page",
    "commit_path",
    "run_part",
    "workload_path",
]

#: Baseline runs whose documents are read for the costs per operation; the newest say enough, and
#: each costs some milliseconds.
BASELINE_DOCUMENTS_MAX: Final = 8
#: Decisions of a commit's own job that stay a suspicion until a paired job has confirmed them.
SUSPICIONS: Final = (Decision.REGRESSION, Decision.IMPROVEMENT)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with the heading and the address of its workload's page."""

    workload: str
    link: str
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Why a verdict on a workload is what it is, where its numbers alone do not say."""

    workload: str
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ExactPart:
    """Exact counters of a pair in words."""

    sentence: str
    #: What differs, and what could not be compared.
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """One run of a commit: its verdicts, its costs, its charts."""

    run: StoredRun
    sentence: str
    #: One for each workload.
    rows: tuple[Row, ...]
    #: Verdicts, absolute and relative costs; of a pair also latency, and counters that differ.
    tables: tuple[Table, ...]
    remarks: tuple[Remark, ...]
    charts: tuple[Chart, ...]
    #: Loading, start-up, memory; None where the document tells nothing of it.
    facts: Table | None
    facts_legend: str
    exact: ExactPart | None
    failure: Failure | None
    artifact: Artifact | None
    host: Host
    placement: Placement
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CommitPage:
    """Everything on the page of a commit."""

    line: CommitLine
    alert: Alert | None
    #: The paired run first: it is what people are told.
    runs: tuple[RunPart, ...]
    events: tuple[Event, ...]


def commit_page(session: Session, fork: str, sha: str) -> CommitPage:
    """Return the page of a commit.

    Raises:
        NotFoundError: The fork has no such commit.
    """
    record = commits.find(session, fork, sha)
    if record is None:
        raise NotFoundError(f"Fork {fork} has no commit {sha}.")
    judged = verdicts.of_commit(session, fork, sha)
    stored = runs.of_commit(session, fork, sha)
    newest_first = sorted(stored, key=lambda run: run.kind is not JobKind.CONFIRM)
    parts = [
        run_part(session, run, [verdict for verdict in judged if verdict.run == run.id])
        for run in newest_first
    ]
    return CommitPage(
        line=commit_line(record),
        alert=alerts.of_commit(session, fork, sha),
        runs=tuple(parts),
        events=tuple(events.of_commit(session, fork, sha)),
    )


def verdicts_by_workload(records: Sequence[VerdictRecord]) -> dict[str, Verdict]:
    """Return the verdicts on throughput, by workload."""
    return {
        record.series.workload: record.verdict
        for record in records
        if record.series.metric == THROUGHPUT.name
    }


def run_part(session: Session, run: StoredRun, judged: Sequence[VerdictRecord]) -> RunPart:
    """Return a run with its tables and charts."""
    document = runs.document(session, run.id)
    by_workload = verdicts_by_workload(judged)
    if document.paired:
        rows = rows_of_pair(document, by_workload)
    else:
        rows = rows_against(document, _baselines(session, judged), by_workload)
    if by_workload:
        words = sentence(by_workload, at=run.sha, confirmed=run.kind is JobKind.CONFIRM)
    else:
        words = outcome_sentence(document.outcome, at=run.sha, failure=document.failure)
    facts = load_and_start_table(document)
    return RunPart(
        run=run,
        sentence=words,
        rows=rows,
        tables=(*_tables(rows), *_pair_tables(document)),
        remarks=_remarks(by_workload),
        charts=tuple(_starts_chart(document, row) for row in rows if row.candidate),
        facts=facts if facts.lines else None,
        facts_legend=LEGEND,
        exact=_exact_part(document.exact) if document.exact else None,
        failure=document.failure,
        artifact=document.candidate.artifact,
        host=document.host,
        placement=document.placement,
        warnings=(*document.host.warnings, *document.warnings),
    )


def _baselines(session: Session, judged: Sequence[VerdictRecord]) -> dict[str, list[RunSide]]:
    """Return, by workload, the newest runs that a verdict was compared with."""
    wanted = {
        record.series.workload: record.baseline_inputs[-BASELINE_DOCUMENTS_MAX:]
        for record in judged
        if record.series.metric == THROUGHPUT.name
    }
    ids = dict.fromkeys(run_id for inputs in wanted.values() for run_id, _ in inputs)
    documents = {run_id: runs.document(session, run_id) for run_id in ids}
    return {
        workload: [(documents[run_id], SideName(side)) for run_id, side in inputs]
        for workload, inputs in wanted.items()
    }


def _tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    tables = (throughput_table(rows), relative_table(rows), absolute_table(rows))
    return tuple(table for table in tables if table.lines)


def _pair_tables(document: RunDocument) -> tuple[Table, ...]:
    """Return what only two sides of one run tell: latency, and counters that differ."""
    if not document.paired:
        return ()
    sides = ((document, SideName.BASELINE), (document, SideName.CANDIDATE))
    workloads = document.workloads()
    tables = (latency_table(*sides, workloads), counters_table(*sides, workloads))
    return tuple(table for table in tables if table.lines)


def _remarks(verdicts_of: dict[str, Verdict]) -> tuple[Remark, ...]:
    """Return what verdicts warn of, and what a decision would take where there is none."""
    found = []
    for workload, verdict in verdicts_of.items():
        undecided = verdict.decision is Decision.INCONCLUSIVE and verdict.reason
        words = (*((verdict.reason,) if undecided else ()), *verdict.change.warnings)
        if words:
            found.append(Remark(workload=workload, words=words))
    return tuple(found)


def _exact_part(exact: ExactCounters) -> ExactPart:
    differences = [line for case in exact.different for line in difference_lines(case)]
    gaps = [f"not compared: {gap}" for gap in exact.gaps]
    return ExactPart(sentence=exact_sentence(exact), lines=(*differences, *gaps))


def _starts_chart(document: RunDocument, row: Row) -> Chart:
    return Chart(
        workload=row.workload,
        link=workload_path(document.fork, row.workload),
        spec=starts_chart(
            document, row.workload, baseline=None if document.paired else row.baseline
        ),
    )
